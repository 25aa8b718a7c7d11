"""What every registered policy must survive, and must not break."""

from __future__ import annotations

from itertools import pairwise
from math import inf
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.analysis.validator import validate
from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.events import Event, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers import SCHEDULERS
from tests.processes import call
from tests.reference_schedulers import RefJob, ref_jobs
from tests.scheduling import Meddler, over_zeromq, policy, run, schedule_of, text, workload_of

HOSTS = 4
ORDERS = (
    "submission",
    "shortest",
    "longest",
    "smallest-area",
    "largest-area",
    "expansion-factor",
    "wfp3",
    "unicep",
    "f1",
    "fair-share",
)
SELECTIONS = ("lowest", "contiguous", "best-fit", "spread", "random", "fastest")

#: Every registered policy, and EASY with every order.
POLICIES: list[tuple[str, dict[str, str]]] = [
    *((name, {}) for name in SCHEDULERS.all()),
    *(("easy", {"order": order, "backfill": backfill}) for order, backfill in pairwise(ORDERS)),
]

every_policy = pytest.mark.parametrize(
    ("name", "options"), POLICIES, ids=["-".join([name, *options.values()]) for name, options in POLICIES]
)


def busy_day(jobs: int = 60) -> list[RefJob]:
    """A workload of everything: queues, ties, jobs of no length, killed ones, ones without walltime."""
    return [
        RefJob(
            f"{number:03}",
            submission=float(number // 3 * 2),
            size=number * 7 % HOSTS + 1,
            run_time=float(number * 5 % 13),
            walltime=(inf, 20.0, 6.0)[number % 3],
        )
        for number in range(jobs)
    ]


@every_policy
@settings(max_examples=12)
@given(jobs=ref_jobs(HOSTS))
def test_its_schedules_are_valid(name: str, options: dict[str, str], jobs: list[RefJob]) -> None:
    assert validate(run(policy(name, **options), jobs, HOSTS), HOSTS, [workload_of(jobs)]) == []


@every_policy
def test_every_job_that_fits_is_run_unless_it_is_rejected(name: str, options: dict[str, str]) -> None:
    schedule = run(policy(name, **options), [*busy_day(), RefJob("wide", 3, HOSTS + 1, 1)], HOSTS)
    rejected = set(schedule[schedule["final_state"] == "REJECTED"]["job_id"])
    assert rejected == ({"wide"} if name != "reject-all" else set(schedule["job_id"]))


@every_policy
def test_behind_a_socket_it_decides_the_same(name: str, options: dict[str, str]) -> None:
    workload = workload_of(busy_day())
    inside = schedule_of(DecisionProcess(policy(name, **options)), workload, HOSTS)
    assert text(over_zeromq(policy(name, **options), workload, HOSTS)) == text(inside)


@every_policy
def test_it_decides_the_same_again(name: str, options: dict[str, str]) -> None:
    once, again = (run(policy(name, **options), busy_day(), HOSTS) for _ in range(2))
    assert text(once) == text(again)


@every_policy
@settings(max_examples=10)
@given(jobs=ref_jobs(HOSTS), rejects=st.integers(1, 5), kills=st.integers(1, 4))
def test_it_survives_that_jobs_are_rejected_and_killed(
    name: str, options: dict[str, str], jobs: list[RefJob], rejects: int, kills: int
) -> None:
    meddler = Meddler(policy(name, **options), rejects, kills)
    assert validate(run(meddler, jobs, HOSTS), HOSTS, [workload_of(jobs)]) == []


@st.composite
def outages(draw: st.DrawFn) -> list[Event]:
    """Hosts that go and come back, some of them more than once."""
    events: list[Event] = []
    for host in draw(st.sets(st.integers(0, HOSTS - 1))):
        time = 0.0
        for _ in range(draw(st.integers(1, 2))):
            time += draw(st.integers(1, 16)) / 2
            events.append(HostsUnavailable(HostSet.of([host]), time=time))
            time += draw(st.integers(1, 16)) / 2
            events.append(HostsAvailable(HostSet.of([host]), time=time))
    return sorted(events, key=lambda event: event.time)


@every_policy
@settings(max_examples=12)
@given(jobs=ref_jobs(HOSTS), outages=outages())
def test_it_survives_that_hosts_go_and_come_back(
    name: str, options: dict[str, str], jobs: list[RefJob], outages: list[Event]
) -> None:
    schedule = schedule_of(DecisionProcess(policy(name, **options)), workload_of(jobs), HOSTS, outages)
    assert validate(schedule, HOSTS, [workload_of(jobs)]) == []


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", SCHEDULERS.all())
def test_the_hosts_it_is_given_do_not_change_when_jobs_start(name: str, selection: str) -> None:
    chosen = run(policy(name, selection=selection), busy_day(), HOSTS)
    lowest = run(policy(name), busy_day(), HOSTS)
    assert validate(chosen, HOSTS) == []
    assert list(chosen["starting_time"].dropna()) == list(lowest["starting_time"].dropna())


@pytest.mark.parametrize("options", [("fair-share", "random"), ("wfp3", "spread")])
def test_orders_and_selections_do_not_depend_on_the_hash_seed(
    options: tuple[str, str], tmp_path: Path
) -> None:
    order, selection = options
    log = Path(__file__).parents[2] / "workloads" / "sample.swf"
    written = []
    for seed in ("1", "4242"):
        arguments = [
            "-s",
            "easy",
            "-o",
            f"order={order}",
            "-o",
            f"selection={selection}",
            "-e",
            tmp_path / seed,
        ]
        code, _, _ = call(["run", "-w", log, "--hosts", "40", *arguments], PYTHONHASHSEED=seed)
        assert code == 0
        written.append((tmp_path / f"{seed}_jobs.csv").read_bytes())
    assert written[0] == written[1]
