"""What a policy may do with malleable jobs, and where there can be none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.campaign.batsim import Simulator, run_batsim
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines import new_simulation, why_not_native
from batsched_py.engines.python import Batsim
from batsched_py.errors import BatschedError, InputError, PolicyError
from batsched_py.experiment import Actors, Choice, Experiment, Scenario
from batsched_py.protocol.events import HostsAvailable, HostsUnavailable, Settings
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.sizes import Malleable, malleable_of
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.schedulers.orders import order
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.drive import platform, workload
from tests.power import run, starts
from tests.processes import call_here

BOUNDS = {"min": 1, "max": 4}
NO_WORDS = "is malleable, and Batsim has no words for jobs that grow and shrink; use `batsched-py run`"


class Says(Scheduler):
    """Starts all jobs, then says something about the first one that was submitted."""

    name = "says"

    def __init__(self, say: Callable[[Cluster, Job], object]) -> None:
        super().__init__()
        self.say = say
        self.heard: object = None

    def schedule(self, cluster: Cluster) -> None:
        jobs = list(cluster.queue)
        for job in jobs:
            if cluster.fits(job):
                cluster.start(job)
        if jobs:
            self.heard = self.say(cluster, jobs[0])


def jobs_of(*malleable: dict[str, Any] | None, **fields: Any) -> Workload:
    """Jobs of two hosts with these fields ``malleable``."""
    given = [{} if each is None else {"malleable": each} for each in malleable]
    default = {"res": 2, "walltime": 100} | fields
    return workload(*(default | each | {"id": f"{number}"} for number, each in enumerate(given)))


def said(say: Callable[[Cluster, Job], object], *malleable: dict[str, Any] | None) -> object:
    policy = Says(say)
    run(Setup(platform(6), [jobs_of(*malleable or (BOUNDS, None))]), policy)
    return policy.heard


def test_a_job_grows_and_shrinks() -> None:
    def resize(cluster: Cluster, job: Job) -> list[str]:
        before = cluster.running.get(job.id)
        hosts = [str(cluster.resize(job, size).hosts) for size in (4, 1, HostSet.parse("0 5"))]
        assert before is not None
        same = cluster.resize(job, 2)
        assert same is cluster.running.get(job.id) and same is not before
        return [str(before.hosts), *hosts, str(cluster.free)]

    assert said(resize) == ["0-1", "0-1 4-5", "0", "0 5", "1 4"]


@pytest.mark.parametrize(
    ("say", "rule"),
    [
        (lambda cluster, job: cluster.resize(job, 5), "job w0!0 runs on 1 to 4 hosts and was given 5"),
        (lambda cluster, job: cluster.resize(job, 0), "job w0!0 runs on 1 to 4 hosts and was given 0"),
        (lambda cluster, job: cluster.resize(job, -1), "job w0!0 runs on 1 to 4 hosts and was given -1"),
        (lambda cluster, job: cluster.resize(job, HostSet()), "was given 0"),
        (lambda cluster, job: cluster.resize(job, HostSet.parse("0-2")), "hosts 2 are busy and may not be"),
        (lambda cluster, job: cluster.resize(job, HostSet.parse("0 9")), "hosts 9 do not exist"),
        (
            lambda cluster, job: cluster.resize(cluster.running.get("w0!1").job, 1),  # type: ignore[union-attr]
            "w0!1: the job is not malleable: it keeps its 2 hosts until it ends",
        ),
    ],
)
def test_what_breaks_a_rule_is_told(say: Callable[[Cluster, Job], object], rule: str) -> None:
    with pytest.raises(PolicyError, match=f"broke a rule at time 0: resize .*{rule}"):
        said(say)


def test_more_than_there_is_cannot_be_had() -> None:
    with pytest.raises(PolicyError, match="2 hosts more are asked for, 0 are free"):
        said(lambda cluster, job: cluster.resize(job, 4), BOUNDS, None, None)


def test_a_job_that_waits_or_is_over_cannot_be_resized() -> None:
    with pytest.raises(PolicyError, match="w0!3: the job does not run; only a running job can"):
        said(lambda cluster, job: cluster.resize(cluster.queue.head, 1), *[BOUNDS] * 4)


@pytest.mark.parametrize("hosts", [None, "0-1", 1.5, [0, 1]])
def test_only_hosts_or_a_number_will_do(hosts: Any) -> None:
    with pytest.raises(PolicyError, match="object cannot be interpreted as an integer"):
        said(lambda cluster, job: cluster.resize(job, hosts))


def test_a_malleable_job_may_start_with_any_of_its_sizes() -> None:
    class Small(Scheduler):
        name = "small"

        def schedule(self, cluster: Cluster) -> None:
            for job in list(cluster.queue):
                cluster.start(job, cluster.free.lowest(size))

    for size in (1, 3, 4):
        assert run(Setup(platform(6), [jobs_of(BOUNDS)]), Small()).makespan == 20 / size
    size = 5
    with pytest.raises(PolicyError, match="job w0!0 runs on 1 to 4 hosts and was given 5"):
        run(Setup(platform(6), [jobs_of(BOUNDS)]), Small())


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"min": 1}, "missing required field `max`"),
        ({"min": 0, "max": 4}, "Expected `int` >= 1"),
        ({"min": 3, "max": 4}, "the 2 hosts of res are not from 3 to 4"),
        ({"min": 1, "max": 4, "sequential": 1}, "Expected `float` < 1"),
        ({"min": 1, "max": 4, "speed": 1}, "unknown field `speed`"),
        (7, "Expected `object`, got `int`"),
    ],
)
def test_fields_with_faults_are_one_line(given: Any, fault: str, tmp_path: Path) -> None:
    file = written(tmp_path, malleable=given)
    code, out, err = call_here(["run", "-w", file, "-s", "easy", "-e", tmp_path / "out"])
    assert (code, out) == (1, "")
    assert err.startswith("batsched-py: error: ") and err.count("\n") == 1
    assert "job 0 (a): malleable: " in err and fault in err
    with pytest.raises(InputError, match="workload 'w0': job w0!0: malleable: "):
        run(Setup(platform(4), [jobs_of(given)]), "easy")


def written(folder: Path, **fields: Any) -> Path:
    """A workload of one job; it is malleable if nothing else is said."""
    job = {"id": "a", "subtime": 0, "res": 2, "walltime": 50, "profile": "p", "malleable": BOUNDS} | fields
    profiles = {"p": {"type": "delay", "delay": 10}}
    file = folder / "w.json"
    file.write_text(json.dumps({"nb_res": 4, "jobs": [job], "profiles": profiles}))
    return file


@pytest.mark.parametrize(
    ("profile", "fault"),
    [
        ({"type": "composed", "seq": ["sleep"]}, r"'p' \(type composed\) is not; a delay, parallel_homog"),
        ({"type": "parallel", "cpu": [1, 1], "com": [0] * 4}, r"'p' \(type parallel\) is not"),
        ({"type": "parallel_homogeneous", "cpu": 1, "com": 5}, "'p' sends bytes"),
    ],
)
def test_profiles_that_are_not_malleable_are_refused(profile: dict[str, Any], fault: str) -> None:
    job = {"id": "a", "res": 2, "profile": "p", "malleable": BOUNDS}
    setup = Setup(platform(4), [workload(job, profiles={"p": profile})], ignore_communication=True)
    with pytest.raises(InputError, match=f"job w0!a is malleable, but its profile {fault}"):
        run(setup, "easy")


def test_jobs_keep_their_hosts_where_hosts_are_shared() -> None:
    with pytest.raises(InputError, match="is malleable, but jobs keep their hosts where several may"):
        run(Setup(platform(4), [jobs_of(BOUNDS)], Settings(compute_sharing=True)), "easy")


def test_checkpoints_of_malleable_jobs_are_refused(tmp_path: Path) -> None:
    options = {"on_failure": "checkpoint", "checkpoint_interval": 3.0, "checkpoint_overhead": 1.0}
    with pytest.raises(InputError, match="job w0!a is malleable, and how much of its work a checkpoint"):
        bp.simulate(written(tmp_path), "easy", failures="exponential", mtbf=1e6, **options)


def test_a_host_that_is_away_is_not_free_when_a_job_leaves_it(tmp_path: Path) -> None:
    class Flees(Scheduler):
        name = "flees"
        free: ClassVar[list[str]] = []

        def schedule(self, cluster: Cluster) -> None:
            for job in list(cluster.queue):
                cluster.start(job)
            for running in cluster.running:
                if away := running.hosts - cluster.available:
                    cluster.resize(running.job, running.hosts - away)
            self.free.append(str(cluster.free))

    outage = [HostsUnavailable(HostSet.parse("1"), time=5.0), HostsAvailable(HostSet.parse("1"), time=8.0)]
    made = run(Setup(platform(3), [jobs_of(BOUNDS)], events=[outage]), Flees(), tmp_path)
    assert list(dict.fromkeys(Flees.free)) == ["0-2", "2", "1-2"]
    assert made.makespan == 5 + 10
    assert pd.read_csv(tmp_path / "out_schedule.csv")["time_unavailable"].iloc[0] == 3


def test_a_host_that_is_away_makes_no_room_for_the_head_of_the_queue(tmp_path: Path) -> None:
    jobs = workload(
        {"id": "wide", "res": 3, "walltime": 100, "malleable": BOUNDS},
        {"id": "narrow", "subtime": 2, "walltime": 100},
    )
    outage = [HostsUnavailable(HostSet.parse("2"), time=1.0), HostsAvailable(HostSet.parse("2"), time=90.0)]
    run(Setup(platform(3), [jobs], events=[outage]), "malleable-easy", tmp_path)
    assert starts(tmp_path) == {"wide": 0, "narrow": 2}
    assert (tmp_path / "out_resizes.csv").read_text().splitlines()[1] == "w0!wide,2.000000,0-2,0"


def test_a_job_whose_hosts_fail_begins_again(tmp_path: Path) -> None:
    (tmp_path / "outage.txt").write_text(
        '{"type": "machine_unavailable", "resources": "3", "timestamp": 2}\n'
        '{"type": "machine_available", "resources": "3", "timestamp": 20}\n'
    )
    file = written(tmp_path)
    result = bp.simulate(file, "malleable-easy", events=(tmp_path / "outage.txt",), on_failure="resubmit")
    # It has all 4 hosts when one of them fails, and then 3.
    assert result.jobs["job_id"].to_list() == ["a", "a#1"]
    assert result.jobs["finish_time"].to_list() == [2, pytest.approx(2 + 20 / 3, abs=1e-6)]
    assert result.validate() == []


def test_fair_share_counts_what_a_job_had(tmp_path: Path) -> None:
    class Fair(Scheduler):
        name = "fair"

        def begin(self, cluster: Cluster) -> None:
            cluster.order_queue(order("fair-share", cluster))

        def schedule(self, cluster: Cluster) -> None:
            while cluster.queue and cluster.fits(head := cluster.queue.head):
                cluster.start(head)
                if malleable_of(head) is not None:
                    cluster.resize(head, 4)

    jobs = workload(
        {"id": "a1", "user": "a", "res": 2, "walltime": 50, "malleable": BOUNDS},
        {"id": "b1", "user": "b", "walltime": 50},
        {"id": "a2", "user": "a", "subtime": 20, "res": 6, "walltime": 50},
        {"id": "b2", "user": "b", "subtime": 20, "res": 6, "walltime": 50},
    )
    run(Setup(platform(6), [jobs]), Fair(), tmp_path)
    # User a has had 4 hosts for 5 seconds, user b one for 10.
    assert starts(tmp_path) == {"a1": 0, "b1": 0, "b2": 20, "a2": 30}


# --- Batsim's protocol -------------------------------------------------------------------------------


def test_a_slow_scheduler_and_those_of_pybatsim_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path)
    with pytest.raises(InputError, match=f"job w0!a {NO_WORDS}"):
        bp.simulate(file, "easy", scheduling_delay=1.0)
    pytest.importorskip("batsim")
    with pytest.raises(InputError, match=f"job w0!a {NO_WORDS}"):
        bp.simulate(file, "pybatsim:fillerSched")


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_the_built_in_batsim_does_not_send_them(protocol: str, tmp_path: Path) -> None:
    socket = [f"ipc://{tmp_path}/nobody", *([""] if protocol == "5" else [])]
    options = ["--protocol", protocol, "-s", *socket, "-e", tmp_path / "out", "--hosts", "4"]
    code, out, err = call_here(["batsim", "-w", written(tmp_path), *options])
    assert (code, out) == (1, "")
    assert err.startswith(f"batsched-py: error: job w0!a {NO_WORDS}") and err.count("\n") == 1


def test_users_do_not_send_them_to_a_batsim(tmp_path: Path) -> None:
    code, _, err = call_here(["serve", "-s", "easy", "--users", "rigid", "-w", written(tmp_path)])
    assert code == 1
    assert err.startswith(f"batsched-py: error: job w0!a {NO_WORDS}") and err.count("\n") == 1


def test_a_batsim_that_sends_one_is_told(tmp_path: Path) -> None:
    other = Batsim(Setup(platform(4), [jobs_of(None)]))
    process = DecisionProcess(SCHEDULERS.create("easy", {}))
    request = other.advance(process.react(other.begin()))
    assert request is not None
    (submitted,) = [event for event in request.events if hasattr(event, "job")]
    submitted.job = jobs_of(BOUNDS).jobs[0]
    with pytest.raises(InputError, match=f"job w0!0 {NO_WORDS}"):
        process.react(request)


def test_the_native_engine_leaves_them_to_the_python_engine() -> None:
    process, setup = DecisionProcess(SCHEDULERS.create("easy", {})), Setup(platform(4), [jobs_of(BOUNDS)])
    assert why_not_native(setup, process, Outputs(None)) in (
        "jobs that grow and shrink while they run",
        "the native engine is not installed, or turned off",
    )


def test_both_engines_refuse_to_resize_other_jobs_in_the_same_words() -> None:
    def failure(simulation: Any) -> str:
        with pytest.raises(BatschedError) as caught:
            simulation.run()
        return str(caught.value)

    setup = Setup(platform(4), [jobs_of(None)])
    for say in (lambda cluster, job: cluster.resize(job, 1), lambda cluster, job: cluster.resize(job, "1")):
        one = failure(new_simulation(setup, DecisionProcess(Says(say))))
        with pytest.raises(BatschedError) as caught:
            run(setup, Says(say))
        assert one == str(caught.value)


def test_a_campaign_with_a_batsim_refuses_them(tmp_path: Path) -> None:
    for version in ("4.2.0", "5.0.0"):
        experiment = Experiment(scenario=Scenario(), actors=Actors(scheduler=Choice("easy")))
        with pytest.raises(InputError, match=f"job w0!0 {NO_WORDS}"):
            run_batsim(Simulator("batsim", version), experiment, [jobs_of(BOUNDS)], tmp_path / "out", 9.0)


def test_speedups() -> None:
    assert malleable_of(jobs_of(None).jobs[0]) is None
    assert malleable_of(jobs_of({**BOUNDS, "sequential": 0.25}).jobs[0]) == Malleable(1, 4, 0.25)
