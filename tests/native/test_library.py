"""The library of the native engine by itself, and the whole engine, watched by the compiler's sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.processes import PATIENCE

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g")

COMPILER = os.environ.get("CXX", "c++")

needs_compiler = pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs a C++ compiler")


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("flags", [(), SANITIZED], ids=["plain", "sanitized"])
def test_the_library_passes_its_own_tests(flags: tuple[str, ...], root: Path, tmp_path: Path) -> None:
    program = tmp_path / "tests"
    source = root / "tests" / "native" / "test_native.cpp"
    subprocess.run(
        [
            COMPILER,
            "-std=c++20",
            "-Wall",
            "-Wextra",
            f"-I{root / 'native'}",
            *flags,
            str(source),
            "-o",
            program,
        ],
        check=True,
    )
    done = subprocess.run([program], capture_output=True, text=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == source.read_text().count("\nvoid ")


@needs_compiler
@pytest.mark.slow
def test_the_engine_has_no_fault_that_sanitizers_see(root: Path, tmp_path: Path) -> None:
    """All tests of both engines, hostile ones too, with an extension that is built to watch itself."""
    for name in ("batsched_py", "examples", "native", "tests", "workloads"):
        shutil.copytree(
            root / name, tmp_path / name, ignore=shutil.ignore_patterns("_native*", "__pycache__")
        )
    for name in ("hatch_build.py", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    extension = f"batsched_py/_native{sysconfig.get_config_var('EXT_SUFFIX')}"
    code = (
        f"from pathlib import Path; from hatch_build import build; "
        f"print(build(Path('.'), Path({extension!r}), {SANITIZED!r}))"
    )
    built = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert built.stdout == "None\n", built.stderr
    runtimes = [
        subprocess.run([COMPILER, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    environment = os.environ | {
        "LD_PRELOAD": " ".join(runtimes),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself ends with memory in use
        "PYTHONPATH": str(tmp_path),
    }
    tests = ["tests/test_engines.py", "tests/hostile"]
    run = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
