"""Jobs that were cancelled while they waited, and leave the queue as they did."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py import native
from batsched_py.errors import InputError

#: On a machine of 4 hosts: job 1 holds all of it for 100 s, job 2 was cancelled after 30 s in the queue, and
#: job 4 after 500 s, which is later than it starts in a simulation.
LOG = """\
; MaxProcs: 4
1 0 0 100 4 -1 -1 4 200 -1 1 1 -1 -1 -1 -1 -1 -1
2 10 30 {run_time} {allocated} -1 -1 4 200 -1 5 2 -1 -1 -1 -1 -1 -1
3 20 90 50 4 -1 -1 4 200 -1 1 1 -1 -1 -1 -1 -1 -1
4 30 500 {run_time} {allocated} -1 -1 2 1000 -1 5 3 -1 -1 -1 -1 -1 -1
"""


@pytest.fixture(params=["pure", "native"])
def either_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the native library."""
    if request.param == "native" and native.library is None:
        pytest.skip("the native engine is not in use")
    monkeypatch.setattr(native, "library", native.library if request.param == "native" else None)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG.format(run_time=0, allocated=0))
    return path


def simulated(log: Path, **settings: object) -> pd.DataFrame:
    jobs = bp.simulate(log, "fcfs", progress=False, **settings).jobs  # type: ignore[arg-type]
    return jobs.set_index("job_id").sort_index()


@pytest.mark.usefixtures("either_engine")
@pytest.mark.parametrize(("run_time", "allocated"), [(0, 0), (-1, -1), (-1, 4)])
def test_they_are_withdrawn_as_recorded(log: Path, run_time: int, allocated: int) -> None:
    log.write_text(LOG.format(run_time=run_time, allocated=allocated))
    jobs = simulated(log, cancelled="withdraw")
    assert jobs.final_state.to_dict() == {
        "1": "COMPLETED_SUCCESSFULLY",
        "2": "REJECTED",
        "3": "COMPLETED_SUCCESSFULLY",
        "4": "COMPLETED_KILLED",
    }
    assert jobs.starting_time["3"] == 100
    assert (jobs.starting_time["4"], jobs.finish_time["4"]) == (150, 530)
    assert jobs.metadata["2"] == "user=2 recorded=10 withdrawn=as-recorded"


@pytest.mark.usefixtures("either_engine")
@pytest.mark.parametrize("users", ["think-time", "patience(think-time)", "resample"])
def test_they_are_withdrawn_with_other_users_too(log: Path, users: str) -> None:
    options = {"long_term": "1", "margin": "0"} if users == "resample" else {}
    jobs = simulated(log, cancelled="withdraw", users=users, user_options=options)
    cancelled = jobs[jobs.profile.str.contains("cancelled_after")]
    assert len(cancelled) >= 2
    assert not (cancelled.final_state == "COMPLETED_SUCCESSFULLY").any()


def test_by_default_they_are_left_out_and_counted(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert list(simulated(log).index) == ["1", "3"]
    (message,) = caplog.messages
    assert "left out because they were cancelled while they waited: 2 of 4 jobs" in message


def test_one_of_unknown_wait_is_left_out_in_any_case(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    log.write_text(LOG.format(run_time=0, allocated=0).replace("2 10 30", "2 10 -1"))
    assert list(simulated(log, cancelled="withdraw").index) == ["1", "3", "4"]
    assert "1 of 4 jobs" in caplog.text


def test_a_log_in_memory_is_treated_like_its_file(log: Path) -> None:
    assert simulated(bp.read_log(log), cancelled="withdraw").equals(simulated(log, cancelled="withdraw"))


def test_a_batsim_without_users_cannot_withdraw_them(log: Path) -> None:
    from batsched_py.experiment import Machine, Scenario, Workloads
    from batsched_py.experiment.build import new_batsim, read_machine, read_workloads

    workloads = Workloads(files=(str(log),), cancelled="withdraw")
    scenario, read = Scenario(workloads=workloads), read_workloads(workloads)
    with pytest.raises(InputError, match=re.escape("--cancelled withdraw needs users")):
        new_batsim(scenario, read_machine(Machine(), read), read, None)
