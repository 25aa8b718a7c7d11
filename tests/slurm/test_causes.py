"""Why each job waits, as the policy `slurm` remarks."""

from __future__ import annotations

from typing import Any

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers.decisions import Remark
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.slurm.policy.settings import (
    Association,
    Configuration,
    Partition,
    Priority,
    Qos,
    Reservation,
    Selection,
)
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import Twin

CONFIGURATION = Configuration(
    enforce=("associations", "limits", "qos"),
    selection=Selection(type="cons_tres", consumed="core", memory=True),
    priority=Priority(type="multifactor", weight_age=1000, weight_qos=500),
    partitions=(Partition(name="batch", default=True),),
    qos=(Qos(name="normal", priority=1), Qos(name="high", priority=2), Qos(name="one", max_jobs_per_user=1)),
    associations=(Association(account="phys", user="ann"),),
)
NODES = NodeKind(["n1", "n2"], 4, {"memory": 8 << 20, "gpu": 2})


def job(number: int, cores: int, request: dict[str, Any] | None = None, **fields: Any) -> Job:
    extra = {"user": "ann", "slurm": {"account": "phys", "qos": "normal", **fields}}
    if request is not None:
        extra["request"] = request
    return Job(f"w0!{number}", 10.0 * number, cores, 3600.0, "run", extra)


def causes(*jobs: Job, configuration: Configuration = CONFIGURATION) -> dict[str, list[str]]:
    """What was remarked of each job, in the order of time."""
    process, heard = DecisionProcess(Twin(configuration)), list[Remark]()
    process.heed(heard.append)
    platform = platform_of([NODES], {}, "test")
    rows_of(process, Workload("w0", list(jobs), {"run": Delay(1000.0)}, len(platform.hosts)), platform)
    return {each.name: [one.text for one in heard if one.job_id == each.id] for each in jobs}


def test_resources_that_are_lacking_and_who_is_before() -> None:
    found = causes(job(0, 6), job(1, 4), job(2, 4), job(3, 3, qos="high"))
    assert found["0"] == [], "it only waits until the loop looks"
    assert found["1"] == ["waits (Resources): 2 processors of 4 are free; priority 250 (qos 250)"]
    assert found["2"] == ["waits (Resources): 2 processors of 4 are free; behind 1; priority 250 (qos 250)"]
    assert found["3"] == ["waits (Resources): 2 processors of 3 are free; priority 500 (qos 500)"]


def test_a_job_that_waited_when_a_log_begins_is_as_old_as_it_was() -> None:
    """Both may start after 700 s only, and wait for the first until 1000 s."""
    found = causes(job(0, 8), job(1, 8, not_before=700.0), job(2, 8, begin=700.0))
    assert "age" in found["1"][0] and "age" not in found["2"][0]
    assert found["2"][0].startswith("waits (Resources): 0 processors of 8 are free; behind 1;")


def test_room_that_is_kept_for_others() -> None:
    whole = {"nodes": 2, "exclusive": True}
    (told,) = causes(job(0, 4), job(1, 2, whole), job(2, 1))["2"][:1]
    assert told.startswith("waits (Priority): there is room for it, which is kept for others; behind 1;")


def test_other_resources_and_nodes() -> None:
    gpus = {"per_node": {"gpu": 2}}
    found = causes(
        job(0, 1, gpus), job(1, 1, gpus), job(2, 1, gpus), job(3, 1, {"nodes": 1, "exclusive": True})
    )
    assert found["2"][0].startswith("waits (Resources): 0 gpu of 2 are free;")
    assert found["3"][0].startswith("waits (Resources): 0 idle nodes of 1 are free; behind 2;")


def test_limits_and_reservations() -> None:
    configuration = Configuration(
        enforce=CONFIGURATION.enforce,
        selection=CONFIGURATION.selection,
        qos=CONFIGURATION.qos,
        associations=CONFIGURATION.associations,
        reservations=(Reservation(name="upkeep", start=1500, end=2500, nodes="ALL", flags=("maint",)),),
    )
    short = Job("w0!0", 0.0, 1, 600.0, "run", {"user": "ann", "slurm": {"account": "phys", "qos": "one"}})
    found = causes(short, job(1, 1, qos="one"), job(2, 1), configuration=configuration)
    assert found["1"][0].startswith("waits (QOSMaxJobsPerUserLimit); priority")
    assert found["2"][0].startswith("waits (Reservation): upkeep; ")


def test_parts_of_a_priority_add_up() -> None:
    told = causes(job(0, 8), job(1, 8), job(2, 8))["2"][-1]
    assert told.partition("priority ")[2].startswith("25"), told
