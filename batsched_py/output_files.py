"""Writing files so that each is whole or not there: one gets its name only when all of it is on the disk.

Until then it has no name at all where the system allows that, so that nothing is left of it even if the
process is killed. A file of the same name stays as it is until then. This belongs to no room: every room that
writes files uses it.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from typing import BinaryIO, TextIO

from batsched_py.errors import InputError


class Draft:
    """A file that is being written: :meth:`complete` gives it its name, :meth:`abandon` removes it.

    If it is ``visible``, it is called ``NAME.part`` meanwhile. What is no regular file, such as a pipe or
    ``/dev/stdout``, cannot be replaced, and is written as it is.
    """

    def __init__(self, path: Path, visible: bool = False) -> None:
        self._path = Path(os.path.realpath(path))
        self._part: Path | None = None
        self._former = _mode(path)
        self._replaces = self._former is None or stat.S_ISREG(self._former)
        if not self._replaces:
            self.file: BinaryIO = path.open("wb")
        elif self._former is not None and not os.access(self._path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        else:
            self.file = os.fdopen(self._begin(visible), "wb")

    def _begin(self, visible: bool) -> int:
        """The descriptor of a new file, which has a name only if it needs one."""
        if not visible and (descriptor := _nameless(self._path.parent)) is not None:
            return descriptor
        self._part = self._path.with_name(f"{self._path.name}.part") if visible else self._other_name()
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        return os.open(self._part, flags | (os.O_TRUNC if visible else os.O_EXCL), 0o666)

    def _other_name(self) -> Path:
        return self._path.with_name(f".{os.urandom(8).hex()}.part")

    def complete(self) -> None:
        """Give the file its name, when all of it is on the disk."""
        self.file.flush()
        if self._replaces:
            descriptor = self.file.fileno()
            os.fsync(descriptor)
            if self._former is not None:
                os.fchmod(descriptor, stat.S_IMODE(self._former))
            self._name(descriptor)
            _sync_folder(self._path.parent)
        self.file.close()

    def _name(self, descriptor: int) -> None:
        if self._part is None:
            with suppress(FileExistsError):
                _link(descriptor, self._path)
                return
            self._part = self._other_name()
            _link(descriptor, self._part)
        os.replace(self._part, self._path)
        self._part = None

    def abandon(self) -> None:
        """Remove what was written: half a file is easily taken for a whole one."""
        with suppress(OSError):
            self.file.close()
        if self._part is not None:
            self._part.unlink(missing_ok=True)


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _nameless(folder: Path) -> int | None:
    """The descriptor of a new file without a name, which can be given one; not every system has them."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666)
    except OSError:
        return None  # if it is the folder that is wrong, the file with a name will tell
    if os.path.exists(f"/proc/self/fd/{descriptor}"):
        return descriptor
    os.close(descriptor)
    return None


def _link(descriptor: int, path: Path) -> None:
    os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor, follow_symlinks=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(path: str | Path) -> Iterator[BinaryIO]:
    """A file to write bytes to; it gets its name at the end, and is nowhere if anything fails before."""
    draft = Draft(Path(path))
    try:
        yield draft.file
        draft.complete()
    except BaseException:
        draft.abandon()
        raise


@contextmanager
def writing_text(path: str | Path) -> Iterator[TextIO]:
    """The same for text in UTF-8; lines end as they are written."""
    with writing(path) as file:
        text = TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()


def write_file(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Write a whole file, in a folder that is made if there is none; the reason why not is one line."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with writing(Path(path)) as file:
            file.write(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
