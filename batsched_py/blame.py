"""Where code that others wrote failed: the line to show to whoever wrote it."""

from __future__ import annotations

import traceback
from pathlib import Path

_OURS = Path(__file__).resolve().parent


def culprit(error: BaseException) -> str:
    """The file and line of an error: the last one that is neither ours nor of an installed library.

    What a policy hands over, such as an order with other parameters than it will be called with, fails in our
    code; what is at fault is the policy. One of our own policies has no such line, then it is the last one.
    What is called from compiled code with parameters that it does not take has not even begun.
    """
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "before its first line"
    theirs = [frame for frame in frames if not _is_ours_or_installed(frame.filename)]
    where = (theirs or frames)[-1]
    return f"{where.filename}:{where.lineno}"


def _is_ours_or_installed(file: str) -> bool:
    path = Path(file)
    if "site-packages" in path.parts or file.startswith("<"):
        return True
    return path.resolve().is_relative_to(_OURS)
