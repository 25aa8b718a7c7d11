"""The files of a campaign: what results depend on, as digests, and folders that appear complete or never.

Runs with the same digest have the same results. A run depends on the content of its input files, not on where
they lie; on its options; and on the Python code of a simulation. Of that, only what is reachable from the
modules of a simulation counts: a new scheduler or another table in the report leaves finished runs as they
are, a corrected policy renews its own runs only. The native engine gives the results of the Python code, so
it makes no difference which of the two ran, how it was built, or by which Python.

A folder appears complete even if a process is killed or the disk is full.
"""

import ast
import errno
import hashlib
import importlib.util
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from batsched_py.analysis.windows import Window
from batsched_py.decision.pybatsim import pybatsim_version
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment
from batsched_py.plugins import PYBATSIM, Registry
from batsched_py.schedulers import SCHEDULERS
from batsched_py.users import USERS

_PACKAGE = "batsched_py"

#: The module that makes the results of every run.
ROOT = "batsched_py.campaign.results"


def digest_of_file(path: str | Path) -> str:
    """The SHA-256 of a file's bytes; it is computed again only when the file was touched."""
    try:
        status = Path(path).stat()
        version = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        return _digest_of_version(Path(path), version)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


@lru_cache(maxsize=1024)
def _digest_of_version(path: Path, version: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of_value(value: Any) -> str:
    """The SHA-256 of a value that can be written as JSON."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()


def identity(
    experiment: Experiment,
    simulator: str,
    measures: Sequence[str] = (),
    windows: Mapping[str, Window] | None = None,
) -> str:
    """The digest of everything that the results of a run depend on; ``measures`` are metrics not ours."""
    parts: dict[str, Any] = {
        "inputs": [digest_of_file(file) for file in experiment.files],
        "experiment": experiment.renamed(lambda file: ""),
        "code": digest_of_code(experiment),
        "simulator": simulator,
    }
    if measures:
        names = [Choice(name).renamed(lambda file: "").name for name in measures]
        parts["measures"] = [names, *map(digest_of_file, code_of(measures))]
    if windows:
        parts["windows"] = dict(windows)
    return digest_of_value(parts)


def code_of(measures: Sequence[str]) -> list[str]:
    """The files with the code of metrics, each once."""
    return list(dict.fromkeys(file for name in measures for file in Choice(name).code_files))


def digest_of_code(experiment: Experiment) -> str:
    """The digest of the code of this package that runs an experiment; of PyBatsim, its version counts."""
    actors = experiment.actors
    if actors.scheduler.name.startswith(PYBATSIM):
        return digest_of_value([_digest_of_modules((ROOT,)), pybatsim_version()])
    modules = [ROOT, *_plugin_modules(SCHEDULERS, actors.scheduler)]
    if actors.users is not None:
        modules += _plugin_modules(USERS, actors.users)
    return _digest_of_modules(tuple(modules))


def _plugin_modules(registry: Registry[Any], choice: Choice) -> Iterator[str]:
    """Where the code of a scheduler or behaviour begins: in modules, or with what its files build on."""
    for name in registry.layers(choice.name):
        files = Choice(name).code_files
        if not files:
            yield _module_of(registry, name)
        for file in files:
            modules = (cls.__module__ for cls in registry.find(name).__mro__)
            yield from (module for module in modules if module.split(".")[0] == _PACKAGE)
            yield from _imports(Path(file), digest_of_file(file))


@lru_cache(maxsize=256)
def _module_of(registry: Registry[Any], name: str) -> str:
    return registry.find(name).__module__


@lru_cache(maxsize=256)
def _digest_of_modules(roots: tuple[str, ...]) -> str:
    return digest_of_value({name: digest_of_file(path) for name, path in reachable_modules(roots).items()})


def reachable_modules(roots: Iterable[str]) -> dict[str, Path]:
    """The modules of this package that some of them import, directly or not, with their files."""
    found: dict[str, Path] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        path = _source(name)
        if name not in found and path is not None:
            found[name] = path
            waiting.extend(_imports(path, digest_of_file(path)))
    return found


@lru_cache(maxsize=1024)
def _source(module: str) -> Path | None:
    """The file of a module, unless it is a namespace, compiled or none at all."""
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    origin = "" if spec is None else spec.origin or ""
    return Path(origin) if origin.endswith(".py") else None


@lru_cache(maxsize=512)
def _imports(path: Path, digest: str) -> tuple[str, ...]:
    """The modules of this package that a file imports, wherever in it, but for those that only types need."""
    names: list[str] = []
    for node in _executed(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(name for name in names if name.split(".")[0] == _PACKAGE)


def _executed(tree: ast.Module) -> Iterator[ast.AST]:
    """All statements of a file, without what stands below ``if TYPE_CHECKING``."""
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if not (
            isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        ):
            yield node
            for part in ("body", "orelse", "finalbody", "handlers", "cases"):
                waiting.extend(getattr(node, part, ()))


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
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"is not a file that batsched-py wrote: {error}") from None


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
