"""The command that reproduces the paper's tables, row by row."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


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
        assert len(row.paper) == len(row.reference) == (3 if row.replay in ("log", "rigid") else 6)


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
    cells = experiments.judge(row, experiments.figures_of(log, row))
    assert all(cell.passes for cell in cells), cells


def test_a_figure_off_by_more_than_the_tolerance_fails(experiments: ModuleType) -> None:
    row = experiments.Row("EASY", "rigid", ("1", "1", "1"), ("332.91", "0.068", "4.075"))
    cells = experiments.judge(row, [332.914, 0.0685, 4.12])
    assert [cell.passes for cell in cells] == [True, True, False]
