"""The Nix files, as far as they can be checked without the network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from batsched_py import __version__
from tests.processes import PATIENCE

NIX = Path(__file__).resolve().parents[1] / "nix"
ROOT = NIX.parent


def nix_instantiate(*arguments: str | Path) -> str:
    program = shutil.which("nix-instantiate")
    if program is None:
        pytest.skip("needs Nix, which is not installed")
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("file", sorted(NIX.glob("*.nix")), ids=lambda file: file.name)
def test_a_file_parses(file: Path) -> None:
    assert nix_instantiate("--parse", file)


def test_the_package_has_the_version_of_the_project() -> None:
    stand_ins = """{ lib = { cleanSource = path: path; licenses.mit = "MIT"; }; buildPythonPackage = x: x;
        hatchling = 0; nanobind.version = "2.4.0"; click = 0; msgspec = 0; networkx = 0; numpy = 0;
        pandas = 0; pyzmq = 0; rich = 0; }"""
    expression = f"(import {NIX / 'package.nix'} {stand_ins}).version"
    assert nix_instantiate("--eval", "--expr", expression).strip() == f'"{__version__}"'


def test_the_package_has_the_dependencies_of_the_project() -> None:
    package = (NIX / "package.nix").read_text()
    for line in (ROOT / "pyproject.toml").read_text().split("dependencies = [")[1].split("]")[0].split():
        assert line.strip('",').split(">")[0] in package


def test_the_package_asks_for_the_nanobind_of_the_project() -> None:
    """And the branch of nixpkgs is newer than the last one whose nanobind is too old."""
    (lowest,) = re.findall(r'requires = .*"nanobind>=([0-9.]+)"', (ROOT / "pyproject.toml").read_text())
    package, flake = (NIX / "package.nix").read_text(), (NIX / "flake.nix").read_text()
    assert f'assert builtins.compareVersions nanobind.version "{lowest}" >= 0;' in package
    (year, month) = re.findall(r"NixOS/nixpkgs/nixos-(\d\d)\.(\d\d)", flake)[0]
    assert (int(year), int(month)) > (24, 11)


def test_simulate_runs_both_sides(tmp_path: Path) -> None:
    (tmp_path / "batsim").write_text('#!/bin/sh\nexec batsched-py batsim "$@"\n')
    (tmp_path / "batsim").chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    golden = ROOT / "tests" / "data" / "golden" / "rigid200_fcfs"
    inputs = [golden / "flat16.xml", golden / "rigid200.json", tmp_path / "out"]
    done = subprocess.run(
        ["bash", "-eu", NIX / "simulate.sh", "fcfs", *inputs],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out_jobs.csv").read_bytes() == (golden / "jobs.csv").read_bytes()
