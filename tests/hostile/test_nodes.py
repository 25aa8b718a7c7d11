"""The same hostile policies on a machine of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import Scheduler
from batsched_py.simulator.machine_files import NodeKind, platform_of
from tests.hostile.acts import ACTS, HANDED
from tests.hostile.mistakes import DEEDS, MISTAKES, MOMENTS
from tests.hostile.outcomes import JOBS, Policy, needs_both, outcome_of_policy, same_outcomes
from tests.hostile.test_policies import LATER, Lingering, blames_the_policy

NODES = platform_of(
    [
        NodeKind(["a"], 2, {"memory": 8}, ["big"]),
        NodeKind(["b", "c"], 1, {"memory": 4, "gpu": 1}),
    ],
    {"matlab": 1},
    "nodes",
)

#: What each of the jobs asks for beside cores.
REQUESTS = [
    {"per_core": {"memory": "2 kB"}, "licences": {"matlab": 1}},
    {},
    {"exclusive": True},
    {},
    {"per_core": {"memory": "1 kB"}, "licences": {"matlab": 1}},
]

ASKING = [
    Job(job.id, job.submission_time, job.size, job.walltime, job.profile, {**job.extra, "request": request})
    for job, request in zip(JOBS, REQUESTS, strict=True)
]


def check(policies: Mapping[str, Callable[[], Scheduler]], folder: Path) -> None:
    """What comes of each policy is the same in both engines: one line that names it, or results."""
    found = same_outcomes(
        policies, lambda engine, make: outcome_of_policy(engine, make(), folder, ASKING, NODES)
    )
    assert [outcome for outcome in found.values() if not blames_the_policy(outcome)] == []


@needs_both
@pytest.mark.slow
@pytest.mark.parametrize("what", HANDED)
def test_no_act_on_what_a_policy_is_handed_does_harm(what: str, tmp_path: Path) -> None:
    check({name: lambda act=act: Policy(act) for name, act in ACTS[what].items()}, tmp_path)


@needs_both
def test_plausible_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    check({name: lambda act=act: Policy(act, once=True) for name, act in MISTAKES.items()}, tmp_path)


@needs_both
@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_no_deed_does_harm_at_any_moment(moment: str, tmp_path: Path) -> None:
    check({name: lambda deed=deed: Policy(deed, moment) for name, deed in DEEDS.items()}, tmp_path)


@needs_both
def test_what_was_kept_does_no_harm_later(tmp_path: Path) -> None:
    check({name: lambda use=use: Lingering(use) for name, use in LATER.items()}, tmp_path)
