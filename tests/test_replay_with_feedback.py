"""The command that reproduces the paper's tables, row by row."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console


@pytest.fixture(scope="module")
def experiments(root: Path) -> ModuleType:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location(
        "replay_with_feedback", root / "examples" / "experiments" / "replay_with_feedback.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_table_has_the_log_and_eighteen_experiments(experiments: ModuleType) -> None:
    rows = list(experiments.rows())
    simulated = {(row.experiment, row.replay) for row in rows[1:]}
    assert len(rows) == 19
    assert simulated == {(e, r) for e in experiments.MACHINES for r in experiments.REPLAYS}
    for row in rows:
        assert len(row.paper) == len(row.independent) == (3 if row.replay in ("log", "rigid") else 6)


@pytest.mark.parametrize(
    "experiment",
    [
        ("recorded", "log"),
        ("EASY", "a60"),
        pytest.param(("EASY", "rigid"), marks=pytest.mark.slow),
        pytest.param(("FCFS", "a0"), marks=pytest.mark.slow),
        pytest.param(("infra/2", "a60"), marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_a_row_is_within_its_tolerance(
    experiments: ModuleType, experiment: tuple[str, str], shared: Path
) -> None:
    """One of each kind; the command itself checks all."""
    (row,) = [row for row in experiments.rows() if (row.experiment, row.replay) == experiment]
    log = shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz"
    found = experiments.deviations(experiments.figures_of(log, row), row.independent)
    assert max(found) <= experiments.TOLERANCE, found


def test_a_deviation_is_what_goes_beyond_rounding(experiments: ModuleType) -> None:
    found = experiments.deviations([332.914, 0.0, 4.12], ("332.91", "0.00", "4.075"))
    assert found == pytest.approx([0, 0, (0.045 - 0.0005) / 4.075])


def test_the_paper_is_shown_beside_our_figure(experiments: ModuleType) -> None:
    """Only others' figures are there to be compared with, as they were told."""
    (row,) = [row for row in experiments.rows() if (row.experiment, row.replay) == ("infra/2", "rigid")]
    assert row.paper == ("386.70", "4.15", "58.87")
    assert row.independent == ("387.66", "4.375", "59.57")
    console = Console(width=experiments.WIDTH)
    with console.capture() as shown:
        console.print(experiments.table_of({row: [387.66, 4.275, 59.57]}))
    waits = {words[-4]: words[-2] for line in shown.get().splitlines() if len(words := line.split()) > 3}
    assert waits["paper"] == "4.15"
    assert waits["here"] == "4.275"
    assert waits["independent"] == "4.375"
    assert "reference" not in shown.get()


def test_others_figures_are_those_of_the_shared_text(experiments: ModuleType, shared: Path) -> None:
    """None is made by this project to agree with itself."""
    lines = (shared / "reference" / "replay-with-feedback.md").read_text().splitlines()
    told = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    known = {(cells[0], cells[1].replace("-", "log")): cells[2:] for cells in told if len(cells) == 9}
    for row in experiments.rows():
        *paper, independent = known["recorded log" if row.replay == "log" else row.experiment, row.replay]
        assert row.paper == tuple(filter(None, paper))
        assert row.independent == tuple(independent.split(" (")[0].split())
