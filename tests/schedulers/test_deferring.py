"""Jobs that wait for cheap hours under any policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import validate
from batsched_py.ledger.ledger import Ledger
from batsched_py.outside.curve import Curve, Known
from batsched_py.protocol.events import SimulationBegins
from batsched_py.protocol.jobs import Job
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from tests.power import INNER, machine, random_jobs, run, sized, starts

PRICES = Known(price=Curve([0.0, 1000.0, 2000.0, 5000.0], [30.0, 10.0, 30.0, 5.0]))


def test_jobs_wait_for_cheap_hours_up_to_the_bound(tmp_path: Path) -> None:
    jobs = workload_of(
        [
            sized("waits", 0, 1, 100),
            sized("ends in the cheap hour", 950, 1, 1000),
            sized("is cheap", 1200, 1, 100),
            sized("is too long", 1500, 1, 600),
            sized("cannot wait so long", 2500, 1, 100),
            JobSpec("has no walltime", 10, 1, 100),
        ]
    )
    run(Setup(machine(4), [jobs]), "deferring(fcfs)", tmp_path, PRICES, most="1000")
    assert starts(tmp_path) == {
        "waits": 1000,
        "has no walltime": 10,
        "ends in the cheap hour": 1000,
        "is cheap": 1200,
        "is too long": 1500,
        "cannot wait so long": 2500,
    }
    run(Setup(machine(4), [jobs]), "deferring(fcfs)", tmp_path, PRICES, most="2500")
    assert starts(tmp_path)["cannot wait so long"] == 5000


@pytest.mark.parametrize("inner", INNER)
def test_deferring_loses_no_job_under_any_policy(inner: str, tmp_path: Path) -> None:
    jobs = random_jobs(3, 60, 4)
    run(Setup(machine(4), [jobs]), f"deferring({inner})", tmp_path, PRICES, most="900")
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    assert validate(schedule, 4, [jobs]) == []
    assert schedule["success"].all() and len(schedule) == 60


def test_jobs_may_wait_for_a_deferred_one(tmp_path: Path) -> None:
    jobs = [sized("first", 0, 1, 100), JobSpec("second", 1, 1, 100, 100, fields={"after": "afterok:first"})]
    run(Setup(machine(4), [workload_of(jobs)]), "deferring(fcfs)", tmp_path, PRICES, most="1000")
    assert starts(tmp_path) == {"first": 1000, "second": 1100}


@given(
    values=st.lists(st.integers(-5, 20), min_size=1, max_size=6),
    first=st.integers(0, 30),
    window=st.integers(0, 40),
    duration=st.integers(1, 25),
)
def test_the_cheapest_start_is_the_cheapest_of_all(
    values: list[int], first: int, window: int, duration: int
) -> None:
    steps = Curve([10.0 * place for place in range(len(values))], [float(value) for value in values])
    found = steps.cheapest(first, first + window, duration)

    def cost(start: int) -> float:
        return sum(steps.at(second + 0.5) for second in range(start, start + duration))

    costs = {start: cost(start) for start in range(first, first + window + 1)}
    assert found == min(start for start in costs if costs[start] == min(costs.values()))


def test_no_job_waits_for_what_is_not_known(tmp_path: Path) -> None:
    run(
        Setup(machine(4), [workload_of([sized("a", 0, 1, 100)])]),
        "deferring(fcfs)",
        tmp_path,
        PRICES,
        by="carbon",
    )
    assert starts(tmp_path) == {"a": 0}


def test_a_deferred_job_can_still_be_withdrawn() -> None:
    ledger = Ledger(SimulationBegins(hosts=machine(2).as_protocol()[0]))
    job = Job("w0!a", 0.0, 1, 10.0, "p")
    ledger.submit(job)
    ledger.waiting.defer(job)
    assert not ledger.queue
    assert ledger.reject("w0!a", 1.0).job is job
    assert not ledger.waiting.apart
