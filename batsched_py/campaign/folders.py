"""Folders that are there completely or not at all, whatever was killed and whatever disk was full."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from batsched_py.errors import InputError


@contextmanager
def workspace(parent: Path, name: str) -> Iterator[Path]:
    """An empty folder to work in; what is left of it in the end is removed."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def publish(folder: Path, target: Path) -> None:
    """Give a finished folder its place; what was there before is replaced.

    Everything is on the disk before the name changes, so that no crash can leave a name without its content.
    """
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            _sync(path)
    _sync(folder)
    target.parent.mkdir(parents=True, exist_ok=True)
    with workspace(folder.parent, target.name) as former:
        while True:
            try:
                os.rename(folder, target)
                break
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            with suppress(FileNotFoundError):
                os.rename(target, Path(tempfile.mkdtemp(dir=former)))
        _sync(target.parent)


def write_file(path: Path, content: bytes) -> None:
    """Write a whole file, or leave the one that was there."""
    part = path.with_name(f"{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_bytes(content)
            _sync(part)
            os.replace(part, path)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        _sync(path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
