"""Who comes first in the queue: tasks of an array with a limit are as old as the first one."""

from __future__ import annotations

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.slurm.policy.settings import Configuration, Priority
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import Twin


@pytest.mark.parametrize(("limit", "first"), [(2, "third"), (1, "other")])
def test_a_task_keeps_its_age_unless_as_many_as_may_ran_until_then(limit: int, first: str) -> None:
    """The array comes before the other job, and a single node runs one job after another.

    With ``%2`` only one task can run, so the third is never held by Slurm, and older than the other job. With
    ``%1`` the second was held until the first had ended, and the third until the second had.
    """
    priority = Priority(type="multifactor", weight_age=100000, max_age=86400)
    platform = platform_of([NodeKind(["n1"], 1, {})], {}, "test")
    jobs = [
        Job(f"w0!{name}", at, 1, 1200.0, "long", {"array": f"sweep%{limit}"} if name != "other" else {})
        for name, at in (("first", 0.0), ("second", 0.0), ("third", 0.0), ("other", 100.0))
    ]
    workload = Workload("w0", jobs, {"long": Delay(1000.0)}, len(platform.hosts))
    rows = rows_of(DecisionProcess(Twin(Configuration(priority=priority))), workload, platform)
    starts = {row["job_id"]: float(row["starting_time"]) for row in rows}
    assert min(("third", "other"), key=starts.__getitem__) == first, starts
