"""Limits of QOS and associations: who would exceed one waits, and others go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.slurm.policy.job import WaitingRecord
from batsched_py.slurm.policy.loops import Backfill
from batsched_py.slurm.policy.nodes import Share
from batsched_py.slurm.policy.settings import (
    Association,
    Configuration,
    Partition,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Selection,
    read_configuration,
)
from batsched_py.slurm.policy.setup import Setup
from batsched_py.slurm.scenario import Sources, read_scenario, write_scenario
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import Twin


def starts(
    qos: Qos, *associations: Association, enforced: bool = True, multifactor: bool = False
) -> dict[str, float]:
    """Four jobs of one core and 1000 s, submitted 10 s after each other, of two users in one account."""
    configuration = Configuration(
        enforce=("associations", "limits", "qos") if enforced else (),
        selection=Selection(type="cons_tres"),
        priority=Priority(type="multifactor", weight_age=1000) if multifactor else Priority(),
        qos=(qos,),
        associations=(
            Association(account="phys", user="ann"),
            Association(account="phys", user="bob"),
            *associations,
        ),
    )
    platform = platform_of([NodeKind(["n1", "n2"], 4, {})], {}, "test")
    jobs = [job(number, "ann" if number < 3 else "bob") for number in range(4)]
    workload = Workload("w0", jobs, {"run": Delay(1000.0)}, len(platform.hosts))
    rows = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
    return {row["job_id"]: float(row["starting_time"]) for row in rows if row["starting_time"]}


def job(number: int, user: str) -> Job:
    extra: dict[str, Any] = {"user": user, "slurm": {"account": "phys", "qos": "normal"}}
    return Job(f"w0!{number}", 10.0 * number, 1, 3600.0, "run", extra)


def test_jobs_of_a_user_wait_for_one_another_and_others_pass() -> None:
    found = starts(Qos(name="normal", max_jobs_per_user=2))
    assert found["2"] > 1000
    assert found["3"] < 100


def test_resources_of_a_whole_qos() -> None:
    found = starts(Qos(name="normal", grp_tres={"cpu": 3.0}))
    assert [name for name, start in found.items() if start > 1000] == ["3"]


def test_the_processor_time_that_running_jobs_may_still_use() -> None:
    """Each may use 3600 s of a processor; a third has to wait until two others have 6400 s left.

    Slurm computes that each 300 s from its start on, which was 64.5 s before.
    """
    found = starts(Qos(name="normal", grp_tres_run_seconds={"cpu": 10_000.0}), multifactor=True)
    assert found["1"] < 100
    assert 535 <= found["2"] < 600, "though nothing has happened"
    assert 1000 <= found["3"] < 1100, "the first two have ended"
    assert not starts(Qos(name="normal", grp_tres_run_seconds={"cpu": 3599.0})), (
        "nobody waits for ever for it"
    )


def test_a_limit_of_the_qos_counts_in_place_of_that_of_the_account() -> None:
    account = Association(account="phys", grp_jobs=1)
    assert sum(start > 900 for start in starts(Qos(name="normal"), account).values()) == 3
    assert sum(start > 900 for start in starts(Qos(name="normal", grp_jobs=4), account).values()) == 0


def test_limits_count_only_where_they_are_enforced() -> None:
    assert max(starts(Qos(name="normal", grp_jobs=1), enforced=False).values()) < 100


def test_jobs_that_no_limit_lets_run_stay_pending() -> None:
    assert not starts(Qos(name="normal", grp_tres={"cpu": 0.5}), multifactor=True)


def test_a_job_that_a_limit_and_nodes_hold_back_stops_nobody() -> None:
    """The third job exceeds a limit and lacks nodes; the main loop goes on, and starts the fourth."""
    configuration = Configuration(
        enforce=("associations", "limits", "qos"),
        scheduling=Scheduling(bf_interval=10_000.0),
        selection=Selection(type="cons_tres"),
        qos=(Qos(name="long", grp_tres={"cpu": 4.0}), Qos(name="normal")),
        associations=(Association(account="phys", user="ann"),),
    )
    platform = platform_of([NodeKind(["n1", "n2"], 4, {})], {}, "test")
    asked = [("long", 4), ("normal", 1), ("long", 8), ("normal", 1)]
    jobs = [
        Job(f"w0!{number}", 10.0 * number, size, 3600.0, "run", job(number, "ann").extra | {"slurm": told})
        for number, (qos, size) in enumerate(asked)
        if (told := {"account": "phys", "qos": qos})
    ]
    rows = rows_of(
        DecisionProcess(Twin(configuration)), Workload("w0", jobs, {"run": Delay(500.0)}, 8), platform
    )
    found = {row["job_id"]: (row["starting_time"], row["metadata"]) for row in rows}
    assert float(found["3"][0]) < 40
    assert found["2"] == ("", "pending=QOSGrpCpuLimit")


def test_partitions_say_whom_they_take() -> None:
    def pending(**partition: Any) -> set[str]:
        configuration = Configuration(
            partitions=(Partition(name="all", **partition),), qos=(Qos(name="normal"),)
        )
        platform = platform_of([NodeKind(["n1"], 4, {})], {}, "test")
        workload = Workload("w0", [job(1, "ann")], {"run": Delay(10.0)}, 4)
        return {row["metadata"] for row in rows_of(DecisionProcess(Twin(configuration)), workload, platform)}

    assert pending() == {""}
    assert pending(allow_accounts=("chem",)) == {"pending=AccountNotAllowed"}
    assert pending(deny_qos=("normal",)) == {"pending=QOSNotAllowed"}
    assert pending(max_time=60.0) == {"pending=PartitionTimeLimit"}


def test_partitions_say_which_groups_they_take_and_the_strictest_may_count() -> None:
    """A job of two partitions, of which one takes nobody of its group, or nobody for so long."""

    def refused(
        enforce: Literal["no", "any", "all"] = "no",
        partitions: str = "free,own",
        who: str = "ann",
        **own: Any,
    ) -> bool:
        configuration = Configuration(
            scheduling=Scheduling(enforce_part_limits=enforce),
            partitions=(Partition(name="free"), Partition(name="own", **own)),
            groups={"staff": ("ann",), "guests": ("bob",)},
        )
        hosts = platform_of([NodeKind(["n1"], 4, {})], {}, "test").as_protocol()[0]
        extra = {"user": who, "request": {"partitions": partitions.split(",")}}
        records, never = Setup(configuration, hosts).records(Job("w0!1", 0.0, 1, 600.0, "run", extra), 0.0)
        return not records and never.is_refused

    assert not refused(partitions="own", allow_groups=("staff",))
    assert refused(partitions="own", allow_groups=("guests",))
    assert not refused(partitions="own", allow_groups=("guests",), who="root")
    assert not refused(allow_groups=("guests",)), "the other partition takes it"
    assert refused("all", allow_groups=("guests",))
    assert refused(partitions="own", root_only=True)
    assert not refused(partitions="own", max_time=60.0), "it is left pending"
    assert refused("any", partitions="own", max_time=60.0)
    assert not refused("any", max_time=60.0)
    assert refused("all", max_time=60.0)


def test_jobs_that_must_name_a_reservation_are_refused_without_one() -> None:
    def starts(qos: Qos, **partition: Any) -> list[bool]:
        """Of a job without a reservation, and of one with it."""
        configuration = Configuration(
            partitions=(Partition(name="all", **partition),),
            qos=(qos,),
            reservations=(Reservation(name="course", start=0, end=6000, nodes="n1", users=("ann",)),),
        )
        platform = platform_of([NodeKind(["n1"], 4, {})], {}, "test")
        jobs = [Job(f"w0!{name}", 0.0, 1, 600.0, "run", {"user": "ann", "slurm": told})
                for name, told in (("1", {}), ("2", {"reservation": "course"}))]  # fmt: skip
        workload = Workload("w0", jobs, {"run": Delay(10.0)}, 4)
        rows = rows_of(DecisionProcess(Twin(configuration)), workload, platform)
        return [bool(row["starting_time"]) for row in sorted(rows, key=lambda row: row["job_id"])]

    assert starts(Qos(name="normal", flags=("no_reserve",))) == [True, True]
    assert starts(Qos(name="normal", flags=("require_reservation",))) == [False, True]
    assert starts(Qos(name="normal"), req_resv=True) == [False, True]


def test_a_start_is_planned_for_so_many_tasks_of_an_array_only() -> None:
    """Two tasks of an array are planned for; the third is passed over, and a job behind it is planned for."""
    configuration = Configuration(
        scheduling=Scheduling(bf_max_job_array_resv=2), selection=Selection(type="cons_tres")
    )
    setup = Setup(configuration, platform_of([NodeKind(["n1"], 4, {})], {}, "test").as_protocol()[0])
    state = setup.state()
    tasks = [Job(f"w0!7_{number}", 0.0, 4, 600.0, "run", {"array": "7"}) for number in range(3)]
    for each in [Job("w0!1", 0.0, 4, 600.0, "run"), *tasks, Job("w0!8", 0.0, 4, 600.0, "run")]:
        state.add(setup.records(each, 0.0)[0])
    planned: list[str] = []

    def start(record: WaitingRecord, share: Share) -> None:
        state.start(record, share, 0)

    Backfill(state, 0, start, lambda record, begin, nodes: planned.append(record.job.name)).run()
    assert planned == ["7_0", "7_1", "8"]


def test_a_file_of_groups_tells_who_is_let_in(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1 CPUs=4\nPartitionName=own Nodes=n1 AllowGroups=staff\n")
    (tmp_path / "groups.txt").write_text("root:x:0:\nstaff:x:50:ann,bob\n")
    conf = tmp_path / "slurm.conf"
    told = read_scenario(Sources(conf=conf, accounting=(tmp_path / "groups.txt",)))
    assert told.configuration.groups["staff"] == ("ann", "bob")
    assert told.findings.unmodelled == []
    (found,) = read_scenario(Sources(conf=conf)).findings.unmodelled
    assert found.what == "AllowGroups of partition 'own': nothing tells who is in these groups"
    write_scenario(told, tmp_path / "twin")
    assert read_configuration(tmp_path / "twin" / "slurm.toml").groups == told.configuration.groups
