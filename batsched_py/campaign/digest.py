"""What a run is made of, as digests: two runs with the same digest have the same results.

A run depends on the content of its input files, not on where they lie; on its options; and on the code that
simulates it. Of the code, only what is reachable from the modules of a simulation counts: a new scheduler
or another table in the report leaves finished runs as they are, a corrected policy renews its own runs only.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from batsched_py.errors import InputError
from batsched_py.experiment import Experiment
from batsched_py.schedulers import SCHEDULERS
from batsched_py.users import USERS

_PACKAGE = "batsched_py"

#: The module that makes the results of every run.
_ROOT = "batsched_py.campaign.simulate"


def digest_of_file(path: str | Path) -> str:
    """The SHA-256 of a file's bytes; it is computed again only when the file was touched."""
    try:
        status = Path(path).stat()
        return _digest_of_version(Path(path), status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


@lru_cache(maxsize=1024)
def _digest_of_version(path: Path, modified: int, size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_value(value: Any) -> str:
    """The SHA-256 of a value that can be written as JSON."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def input_files(experiment: Experiment) -> list[str]:
    """The files that an experiment reads, code of the user's own included."""
    files = [experiment.workload]
    if experiment.platform is not None:
        files.append(experiment.platform)
    for plugin in (experiment.scheduler, experiment.users or ""):
        if ".py:" in plugin:
            files.append(plugin.rpartition(":")[0])
    return files


def identity(experiment: Experiment, simulator: str) -> str:
    """The digest of everything that the results of a run depend on."""
    anonymous = msgspec.structs.replace(
        experiment,
        workload="",
        platform=None,
        scheduler=experiment.scheduler.rpartition(":")[2],
        users=experiment.users and experiment.users.rpartition(":")[2],
    )
    return digest_of_value(
        {
            "inputs": [digest_of_file(file) for file in input_files(experiment)],
            "experiment": anonymous,
            "code": digest_of_code(experiment),
            "simulator": simulator,
        }
    )


def digest_of_code(experiment: Experiment) -> str:
    """The digest of the code that runs an experiment."""
    return _digest_of_plugins(experiment.scheduler, experiment.users)


@lru_cache(maxsize=256)
def _digest_of_plugins(scheduler: str, users: str | None) -> str:
    modules = [_ROOT, SCHEDULERS.find(scheduler).__module__]
    if users is not None:
        modules.append(USERS.find(users).__module__)
    return digest_of_value({name: digest_of_file(path) for name, path in reachable_modules(modules).items()})


def reachable_modules(roots: Iterable[str]) -> dict[str, Path]:
    """The modules of this package that some of them import, directly or not, with their files."""
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if name not in found and path is not None:
            found[name] = path
            waiting.extend(_imports(path))
    return found


@lru_cache(maxsize=1024)
def _source(module: str) -> Path | None:
    """The file of a module, unless it is a namespace, compiled or none at all."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return None
    return Path(spec.origin)


@lru_cache(maxsize=256)
def _imports(path: Path) -> list[str]:
    """The modules of this package that a file imports, wherever in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.split(".")[0] == _PACKAGE]
