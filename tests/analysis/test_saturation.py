"""The load at which a machine falls behind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import batsched_py as bp
from batsched_py.analysis.saturation import Trial, saturation, trial
from batsched_py.errors import InputError
from tests.logs import log_of
from tests.processes import call_here


def even_log(jobs: int = 200, run_time: float = 80.0) -> bp.Log:
    """A job of all 4 processors every 100 s: the load is 80 %, of which a machine bears 1.25 times."""
    return bp.Log(log_of(submit=np.arange(jobs) * 100.0, run_time=run_time, requested_processors=4))


def test_work_that_waiting_kept_from_being_done_is_behind() -> None:
    jobs = bp.simulate(even_log(3, run_time=150), "fcfs", hosts=4).jobs
    found = trial(jobs, hosts=4, factor=1)
    assert found.offered == pytest.approx(450 / 200)
    assert found.done == pytest.approx(200 / 200)
    assert found.behind == pytest.approx((250 - 200) / 450)
    assert found.mean_wait == pytest.approx((0 + 50 + 100) / 3)


def test_it_is_found_where_theory_has_it() -> None:
    found = bp.saturation(even_log(), "fcfs", hosts=4, within=0.001)
    assert found.kept_up.factor <= 1.25 * 200 / 199 and found.fell_behind.factor > 1.24
    assert found.fell_behind.factor <= found.kept_up.factor * 1.001
    assert found.capacity == pytest.approx(1, abs=0.01)


def test_a_machine_that_is_too_small_for_the_log_keeps_up_with_less() -> None:
    found = bp.saturation(even_log(run_time=160), "fcfs", hosts=4)
    assert 0.6 <= found.kept_up.factor < found.fell_behind.factor <= 0.64


def test_a_search_without_end_is_given_up() -> None:
    idle = Trial(factor=1, offered=0, done=0, behind=0, mean_wait=0)
    with pytest.raises(InputError, match="keeps up with 64 times the load"):
        saturation(lambda factor: idle, 0.05, 0.02)
    with pytest.raises(InputError, match=r"falls behind at 0\.015625 times the load"):
        saturation(lambda factor: Trial(factor=1, offered=1, done=0, behind=1, mean_wait=0), 0.05, 0.02)


def test_jobs_of_one_instant_have_no_load() -> None:
    with pytest.raises(InputError, match="submitted at two times or more"):
        bp.saturation(bp.Log(log_of(submit=[0, 0])), "fcfs", hosts=4)


def test_fcfs_falls_behind_before_easy_does(root: Path) -> None:
    """As the command tells, with all loads that were tried."""
    log = root / "workloads" / "sample.swf"
    ends = {}
    for policy in ("easy", "fcfs"):
        code, out, _ = call_here(["saturation", str(log), "-s", policy, "--within", "0.1"])
        assert code == 0
        ends[policy] = float(out.split("falls behind between ")[1].split()[0])
    assert ends["fcfs"] < 1.15 < 1.2 < ends["easy"]
