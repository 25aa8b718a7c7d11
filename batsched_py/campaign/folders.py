"""Folders that appear complete or not at all, even if a process is killed or the disk is full."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from batsched_py.errors import InputError

T = TypeVar("T")

#: The largest JSON file that is read: far more than any campaign writes, far less than memory.
LARGEST_JSON = 64 << 20


@contextmanager
def workspace(parent: Path, name: str) -> Iterator[Path]:
    """An empty folder to work in, which is removed in the end."""
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}.", dir=parent))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_leftovers(parent: Path, name: str) -> None:
    """Remove the workspaces of a name. A process leaves one if it is stopped as it makes or removes it."""
    own = re.compile(re.escape(name) + r"\.[a-z0-9_]{8}")
    for folder in parent.iterdir() if parent.is_dir() else ():
        if own.fullmatch(folder.name):
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


def read_json(path: Path, kind: type[T]) -> T:
    """What a JSON file holds; one that cannot be used is reported in one line."""
    try:
        with path.open("rb") as file:
            return decode_json(file.read(LARGEST_JSON + 1), kind)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def decode_json(content: bytes, kind: type[T]) -> T:
    """The value that a JSON text holds; the text may come from anywhere."""
    if len(content) > LARGEST_JSON:
        raise InputError(f"is larger than the {LARGEST_JSON >> 20} MiB that are read of such a file")
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not what a campaign writes: {error}") from None


def is_name(text: str) -> bool:
    """Whether a text can be the name of one file or folder inside another, and shown on a terminal.

    >>> [is_name(text) for text in ("kth_full_easy", "..", "a/b", "/etc", "", "a\\x1b[2J")]
    [True, False, False, False, False, False]
    """
    return text not in ("", ".", "..") and text.isprintable() and not {"/", "\\"} & set(text)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
