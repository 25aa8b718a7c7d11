"""The examples of the documents: each of them runs."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from batsched_py.cli.main import batsched_py

ROOT = Path(__file__).resolve().parents[1]

#: Documents whose examples are run as one script each, below; and which tests run those of the others.
SCRIPTS = ("calibration", "campaigns", "extend", "index", "tutorial", "workloads")
ELSEWHERE = {
    "learning-agents": "tests/gym/test_learning_agents_document.py",
    "malleable": "tests/malleable/test_malleable_document.py",
    "machines": "tests/nodes/test_machines_document.py",
    "metrics": "tests/campaign/test_own_metrics.py",
    "python": "tests/test_python_document.py",
    "schedulers": "tests/schedulers/test_schedulers_document.py",
    "see-inside": "tests/watch/test_see_inside_document.py",
    "testing-a-policy": "tests/testing/test_workbench.py",
    "tune": "tests/tuning/test_tune_document.py",
    "users": "tests/cli/test_users_command.py",
    "what-if-half-the-nodes": "tests/test_worked_example.py",
}

SMALL_PLAN = """
[logs]
sample = { file = "workloads/sample.swf" }
[platforms]
full = { hosts = 64 }
[schedulers]
fcfs = {}
easy = {}
"""


def examples(document: str) -> list[str]:
    text = (ROOT / "docs" / f"{document}.md").read_text()
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def test_every_document_with_examples_is_tested() -> None:
    fences = re.compile(r"^```(python|console)$", re.MULTILINE)
    found = {path.stem for path in (ROOT / "docs").rglob("*.md") if fences.search(path.read_text())}
    assert found == {*SCRIPTS, *ELSEWHERE}
    assert [test for test in ELSEWHERE.values() if not (ROOT / test).is_file()] == []


@pytest.mark.parametrize("document", SCRIPTS)
def test_its_examples_run(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("workloads", "platforms", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    (tmp_path / "HPC2N.swf.gz").write_bytes(gzip.compress((ROOT / "workloads" / "sample.swf").read_bytes()))
    monkeypatch.chdir(tmp_path)
    if document == "campaigns":
        (tmp_path / "small.toml").write_text(SMALL_PLAN)
        done = CliRunner().invoke(batsched_py, ["campaign", "run", "small.toml", "-d", "out/sample"])
        assert done.exit_code == 0, done.output
    exec("\n".join(examples(document)), {"__name__": "example"})


def test_the_commands_of_the_tutorial_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the first days of the sample, as if the first had installed what it says."""
    text = (ROOT / "docs" / "tutorial.md").read_text()
    commands = re.findall(r"^    (\S.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.MULTILINE)
    install, completion, *rest = commands
    extras = set(re.search(r"\[(.*)\]", install)[1].split(","))  # type: ignore[index]
    assert (
        extras
        <= tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"].keys()
    )
    assert completion in (ROOT / "docs" / "reference" / "command-line.md").read_text()
    shutil.copytree(ROOT / "examples" / "plans", tmp_path / "examples" / "plans")
    (tmp_path / "workloads").mkdir()
    lines = (ROOT / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    (tmp_path / "workloads" / "sample.swf").write_text("".join(lines[:100]))
    monkeypatch.chdir(tmp_path)
    assert len(rest) == 2
    for command in rest:
        program, *words = shlex.split(command)
        assert program == "batsched-py"
        done = CliRunner().invoke(batsched_py, words)
        assert done.exit_code == 0, done.output
    assert "</html>" in (tmp_path / "out" / "sample" / "report.html").read_text()


def test_the_paper_has_its_sections_and_all_that_it_cites(root: Path) -> None:
    """In the form of the Journal of Open Source Software, which asks for 750 to 1750 words."""
    text = (root / "paper.md").read_text(encoding="utf-8")
    _, head, body = text.split("---\n", 2)
    assert {"title", "tags", "authors", "affiliations", "date", "bibliography"} <= {
        line.partition(":")[0] for line in head.splitlines()
    }
    sections = re.findall("^# (.*)", body, re.MULTILINE)
    assert sections == [
        "Summary",
        "Statement of need",
        "State of the field",
        "Software design",
        "Research impact statement",
        "Acknowledgements",
        "References",
    ]
    entries = re.findall(r"^@\w+\{(\w+),", (root / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(re.findall(r"@(\w+)", body)) == set(entries)
    assert 750 <= len(body.split()) <= 1750
