"""Jobs of a higher tier take the nodes of those of a lower one, which are cancelled or put back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from batsched_py.analysis.validator import validate
from batsched_py.api.simulate import simulate as simulate_files
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.engines.python import simulate as run
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup
from batsched_py.slurm.comparison import read_jobs, simulated_jobs
from batsched_py.slurm.policy.job import RunningRecord
from batsched_py.slurm.policy.loops import Backfill
from batsched_py.slurm.policy.settings import (
    Configuration,
    Partition,
    Preemption,
    PreemptMode,
    Qos,
    Reservation,
    Selection,
)
from batsched_py.slurm.policy.setup import Setup as PolicySetup
from batsched_py.slurm.scenario import Sources, write_scenario
from batsched_py.slurm.scenario import read_scenario as imported
from batsched_py.testing.runs import rows_in, rows_of
from batsched_py.users import UsersOf
from batsched_py.users.rigid import Rigid
from batsched_py.workload.batsim_json import read_batsim_json
from batsched_py.workload.model import Workload
from tests.slurm.scenario import RECORDED, Twin


def simulate(
    mode: PreemptMode, users: bool = False, exempt_time: float = 0.0, **slurm: Any
) -> dict[str, dict[str, str]]:
    """Two jobs run when a third one comes that may preempt them; the first has these fields."""
    configuration = Configuration(
        preemption=Preemption("partition_prio", mode, exempt_time=exempt_time),
        partitions=(Partition(name="low", default=True), Partition(name="high", priority_tier=2)),
    )
    platform = platform_of(
        [NodeKind(["n1", "n2", "n3", "n4"], 2, {}, partitions=("low", "high"))], {}, "test"
    )
    jobs = [
        job("old", 0.0, 2, "low", **slurm), job("young", 100.0, 2, "low"), job("first", 500.0, 2, "high"),
    ]  # fmt: skip
    workload = Workload("w0", jobs, {"long": Delay(5000.0)}, len(platform.hosts))
    if not users:
        rows = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
    else:
        process = DecisionProcess(Twin(configuration), UsersOf(Rigid(), [workload]))
        with TemporaryDirectory() as folder:
            setup = Setup(platform, [], settings=process.needs)
            run(Batsim(setup, Outputs(f"{folder}/out")), process)
            rows = rows_in(Path(folder, "out_jobs.csv"))
    return {row["job_id"]: row for row in rows}


def job(name: str, at: float, nodes: int, partition: str, **slurm: Any) -> Job:
    request = {"nodes": nodes, "exclusive": True, "partitions": [partition]}
    return Job(f"w0!{name}", at, nodes, 7200.0, "long", {"request": request, "slurm": slurm})


def test_a_job_makes_way_when_its_exempt_time_is_over() -> None:
    """At the next look at the whole queue, although nothing else happens then."""
    rows = simulate("cancel", exempt_time=1000.0)
    assert rows["old"]["final_state"] == "COMPLETED_KILLED"
    assert 1000 < float(rows["first"]["starting_time"]) < 1070


def test_the_oldest_job_of_the_lower_tier_is_cancelled() -> None:
    rows = simulate("cancel")
    assert rows["old"]["final_state"] == "COMPLETED_KILLED"
    assert 500 < float(rows["first"]["starting_time"]) < 510
    assert rows["young"]["success"] == "1"


def test_jobs_come_before_those_that_they_may_preempt_and_those_of_reservations_before_others() -> None:
    """However high the priorities are: here the first in the queue has the highest one."""
    qos = Qos(name="free"), Qos(name="std", preempt=("free",)), Qos(name="rush", preempt=("std", "free"))
    configuration = Configuration(
        preemption=Preemption("qos", "cancel"),
        qos=(*qos, Qos(name="apart")),
        reservations=(Reservation(name="r", start=0, end=9000, nodes="n1"),),
    )
    asked = [{"qos": "free"}, {"qos": "apart"}, {"qos": "std"}, {"qos": "rush"}]
    asked += [{"qos": "rush", "reservation": "r"}, {"qos": "free", "runs": True}]
    platform = platform_of([NodeKind(["n1"], 2, {}, partitions=("p",))], {}, "test")
    setup = PolicySetup(configuration, platform.as_protocol()[0])
    state = setup.state()
    for number, slurm in enumerate(asked):
        (found,), _ = setup.records(job(str(number), 0.0, 1, "p", **slurm), 0.0)
        found.give_priority(1000 - number)
        state.add([found])
    assert [each.job.id.partition("!")[2] for each in state.waiting] == ["5", "4", "1", "3", "2", "0"]


def test_nobody_is_cancelled_where_preemption_is_off() -> None:
    rows = simulate("off")
    assert all(row["success"] == "1" for row in rows.values())
    assert float(rows["first"]["starting_time"]) > 5000


def test_the_oldest_job_of_the_lower_tier_goes_back_into_the_queue() -> None:
    rows = simulate("requeue", users=True)
    assert rows["old"]["final_state"] == "COMPLETED_KILLED"
    assert "requeued=1" in rows["old"]["metadata"]
    assert 500 < float(rows["first"]["starting_time"]) < 510
    again = rows["old#1"]
    assert again["success"] == "1"
    assert again["metadata"].endswith("restart=1")
    assert float(again["starting_time"]) >= float(rows["old"]["finish_time"]) + 121
    assert float(again["execution_time"]) == 5000, "it begins again"


def test_a_job_that_may_not_go_back_is_cancelled() -> None:
    rows = simulate("requeue", users=True, requeue=False)
    assert rows["old"]["final_state"] == "COMPLETED_KILLED"
    assert "old#1" not in rows


def test_nobody_makes_way_where_no_user_hands_jobs_in_again() -> None:
    rows = simulate("requeue")
    assert all(row["success"] == "1" for row in rows.values())


def test_jobs_go_back_and_start_again_as_in_a_recording(tmp_path: Path) -> None:
    """A recording of a real Slurm without a database, in which two jobs are requeued.

    Jobs 1 and 2 start when the controller looks at the whole queue, once a minute; that tells when it was
    started.
    """
    folder = RECORDED / "requeue-1"
    write_scenario(imported(Sources.of_folder(folder)), tmp_path)
    result = simulate_files(
        str(tmp_path / "workload.json"),
        "slurm",
        options={"configuration_file": str(tmp_path / "slurm.toml"), "started": "92.8"},
        platform=str(tmp_path / "platform.toml"),
        progress=False,
    )
    workload = read_batsim_json(tmp_path / "workload.json", "w0")
    assert not validate(result.jobs, 8, [workload])
    assert {"1#1", "2#1"} < set(result.jobs["job_id"])
    table, recorded = simulated_jobs(result.jobs, {}), read_jobs(folder / "recorded-a.csv", "UTC")
    assert set(table.index) == set(recorded.index)
    assert ((table["start"] - recorded["start"]).abs() <= 2).all()
    waits, real = table["start"] - table["eligible"], recorded["start"] - recorded["eligible"]
    assert ((waits - real).abs() <= 2).all()
    assert ((table["end"] - recorded["end"]).abs() <= 2).all()


class _NotLookedAt(list[RunningRecord]):
    def __iter__(self) -> Iterator[RunningRecord]:
        raise AssertionError("running jobs are looked at for a job that preempts nobody")


def test_the_running_jobs_that_make_way_by_their_qos() -> None:
    """Only a job that may preempt others costs a look at those that run."""
    configuration = Configuration(
        selection=Selection(type="cons_tres"),
        preemption=Preemption("qos", "cancel"),
        qos=(
            Qos(name="normal"),
            Qos(name="new", preempt_exempt_time=600),
            Qos(name="high", preempt=("normal", "new")),
        ),
    )
    setup = PolicySetup(configuration, platform_of([NodeKind(["n1"], 8, {})], {}, "test").as_protocol()[0])
    state = setup.state()
    records = [
        setup.records(Job(f"w0!{qos}", 0.0, 2, 600.0, "run", {"slurm": {"qos": qos}}), 0.0)[0][0]
        for qos in ("normal", "new", "high")
    ]
    state.add(records)
    Backfill(state, 0, lambda record, share: state.start(record, share, 0) and None).run()
    assert len(state.running) == 3
    normal, _, high = records

    def making_way(now: int) -> list[str]:
        return sorted(each.waiting.job.name for each in state.preemption.candidates(high, state.running, now))

    assert (making_way(599), making_way(600)) == (["normal"], ["new", "normal"])
    assert state.preemption.candidates(normal, _NotLookedAt(state.running), 900) == []
