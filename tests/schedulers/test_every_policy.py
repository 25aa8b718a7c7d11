"""What every registered policy must survive, and must not break."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from math import inf
from pathlib import Path

import pytest

from batsched_py.analysis.validator import validate
from batsched_py.decision.process import DecisionProcess
from batsched_py.schedulers import SCHEDULERS
from batsched_py.testing import JobSpec, check, schedule_of, workload_of
from tests.processes import call
from tests.scheduling import over_zeromq, policy, text

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
    "f2",
    "f3",
    "f4",
    "f1-queue",
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


def busy_day(jobs: int = 60) -> list[JobSpec]:
    """A workload of everything: queues, ties, jobs of no length, killed ones, ones without walltime."""
    return [
        JobSpec(
            f"{number:03}",
            submission=float(number // 3 * 2),
            size=number * 7 % HOSTS + 1,
            run_time=float(number * 5 % 13),
            walltime=(inf, 20.0, 6.0)[number % 3],
        )
        for number in range(jobs)
    ]


#: Which policies let some jobs wait while others come, by what they are; some of them for days at most.
STARVING = {"filler", "ljf", "multi-queue", "random", "sjf", "user-aware"}


@pytest.mark.parametrize("examples", [2, pytest.param(10, marks=pytest.mark.slow)])
@every_policy
def test_it_has_every_property_that_a_policy_should_have(
    name: str, options: dict[str, str], examples: int
) -> None:
    promise = name if name in ("fcfs", "easy", "conservative") and not options else None
    waived = ["starves no job"] if name in STARVING or options else []
    waived += ["passes the cases"] if name == "reject-all" else []
    check(lambda: policy(name, **options), promise=promise, waived=waived, examples=examples)  # type: ignore[arg-type]


@every_policy
def test_every_job_that_fits_is_run_unless_it_is_rejected(name: str, options: dict[str, str]) -> None:
    schedule = schedule_of(policy(name, **options), [*busy_day(), JobSpec("wide", 3, HOSTS + 1, 1)], HOSTS)
    rejected = set(schedule[schedule["final_state"] == "REJECTED"]["job_id"])
    assert rejected == ({"wide"} if name != "reject-all" else set(schedule["job_id"]))


@every_policy
def test_behind_a_socket_it_decides_the_same(name: str, options: dict[str, str]) -> None:
    workload = workload_of(busy_day())
    inside = schedule_of(DecisionProcess(policy(name, **options)), workload, HOSTS)
    assert text(over_zeromq(policy(name, **options), workload, HOSTS)) == text(inside)


@cache
def starts_on_lowest_hosts(name: str) -> list[float]:
    return list(schedule_of(policy(name), busy_day(), HOSTS)["starting_time"].dropna())


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", sorted(SCHEDULERS.all().keys() - {"slurm"}))
def test_the_hosts_it_is_given_do_not_change_when_jobs_start(name: str, selection: str) -> None:
    chosen = schedule_of(policy(name, selection=selection), busy_day(), HOSTS)
    assert validate(chosen, HOSTS) == []
    assert list(chosen["starting_time"].dropna()) == starts_on_lowest_hosts(name)


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
