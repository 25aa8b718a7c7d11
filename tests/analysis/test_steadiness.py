"""Whether a run has a steady state, and what is measured over a window of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from batsched_py.analysis.metrics import measure
from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.steadiness import Steadiness, steadiness
from batsched_py.analysis.windows import Window
from batsched_py.errors import InputError
from tests.runs import Row, write_jobs


def one_server(folder: Path, load: float, jobs: int = 1500) -> Steadiness:
    """A queue with one server, jobs that come at random and random run times."""
    random = np.random.default_rng(5)
    submitted = np.cumsum(random.exponential(100.0, jobs))
    run_times = random.exponential(100.0 * load, jobs) + 0.01
    rows, free = [], 0.0
    for number, (arrival, length) in enumerate(
        zip(submitted.tolist(), run_times.tolist(), strict=True), start=1
    ):
        begin = max(arrival, free)
        free = begin + length
        rows.append(Row(number, arrival, begin, free, "0"))
    found = steadiness(Outcome.read(write_jobs(folder / "out_jobs.csv", rows, 1)))
    assert found is not None
    return found


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_a_queue_that_empties_is_steady(tmp_path: Path, load: float) -> None:
    found = one_server(tmp_path, load)
    assert found.is_steady
    assert found.offered == pytest.approx(load, rel=0.1)
    assert found.usable == pytest.approx(1.0, abs=0.05), "the server works while jobs wait"


@pytest.mark.parametrize("load", [1.2, 2.0])
def test_a_queue_that_only_grows_is_not(tmp_path: Path, load: float) -> None:
    found = one_server(tmp_path, load)
    assert not found.is_steady
    assert found.offered == pytest.approx(load, rel=0.1)
    assert found.second_wait > 2 * found.first_wait


def test_few_jobs_are_called_neither(tmp_path: Path) -> None:
    assert one_server(tmp_path, 2.0, jobs=100).is_steady


ROWS = [
    Row(1, 0, 0, 100, "0"),
    Row(2, 10, 100, 150, "0"),
    Row(3, 60, 60, 160, "1"),
    Row(4, 120, 150, 250, "0"),
]


def test_a_window_has_the_jobs_that_are_submitted_in_it_and_the_machine_meanwhile(tmp_path: Path) -> None:
    outcome = Outcome.read(write_jobs(tmp_path / "out_jobs.csv", ROWS, 2))
    found = measure(outcome.within(Window(50.0, 120.0)))
    assert found["nb_jobs"] == 1
    assert found["mean_waiting_time"] == 0.0
    assert found["utilization"] == pytest.approx((70 + 60) / (2 * 70)), "jobs from before count, too"
    assert found["mean_queue_length"] == pytest.approx(50 / 70), "job 2 waits until 100"
    assert found["max_queue_length"] == 1
    assert found["throughput"] == pytest.approx(1 / 70 * 86400), "job 1 ends in it"
    assert "makespan" not in found
    to_the_end = measure(outcome.within(Window(50.0)))
    assert to_the_end["nb_jobs"] == 2
    with pytest.raises(InputError, match="the run has no jobs submitted from 1 d to the last one"):
        outcome.within(Window(86400.0))


@pytest.mark.parametrize("text", ["7d", "9d:7d", "a:b", "7:8d"])
def test_a_window_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        Window.parse(text)
