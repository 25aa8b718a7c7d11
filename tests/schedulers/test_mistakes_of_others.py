"""Mistakes that were found in another simulator of schedulers; they must not be made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batsched_py.engines.python import Batsim
from batsched_py.errors import InputError
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, schedule_of, starts, workload_of
from batsched_py.workload.batsim_json import read_batsim_json
from batsched_py.workload.swf.reader import read_swf
from tests.scheduling import policy

BACKFILLING = ["easy", "conservative"]


@pytest.mark.parametrize("name", BACKFILLING)
def test_a_backfilled_job_never_delays_the_reservation_of_the_head(name: str) -> None:
    jobs = [
        JobSpec("running", 0, 3, 10, 10),
        JobSpec("head", 1, 4, 5, 5),
        JobSpec("late", 2, 1, 9, 9),
        JobSpec("in time", 3, 1, 7, 7),
    ]
    begun = starts(policy(name), jobs, 4)
    assert begun["in time"] == 3
    assert begun["head"] == 10
    assert begun["late"] == 15


@pytest.mark.parametrize("name", BACKFILLING)
def test_a_reservation_moves_forward_when_jobs_end_early(name: str) -> None:
    jobs = [JobSpec("running", 0, 4, 2, 100), JobSpec("head", 1, 4, 5, 5)]
    assert starts(policy(name), jobs, 4)["head"] == 2


@pytest.mark.parametrize("name", BACKFILLING)
def test_the_reserved_time_is_an_event(name: str) -> None:
    """Nothing else happens at 10, and nothing at all between 3 and 1000."""
    jobs = [
        JobSpec("running", 0, 3, 1000, 10),
        JobSpec("head", 1, 4, 5, 5),
        JobSpec("behind", 2, 4, 5, 5),
        JobSpec("much later", 1000, 1, 1, 1),
    ]
    assert starts(policy(name), jobs, 4) == {"running": 0, "head": 10, "behind": 15, "much later": 1000}


@pytest.mark.parametrize("name", ["fcfs", *BACKFILLING])
def test_jobs_are_killed_at_their_walltime(name: str) -> None:
    schedule = schedule_of(policy(name), [JobSpec("1", 0, 1, 100, 7)], 4).iloc[0]
    assert schedule["final_state"] == "COMPLETED_WALLTIME_REACHED"
    assert schedule["execution_time"] == 7


def test_a_negative_run_time_is_refused() -> None:
    with pytest.raises(InputError, match=r"run_-5"):
        Batsim(Setup(Platform.homogeneous(4), [workload_of([JobSpec("1", 0, 1, -5)])]))


def test_a_negative_delay_in_a_workload_file_is_refused(tmp_path: Path) -> None:
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p"}
    content = {"nb_res": 4, "jobs": [job], "profiles": {"p": {"type": "delay", "delay": -5}}}
    path = tmp_path / "negative.json"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="delay"):
        Batsim(Setup(Platform.homogeneous(4), [read_batsim_json(path, "w0")]))


def test_a_negative_run_time_in_a_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "negative.swf"
    path.write_text("1 0 0 -5 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n")
    with pytest.raises(InputError, match="run_time is negative"):
        read_swf(path)
