"""Builds the compiled core where a C++ compiler is; where none is, the package is pure Python."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FLAGS = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wno-invalid-offsetof"]


class CompiledCore(BuildHookInterface):
    """Adds ``batsched_py/_native``; an editable installation finds it in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile before the wheel is put together."""
        extension = Path("batsched_py", f"_native{sysconfig.get_config_var('EXT_SUFFIX')}")
        fault = compile_core(Path(self.root), extension)
        if fault is None:
            build_data["artifacts"].append(f"/{extension.as_posix()}")
            build_data.update(pure_python=False, infer_tag=True)
        else:
            print(
                f"batsched-py: the core is not compiled, it will run as pure Python: {fault}", file=sys.stderr
            )


def compile_core(root: Path, extension: Path) -> str | None:
    """Why the extension could not be built, if that is so; then there is none, not even an old one."""
    target = root / extension
    part = target.with_suffix(".part")
    command = [
        *shlex.split(os.environ.get("CXX", "c++")),
        *FLAGS,
        *(["-undefined", "dynamic_lookup"] if sys.platform == "darwin" else []),
        f"-I{sysconfig.get_paths()['include']}",
        str(root / "native" / "module.cpp"),
        "-o",
        str(part),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        fault = f"{command[0]}: {error.strerror}"
    else:
        if not done.returncode:
            part.replace(target)
            return None
        fault = next(iter(done.stderr.splitlines()), f"{command[0]} failed")
    part.unlink(missing_ok=True)
    target.unlink(missing_ok=True)
    return fault
