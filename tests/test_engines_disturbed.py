"""The native engine against the Python engine where hosts fail and jobs wait for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from batsched_py.cli.main import batsched_py
from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.submissions import FailureRule
from batsched_py.errors import BatschedError, EventBroken
from batsched_py.ledger.holds import Release
from batsched_py.outside.failures import Outage, as_events
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.schedulers.decisions import Remark
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.test_engines import (
    HOSTS,
    Erratic,
    ErraticUser,
    Listener,
    draws_power,
    native_only,
    on_both,
    random_machine,
    random_workload,
    run,
)

PLAIN = ("conservative", "easy", "easy-sjbf", "fcfs", "filler", "random", "user-aware")
POLICIES: list[tuple[str, dict[str, str]]] = [*((name, {}) for name in PLAIN), ("easy", {"ends": "all"})]


def random_outages(random: Random, hosts: int = HOSTS) -> Iterator[ev.Event]:
    """Each host fails now and then."""

    def outages(host: int) -> Iterator[Outage]:
        end = 0.0
        while (start := end + random.choice((1.0, 7.3, 1 / 3, 40.0)) * random.random() * 10) < 150:
            end = start + random.choice((1.0, 5.0, 30.0))
            yield Outage(HostSet.of(range(host, host + random.randint(1, 2))), start, end)

    return as_events([list(outages(host)) for host in range(0, hosts - 1, 2) if random.random() < 0.7])


def random_events(random: Random) -> list[list[ev.Event]]:
    """Lists of events of which some are about hosts; most lists make sense."""
    others: list[ev.Event] = [ev.ExternalEvent({"n": n}, time=n * 3.5) for n in range(random.randint(0, 4))]
    lists = [others, list(random_outages(random))] if random.random() < 0.8 else []
    if random.random() < 0.1:
        lists.append([ev.HostsAvailable(HostSet.range(HOSTS), time=60.0)])
    return lists


def chained(random: Random, workload: Workload) -> Workload:
    """The workload with jobs that wait for others, which may not be there or fail, and tasks of arrays."""
    jobs = []
    for number, job in enumerate(workload.jobs):
        extra = job.extra | {"user": f"u{number % 3}", "name": random.choice("ab")}
        if number and random.random() < 0.4:
            targets = [random.randrange(number) for _ in range(random.randint(1, 3))]
            if random.random() < 0.1:
                targets.append(random.choice((number + 1, 99)))
            kinds = ("afterany", "afterok", "afternotok", "after")
            delays = ("", "", "+3s", "+0.5s")
            ends = [f"{random.choice(kinds)}:{target}{random.choice(delays)}" for target in targets]
            ends += random.choice(([], [], ["afterany:sweep"], ["singleton"]))
            extra["after"] = random.choice(",?").join(ends)
        if random.random() < 0.2:
            extra["array"] = "few%2" if random.random() < 0.5 else "sweep"
        jobs.append(replace(job, extra=extra))
    return replace(workload, jobs=jobs)


def disturbances(random: Random) -> dict[str, Any]:
    """What happens from outside."""
    times: dict[str, Any] = {}
    if random.random() < 0.3:
        times = {"launch_time": random.choice((1.0, 0.25)), "cleaning_time": random.choice((0.0, 2.5))}
    if random.random() < 0.5:
        return times | {"events": random_events(random)}
    outages = list(random_outages(random))
    return times | {"failures": lambda: iter(outages)}


def policy_of(random: Random, seed: int) -> Scheduler:
    return Erratic(seed) if random.random() < 0.6 else SCHEDULERS.create(*random.choice(POLICIES))


def outcome_of(
    seed: int, folder: Path, have_users: bool, are_chained: bool, disturbed: bool
) -> Callable[[str], Any]:
    """What all hear and what is written, or the error, with any disturbances."""

    def outcome(engine: str) -> tuple[list[Any], Any]:
        random = Random(seed)
        workload = random_workload(random)
        if are_chained:
            workload = chained(random, workload)
        around = disturbances(random) if disturbed else {}
        policy, releases, remarks = policy_of(random, seed), list[Release](), list[Remark]()
        users: Sequence[ErraticUser] = ()
        rule = random.choice((None, FailureRule(), FailureRule(), FailureRule(resubmits=False)))
        if have_users:
            kind, profiles = random.choice((ErraticUser, Listener)), dict(workload.profiles)
            users = [kind(f"u{n}", seed + n, list(workload.jobs[n::3]), profiles) for n in range(3)]
        allowed = ev.Settings(dynamic_jobs=have_users, profile_reuse=have_users)
        machine, static = random_machine(random), () if have_users else [workload]
        setup = Setup(machine, static, allowed, energy=draws_power(machine), **around)
        process = DecisionProcess(policy, users, on_failure=rule)
        process.on_release(releases.append)
        if random.random() < 0.3:
            process.heed(remarks.append)
        try:
            written: Any = run(engine, setup, process, str(folder / engine))
        except BatschedError as error:
            written = type(error), str(error)
        heard: list[Any] = [user.heard for user in users]
        heard += [policy.heard] if isinstance(policy, Erratic) else []
        told = [(release.job.id, release.job.extra, release.eligible, release.reason) for release in releases]
        return [*heard, told, [str(remark) for remark in remarks]], written

    return outcome


#: Whether users submit the jobs, whether jobs wait for others, and whether hosts fail. Where users submit
#: jobs that wait for others, only the Python engine simulates.
MIXTURES = [(False, False, True), (True, False, True), (False, True, False), (False, True, True)]


@native_only
@pytest.mark.parametrize("mixture", MIXTURES)
@given(seed=st.integers(0, 10**9))
def test_both_engines_carry_on_whatever_happens(
    mixture: tuple[bool, bool, bool], tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    by_python, by_native = on_both(outcome_of(seed, tmp_path_factory.mktemp("out"), *mixture))
    assert by_native == by_python


@native_only
@pytest.mark.slow
@pytest.mark.parametrize("mixture", MIXTURES)
def test_both_engines_carry_on_whatever_happens_four_hundred_times(
    mixture: tuple[bool, bool, bool], tmp_path: Path
) -> None:
    for seed in range(400):
        by_python, by_native = on_both(outcome_of(seed, tmp_path, *mixture))
        assert by_native == by_python, seed


@native_only
@pytest.mark.parametrize(
    ("event", "told"),
    [
        (
            ev.HostsAvailable(HostSet.range(2), time=4.5),
            "4.500000: hosts 1 are not unavailable",
        ),
        (
            ev.HostsUnavailable(HostSet.range(2), time=5),
            "5.000000: hosts 0 are unavailable",
        ),
    ],
)
def test_both_engines_refuse_events_that_make_no_sense(event: ev.Event, told: str) -> None:
    def fail(engine: str) -> str:
        workload = Workload("w0", [Job("w0!1", 5.0, 1, 10.0, "p")], {"p": Homogeneous(1e9)})
        events = [ev.HostsUnavailable(HostSet.range(1), time=1.0), event]
        setup = Setup(Platform.homogeneous(2), [workload], events=[events])
        with pytest.raises(EventBroken) as raised:
            run(engine, setup, DecisionProcess(SCHEDULERS.create("easy", {})))
        return str(raised.value)

    by_python, by_native = on_both(fail)
    assert by_native == by_python
    assert told in by_python


def random_log(random: Random) -> str:
    """A log whose jobs name preceding jobs, with think times; some records cannot be used."""
    lines, time, numbers = [], 0.0, random.sample(range(1, 90), 40)
    for place, number in enumerate(numbers):
        time += random.choice((0, 1, 1, -2, 7, 0.25))
        before = random.choice((-1, random.randint(1, 90), *numbers[max(place - 3, 0) : place + 1]))
        thinks = random.choice((-1, 0, 9, 1.5, 2e-7))
        status, size = random.choice((1, 1, 1, 5)), random.choice((-1, 1, 2, 4))
        run_time = random.choice((-1, 0, 3, 20))
        lines.append(
            f"{number} {max(time, 0)} -1 {run_time} {size} -1 -1 {size} 30 -1 {status} "
            f"{random.randint(1, 3)} 1 {random.randint(1, 2)} 1 -1 {before} {thinks}\n"
        )
    return "".join(lines)


@native_only
def test_both_engines_let_jobs_of_logs_wait_for_their_preceding_ones(tmp_path: Path) -> None:
    def outcome(engine: str) -> Any:
        jobs = read_workload(log, "w0", preceding="wait").jobs
        told = [(job.id, job.submission_time, job.size, job.profile, job.extra) for job in jobs]
        options = ["-w", str(log), "--hosts", "5", "-s", "easy", "--preceding", "wait"]
        done = CliRunner().invoke(batsched_py, ["run", *options, "-e", str(tmp_path / engine)])
        return told, done.exit_code, [path.read_bytes() for path in sorted(tmp_path.glob(f"{engine}*"))]

    log, waiting = tmp_path / "log.swf", 0
    for seed in range(25):
        log.write_text(random_log(Random(seed)))
        by_python, by_native = on_both(outcome)
        assert by_native == by_python, seed
        waiting += sum("after" in extra for *_, extra in by_python[0])
    assert waiting > 100
