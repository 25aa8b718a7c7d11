"""Slurm counts processors, and not tasks, when it chooses nodes for ``-n 4 -c 3``; it may cut a task in two.

Two short recordings show when. tasks-1 has ``CR_CPU``, and tasks are cut. tasks-2 has ``CR_Core_Memory`` and
jobs with ``--mem-per-cpu``, and tasks stay whole. They have the same jobs, but for one that tasks-2 refuses.
"""

from __future__ import annotations

from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import PolicyError
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import RECORDED, Twin, assert_same_places, read_scenario


@pytest.mark.parametrize("name", ["tasks-1", "tasks-2"])
def test_jobs_start_when_and_where_the_real_one_starts_them(name: str) -> None:
    assert_same_places(RECORDED / name)


def _job(name: str, number: str) -> dict[str, Any]:
    _, _, workload = read_scenario(RECORDED / name)
    return next(dict(job.extra) for job in workload.jobs if job.name == number)


def test_a_job_whose_tasks_may_be_cut_asks_for_single_cores() -> None:
    cut, whole = _job("tasks-1", "3"), _job("tasks-2", "3")
    assert "cores" not in cut["request"]
    assert cut["slurm"] == {"cpus_per_task": 3}
    assert (whole["request"]["tasks"], whole["request"]["cores"]) == (4, 3)
    assert "slurm" not in whole
    assert _job("tasks-1", "6")["request"]["cores"] == 3, "a single task stays whole"


def test_tasks_that_do_not_make_the_job_are_a_mistake() -> None:
    _, platform, workload = read_scenario(RECORDED / "tasks-1")
    job = next(job for job in workload.jobs if job.name == "3")
    job.extra["slurm"]["cpus_per_task"] = 5
    wrong = Workload("w0", [job], workload.profiles, len(platform.hosts))
    with pytest.raises(PolicyError, match=r"job w0!3: slurm: tasks of 5 processors do not make 12"):
        rows_of(DecisionProcess(Twin(Configuration())), wrong, platform)
