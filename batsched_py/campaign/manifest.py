"""The manifest of a run: what it was made of, by whom, and how to make it again."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable
from importlib import metadata
from os.path import isfile
from pathlib import Path

import msgspec
from msgspec import Struct

import batsched_py
from batsched_py.campaign.digest import digest_of_file
from batsched_py.campaign.folders import read_json
from batsched_py.campaign.result_files import is_result
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment

MANIFEST_FILE = "manifest.json"

#: Has the checksum of the manifest, in the format of ``sha256sum``; runs of former versions have none.
SEAL_FILE = "manifest.sha256"

_LIBRARIES = ("msgspec", "networkx", "numpy", "pandas", "pyzmq")


class FileDigest(Struct, frozen=True):
    """A file that was read or written."""

    path: str
    """As it was given; of a result, its name in the run's folder."""
    sha256: str
    size: int

    @classmethod
    def of(cls, path: Path, name: str) -> FileDigest:
        """That of a file as it is now, under a name."""
        return cls(name, digest_of_file(path), path.stat().st_size)


class Manifest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is known about a finished run."""

    run: str
    identity: str
    """The digest of what the results depend on; a run of another identity has other results."""
    axes: dict[str, str]
    """The choices of the plan that make this run; a random one has its ``seed`` here."""
    experiment: Experiment
    command: str
    """What makes this run again, alone."""
    simulator: str
    engine: str = ""
    """``native`` or ``python``; empty if another simulator ran, and in manifests of former versions."""
    code: str
    """The digest of the code that made it."""
    inputs: list[FileDigest]
    results: list[FileDigest]
    versions: dict[str, str]
    host: dict[str, str]
    started: str
    """Date and time, UTC."""
    seconds: dict[str, float]
    """How long each step took."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in the folder of a run."""
        return read_json(folder / MANIFEST_FILE, cls)

    def still_has(self, files: Iterable[str]) -> bool:
        """Whether some of its input files are still what they were."""
        digests = {file.path: file.sha256 for file in self.inputs}
        return all(isfile(file) and digest_of_file(file) == digests.get(file) for file in files)

    @property
    def files(self) -> list[str]:
        """The names of all files in the folder of the run."""
        return [MANIFEST_FILE, SEAL_FILE, *(result.path for result in self.results)]

    def write(self, folder: Path) -> None:
        """Put it into the folder of the run, with its checksum."""
        (folder / MANIFEST_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(self)))
        (folder / SEAL_FILE).write_text(_seal(folder))


def is_finished(folder: Path, identity: str) -> bool:
    """Whether a folder holds a whole run of this identity, the manifest and all results unchanged."""
    try:
        manifest = Manifest.read(folder)
        return (
            manifest.identity == identity
            and _has_its_seal(folder)
            and all(
                is_result(result.path) and digest_of_file(folder / result.path) == result.sha256
                for result in manifest.results
            )
        )
    except InputError:
        return False


def _seal(folder: Path) -> str:
    return f"{digest_of_file(folder / MANIFEST_FILE)}  {MANIFEST_FILE}\n"


def _has_its_seal(folder: Path) -> bool:
    """Whether the manifest is as it was written; nobody knows for one of a former version."""
    try:
        return (folder / SEAL_FILE).read_bytes() == _seal(folder).encode()
    except FileNotFoundError:
        return True
    except OSError as error:
        raise InputError(f"{folder / SEAL_FILE}: cannot be read: {error.strerror}") from None


def versions() -> dict[str, str]:
    """What software runs here."""
    return {
        "batsched-py": batsched_py.__version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in _LIBRARIES},
    }


def host_facts() -> dict[str, str]:
    """What machine this is."""
    return {
        "name": platform.node(),
        "system": platform.platform(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "python": sys.implementation.name,
    }


def _processor() -> str:
    """The model of the processor, where Linux tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
