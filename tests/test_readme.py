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
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the samples and the README's own policy in it."""
    desk = tmp_path_factory.mktemp("readme")
    for folder in ("workloads", "platforms", "plans"):
        (desk / folder).symlink_to(ROOT / folder)
    quick_start, policy = blocks("python")
    (desk / "quick_start.py").write_text(quick_start)
    (desk / "largest_first.py").write_text(policy)
    return desk


def run(command: str, desk: Path) -> str:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        shell=True,
        cwd=desk,
        env=os.environ | {"PATH": path, "COLUMNS": "100"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def lines(text: str) -> list[str]:
    """The lines of an output, but for blank ones and those that tell how long it took."""
    return [line.rstrip() for line in text.splitlines() if line.strip() and MEASURED not in line]


def test_every_example_shows_what_comes_out(desk: Path) -> None:
    examples = 0
    for block in blocks("console"):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = example.partition("\n")
            assert lines(run(command, desk)) == lines(shown), command
            examples += 1
    assert examples >= 7


def test_the_quick_start_in_python_is_five_lines_and_gives_the_same_figures(desk: Path) -> None:
    assert len(lines((desk / "quick_start.py").read_text())) == 5
    shown = [line for block in blocks("console") for line in lines(block)]
    for line in lines(run("python quick_start.py", desk)):
        figure = line.replace("mean lateness", "mean_lateness").split()
        assert any(set(figure) <= set(other.split()) for other in shown), line


def test_the_two_commands_are_targets_of_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^    make (\w+)", README, flags=re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)
