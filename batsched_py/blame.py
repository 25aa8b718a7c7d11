"""Which line failed of a policy or a user, and whether it is theirs or a library's."""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

from batsched_py.errors import BatschedError, InputError
from batsched_py.protocol.shown import harmless

#: So many letters of what an error says are told.
_LONGEST = 500

_OURS = Path(__file__).resolve().parent

#: The installed packages that take part, as folders, or as files where they are no more than a module.
_GUESTS: set[Path] = set()


def is_fault(error: BaseException) -> bool:
    """Whether an error is the fault of who raised it, rather than a wish to stop the simulation."""
    if isinstance(error, Exception | SystemExit | GeneratorExit):
        return True
    return not (isinstance(error, KeyboardInterrupt) or type(error).__module__.startswith("batsched_py."))


def told(error: BaseException, function: object = None) -> str:
    """An error in one line: its kind, what it says, and the line at fault.

    If no line of others led to it, but what their ``function`` gave back, then it is that function's line.

    >>> told(ValueError("two\\nlines"))
    'ValueError: two lines (before its first line)'
    """
    text = harmless(_text_of(error))
    if function is None or _lines_of_others(error) or _called_wrongly(error):
        where = culprit(error)
    elif (code := getattr(function, "__code__", None)) is not None:
        where = f"{code.co_filename}:{code.co_firstlineno}"
    else:
        where = "before its first line"
    return f"{type(error).__name__}{text and ': '}{text} ({where})"


def _text_of(error: BaseException) -> str:
    """What an error says, whoever made its class."""
    if isinstance(error, RecursionError):
        return "maximum recursion depth exceeded"
    try:
        return str(error)[:_LONGEST]
    except Exception:
        return "what it says cannot be told"


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Turn a mistake in the code of others into one line that names it; ours stay what they are."""
    try:
        yield
    except BatschedError:
        raise
    except (Exception, SystemExit) as error:
        if not _lines_of_others(error) and _called_wrongly(error) is None:
            raise
        raise InputError(f"{what} failed: {told(error)}") from error


def line_of(error: BaseException) -> str:
    """The line of others that led to an error, in brackets; nothing if there is none."""
    theirs = _lines_of_others(error)
    return f" ({theirs[-1].filename}:{theirs[-1].lineno})" if theirs else ""


def culprit(error: BaseException) -> str:
    """The file and line of an error: the last one that is neither ours nor of an installed library.

    What a policy hands over fails in our code; what is at fault is the policy. An order or a condition that
    has other parameters than it is called with never gets to a line of its own: it is named itself. One of
    our own policies has no such line, then it is the last one; what compiled code could not even call has
    none at all.
    """
    if (function := _called_wrongly(error)) is not None:
        return f"{function.co_filename}:{function.co_firstlineno}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "before its first line"
    where = (_lines_of_others(error) or frames)[-1]
    return f"{where.filename}:{where.lineno}"


def _lines_of_others(error: BaseException) -> list[traceback.FrameSummary]:
    frames = traceback.extract_tb(error.__traceback__)
    return [frame for frame in frames if not _is_ours_or_installed(frame.filename)]


def take_part(classes: Iterable[type]) -> None:
    """Take the packages that define these classes for what somebody wrote for this, although installed."""
    known = len(_GUESTS)
    for cls in classes:
        if cls.__module__.startswith("batsched_py."):
            continue
        parts = cls.__module__.split(".")
        names = (".".join(parts[: number + 1]) for number in range(len(parts)))
        packages = (sys.modules[name] for name in names if name in sys.modules)
        whole = next((package for package in packages if getattr(package, "__file__", None)), None)
        if whole is not None:
            assert whole.__file__ is not None
            file = Path(whole.__file__).resolve()
            _GUESTS.add(file.parent if hasattr(whole, "__path__") else file)
    if len(_GUESTS) > known:
        is_installed.cache_clear()


@cache
def is_installed(file: str) -> bool:
    """Whether a file is of an installed library or of Python itself.

    What we or a user wrote is not, nor are the packages of others that take part.
    """
    path = Path(file)
    if file.startswith("<") or "site-packages" in path.parts:
        return not any(path.resolve().is_relative_to(each) for each in (_OURS, *_GUESTS))
    from sysconfig import get_path

    return path.is_relative_to(get_path("stdlib"))


def _is_ours_or_installed(file: str) -> bool:
    return is_installed(file) or Path(file).resolve().is_relative_to(_OURS)


def _called_wrongly(error: BaseException) -> CodeType | None:
    """The function that others wrote and that cannot be called with the arguments it was given."""
    last = error.__traceback__
    told = re.match(r"([\w.<>]+)\(\) (?:takes|missing|got) ", _text_of(error))
    if not isinstance(error, TypeError) or last is None or told is None:
        return None
    while last.tb_next is not None:
        last = last.tb_next
    for value in last.tb_frame.f_locals.values():
        if isinstance(value, FunctionType) and value.__qualname__ == told[1]:
            code = value.__code__
            return None if _is_ours_or_installed(code.co_filename) else code
    return None
