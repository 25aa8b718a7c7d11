"""How a wheel is built, with a compiler that only notes what it is asked for."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import hatch_build
from tests.processes import PATIENCE, ROOT

LIBRARY = f"_native{sysconfig.get_config_var('EXT_SUFFIX')}"
COMPILER = """#!/bin/sh
echo "$@" >> "$CALLS"
while [ $# -gt 0 ]; do
  [ "$1" = -o ] && echo compiled > "$2"
  shift
done
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a library that was built before."""
    checkout = tmp_path / "checkout"
    (checkout / "batsched_py").mkdir(parents=True)
    for name in ("hatch_build.py", "pyproject.toml", "README.md", "LICENSE", ".gitignore"):
        shutil.copy(ROOT / name, checkout)
    shutil.copy(ROOT / "batsched_py" / "__init__.py", checkout / "batsched_py")
    shutil.copytree(ROOT / "native", checkout / "native")
    (checkout / "batsched_py" / LIBRARY).write_text("older")
    (tmp_path / "compiler").write_text(COMPILER)
    (tmp_path / "compiler").chmod(0o755)
    return checkout


def build(checkout: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], list[Path]]:
    """Build a wheel: what was said, and the wheel."""
    wheels = checkout.parent / "wheels"
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(wheels)],
        cwd=checkout,
        env={
            **os.environ,
            "PYTHONDONTWRITEBYTECODE": "1",
            "CALLS": str(checkout.parent / "calls"),
            **variables,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return done, list(wheels.glob("*.whl"))


def test_a_wheel_has_the_library_and_licences_and_the_checkout_is_left_alone(checkout: Path) -> None:
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    flags = {"CXXFLAGS": "-g1", "CPPFLAGS": "-DTHIS", "LDFLAGS": "-Wl,-z,now"}
    done, (wheel,) = build(checkout, CXX=str(checkout.parent / "compiler"), **flags)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"batsched_py/{LIBRARY}") == b"compiled\n"
        texts = {
            name.rpartition("/")[2]: archive.read(name) for name in archive.namelist() if "licenses" in name
        }
    assert b"Wenzel Jakob" in texts["nanobind.txt"]
    assert b"Permission is hereby granted" in texts["robin_map.txt"]
    *compiled, linked = (checkout.parent / "calls").read_text().splitlines()
    assert compiled and all("-DTHIS" in call and "-g1" in call for call in compiled)
    assert "-Wl,-z,now" in linked and "-DTHIS" not in linked
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before


def test_without_a_compiler_there_is_a_wheel_without_the_library(checkout: Path) -> None:
    done, (wheel,) = build(checkout, CXX="no-such-compiler")
    assert "the native engine is not built" in done.stderr
    with zipfile.ZipFile(wheel) as archive:
        assert not [name for name in archive.namelist() if "_native" in name]
    assert (checkout / "batsched_py" / LIBRARY).read_text() == "older"


def test_a_library_that_is_there_stays_until_there_is_another(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an editable installation, which builds into the checkout."""
    library = Path("batsched_py", LIBRARY)
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert hatch_build.build(checkout, library) == "no-such-compiler: No such file or directory"
    assert (checkout / library).read_text() == "older"
    monkeypatch.setenv("CXX", str(checkout.parent / "compiler"))
    monkeypatch.setenv("CALLS", str(checkout.parent / "calls"))
    assert hatch_build.build(checkout, library) is None
    assert (checkout / library).read_text() == "compiled\n"


def test_the_native_engine_can_be_required(checkout: Path) -> None:
    done, wheels = build(checkout, CXX="no-such-compiler", BATSCHED_PY_NATIVE="required")
    assert (done.returncode != 0, wheels) == (True, [])
    assert "the native engine cannot be built: no-such-compiler: No such file or directory" in done.stderr
