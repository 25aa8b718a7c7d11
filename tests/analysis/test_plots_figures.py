"""Figures as Python has them: data in, a matplotlib figure out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from batsched_py.analysis.plots.figures import KINDS, draw
from batsched_py.analysis.plots.kinds.distributions import Ecdf
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.plots.style import Look
from batsched_py.cli.plot import summaries
from batsched_py.errors import InputError
from tests.runs import Row, run_of

pytest.importorskip("matplotlib", reason="figures need matplotlib")


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    """Two runs of three jobs by two users; in the second one, a job comes an hour late."""
    notes = ("user=1 recorded=0", "user=2 recorded=0", "user=2 recorded=60")
    jobs = [Row(1, 0, 0, 60, "0"), Row(2, 0, 60, 120, "0"), Row(3, 60, 60, 120, "1")]
    late = [*jobs[:2], Row(3, 3660, 3660, 3720, "1")]
    return [
        run_of(tmp_path, [job._replace(note=note) for job, note in zip(rows, notes, strict=True)], label)
        for label, rows in (("rigid", jobs), ("late", late))
    ]


def test_a_kind_is_found_by_its_name_or_given_as_an_object(runs: list[Run]) -> None:
    by_name = draw("ecdf", runs, of="slowdown", by="user")
    as_object = draw(Ecdf(of="slowdown", by="user"), runs)
    assert by_name._repr_png_() == as_object._repr_png_()


def test_the_command_knows_the_kinds_that_python_knows() -> None:
    assert list(summaries()) == list(KINDS.all())


def test_a_kind_that_nobody_knows(runs: list[Run]) -> None:
    with pytest.raises(InputError, match="there is no figure 'pie'; known are"):
        draw("pie", runs)


def test_a_notebook_shows_it(runs: list[Run]) -> None:
    assert draw("queue", runs)._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize(("width", "inches"), [("page", 7.2), ("column", 3.5)])
def test_a_figure_is_as_wide_as_a_journal_wants_it(runs: list[Run], width: str, inches: float) -> None:
    for kind in ("ecdf", "cumulative", "lateness"):
        assert draw(kind, runs, look=Look(width=width)).get_size_inches()[0] == inches


def test_lines_differ_in_dashes_as_well_as_in_colour(runs: list[Run]) -> None:
    first, second = draw("cumulative", runs).axes[0].get_lines()
    assert first.get_color() != second.get_color()
    assert first.is_dashed() != second.is_dashed()


def test_a_pdf_has_its_letters_in_it(runs: list[Run], tmp_path: Path) -> None:
    draw("ecdf", runs, look=Look(font="serif")).save(tmp_path / "figure.pdf")
    content = (tmp_path / "figure.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"STIXGeneral" in content


def test_a_run_without_differences_says_so_and_hides_no_other(runs: list[Run]) -> None:
    same, late = draw("differences", [runs[0], _renamed(runs[0], "same"), runs[1]]).axes
    assert same.get_title(loc="left") == "same: every job as in rigid"
    assert not same.patches
    assert late.patches


def _renamed(run: Run, label: str) -> Run:
    return Run(label, run.jobs, run.hosts)


def test_numbers_of_a_small_scale_are_written_in_full(tmp_path: Path) -> None:
    """Users with 2 to 9 jobs had ticks like 2 x 10^0, and none where they had 2 to 4."""
    rows = [
        Row(10 * user + job, job, job, job + 1, "0", note=f"user={user} recorded={job}")
        for user in (1, 2)
        for job in range(4 + user)
    ]
    panel = draw("lateness", [run_of(tmp_path, rows, "run")]).axes[0]
    low, high = panel.get_xlim()
    shown = [label.get_text() for label in panel.get_xticklabels() if low <= label.get_position()[0] <= high]
    assert shown == ["5", "6"]
    assert not any(label.get_text() for label in panel.get_xticklabels(minor=True))


def test_the_point_of_the_latest_user_is_not_at_the_edge(tmp_path: Path) -> None:
    late = [
        Row(
            10 * user + job, 86400 * user, 86400 * user, 86400 * user + 1, "0", note=f"user={user} recorded=0"
        )
        for user in range(1, 7)
        for job in range(user)
    ]
    for kind in ("lateness", "additional-lateness"):
        panel = draw(kind, [run_of(tmp_path, late, "run")]).axes[0]
        points = panel.transData.transform(panel.collections[-1].get_offsets())
        box = panel.get_window_extent()
        assert (points[:, 1] < box.y1 - 2).all() and (points[:, 1] > box.y0 + 2).all(), kind


def test_what_a_user_submits_is_filled(runs: list[Run]) -> None:
    panel = draw("submissions", runs, user="busiest").axes[0]
    assert panel.get_title(loc="left") == "rigid (filled: user 2, 67% of the jobs)"
    everybody, own = (patch.get_data().values.sum() for patch in panel.patches)
    assert (everybody, own) == (3, 2)
    assert (
        draw("submissions", runs, user="1").axes[1].get_title(loc="left").endswith("user 1, 33% of the jobs)")
    )
    with pytest.raises(InputError, match="nobody called '9' submits a job"):
        draw("submissions", runs, user="9")


def test_every_axis_of_decisions_says_what_it_is(tmp_path: Path, runs: list[Run]) -> None:
    table = pd.DataFrame({"time": [0.0, 60.0], "queue": [1, 12], "decision_seconds": [0.1, 0.2],
                          "other_seconds": [0.0, 0.1], "memory_bytes": [2.0**24, 2.0**24]})  # fmt: skip
    bars, lengths, seconds, memory = draw("decisions", [replace(runs[0], decisions=table)]).axes
    assert lengths.get_xlabel() == "jobs that wait"
    assert all(panel.get_title(loc="left") for panel in (bars, lengths, seconds, memory))
    assert memory.get_ylim()[1] > 16.5, "a line of 16 MB is not at the edge"
