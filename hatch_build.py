"""Builds the library of the native engine if there is a C++ compiler; without one, there is none."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nanobind
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: nanobind asks for the last two of these.
FLAGS = ["-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing"]
NANOBIND = Path(nanobind.__file__).parent


class NativeEngine(BuildHookInterface):
    """Adds ``batsched_py/_native``; an editable installation finds it in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        extension = Path("batsched_py", f"_native{sysconfig.get_config_var('EXT_SUFFIX')}")
        fault = build(Path(self.root), extension)
        if fault is None:
            build_data["artifacts"].append(f"/{extension.as_posix()}")
            build_data.update(pure_python=False, infer_tag=True)
        else:
            print(
                f"batsched-py: the native engine is not built, the Python engine runs everything: {fault}",
                file=sys.stderr,
            )


def build(root: Path, extension: Path, flags: tuple[str, ...] = ()) -> str | None:
    """Why the extension could not be built, if that is so; then there is none, not even an old one."""
    target = root / extension
    folders = [
        sysconfig.get_paths()["include"],
        NANOBIND / "include",
        NANOBIND / "ext" / "robin_map" / "include",
        root / "native",
    ]
    compiler = [*shlex.split(os.environ.get("CXX", "c++")), *FLAGS, *flags]
    sources = [*sorted((root / "native" / "binding").glob("*.cpp")), NANOBIND / "src" / "nb_combined.cpp"]
    with TemporaryDirectory() as folder:
        objects = [str(Path(folder, f"{source.stem}.o")) for source in sources]
        commands = [
            [*compiler, *(f"-I{include}" for include in folders), "-c", str(source), "-o", made]
            for source, made in zip(sources, objects, strict=True)
        ]
        part = target.with_suffix(".part")
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        link = [*compiler, "-shared", *undefined, *objects, "-o", str(part)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            fault = next(filter(None, pool.map(_fault_of, commands)), None) or _fault_of(link)
    if fault is None:
        part.replace(target)
    else:
        part.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
    return fault


def _fault_of(command: list[str]) -> str | None:
    """What a command complains about when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if not done.returncode:
        return None
    return next(iter(done.stderr.splitlines()), f"{command[0]} failed")
