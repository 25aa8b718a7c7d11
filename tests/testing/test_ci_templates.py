"""The templates for CI: they are YAML, use the actions that this project uses, and their lines work."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from batsched_py.testing import programs
from tests.processes import ROOT, call_here

yaml = pytest.importorskip("yaml")

TEMPLATES = sorted((ROOT / "examples" / "ci").iterdir())
NAMES = [file.name for file in TEMPLATES]
TEMPLATE = pytest.mark.parametrize("file", TEMPLATES, ids=NAMES)

#: A policy that the template for policies tries, and a scheduler in another language in its place.
POLICY = "from batsched_py.schedulers.fcfs import Fcfs\n\n\nclass MyPolicy(Fcfs):\n    name = 'mine'\n"


def job_of(file: Path) -> Any:
    """The one job of a template."""
    said = yaml.safe_load(file.read_text(encoding="utf-8"))
    return said["jobs"]["check"] if "jobs" in said else said["check"]


def lines_of(file: Path) -> list[str]:
    """The commands that it runs."""
    job = job_of(file)
    if "steps" in job:
        return [step["run"] for step in job["steps"] if "run" in step]
    return [*job["before_script"], *job["script"]]


def test_there_is_one_for_each_kind_and_place() -> None:
    assert [
        f"{kind}.{place}.yml" for kind in ("policy", "scheduler") for place in ("github", "gitlab")
    ] == NAMES


@TEMPLATE
def test_its_check_passes(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the cases is tried, as each starts a program; the scheduler is the skeleton in Python."""
    (line,) = [line for line in lines_of(file) if line.startswith("batsched-py check ")]
    (tmp_path / "my_policy.py").write_text(POLICY)
    python = f'#!/bin/sh\nexec "{sys.executable}" "{{}}" "$@"\n'
    for name, script in (
        ("fcfs", python.format(ROOT / "examples" / "any-language" / "fcfs.py")),
        ("batsched-py", python.format(ROOT / "batsched_py" / "__main__.py")),
    ):
        (tmp_path / name).write_text(script)
        (tmp_path / name).chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(programs, "CASES", programs.CASES[:1])
    code, out, err = call_here(shlex.split(line)[1:])
    assert (code, err) == (0, ""), out
    assert out.endswith("all 2 cases passed\n")
    assert ElementTree.parse("check.xml").getroot().attrib["tests"] == "2"


@TEMPLATE
def test_all_reports_are_kept(file: Path) -> None:
    written = re.findall(r"--junit(?:xml)? (\S+)", "\n".join(lines_of(file)))
    assert written == ["tests.xml", "check.xml"] if file.name.startswith("policy") else ["check.xml"]
    job = job_of(file)
    if "steps" in job:
        (kept,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
        assert kept["with"]["path"] == "*.xml" and kept["if"] == "always()"
    else:
        assert job["artifacts"]["reports"]["junit"] == ["*.xml"] and job["artifacts"]["when"] == "always"


@TEMPLATE
def test_actions_are_those_of_our_own_workflows(file: Path) -> None:
    ours = "\n".join(each.read_text() for each in (ROOT / ".github" / "workflows").glob("*.yml"))
    for step in job_of(file).get("steps", []):
        if "uses" in step:
            assert f"uses: {step['uses']}\n" in ours


@TEMPLATE
def test_it_says_how_to_install_before_there_is_a_release(file: Path) -> None:
    (line,) = [line for line in lines_of(file) if line.startswith("pip install")]
    assert line.startswith("pip install --find-links packages batsched-py")
    assert "python -m build --sdist -o packages CHECKOUT" in file.read_text()
