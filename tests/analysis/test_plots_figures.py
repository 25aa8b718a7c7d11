"""Figures as Python has them: data in, a matplotlib figure out."""

from __future__ import annotations

from pathlib import Path

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
