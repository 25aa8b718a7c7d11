"""The native engine against the Python engine where hosts fail and jobs wait for others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.submissions import FailureRule
from batsched_py.errors import BatschedError, EventBroken
from batsched_py.outside.failures import Outage, as_events
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
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

POLICIES = ("conservative", "easy", "easy-sjbf", "fcfs", "filler", "random", "user-aware")


def random_outages(random: Random) -> Iterator[ev.Event]:
    """Each host fails now and then."""

    def outages(host: int) -> Iterator[Outage]:
        end = 0.0
        while (start := end + random.choice((1.0, 7.3, 1 / 3, 40.0)) * random.random() * 10) < 150:
            end = start + random.choice((1.0, 5.0, 30.0))
            yield Outage(HostSet.of(range(host, host + random.randint(1, 2))), start, end)

    return as_events([list(outages(host)) for host in range(0, HOSTS - 1, 2) if random.random() < 0.7])


def random_events(random: Random) -> list[list[ev.Event]]:
    """Lists of events of which some are about hosts; most lists make sense."""
    others: list[ev.Event] = [ev.ExternalEvent({"n": n}, time=n * 3.5) for n in range(random.randint(0, 4))]
    lists = [others, list(random_outages(random))] if random.random() < 0.8 else []
    if random.random() < 0.1:
        lists.append([ev.HostsAvailable(HostSet.range(HOSTS), time=60.0)])
    return lists


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
    return Erratic(seed) if random.random() < 0.6 else SCHEDULERS.create(random.choice(POLICIES), {})


def outcome_of(seed: int, folder: Path, have_users: bool) -> Callable[[str], Any]:
    """What all hear and what is written, or the error, with any disturbances."""

    def outcome(engine: str) -> tuple[list[list[str]], Any]:
        random = Random(seed)
        workload = random_workload(random)
        around, policy = disturbances(random), policy_of(random, seed)
        users: Sequence[ErraticUser] = ()
        rule = random.choice((None, FailureRule(), FailureRule(), FailureRule(resubmits=False)))
        if have_users:
            kind, profiles = random.choice((ErraticUser, Listener)), dict(workload.profiles)
            users = [kind(f"u{n}", seed + n, list(workload.jobs[n::3]), profiles) for n in range(3)]
        allowed = ev.Settings(dynamic_jobs=have_users, profile_reuse=have_users)
        machine, static = random_machine(random), () if have_users else [workload]
        setup = Setup(machine, static, allowed, energy=draws_power(machine), **around)
        process = DecisionProcess(policy, users, on_failure=rule)
        try:
            written: Any = run(engine, setup, process, str(folder / engine))
        except BatschedError as error:
            written = type(error), str(error)
        heard = [user.heard for user in users] + ([policy.heard] if isinstance(policy, Erratic) else [])
        return heard, written

    return outcome


@native_only
@pytest.mark.parametrize("have_users", [False, True])
@settings(max_examples=2 * settings().max_examples)
@given(seed=st.integers(0, 10**9))
def test_both_engines_carry_on_when_hosts_fail(
    have_users: bool, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    by_python, by_native = on_both(outcome_of(seed, tmp_path_factory.mktemp("out"), have_users))
    assert by_native == by_python


@native_only
@pytest.mark.slow
@pytest.mark.parametrize("have_users", [False, True])
def test_both_engines_carry_on_when_hosts_fail_eight_hundred_times(have_users: bool, tmp_path: Path) -> None:
    for seed in range(800):
        by_python, by_native = on_both(outcome_of(seed, tmp_path, have_users))
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
