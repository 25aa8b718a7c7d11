"""Starting a job and cleaning its hosts take time, in both engines alike."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from batsched_py.analysis.schedule import read_schedule
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.native import NativeSimulation
from batsched_py.engines.python import Batsim, PythonSimulation
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Homogeneous
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.agenda import read_events
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from batsched_py.workload.model import Workload
from tests.test_engines import HOSTS, Erratic, native_only, on_both, outcome_with_users, random_workload

ENGINES = ["python", pytest.param("native", marks=native_only)]


def run(engine: str, setup: Setup, policy: Scheduler, prefix: Path, users: Any = ()) -> dict[str, bytes]:
    """The files of a simulation, by what their names end with."""
    outputs = Outputs(str(prefix), schedule_trace=True)
    process = DecisionProcess(policy, users)
    if engine == "native":
        NativeSimulation(setup, process, outputs).run()
    else:
        PythonSimulation(Batsim(setup, outputs), process).run()
    return {Path(file).name.partition("_")[2]: Path(file).read_bytes() for file in outputs.files}


def two_jobs(**times: float) -> Setup:
    jobs = [Job("w0!1", 0.0, 2, 20.0, "p"), Job("w0!2", 0.0, 2, 20.0, "p")]
    return Setup(Platform.homogeneous(2), [Workload("w0", jobs, {"p": Homogeneous(10e9)})], **times)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_begins_when_it_is_launched_and_the_next_when_its_hosts_are_clean(
    engine: str, tmp_path: Path
) -> None:
    policy = SCHEDULERS.create("easy", {})
    run(engine, two_jobs(launch_time=2.0, cleaning_time=3.0), policy, tmp_path / "out")
    jobs = read_schedule(tmp_path / "out_jobs.csv")
    assert jobs["starting_time"].to_list() == [2.0, 17.0]
    assert jobs["finish_time"].to_list() == [12.0, 27.0]
    assert jobs["waiting_time"].to_list() == [2.0, 17.0]


@pytest.mark.parametrize("engine", ENGINES)
def test_hosts_do_not_compute_while_jobs_are_launched_and_cleaned_up(engine: str, tmp_path: Path) -> None:
    files = run(
        engine, two_jobs(launch_time=2.0, cleaning_time=3.0), SCHEDULERS.create("fcfs", {}), tmp_path / "out"
    )
    head, row = files["schedule.csv"].decode().splitlines()
    summary = dict(zip(head.split(","), row.split(","), strict=True))
    assert (summary["time_computing"], summary["time_idle"]) == ("40.000000", "14.000000")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("nodes", [[], [NodeKind([f"n{number}" for number in range(6)], 1, {})]])
def test_all_ends_count_of_jobs_that_run_on_after_them(
    engine: str, nodes: list[NodeKind], tmp_path: Path
) -> None:
    """From 12 on, the head is expected to leave two hosts free; at 13 the policy is asked again."""
    jobs = [
        JobSpec("late", 0, 1, 10, 10),
        JobSpec("later", 0, 2, 12, 12),
        JobSpec("long", 0, 2, 100, 100),
        JobSpec("head", 1, 2, 5, 5),
        JobSpec("small", 2, 1, 50, 50),
        JobSpec("large", 13, 6, 5, 5),
    ]
    machine = platform_of(nodes, {}, "six") if nodes else Platform.homogeneous(6)
    setup = Setup(machine, [workload_of(jobs)], launch_time=10.0)
    run(engine, setup, SCHEDULERS.create("easy", {"ends": "all"}), tmp_path / "out")
    table = read_schedule(tmp_path / "out_jobs.csv").set_index("job_id")["starting_time"]
    assert (table["small"], table["head"]) == (23.0, 32.0)


class Killer(Scheduler):
    """Starts each job at once, and kills the first one at some time."""

    name = "killer"

    def __init__(self, time: float) -> None:
        self.time = time
        self.told: list[tuple[float, str]] = []

    def begin(self, cluster: Cluster) -> None:
        cluster.call_at(self.time)

    def schedule(self, cluster: Cluster) -> None:
        self.told += [(cluster.now, type(event).__name__) for event in cluster.events]
        for job in cluster.fitting():
            cluster.start(job)
        if cluster.now == self.time and (self.time, "JobsKilled") not in self.told:
            cluster.decide(ev.KillJobs(["w0!1"]))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("killed_at", "begin", "end", "state", "told_at"),
    [
        (1.0, 1.0, 1.00001, "COMPLETED_KILLED", 4.0),
        (5.0, 2.0, 5.0, "COMPLETED_KILLED", 8.0),
        (13.0, 2.0, 12.0, "COMPLETED_SUCCESSFULLY", 15.0),
    ],
    ids=["launched", "running", "cleaned up"],
)
def test_a_job_is_killed_at_any_time(
    engine: str, killed_at: float, begin: float, end: float, state: str, told_at: float, tmp_path: Path
) -> None:
    policy = Killer(killed_at)
    run(engine, two_jobs(launch_time=2.0, cleaning_time=3.0), policy, tmp_path / "out")
    first = read_schedule(tmp_path / "out_jobs.csv").iloc[0]
    assert first[["starting_time", "finish_time", "final_state"]].to_list() == [begin, end, state]
    assert min(time for time, event in policy.told if event == "JobCompleted") == told_at
    assert (killed_at + 3.0, "JobsKilled") in policy.told


def test_hosts_that_fail_while_a_job_is_launched_are_not_counted_twice(tmp_path: Path) -> None:
    """The job goes on, as Batsim's do."""
    (tmp_path / "events").write_text(
        '{"type": "machine_unavailable", "resources": "0", "timestamp": 1}\n'
        '{"type": "machine_available", "resources": "0", "timestamp": 30}\n'
    )
    events = [read_events(tmp_path / "events", False)]
    jobs = [Job("w0!1", 0.0, 2, 20.0, "p")]
    workload = Workload("w0", jobs, {"p": Homogeneous(10e9)})
    setup = Setup(Platform.homogeneous(2), [workload], events=events, launch_time=2.0)
    files = run("python", setup, SCHEDULERS.create("fcfs", {}), tmp_path / "out")
    head, row = files["schedule.csv"].decode().splitlines()
    summary = dict(zip(head.split(","), row.split(","), strict=True))
    assert (summary["time_computing"], summary["time_unavailable"]) == ("10.000000", "29.000000")


def test_a_scheduler_elsewhere_makes_the_same_schedule(tmp_path: Path) -> None:
    random = Random(2)
    setup = Setup(Platform.homogeneous(HOSTS), [random_workload(random)], launch_time=1.0, cleaning_time=0.5)
    here = run("python", setup, SCHEDULERS.create("easy", {}), tmp_path / "here")
    outputs = Outputs(str(tmp_path / "there"), schedule_trace=True)
    batsim, process = Batsim(setup, outputs), DecisionProcess(SCHEDULERS.create("easy", {}))
    request: ev.Message | None = batsim.begin()
    while request is not None:
        request = batsim.advance(process.react(request))
    assert (tmp_path / "there_jobs.csv").read_bytes() == here["jobs.csv"]
    assert (tmp_path / "there_schedule.trace").read_bytes() == here["schedule.trace"]


# --- both engines --------------------------------------------------------------------------------


def times_of(random: Random) -> dict[str, float]:
    return {name: random.choice((0.0, 0.3, 2.0, 1 / 3)) for name in ("launch_time", "cleaning_time")}


def outcome_of(seed: int, folder: Path) -> Callable[[str], Any]:
    """What a policy hears and what is written, when it does whatever it likes."""

    def outcome(engine: str) -> tuple[list[str], dict[str, bytes]]:
        random, policy = Random(seed), Erratic(seed)
        setup = Setup(Platform.homogeneous(HOSTS), [random_workload(random)], **times_of(random))
        return policy.heard, run(engine, setup, policy, folder / engine)

    return outcome


@native_only
def test_both_engines_launch_clean_and_trace_in_the_same_way(tmp_path: Path) -> None:
    for seed in range(3):
        by_python, by_native = on_both(outcome_of(seed, tmp_path))
        assert by_native == by_python, seed


@native_only
@pytest.mark.slow
def test_both_engines_launch_clean_and_trace_in_the_same_way_100_times(tmp_path: Path) -> None:
    for seed in range(3, 103):
        by_python, by_native = on_both(outcome_of(seed, tmp_path))
        assert by_native == by_python, seed


@native_only
def test_users_hear_of_the_end_when_hosts_are_clean(tmp_path: Path) -> None:
    times = {"launch_time": 0.5, "cleaning_time": 1.5}
    for seed in range(3):
        by_python, by_native = on_both(outcome_with_users(seed, tmp_path, **times))
        assert by_native == by_python, seed


@native_only
@pytest.mark.parametrize(
    "name", ["fcfs", "sjf", "easy", "easy-sjbf", "conservative", "multi-queue", "user-aware"]
)
def test_every_policy_goes_on_when_jobs_are_later_than_expected(name: str, tmp_path: Path) -> None:
    """A job that runs up to its walltime ends later than any policy expects."""
    random = Random(7)
    profiles = {"p": Homogeneous(10e9), "q": Homogeneous(35e9), "sleep": Delay(20.0)}
    walltimes = {"p": 10.0, "q": 50.0, "sleep": 20.0}
    jobs = []
    for number in range(80):
        profile = random.choice(list(profiles))
        jobs.append(Job(f"w0!{number}", 3.0 * number, random.randint(1, HOSTS), walltimes[profile], profile))
    setup = Setup(
        Platform.homogeneous(HOSTS), [Workload("w0", jobs, profiles)], launch_time=4.0, cleaning_time=2.5
    )
    by_python, by_native = on_both(
        lambda engine: run(engine, setup, SCHEDULERS.create(name, {}), tmp_path / engine)
    )
    assert by_native == by_python
    schedule = read_schedule(tmp_path / "native_jobs.csv")
    assert len(schedule) == 80 and (schedule["waiting_time"] >= 4).all()
