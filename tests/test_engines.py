"""The native engine against the Python engine, which is its specification."""

from __future__ import annotations

import gc
import gzip
import re
import signal
import subprocess
import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py import native
from batsched_py.cli.main import batsched_py
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines import _lets_hosts_sleep_in_library, new_simulation, why_not_native
from batsched_py.engines.native import NativeSimulation
from batsched_py.engines.python import Batsim, PythonSimulation
from batsched_py.errors import BatschedError, PolicyError, RuleBroken
from batsched_py.outside.curve import NOTHING_KNOWN, Curve, Known
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import Delay, Homogeneous, Parallel, Profile
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.orders import longest, smallest_area
from batsched_py.schedulers.sleeping import Sleeping
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform, PlatformHost, PowerState, SleepState
from batsched_py.simulator.setup import Setup
from batsched_py.users import USERS, Action, Remark, Submission, User, UsersOf, Withdrawal
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.feedback import Record, records, workload_of
from tests.processes import PATIENCE, environment

native_only = pytest.mark.skipif(native.library is None, reason="the native engine is not in use")

HOSTS = 12


@contextmanager
def using(engine: str) -> Iterator[None]:
    """One of the engines, for a while."""
    before = native.library
    native.library = before if engine == "native" else None
    try:
        yield
    finally:
        native.library = before


def on_both(action: Callable[[str], Any]) -> tuple[Any, Any]:
    """What an action gives with each engine."""
    with using("python"):
        python = action("python")
    with using("native"):
        return python, action("native")


def run(engine: str, setup: Setup, process: DecisionProcess, prefix: str | None = None) -> list[bytes]:
    """Simulate by one of the engines; the files that it writes."""
    outputs = Outputs(prefix, machine_states=setup.energy)
    if engine == "native":
        NativeSimulation(setup, process, outputs).run()
    else:
        PythonSimulation(Batsim(setup, outputs), process).run()
    return [Path(file).read_bytes() for file in outputs.files]


class Erratic(Scheduler):
    """Starts, rejects, kills, notes and asks for calls as it likes."""

    name = "erratic"
    maps = True
    """Whether several executors may share a host, which breaks a rule on most machines of nodes."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.heard: list[str] = []

    def begin(self, cluster: Cluster) -> None:
        if self._random.random() < 0.5:
            cluster.on_start(lambda started: self.heard.append(f"{started.job.id} at {started.start}"))
        cluster.on_end(lambda ended: self.heard.append(f"{ended.job.id} {ended.hosts} {ended.expected_end}"))

    def schedule(self, cluster: Cluster) -> None:
        random = self._random
        self.heard += [f"{cluster.now} {event}" for event in cluster.events]
        if cluster.outside.price is not None:
            self.heard.append(f"{cluster.outside.price.at(cluster.now)}")
        self._look(cluster)
        for job in list(cluster.queue):
            if random.random() < 0.05:
                cluster.reject(job)
        for running in list(cluster.running):
            if random.random() < 0.03:
                cluster.kill(running.job)
        if cluster.queue and random.random() < 0.2:
            cluster.decide(ev.SetJobMetadata(cluster.queue.head.id, f"note {random.random():.3f}"))
        if self.maps and cluster.queue and cluster.nb_free and random.random() < 0.1:
            hosts = cluster.free.lowest(random.randint(1, cluster.nb_free))
            mapping = [random.randrange(len(hosts)) for _ in range(cluster.queue.head.size)]
            cluster.decide(ev.ExecuteJob(cluster.queue.head.id, hosts, mapping=mapping))
        if random.random() < 0.2:
            head = cluster.start_from_head()
            self.heard.append(f"{head and head.id} does not fit")
            if head is not None and random.random() < 0.7:
                order = random.choice((None, longest, smallest_area))
                cluster.start_fitting(order, random.random() < 0.2, cluster.reservation(head))
            elif random.random() < 0.5:
                cluster.start_fitting(only_new=random.random() < 0.5)
        for job in cluster.fitting():
            if random.random() < 0.8:
                cluster.start(job)
        if random.random() < 0.1 or cluster.queue:
            cluster.call_at(cluster.now + random.choice((1.0, 0.3, 7.25)))

    def _look(self, cluster: Cluster) -> None:
        """Note all that a policy can see."""
        queue, random = cluster.queue, self._random
        self.heard.append(
            f"{len(queue)} {queue.nb_joined} {cluster.quiet} "
            f"{cluster.nb_free} {cluster.free} {cluster.available}"
        )
        self.heard += [f"{job.id} {job.size} {job.walltime} {queue.estimate(job)}" for job in queue]
        for r in cluster.running:
            self.heard.append(f"{r.job.id} {r.hosts} {r.start} {r.expected_end} {r.nb_hosts} {r.number}")
        waiting = queue.first(3)
        self.heard.append(f"{waiting.size} {waiting.estimate} {waiting.submission} {waiting.user}")
        profile = cluster.profile()
        self.heard.append(f"{profile.earliest(3, 5.0)} {profile.earliest(HOSTS, 1.0)} {profile.free_at(7.0)}")
        if queue:
            head, limit = queue.head, random.randint(1, 20)
            self.heard.append(
                f"{head.id} {head in queue} {cluster.fits(head)} {tuple(cluster.reservation(head))}"
            )
            found = cluster.fitting(lambda size, estimate: size <= 2 and estimate < limit)
            self.heard.append(f"{[job.id for job in found]}")
            found = cluster.fitting(order=longest, only_new=random.random() < 0.5)
            self.heard.append(f"{[job.id for job in found]}")
            if random.random() < 0.3:
                cluster.expect(head, float(limit))
            if random.random() < 0.1:
                cluster.order_queue(random.choice((None, longest, smallest_area)))
            reservation = cluster.reservation(queue.head)
            for job in cluster.fitting(beside=reservation):
                if random.random() < 0.3 and job is not queue.head:
                    reservation.admit(cluster.start(job))


def random_workload(random: Random) -> Workload:
    """Jobs at once, at whole and at real times, some of which sleep or have no walltime.

    Times are whole, or in tenths, thirds or milliseconds; or they are any double, some within a microsecond.
    """
    grain = random.choice((1.0, 0.1, 1 / 3, 0.001, 0.0))

    def real() -> float:
        return random.choice((random.random() * 1e-6, random.random(), random.expovariate(0.2)))

    profiles: dict[str, Profile] = {f"run_{n}": Homogeneous((n * grain or real()) * 1e9) for n in range(20)}
    profiles |= {"sleep": Delay(5), "fails": Homogeneous(2e9, return_code=3)}
    time = 0.0
    jobs = []
    for number in range(random.randint(1, 60)):
        time += random.choice((0, 0, 1, 5)) * (grain or real())
        walltime = random.choice((float("inf"), 10.0, grain * 12 or real()))
        size = random.randint(1, HOSTS + 1)
        jobs.append(Job(f"w0!{number}", time, size, walltime, random.choice(list(profiles))))
    return Workload("w0", jobs, profiles)


def random_machine(random: Random) -> Platform:
    """Equal hosts, or such that differ in speed, cores and power."""
    if random.random() < 0.5:
        return Platform.homogeneous(HOSTS, random.choice((1.0, 1.7)))
    kinds = [
        (
            PowerState(
                1e9 * random.choice((1.0, 1.7, 1 / 3)), *sorted(random.uniform(10, 300) for _ in "123")
            ),
            cores,
        )
        for cores in random.sample((1, 1, 2, 3), random.randint(1, 3))
    ]
    hosts = []
    for number in range(HOSTS):
        state, cores = random.choice(kinds)
        watts = f"{state.idle_watts}:{state.epsilon_watts}:{state.full_watts}"
        properties = {"role": "", "wattage_per_state": watts}
        hosts.append(PlatformHost(number, f"h{number}", [state], properties=properties, cores=cores))
    return Platform(hosts)


def random_prices(random: Random) -> Known:
    """What energy costs over time, or nothing of it."""
    if random.random() < 0.5:
        return NOTHING_KNOWN
    price = Curve([0.0, 3.3, 10.0], [random.random() for _ in range(3)], random.choice((inf, 11.0)))
    return Known(price=price, carbon=random.choice((None, Curve([1.0, 7.0], [100.0, 30.5]))))


def draws_power(machine: Platform) -> bool:
    return all(host.has_power for host in machine.hosts)


def outcome_of(seed: int, folder: Path) -> Callable[[str], Any]:
    """What a policy hears and what is written, when it does whatever it likes."""

    def outcome(engine: str) -> tuple[list[str], list[bytes]]:
        random, policy = Random(seed), Erratic(seed)
        machine = random_machine(random)
        setup = Setup(
            machine, [random_workload(random)], energy=draws_power(machine), known=random_prices(random)
        )
        process = DecisionProcess(policy, outlook=lambda hosts: setup.known)
        files = run(engine, setup, process, str(folder / engine))
        return policy.heard, files

    return outcome


@native_only
@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10**9))
def test_both_engines_carry_out_whatever_a_policy_decides(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    by_python, by_native = on_both(outcome_of(seed, tmp_path_factory.mktemp("out")))
    assert by_native == by_python


@native_only
@pytest.mark.slow
def test_both_engines_carry_out_whatever_eight_hundred_policies_decide(tmp_path: Path) -> None:
    for seed in range(800):
        by_python, by_native = on_both(outcome_of(seed, tmp_path))
        assert by_native == by_python, seed


def random_sleepers(random: Random) -> Platform:
    """Hosts of some kinds: most can sleep in one power state or two, and take time to get there and back."""

    def state(speed: float) -> PowerState:
        return PowerState(speed, *sorted(random.uniform(5, 300) for _ in "123"))

    kinds = []
    for _ in range(random.randint(1, 3)):
        sleeps = random.choice(([], [(1, 2, 3)], [(0, 1, 3)], [(1, 3, 2), (4, 3, 5)]))
        states = [state(1e9 * random.choice((1.0, 1.7))) for _ in range(7)]
        for way in {way for each in sleeps for way in each[1:]}:
            states[way] = state(1 / random.choice((0.25, 2.0, 2.0, 7.3)))
        awake = min({*range(7)} - {number for each in sleeps for number in each})
        kinds.append(
            (states, awake, {each[0]: SleepState(*each) for each in sleeps}, random.choice((1, 1, 4)))
        )
    hosts = []
    for number in range(HOSTS):
        states, awake, sleeps, cores = random.choice(kinds)
        properties = {"role": "", "wattage_per_state": ""}
        hosts.append(PlatformHost(number, f"h{number}", states, awake, sleeps, properties, cores=cores))
    return Platform(hosts)


@native_only
@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10**9))
def test_idle_hosts_sleep_in_both_engines(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("out")

    def files(engine: str) -> list[bytes]:
        random = Random(seed)
        machine, workload, known = random_sleepers(random), random_workload(random), random_prices(random)
        policy = Sleeping(
            after=random.choice((0.0, 0.4, 3.0, 20.0)), sleep_pstate=random.choice((None, None, 4))
        )
        policy.inner = Easy(ends=random.choice(("needed", "all")))  # type: ignore[misc]
        times = {"launch_time": random.choice((0.0, 1.5)), "cleaning_time": random.choice((0.0, 0.5))}
        users = UsersOf(USERS.create("rigid", {}), [workload]) if random.random() < 0.3 else ()
        process = DecisionProcess(policy, users, outlook=lambda hosts: known)
        static = () if users else [workload]
        setup = Setup(machine, static, process.needs, energy=True, known=known, **times)  # type: ignore[arg-type]
        assert _lets_hosts_sleep_in_library(setup, process)
        return run(engine, setup, process, str(folder / engine))

    by_python, by_native = on_both(files)
    assert by_native == by_python


class ShortAndSmall(Scheduler):
    """Starts small jobs that are short, with a condition that makes sense for one job only."""

    name = "short-and-small"

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.fitting(lambda size, estimate: size <= 2 and estimate < 60):
            cluster.start(job)
        if not cluster.running:
            for job in list(cluster.queue):
                cluster.reject(job)


@pytest.mark.parametrize("engine", ["python", pytest.param("native", marks=native_only)])
@pytest.mark.parametrize("nb_jobs", [100, 300])
def test_a_condition_works_for_any_length_of_the_queue(engine: str, nb_jobs: int, tmp_path: Path) -> None:
    jobs = [Job(f"w0!{n}", 0.0, n % 4 + 1, float(n % 90 + 1), "p") for n in range(nb_jobs)]
    setup = Setup(Platform.homogeneous(HOSTS), [Workload("w0", jobs, {"p": Homogeneous(1e9)})])
    files = run(engine, setup, DecisionProcess(ShortAndSmall()), str(tmp_path / "out"))
    wanted = {job.id for job in jobs if job.size <= 2 and job.walltime < 60}
    started = {f"w0!{row.split(',')[0]}" for row in files[0].decode().splitlines() if ",COMPLETED" in row}
    assert started == wanted


class Sleepless(Scheduler):
    """Asks for one call after another and notes when they come; its job comes later than all of them."""

    name = "sleepless"

    def __init__(self, gaps: list[float]) -> None:
        self.gaps = gaps
        self.asked: list[float] = []
        self.called: list[float] = []

    def begin(self, cluster: Cluster) -> None:
        self._ask(cluster)

    def schedule(self, cluster: Cluster) -> None:
        if cluster.queue:
            cluster.start(cluster.queue.head)
        elif cluster.now and len(self.called) < len(self.gaps):
            self.called.append(cluster.now)
            self._ask(cluster)

    def _ask(self, cluster: Cluster) -> None:
        if len(self.asked) < len(self.gaps):
            self.asked.append(cluster.now + self.gaps[len(self.asked)])
            cluster.call_at(self.asked[-1])


@pytest.mark.parametrize("engine", ["python", pytest.param("native", marks=native_only)])
def test_a_call_never_comes_before_the_time_that_was_asked_for(engine: str) -> None:
    """Nor later than the next microsecond, or than the shortest wait of Batsim."""
    random = Random(1)
    policy = Sleepless([1 / 3, 1e-7, 2.0, 1e-6, *(random.expovariate(0.1) for _ in range(200))])
    jobs = [Job("w0!0", 1e5, 1, 10.0, "p")]
    setup = Setup(Platform.homogeneous(1), [Workload("w0", jobs, {"p": Homogeneous(1e9)})])
    run(engine, setup, DecisionProcess(policy))
    assert len(policy.asked) == len(policy.gaps)
    pairs = list(zip(policy.asked, policy.called, strict=True))
    assert all(asked <= called <= asked + 1.1e-5 for asked, called in pairs)
    assert sum(called <= asked + 1.1e-6 for asked, called in pairs) >= len(pairs) - 2


class ErraticUser(User):
    """Submits, withdraws, remarks and sleeps as it likes; notes what it hears."""

    def __init__(self, name: str, seed: int, jobs: list[Job], profiles: dict[str, Profile]) -> None:
        self.name = name
        self.heard: list[str] = []
        self._random = Random(seed)
        self._jobs = jobs
        self._profiles = profiles
        self._mine: list[str] = []
        self._withdrawn: set[str] = set()
        self._next = self._random.choice((0.0, 1.0, 2.5))

    def next_time(self) -> float:
        return self._next

    def submit(self, now: float) -> list[Action]:
        random, actions = self._random, list[Action]()
        self.heard.append(f"{now}")
        for job in self._jobs[: random.randint(0, 3)]:
            note = random.choice(("", f"note {now}"))
            actions.append(Submission(job, self._profiles[job.profile], note, random.choice((0.0, now))))
        for job_id in [job_id for job_id in self._mine if random.random() < 0.1]:
            remark = job_id in self._withdrawn or random.random() < 0.5
            actions.append(Remark(job_id, "still here") if remark else Withdrawal(job_id, "gone"))
            self._withdrawn.update([] if remark else [job_id])
        submitted = [action.job for action in actions if isinstance(action, Submission)]
        self._jobs = self._jobs[len(submitted) :]
        self._mine += [job.id for job in submitted]
        self._next = now + random.choice((0.25, 1.0, 1 / 3, 20.0)) if self._jobs else float("inf")
        return actions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        self._mine.remove(job.id)
        self.heard.append(f"{job.id} {state} {now}")
        if self._jobs and self._random.random() < 0.5:
            self._next = now + self._random.choice((0.0, 0.5))


class Listener(ErraticUser):
    """One who also hears of starts."""

    def job_started(self, job: Job, now: float) -> None:
        self.heard.append(f"{job.id} starts {now}")


@native_only
@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10**9))
def test_both_engines_do_whatever_users_do(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    by_python, by_native = on_both(outcome_with_users(seed, tmp_path_factory.mktemp("out")))
    assert by_native == by_python


@native_only
@pytest.mark.slow
def test_both_engines_do_whatever_eight_hundred_groups_of_users_do(tmp_path: Path) -> None:
    for seed in range(800):
        by_python, by_native = on_both(outcome_with_users(seed, tmp_path))
        assert by_native == by_python, seed


def outcome_with_users(seed: int, folder: Path, **times: float) -> Callable[[str], Any]:
    """What users and a policy hear and what is written, when they do whatever they like."""

    def outcome(engine: str) -> tuple[list[list[str]], list[bytes]]:
        random = Random(seed)
        workload = random_workload(random)
        profiles = dict(workload.profiles)
        kind = random.choice((ErraticUser, Listener))
        users = [kind(f"u{n}", seed + n, list(workload.jobs[n::3]), profiles) for n in range(3)]
        policy: Scheduler = Erratic(seed) if random.random() < 0.5 else SCHEDULERS.create("easy", {})
        allowed = ev.Settings(dynamic_jobs=True, profile_reuse=True)
        machine = random_machine(random)
        setup = Setup(machine, (), allowed, energy=draws_power(machine), **times)
        files = run(engine, setup, DecisionProcess(policy, users), str(folder / engine))
        heard = [user.heard for user in users] + ([policy.heard] if isinstance(policy, Erratic) else [])
        return heard, files

    return outcome


class Troublemaker(ErraticUser):
    """Makes one mistake."""

    def __init__(self, mistake: str) -> None:
        job = Job("dyn!1", 0.0, 1, -5.0 if mistake == "walltime" else 10.0, "p")
        note = 'a "quote"' if mistake == "note" else "a note"
        super().__init__("u1", 1, [job], {"p": Homogeneous(1e9)})
        self._mistake = mistake
        self._submissions: list[Action] = [Submission(job, Homogeneous(1e9), note)]
        self._next = 3.0

    def next_time(self) -> float:
        match self._mistake:
            case "never":
                return float("nan")
            case "no time" if self._next == 4.0:
                return "soon"  # type: ignore[return-value]
        return self._next

    def submit(self, now: float) -> list[Action]:
        self._next = now if self._mistake == "idle" else 4.0
        match self._mistake:
            case "raises":
                raise ValueError("no idea")
            case "idle":
                return []
            case "another's":
                return [Withdrawal("dyn!7")]
        return self._submissions

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        raise LookupError("what was that?")


@native_only
@pytest.mark.parametrize(
    "mistake", ["walltime", "note", "never", "no time", "raises", "idle", "another's", "twice", "deaf"]
)
def test_both_engines_say_the_same_about_a_users_mistake(mistake: str) -> None:
    def fail(engine: str) -> str:
        user = Troublemaker(mistake)
        if mistake == "deaf":
            user._next, user.submit = 3.0, lambda now: _once(user)  # type: ignore[method-assign]
        allowed = ev.Settings(dynamic_jobs=True, profile_reuse=True)
        process = DecisionProcess(SCHEDULERS.create("easy", {}), [user])
        with pytest.raises(PolicyError) as raised:
            run(engine, Setup(Platform.homogeneous(2), (), allowed), process)
        return str(raised.value)

    def _once(user: Troublemaker) -> list[Action]:
        user._next = float("inf")
        return user._submissions

    by_python, by_native = on_both(fail)
    assert by_native == by_python


TIMES = st.floats(0, 1e13) | st.integers(0, 10**7).map(lambda ticks: ticks / 2**7)


@native_only
@settings(deadline=None)
@given(st.lists(st.tuples(TIMES, TIMES), min_size=1, max_size=20))
def test_both_engines_write_the_same_numbers(
    tmp_path_factory: pytest.TempPathFactory, found: list[tuple[float, float]]
) -> None:
    """Ticks in binary fractions are often just between two numbers of six decimals."""
    folder = tmp_path_factory.mktemp("out")
    jobs = [Job(f"w0!{n}", submission, 1, inf, f"p,{n}") for n, (submission, _) in enumerate(found)]
    profiles: dict[str, Profile] = {f"p,{n}": Homogeneous(time) for n, (_, time) in enumerate(found)}

    def write(engine: str) -> list[bytes]:
        setup = Setup(Platform.homogeneous(2), [Workload("w0", jobs, profiles)])
        return run(engine, setup, DecisionProcess(SCHEDULERS.create("fcfs", {})), str(folder / engine))

    by_python, by_native = on_both(write)
    assert by_native == by_python


@native_only
@pytest.mark.parametrize("seed", range(3))
def test_both_engines_plan_a_long_queue_in_the_same_way(seed: int, tmp_path: Path) -> None:
    """More than a hundred reservations at a time, of which most become earlier than planned."""
    random, walltimes = Random(seed), [20.0, 60.0, 300.0]
    jobs = [
        Job(f"w0!{n}", n // 10 * 5.0, random.randint(1, 40), random.choice(walltimes) + n % 7, f"p{n}")
        for n in range(250)
    ]
    profiles: dict[str, Profile] = {
        f"p{n}": Delay(random.uniform(0, 1.1) * jobs[n].walltime) for n in range(250)
    }

    def write(engine: str) -> list[bytes]:
        setup = Setup(Platform.homogeneous(64), [Workload("w0", jobs, profiles)])
        return run(
            engine, setup, DecisionProcess(SCHEDULERS.create("conservative", {})), f"{tmp_path}/{engine}"
        )

    by_python, by_native = on_both(write)
    assert by_native == by_python


@native_only
def test_both_engines_tell_the_same_medians_and_shares_of_the_largest(root: Path) -> None:
    def told(engine: str) -> list[float]:
        setup = Setup(Platform.homogeneous(32), [read_workload(root / "workloads" / "sample.swf", "w0")])
        process, outputs = DecisionProcess(SCHEDULERS.create("easy", {})), Outputs(None)
        if engine == "native":
            results = NativeSimulation(setup, process, outputs).run()
        else:
            results = PythonSimulation(Batsim(setup, outputs), process).run()
        found = (results.waitings, results.bounded_slowdowns)
        shares = (0.01, 0.1, 0.5)
        return [figure for each in found for share in shares
                for figure in (each.quantile(share), each.part_of_top(share))]  # fmt: skip

    by_python, by_native = on_both(told)
    assert by_native == pytest.approx(by_python, rel=1e-5)


@native_only
@settings(max_examples=2 * settings().max_examples)
@given(
    records(sizes=st.integers(1, 3), waits=st.integers(0, 20)),
    st.sampled_from(["arrival", "last", "max"]),
    st.sampled_from([0, 0.05, 0.25, 60]),
    st.sampled_from(["reduced", "all"]),
)
def test_both_engines_cut_and_link_the_same_sessions(
    tmp_path_factory: pytest.TempPathFactory, found: list[Record], rule: str, minutes: float, edges: str
) -> None:
    folder = tmp_path_factory.mktemp("out")
    behaviour = USERS.create("think-time", {"sessions": f"{rule}:{minutes}", "edges": edges})

    def play(engine: str) -> list[bytes]:
        process = DecisionProcess(SCHEDULERS.create("fcfs", {}), UsersOf(behaviour, [workload_of(found)]))
        return run(engine, Setup(Platform.homogeneous(2), (), process.needs), process, str(folder / engine))

    by_python, by_native = on_both(play)
    assert by_native == by_python


COMMAND_USERS = [
    [],
    ["--users", "rigid"],
    ["--users", "think-time", "--sessions", "arrival:60"],
]


def files_of(folder: Path, *arguments: str) -> Callable[[str], dict[str, bytes]]:
    """What ``batsched-py run`` writes."""

    def files(engine: str) -> dict[str, bytes]:
        prefix = folder / engine / "out"
        result = CliRunner().invoke(batsched_py, ["run", *arguments, "-e", str(prefix)])
        assert result.exit_code == 0, result.output
        return {path.name: path.read_bytes() for path in sorted(prefix.parent.iterdir())}

    return files


@pytest.fixture(scope="module")
def sample(root: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The first jobs of the sample log."""
    lines = (root / "workloads" / "sample.swf").read_text().splitlines(keepends=True)
    path = tmp_path_factory.mktemp("sample") / "sample.swf"
    path.write_text("".join(lines[:400]))
    return str(path)


@pytest.fixture(scope="module")
def few(sample: str) -> str:
    """Fewer of them, for a policy that takes long."""
    path = Path(sample).with_name("few.swf")
    path.write_text("".join(Path(sample).read_text().splitlines(keepends=True)[:150]))
    return str(path)


@native_only
@pytest.mark.parametrize("users", COMMAND_USERS, ids=["static", "rigid", "think-time"])
@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS.all()))
def test_both_engines_write_the_same_files(
    sample: str, few: str, tmp_path: Path, scheduler: str, users: list[str]
) -> None:
    log = few if scheduler == "slurm" else sample
    by_python, by_native = on_both(files_of(tmp_path, "-w", log, "--hosts", "64", "-s", scheduler, *users))
    assert by_native == by_python


@native_only
@pytest.mark.parametrize(
    "options",
    [
        ["-s", "easy", "--speed", "0.7"],
        ["-s", "easy", "-o", "order=wfp3", "--speed", "1.3"],
        ["-s", "easy", "-o", "selection=random"],
        ["-s", "easy", "--scheduling-delay", "0.5"],
        ["-s", "easy", "--enable-compute-sharing"],
        ["-s", "easy", "--walltime", "requested"],
    ],
    ids=" ".join,
)
def test_both_engines_write_the_same_files_with_options(
    sample: str, tmp_path: Path, options: list[str]
) -> None:
    by_python, by_native = on_both(files_of(tmp_path, "-w", sample, "--hosts", "64", *options))
    assert by_native == by_python


@native_only
@pytest.mark.slow
@pytest.mark.parametrize("users", COMMAND_USERS, ids=["static", "rigid", "think-time"])
@pytest.mark.parametrize("scheduler", sorted(SCHEDULERS.all().keys() - {"slurm"}))
def test_both_engines_write_the_same_files_of_a_real_log(
    shared: Path, tmp_path: Path, scheduler: str, users: list[str]
) -> None:
    """All but ``slurm``, which would take minutes here and is compared on the sample log."""
    log = str(shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz")
    by_python, by_native = on_both(files_of(tmp_path, "-w", log, "-s", scheduler, *users))
    assert by_native == by_python


LINE = "1 5 3 10 4 -1 -1 4 20 -1 1 7 1 -1 2 1 -1 -1"


@native_only
@pytest.mark.parametrize(
    "text",
    [
        f"; MaxProcs: 9\n;  a line\n\n{LINE}\n",
        f"{LINE}\r\n{LINE.replace('1 5', '2 6.25', 1)}",
        f" \t{LINE} \n{LINE.replace('1 5', '2 1', 1)}\n{LINE.replace('1 5', '3 1', 1)}",
        LINE.replace(" 10 ", " 10.123456789 "),
        LINE.replace(" 10 ", " 0 ").replace(" 20 ", " -1 "),
        LINE.replace(" 10 ", " -1 ") + "\n" + LINE.replace("1 5", "2 5", 1),
        f"{LINE}\nnonsense\n{LINE}\n1 2 3\n",
        f"{LINE}\n{LINE.replace('1 5', '2 1e1', 1)}\n{LINE.replace('1 5', '3 99999999999999999', 1)}",
        f"{LINE}\n{LINE.replace('1 5', '2 -5', 1)}\n{LINE.replace('1 5', '3.5 9', 1)}",
        LINE.replace(" 4 ", " 0 ") + "\n" + LINE.replace("1 5", "2 5", 1),
        LINE.replace(" 4 ", " 0 "),
        "; nothing\n",
        "",
    ],
)
def test_both_engines_read_the_same_in_a_log(
    text: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "log.swf.gz"
    file.write_bytes(gzip.compress(text.encode()))

    def read(engine: str) -> Any:
        caplog.clear()
        try:
            workload = read_workload(file, "w0")
        except BatschedError as error:
            return str(error)
        jobs = [
            (job.id, job.submission_time, job.size, job.walltime, job.profile, job.extra)
            for job in workload.jobs
        ]
        assert workload.finishes is not None
        finishes = [float(finish) for finish in workload.finishes]
        return jobs, dict(workload.profiles), workload.nb_hosts, workload.path, finishes, caplog.messages

    by_python, by_native = on_both(read)
    assert by_native == by_python


class Fails(Scheduler):
    """A policy with a mistake."""

    name = "fails"

    def __init__(self, mistake: Callable[[Cluster], None]) -> None:
        self._mistake = mistake

    def schedule(self, cluster: Cluster) -> None:
        if cluster.queue:
            self._mistake(cluster)


def twice(cluster: Cluster) -> None:
    head = cluster.queue.head
    cluster.start(head)
    cluster.start(head)


def unnoticed(cluster: Cluster) -> None:
    try:
        twice(cluster)
    except RuleBroken:
        return


@native_only
@pytest.mark.parametrize("mistake", [twice, unnoticed, lambda cluster: 1 / 0])
def test_both_engines_say_the_same_about_a_mistake(mistake: Callable[[Cluster], None]) -> None:
    def fail(engine: str) -> str:
        workload = Workload("w0", [Job("w0!1", 5.0, 1, 10.0, "p")], {"p": Homogeneous(1e9)})
        with pytest.raises(PolicyError) as raised:
            run(engine, Setup(Platform.homogeneous(2), [workload]), DecisionProcess(Fails(mistake)))
        return str(raised.value)

    by_python, by_native = on_both(fail)
    assert by_native == by_python


@native_only
@pytest.mark.parametrize("scheduler", ["easy", "conservative"])
def test_a_simulation_that_is_over_leaves_nothing_behind(scheduler: str) -> None:
    workload = Workload("w0", [Job("w0!1", 5.0, 1, 10.0, "p")], {"p": Homogeneous(1e9)})
    process = DecisionProcess(SCHEDULERS.create(scheduler, {}))
    simulation = NativeSimulation(Setup(Platform.homogeneous(2), [workload]), process, Outputs(None))
    simulation.run()
    left = [weakref.ref(simulation), weakref.ref(process), weakref.ref(process.scheduler)]
    del simulation, process
    gc.collect()
    assert [reference() for reference in left] == [None, None, None]


class Interrupted(BaseException):
    """What a signal raises."""


def under_easy(policy: Scheduler) -> NativeSimulation:
    jobs = [Job(f"w0!{number}", float(number), 1, 10.0, "p") for number in range(20_000)]
    workload = Workload("w0", jobs, {"p": Homogeneous(1e9)})
    return NativeSimulation(
        Setup(Platform.homogeneous(1), [workload]), DecisionProcess(policy), Outputs(None)
    )


@native_only
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that sends signals")
def test_a_signal_ends_the_turns_of_easy_that_the_library_takes() -> None:
    simulation = under_easy(Easy())

    def interrupt(*_: object) -> None:
        if simulation._engine.now > 0:
            raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        with pytest.raises(Interrupted):
            simulation.run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not simulation.process.finished


@native_only
def test_the_library_takes_the_turns_of_easy_whose_orders_it_can_compute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken: list[Scheduler] = []
    monkeypatch.setattr(
        NativeSimulation, "_take_turns", lambda self, of, cluster: taken.append(self.process.scheduler)
    )
    policies: list[Scheduler] = [
        Easy(),
        Easy(order="shortest"),
        Easy(backfill="-wait * size"),
        Easy(order="fair-share"),
        SCHEDULERS.create("easy-sjbf", {}),
        SCHEDULERS.create("conservative", {}),
    ]
    others = [Easy(order="f1"), Easy(backfill="sqrt(size)"), Easy(selection="random")]
    for policy in (*policies, *others):
        under_easy(policy).run()
    assert taken == policies


@native_only
def test_a_policy_made_of_easy_takes_its_turns_itself() -> None:
    turns: list[float] = []

    class Watching(Easy):
        def schedule(self, cluster: Cluster) -> None:
            turns.append(cluster.now)
            super().schedule(cluster)

    policy = Easy()
    usual = policy.schedule
    policy.schedule = lambda cluster: (turns.append(cluster.now), usual(cluster))[1]  # type: ignore[method-assign]
    for each in (Watching(), policy):
        turns.clear()
        under_easy(each).run()
        assert len(turns) >= 20_000


PLAIN = Workload("w0", [Job("w0!1", 5.0, 1, 10.0, "p")], {"p": Homogeneous(1e9)})
TWO_HOSTS = Platform.homogeneous(2)

#: A host that begins asleep.
SLEEPER = PlatformHost(
    0,
    "h0",
    [
        PowerState(1e9, 90, 100, 200),
        PowerState(1, 8, 8, 8),
        PowerState(0.1, 95, 95, 95),
        PowerState(0.1, 95, 95, 95),
    ],
    1,
    {1: SleepState(1, 2, 3)},
    {"role": "", "wattage_per_state": "90:100:200, 8:8:8, 95:95:95, 95:95:95"},
)


@native_only
@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        (Setup(TWO_HOSTS, [PLAIN]), None),
        (Setup(TWO_HOSTS, [PLAIN], energy=True), None),
        (Setup(Platform([SLEEPER], [], ""), [PLAIN], energy=True), "energy, where power states may change"),
        (Setup(Platform([SLEEPER], [], ""), [PLAIN]), None),
        (Setup(TWO_HOSTS, [PLAIN], ev.Settings(compute_sharing=True)), "hosts that jobs share"),
        (Setup(TWO_HOSTS, [PLAIN], ev.Settings(dynamic_jobs=True)), "jobs that the scheduler registers"),
        (
            Setup(TWO_HOSTS, [Workload("w0", PLAIN.jobs, {"p": Parallel(work=(1.0,), bytes_sent=(0.0,))})]),
            "jobs that do more than compute or sleep",
        ),
        (
            Setup(TWO_HOSTS, [Workload("w0", PLAIN.jobs, {"p": Homogeneous(1.0, bytes_sent=1.0)})]),
            "jobs that do more than compute or sleep",
        ),
    ],
)
def test_the_door_says_what_the_native_engine_does_not_do(setup: Setup, reason: str | None) -> None:
    process = DecisionProcess(SCHEDULERS.create("easy", {}))
    assert why_not_native(setup, process, Outputs(None)) == reason


class Switches(Scheduler):
    """Lets a host sleep, and starts no job."""

    name = "switches"

    def schedule(self, cluster: Cluster) -> None:
        cluster.switch(cluster.free.lowest(1), 1)


class SaysItStartsJobs(Switches):
    only_starts_jobs = True


@native_only
@pytest.mark.parametrize(
    ("policy", "is_native"),
    [
        (SCHEDULERS.create("conservative", {}), True),
        (SCHEDULERS.create("sleeper", {}), False),
        (Switches(), False),
        (SaysItStartsJobs(), True),
    ],
    ids=lambda value: value.name if isinstance(value, Scheduler) else "",
)
def test_a_policy_that_may_change_power_states_runs_in_python(policy: Scheduler, is_native: bool) -> None:
    setup = Setup(TWO_HOSTS, [PLAIN], energy=True)
    assert (why_not_native(setup, DecisionProcess(policy), Outputs(None)) is None) == is_native


@native_only
def test_a_policy_that_says_it_only_starts_jobs_cannot_change_power_states() -> None:
    awake = PlatformHost(0, "h0", SLEEPER.pstates, 0, SLEEPER.sleep_states, SLEEPER.properties)
    simulation = new_simulation(
        Setup(Platform([awake]), [PLAIN], energy=True), DecisionProcess(SaysItStartsJobs())
    )
    with pytest.raises(PolicyError, match="says `only_starts_jobs = True` may only start jobs"):
        simulation.run()


def test_the_python_engine_can_be_chosen() -> None:
    version = [sys.executable, "-m", "batsched_py", "--version"]
    run = subprocess.run(
        version,
        env=environment() | {native.PURE: "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert run.stdout.endswith("(Python engine: BATSCHED_PY_PURE turns the native one off)\n")


def test_a_simulation_says_when_the_slower_engine_does_what_the_other_could_do() -> None:
    process = DecisionProcess(SCHEDULERS.create("easy", {}))
    both = Setup(TWO_HOSTS, [PLAIN])
    one = Setup(TWO_HOSTS, [PLAIN], ev.Settings(compute_sharing=True))
    with using("python"):
        told = native.describe()
        assert told.startswith("Python engine: ")
        assert new_simulation(both, process).slower_because == told
    assert new_simulation(one, process).slower_because == ""


#: What `campaign plan` says of a plan that was not begun.
COUNT = re.compile(r"20 runs, 0 of them done; as quick as EASY, they take about .* with -j \d+\n")


@pytest.mark.parametrize(
    "command",
    [
        "schedulers",
        "users",
        "models",
        "run -w {root}/workloads/sample.swf -s easy --users think-time",
        "campaign plan {root}/examples/plans/sample.toml",
    ],
)
def test_a_machine_without_a_compiler_lacks_nothing(command: str, root: Path, tmp_path: Path) -> None:
    """There the library of the native engine cannot be imported."""
    arguments = command.format(root=root).split()
    code = (
        "import sys; sys.modules['batsched_py._native'] = None; "
        f"from batsched_py.cli.main import batsched_py; batsched_py({arguments!r})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (run.returncode, COUNT.sub("", run.stderr, 1)) == (0, "")
