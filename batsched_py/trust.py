"""Which code may be executed: the user's own, and that of others if the user trusts them.

A user's own code is what a command line, a Python program or a plan of their own names. Files from others are
data: a campaign that was imported, a fitted model, the manifest of a run. Code that they name or contain is
executed only if the user said ``--trust``. :mod:`~batsched_py.plugins` asks :func:`check_code` before it
executes any file, so this holds for every kind of plugin.

This belongs to no room, for the same reason as ``plugins``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import msgspec

from batsched_py.errors import InputError


class NotTrusted(InputError):
    """Code of others that is not executed."""


#: What lies beside the plan of a campaign that came out of an archive: which one, and whether it is trusted.
IMPORTED_FILE = "imported.json"

_trusting: ContextVar[bool] = ContextVar("trusting", default=False)
_doubt: ContextVar[str] = ContextVar("doubt", default="")


@contextmanager
def trusting() -> Iterator[None]:
    """Execute all code that is named meanwhile, because the user said so."""
    token = _trusting.set(True)
    try:
        yield
    finally:
        _trusting.reset(token)


@contextmanager
def distrusting(reason: str) -> Iterator[None]:
    """Execute no file that is named meanwhile, unless the user trusts; the error ends with ``reason``."""
    token = _doubt.set(reason)
    try:
        yield
    finally:
        _doubt.reset(token)


@contextmanager
def code_named_in(file: Path, trust: bool) -> Iterator[None]:
    """The rule while a plan is read or obeyed: with ``trust``, or if it is the user's own, its code runs."""
    if trust:
        with trusting():
            yield
    elif distrusted_folder(file) is not None:
        with distrusting(f"{file} was imported; give --trust to execute the code that it names"):
            yield
    else:
        yield


def distrusted_folder(file: Path) -> Path | None:
    """The imported campaign in which a file lies, if there is one and the user did not trust it then."""
    return next((folder for folder in file.resolve().parents if is_distrusted(folder)), None)


def is_distrusted(folder: Path) -> bool:
    """Whether a folder holds a campaign that was imported without ``--trust``."""
    return (folder / IMPORTED_FILE).exists() and not is_trusted_import(folder)


def is_trusted_import(folder: Path) -> bool:
    """Whether a folder holds a campaign that was imported with ``--trust``."""
    try:
        origin = msgspec.json.decode((folder / IMPORTED_FILE).read_bytes(), type=dict[str, object])
    except (OSError, msgspec.MsgspecError, ValueError):
        return False
    return origin.get("trusted") is True


def check_code(file: str | Path) -> None:
    """Raise an error unless the code in a file may be executed."""
    if _trusting.get():
        return
    reason = _doubt.get()
    if not reason and (folder := distrusted_folder(Path(file))) is not None:
        reason = f"{folder} was imported; to execute code in it, import it with --trust"
    if reason:
        raise NotTrusted(f"{file} is not executed: {reason}")
