"""Closures: no job runs into one, and the first in line starts as soon as there is room for it."""

from __future__ import annotations

import csv
from pathlib import Path
from random import Random

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.analysis.plots.kinds.gantt import Gantt
from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.plots.sheet import Sheet
from batsched_py.analysis.plots.style import Look
from batsched_py.analysis.validator.rules import into_closures
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import InputError, PolicyError
from batsched_py.outside.closures import Closure, read_closures
from batsched_py.outside.curve import Known
from batsched_py.protocol.events import Message
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job
from batsched_py.protocol.profiles import Delay
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler, node_choice
from batsched_py.simulator.outputs import PREFIX, MemoryFiles, Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.processes import call_here

NB_HOSTS = 6


class Far:
    """A decision process that is spoken to by messages."""

    def __init__(self, process: DecisionProcess) -> None:
        self._process = process

    def react(self, request: Message) -> Message:
        return self._process.react(request)


def random_case(seed: int) -> tuple[Workload, tuple[Closure, ...]]:
    random = Random(seed)
    profiles, jobs, time = {}, [], 0.0
    for number in range(25):
        time += random.choice((0, 0, 3, 10))
        run_time = random.randint(1, 25)
        profiles[f"p{number}"] = Delay(seconds=float(run_time))
        walltime = run_time + random.randint(1, 15)
        extra = {"user": random.choice("ab")}
        jobs.append(Job(f"w0!{number:02}", time, random.randint(1, 4), float(walltime), f"p{number}", extra))
    closures = []
    for _ in range(4):
        start = float(random.randint(0, 200))
        hosts = HostSet.of(random.sample(range(NB_HOSTS), random.randint(1, NB_HOSTS)))
        users = frozenset(random.choice(("", "", "a")))
        closures.append(Closure(start, start + random.randint(5, 40), hosts, users))
    return Workload("w0", jobs, profiles), tuple(closures)


def played(
    name: str, workload: Workload, closures: tuple[Closure, ...], by_messages: bool = False
) -> list[tuple[Job, HostSet, float, float]]:
    """For each job its hosts, its start and its end, as ``jobs.csv`` tells."""
    files = MemoryFiles()
    known = Known(closures=closures)
    process = DecisionProcess(SCHEDULERS.create(name, {}), outlook=lambda hosts: known)
    batsim = Batsim(
        Setup(Platform.homogeneous(NB_HOSTS), [workload]), Outputs(PREFIX, new_file=files.new_file)
    )
    simulate(batsim, Far(process) if by_messages else process)
    jobs = {job.name: job for job in workload.jobs}
    written = files.open("jobs")
    assert written is not None
    found = [
        (
            jobs[row["job_id"]],
            HostSet.parse(row["allocated_resources"]),
            float(row["starting_time"]),
            float(row["finish_time"]),
        )
        for row in csv.DictReader(written)
    ]
    return sorted(found, key=lambda each: each[0].id)


@pytest.mark.parametrize(
    "name", ["fcfs", "easy", "easy-sjbf", "filler", "user-aware", "conservative", "easy-moldable"]
)
def test_hosts_that_are_counted_are_given_out_as_nodes_are(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [random_case(seed) for seed in range(100, 112)]
    counted = [played(name, *case) for case in cases]
    monkeypatch.setattr(node_choice, "closed_hosts", node_choice.free_nodes)
    assert counted == [played(name, *case) for case in cases]


@pytest.mark.parametrize("name", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("seed", range(4))
def test_no_job_runs_into_a_closure_and_the_first_in_line_starts_when_it_can(name: str, seed: int) -> None:
    workload, closures = random_case(seed)
    schedule = played(name, workload, closures)
    assert [job.id for job, *_ in schedule] == [job.id for job in workload.jobs]
    for job, hosts, start, _ in schedule:
        for closure in closures:
            if job.user not in closure.users and closure.start < start + job.walltime and start < closure.end:
                assert not hosts & closure.hosts
    first = 0.0
    for job, _, start, _ in schedule:
        time = first = max(first, job.submission_time)
        while time < start:
            assert room(job, time, schedule, closures) < job.size
            time += 1
        first = max(first, start)
    if name != "fcfs":
        assert any(
            later[2] < earlier[2] for place, earlier in enumerate(schedule) for later in schedule[place + 1 :]
        )


@pytest.mark.parametrize("name", ["filler", "easy", "conservative", "easy-sjbf", "random"])
def test_jobs_of_any_place_in_the_queue_start_when_a_closure_ends(name: str) -> None:
    jobs = [Job(f"w0!{number}", 5.0, 2, 10.0, "p") for number in range(3)]
    workload = Workload("w0", jobs, {"p": Delay(seconds=10.0)})
    closures = (Closure(10.0, 20.0, HostSet.of(range(NB_HOSTS))),)
    assert [start for _, _, start, _ in played(name, workload, closures)] == [20.0] * 3
    assert [start for _, _, start, _ in played(name, workload, closures, by_messages=True)] == [20.0] * 3


def test_the_validator_finds_jobs_on_closed_hosts(tmp_path: Path) -> None:
    workload, closures = random_case(1)
    schedule = schedule_of(played("easy", workload, closures))
    assert list(into_closures(schedule, closures, [workload])) == []
    late = [Closure(each.start - 20, each.end, each.hosts, each.users) for each in closures]
    found = list(into_closures(schedule, late, [workload]))
    assert found and {violation.rule for violation in found} == {"closed"}
    strangers = [Closure(each.start, each.end, each.hosts) for each in closures]
    assert list(into_closures(schedule, strangers, [workload])) != []


def schedule_of(played: list[tuple[Job, HostSet, float, float]]) -> pd.DataFrame:
    """What a validator reads of a schedule."""
    return pd.DataFrame(
        {
            "job_id": [job.name for job, *_ in played],
            "workload_name": "w0",
            "requested_time": [job.walltime for job, *_ in played],
            "starting_time": [start for _, _, start, _ in played],
            "final_state": "COMPLETED_SUCCESSFULLY",
            "allocated_resources": [str(hosts) for _, hosts, _, _ in played],
            "metadata": "",
        }
    )


def room(
    job: Job,
    time: float,
    schedule: list[tuple[Job, HostSet, float, float]],
    closures: tuple[Closure, ...],
) -> int:
    """How many hosts a job could have at a time, counted one by one."""
    count = 0
    for host in range(NB_HOSTS):
        is_busy = any(host in hosts and start <= time < end for _, hosts, start, end in schedule)
        is_closed = any(
            host in each.hosts
            and time < each.end
            and each.start < time + job.walltime
            and job.user not in each.users
            for each in closures
        )
        count += not (is_busy or is_closed)
    return count


@pytest.mark.parametrize("name", ["fcfs", "easy", "conservative", "sjf"])
def test_messages_give_the_same_schedule(name: str) -> None:
    workload, closures = random_case(42)
    near, far = (played(name, workload, closures, by_messages) for by_messages in (False, True))
    assert [(job.id, str(hosts), *times) for job, hosts, *times in near] == [
        (job.id, str(hosts), *times) for job, hosts, *times in far
    ]


@pytest.mark.parametrize("name", ["fcfs", "easy"])
def test_a_closure_after_the_last_job_changes_nothing(name: str) -> None:
    workload, _ = random_case(3)
    late = (Closure(1e6, 1e6 + 1, HostSet.range(NB_HOSTS)),)
    with_it, without = played(name, workload, late), played(name, workload, ())
    assert [(str(hosts), *times) for _, hosts, *times in with_it] == [
        (str(hosts), *times) for _, hosts, *times in without
    ]


def test_the_twin_of_slurm_refuses_them_because_it_has_reservations() -> None:
    workload, closures = random_case(1)
    with pytest.raises(PolicyError, match="knows the reservations of its configuration, and no closures"):
        played("slurm", workload, closures)


def test_a_policy_cannot_start_a_job_on_hosts_that_close() -> None:
    class Stubborn(Scheduler):
        name = "stubborn"

        def schedule(self, cluster: Cluster) -> None:
            for job in list(cluster.queue):
                cluster.start(job, cluster.free.lowest(job.size))

    known = Known(closures=(Closure(10.0, 20.0, HostSet.range(1)),))
    workload = Workload("w0", [Job("w0!1", 0.0, 1, 30.0, "p")], {"p": Delay(seconds=5.0)})
    with pytest.raises(PolicyError, match="hosts 0 are closed from 10 to 20"):
        simulate(
            Batsim(Setup(Platform.homogeneous(2), [workload])),
            DecisionProcess(Stubborn(), outlook=lambda hosts: known),
        )


def test_a_file_of_closures(tmp_path: Path) -> None:
    file = tmp_path / "closures.csv"
    file.write_text("start,end,hosts,users\n10,20,all,\n5,8,n1,alice bob\n30,40,gpu,\n")
    hosts = [
        Host(number, f"h{number}", properties={"node": f"n{number // 2}", "partitions": partition})
        for number, partition in enumerate(["cpu", "cpu", "cpu gpu", "cpu gpu"])
    ]
    closures = read_closures(str(file), hosts).all
    assert [(each.start, str(each.hosts), sorted(each.users)) for each in closures] == [
        (5.0, "2-3", ["alice", "bob"]),
        (10.0, "0-3", []),
        (30.0, "2-3", []),
    ]
    file.write_text("start,end,hosts\n10,20,\n")
    with pytest.raises(InputError, match="line 2: no hosts are named"):
        read_closures(str(file), hosts)


def test_closures_and_failures_on_a_machine_of_nodes(root: Path, tmp_path: Path) -> None:
    machine = tmp_path / "machine.toml"
    machine.write_text("[[nodes]]\ncount = 8\nname = 'n'\ncores = 8\n")
    log = root / "workloads" / "sample.swf"
    closures = tmp_path / "closures.csv"
    closures.write_text("start,end,hosts\n40000,60000,all\n")
    short = tmp_path / "short.swf"
    lines = [line for line in log.read_text().splitlines() if not line.startswith(";")]
    short.write_text("\n".join(lines[:150]) + "\n")
    result = bp.simulate(
        str(short),
        "easy",
        platform=str(machine),
        closures=str(closures),
        failures="exponential",
        mtbf=1e5,
        on_failure="resubmit",
    )
    jobs = result.jobs
    reaching = (jobs["starting_time"] < 60000) & (jobs["starting_time"] + jobs["requested_time"] > 40000)
    assert not reaching.any()
    assert (jobs["starting_time"] >= 60000).any()
    failed = jobs["metadata"].str.extract(r"failed=(\S+)", expand=False).dropna()
    assert len(failed)
    for text in failed:
        first, _, last = text.split(",")[0].partition("-")
        assert int(first) // 8 == int(last or first) // 8


def test_an_explanation_tells_which_hosts_were_closed(tmp_path: Path) -> None:
    (tmp_path / "closures.csv").write_text("start,end,hosts\n50,150,0-3\n")
    (tmp_path / "jobs.swf").write_text(
        "1 0 -1 60 4 -1 -1 4 80 -1 1 1 -1 -1 -1 -1 -1 -1\n2 10 -1 30 2 -1 -1 2 35 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    )
    log, closures = str(tmp_path / "jobs.swf"), str(tmp_path / "closures.csv")
    result = bp.simulate(log, "easy", hosts=4, closures=closures)
    assert "4 hosts closed (0-3), from" in str(result.explain("1"))
    assert "started at once" in str(result.explain("2"))


def test_a_gantt_chart_hatches_hosts_that_are_closed_or_fail(tmp_path: Path) -> None:
    (tmp_path / "closures.csv").write_text("start,end,hosts\n500,900,0-3 6\n")
    (tmp_path / "trace.csv").write_text("hosts,down,up\n5,20,40\n")
    files = ["--closures", tmp_path / "closures.csv", "--failure-trace", tmp_path / "trace.csv"]
    outputs = ["-e", tmp_path / "out", "-s", "easy", "--hosts", 64]
    call_here(["change", "workloads/sample.swf", tmp_path / "log.swf", "first", "jobs=40"])
    assert call_here(["run", "-w", tmp_path / "log.swf", *files, *outputs])[0] == 0
    run = read_run(tmp_path / "out_jobs.csv", "run")
    assert [(str(each.hosts), each.state, each.since) for each in run.absences] == [
        ("5", "away", 20.0),
        ("0-3 6", "closed", 500.0),
    ]
    sheet = Sheet(Look())
    with sheet.styled():
        Gantt().draw(sheet, [run], None)
    hatched = [patch for patch in sheet.axes[0].patches if patch.get_hatch()]
    assert [(patch.get_hatch(), patch.get_y(), patch.get_height()) for patch in hatched] == [
        ("xxxx", 5, 1),
        ("////", 0, 4),
        ("////", 6, 1),
    ]


def test_what_backfilling_promises_is_not_checked_where_hosts_close(tmp_path: Path) -> None:
    log, closures = tmp_path / "log.swf", tmp_path / "closures.csv"
    log.write_text("1 10 -1 20 1 -1 -1 1 30 -1 1 1 1 1 1 1 -1 -1\n")
    closures.write_text("start,end,hosts\n0,100,all\n")
    run = ["run", "-w", log, "--hosts", "2", "-s", "easy", "--closures", closures, "-e", tmp_path / "out"]
    assert call_here(run)[0] == 0
    command = ["validate", tmp_path / "out_jobs.csv", "-w", log, "--hosts", "2", "--policy"]
    assert call_here([*command, "fcfs"])[0] == 0
    code, _, err = call_here([*command, "easy"])
    assert code == 1
    assert "what easy promises is about hosts that are always there, and some here were away or closed" in err
