"""The worked example: its five commands run, and come out as the page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_readme import ROOT, lines, run

PAGE = (ROOT / "docs" / "what-if-half-the-nodes.md").read_text()


def test_five_commands_from_the_log_to_the_figure(tmp_path: Path) -> None:
    image = pytest.importorskip("matplotlib.image", reason="the figure needs matplotlib")
    (tmp_path / "workloads").symlink_to(ROOT / "workloads")
    examples = re.findall(r"^\$ (.*)\n((?:(?!```).*\n)*)", PAGE, flags=re.MULTILINE)
    assert len(examples) == 5
    for command, shown in examples:
        assert lines(run(command, tmp_path)) == lines(shown), command
    assert image.imread(tmp_path / "out" / "half.png").std() > 0.03


def test_the_figure_on_the_page_ships() -> None:
    (figure,) = re.findall(r"!\[.*\]\((.*)\)", PAGE)
    assert (ROOT / "docs" / figure).is_file()
