"""What the document shows is what happens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.cli.main import batsched_py

ROOT = Path(__file__).parents[2]
DOCUMENT = (ROOT / "docs" / "see-inside.md").read_text()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "workloads").symlink_to(ROOT / "workloads")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_its_commands_print_what_it_shows(here: Path) -> None:
    for block in re.findall(r"^```console\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL):
        for command, shown in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block, flags=re.MULTILINE):
            words = shlex.split(command.partition(" > out/")[0])[1:]
            result = CliRunner().invoke(batsched_py, words, input="continue\n")
            assert result.exit_code == 0
            told = result.stderr if "--step" in words else result.stdout
            assert told.startswith(shown.rstrip() if shown else "")


def test_its_loop_goes_through_the_simulation(here: Path) -> None:
    (code,) = re.findall(r"^```python\n(from .*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    jobs = bp.simulate("workloads/sample.swf", "easy", hosts=64, progress=False).jobs
    instants = {*jobs["submission_time"], *jobs["finish_time"]}
    waiting = [((jobs["submission_time"] <= t) & (jobs["starting_time"] >= t)).sum() for t in instants]
    assert names["longest"] == max(waiting)
