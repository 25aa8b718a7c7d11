"""Builds the library of the native engine if there is a C++ compiler; without one, there is none."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nanobind
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Sums are rounded as those of Python are. Nanobind asks for the last two.
FLAGS = ["-std=c++20", "-O2", "-DNDEBUG", "-fPIC", "-ffp-contract=off"]
FLAGS += ["-fvisibility=hidden", "-fno-strict-aliasing"]
NANOBIND = Path(nanobind.__file__).parent


#: With the value ``required``, an installation without the native engine fails.
VARIABLE = "BATSCHED_PY_NATIVE"


class NativeEngine(BuildHookInterface):
    """Adds ``batsched_py/_native``.

    A wheel gets it from a folder of its own, so that nothing is written into the source tree; an editable
    installation finds it in the checkout.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        name = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
        is_editable = version == "editable"
        self._folder = TemporaryDirectory()
        target = Path(self.root, "batsched_py", name) if is_editable else Path(self._folder.name, name)
        fault = build(Path(self.root), target)
        if fault is None:
            if is_editable:
                build_data["artifacts"].append(f"/batsched_py/{name}")
            else:
                build_data["force_include"][str(target)] = f"batsched_py/{name}"
            build_data["extra_metadata"].update(licences(Path(self._folder.name)))
            build_data.update(pure_python=False, infer_tag=True)
        elif os.environ.get(VARIABLE) == "required":
            raise RuntimeError(f"{VARIABLE}=required, and the native engine cannot be built: {fault}")
        else:
            stays = "the one that is here stays" if target.exists() else "the Python engine runs everything"
            print(f"batsched-py: the native engine is not built, {stays}: {fault}", file=sys.stderr)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is there."""
        self._folder.cleanup()


def licences(folder: Path) -> dict[str, str]:
    """The licences of what is compiled in, each with its place among the metadata of the wheel.

    That of robin_map is the comment with which its files begin.
    """
    header = NANOBIND / "ext" / "robin_map" / "include" / "tsl" / "robin_map.h"
    robin_map = folder / "robin_map.txt"
    robin_map.write_text(header.read_text(encoding="utf-8").partition("*/")[0] + "*/\n", encoding="utf-8")
    found = {str(robin_map): "licenses/robin_map.txt"}
    for file in distribution("nanobind").files or ():
        if file.name == "LICENSE":
            found[str(file.locate())] = "licenses/nanobind.txt"
    return found


def build(root: Path, extension: Path, flags: tuple[str, ...] = ()) -> str | None:
    """Why the extension could not be built, if that is so; then one that was built before stays.

    The flags of the environment are added: CPPFLAGS and CXXFLAGS to compile, CXXFLAGS and LDFLAGS to link.
    """
    target = root / extension
    folders = [
        sysconfig.get_paths()["include"],
        NANOBIND / "include",
        NANOBIND / "ext" / "robin_map" / "include",
        root / "native",
    ]
    given = {name: shlex.split(os.environ.get(name, "")) for name in ("CPPFLAGS", "CXXFLAGS", "LDFLAGS")}
    version = f'-DBATSCHED_PY_SOURCES="{digest_of_sources(root / "native")}"'
    compiler = [*shlex.split(os.environ.get("CXX", "c++")), *FLAGS, *given["CXXFLAGS"], *flags, version]
    sources = [*sorted((root / "native" / "binding").glob("*.cpp")), NANOBIND / "src" / "nb_combined.cpp"]
    with TemporaryDirectory() as folder:
        objects = [str(Path(folder, f"{source.stem}.o")) for source in sources]
        commands = [
            [*compiler, *(f"-I{each}" for each in folders), *given["CPPFLAGS"], "-c", str(source), "-o", made]
            for source, made in zip(sources, objects, strict=True)
        ]
        part = target.with_suffix(".part")
        undefined = ["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []
        link = [*compiler, "-shared", *undefined, *objects, *given["LDFLAGS"], "-o", str(part)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            fault = next(filter(None, pool.map(_fault_of, commands)), None) or _fault_of(link)
    if fault is None:
        part.replace(target)
    else:
        part.unlink(missing_ok=True)
    return fault


def digest_of_sources(folder: Path) -> str:
    """The SHA-256 of the sources of the native engine, which its library tells of itself."""
    digest = hashlib.sha256()
    for file in sorted(folder.rglob("*.[ch]pp")):
        digest.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def _fault_of(command: list[str]) -> str | None:
    """What a command complains about when it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if not done.returncode:
        return None
    return next(iter(done.stderr.splitlines()), f"{command[0]} failed")
