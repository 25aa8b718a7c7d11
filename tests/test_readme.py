"""The README's examples: each command runs, and what it shows is what comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
MEASURED = "took"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples and the README's own policy in it."""
    folder = tmp_path_factory.mktemp("readme")
    for name in ("workloads", "platforms", "examples"):
        (folder / name).symlink_to(ROOT / name)
    quick_start, policy = blocks("python")
    (folder / "quick_start.py").write_text(quick_start)
    (folder / "largest_first.py").write_text(policy)
    return folder


def run(command: str, folder: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(text: str) -> list[str]:
    """The lines of an output, but for blank ones and those that tell how long it took."""
    return [line.rstrip() for line in text.splitlines() if line.strip() and MEASURED not in line]


def test_every_example_shows_what_comes_out(folder: Path) -> None:
    examples = 0
    for block in blocks("console"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = example.partition("\n")
            assert lines(run(command, folder)) == lines(shown), command
            examples += 1
    assert examples == 5


def test_the_quick_start_in_python_is_five_lines_and_gives_the_same_figures(folder: Path) -> None:
    assert len(lines((folder / "quick_start.py").read_text())) == 5
    shown = [line for block in blocks("console") for line in lines(block)]
    for line in lines(run("python quick_start.py", folder)):
        figure = line.replace("mean lateness", "mean_lateness").split()
        assert any(set(figure) <= set(other.split()) for other in shown), line


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_it_is_short_and_shows_one_table() -> None:
    assert len(README.splitlines()) <= 120
    assert not re.search(r"^\|", README, flags=re.MULTILINE)
    assert README.count("  utilization  ") == 1
