"""Opening files that users name: those that may not end are read up to a limit.

A name may be that of a pipe, such as ``/dev/stdin`` or what a shell makes of ``<(command)``, or of a device
without an end. This belongs to no room: every room that reads files uses it.
"""

import io
import stat
from os import fstat
from pathlib import Path
from typing import BinaryIO

from batsched_py.errors import InputError

#: How many bytes are read of what is no regular file.
LONGEST_STREAM = 256 << 20

_PIECE = 1 << 20


def open_input(path: str | Path) -> BinaryIO:
    """A file to read bytes from; what is no regular file is read at once, if it ends in time."""
    file = Path(path).open("rb")  # noqa: SIM115, for it is handed on
    if stat.S_ISREG(fstat(file.fileno()).st_mode):
        return file
    with file:
        content = io.BytesIO()
        while piece := file.read(_PIECE):
            content.write(piece)
            if content.tell() > LONGEST_STREAM:
                raise InputError(
                    f"{path}: has no end within {LONGEST_STREAM >> 20} MiB; if it has one, save it to a file"
                )
    content.seek(0)
    return content


def read_input(path: str | Path) -> bytes:
    """All bytes of a file."""
    with open_input(path) as file:
        return file.read()
