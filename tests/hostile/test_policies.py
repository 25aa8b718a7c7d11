"""Hostile policies, by the hundreds: one line that names them, or right results; the same in both engines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from batsched_py.schedulers import Scheduler
from tests.hostile.acts import ACTS, HANDED
from tests.hostile.mistakes import DEEDS, MISTAKES, MOMENTS
from tests.hostile.outcomes import Policy, needs_both, outcome_of_policy, same_outcomes


def outcomes(policies: Mapping[str, Callable[[], Scheduler]], folder: Path) -> dict[str, str]:
    """What comes of each policy, if that is the same in both engines."""
    return same_outcomes(policies, lambda engine, make: outcome_of_policy(engine, make(), folder))


def blames_the_policy(outcome: str) -> bool:
    """Whether an outcome is an error that names the policy and its line, or results.

    A class of Python that is made to listen has no line.
    """
    if "\n" in outcome:
        return True
    lines = ("/tests/hostile/", "(before its first line)")
    return outcome.startswith("scheduler 'hostile' ") and any(line in outcome for line in lines)


@needs_both
@pytest.mark.parametrize("what", HANDED)
def test_no_act_on_what_a_policy_is_handed_does_harm(what: str, tmp_path: Path) -> None:
    found = outcomes({name: lambda act=act: Policy(act) for name, act in ACTS[what].items()}, tmp_path)
    assert [outcome for outcome in found.values() if not blames_the_policy(outcome)] == []


def test_there_are_many_hostile_policies() -> None:
    assert sum(map(len, ACTS.values())) + len(MISTAKES) + len(MOMENTS) * len(DEEDS) > 2000


@needs_both
def test_plausible_mistakes_are_told_in_one_line(tmp_path: Path) -> None:
    found = outcomes(
        {name: lambda act=act: Policy(act, once=True) for name, act in MISTAKES.items()}, tmp_path
    )
    assert [outcome for outcome in found.values() if not blames_the_policy(outcome)] == []
    assert {name for name, outcome in found.items() if "\n" in outcome} == HARMLESS


#: The mistakes that change nothing, or what the policy has a right to.
HARMLESS = {
    "a_call_is_changed_afterwards",
    "a_condition_that_starts_the_job",
    "a_job_is_expected_before_it_starts",
    "a_job_is_expected_for_ever",
    "a_kill_is_changed_afterwards",
    "a_plan_out_of_order",
    "a_profile_of_nonsense",
    "a_reservation_for_a_monster",
    "a_running_job_is_killed_twice",
    "an_execution_is_changed_afterwards",
    "columns_are_changed",
    "every_running_job_is_given_more_time",
    "hosts_in_a_list",
    "hosts_whose_text_lies",
    "jobs_are_rejected_while_they_are_gone_through",
    "jobs_are_started_while_running_ones_are_gone_through",
    "machines_are_changed",
    "news_are_changed",
}


@needs_both
@pytest.mark.parametrize("moment", MOMENTS)
def test_no_deed_does_harm_at_any_moment(moment: str, tmp_path: Path) -> None:
    policies = {name: lambda deed=deed: Policy(deed, moment) for name, deed in DEEDS.items()}
    found = outcomes(policies, tmp_path)
    assert [outcome for outcome in found.values() if not blames_the_policy(outcome)] == []
    assert "SystemExit: 0 (" in found["exits"]


class Lingering(Scheduler):
    """Keeps what it was given, and uses it in later turns, after jobs have ended and when all is over."""

    name = "hostile"

    def __init__(self, use: Callable[[Any], object]) -> None:
        self.use = use
        self.kept: Any = None

    def schedule(self, cluster: Any) -> None:
        if self.kept is None and cluster.queue and cluster.running:
            running = next(iter(cluster.running))
            self.kept = {
                "cluster": cluster,
                "job": running.job,
                "running": running,
                "queue": cluster.queue,
                "jobs": iter(cluster.queue),
                "fitting": cluster.fitting(),
                "fitting in an order": cluster.fitting(order=lambda waiting, now: waiting.size),
                "reservation": cluster.reservation(cluster.queue.head),
                "columns": cluster.queue.first(5),
                "plan": cluster.plan(),
                "profile": cluster.profile(),
            }
        elif self.kept is not None and not cluster.running:
            self.use(self.kept)
        for job in cluster.fitting():
            cluster.start(job)


LATER: dict[str, Callable[[Any], object]] = {
    "starts a job that has ended": lambda kept: kept["cluster"].start(kept["job"]),
    "kills a job that has ended": lambda kept: kept["cluster"].kill(kept["job"]),
    "rejects a job that has ended": lambda kept: kept["cluster"].reject(kept["job"]),
    "expects a job that has ended": lambda kept: kept["cluster"].expect(kept["job"], 5),
    "asks whether a job fits that has ended": lambda kept: kept["cluster"].fits(kept["job"]),
    "looks at a job that has ended": lambda kept: repr(kept["running"]),
    "goes through jobs that waited": lambda kept: list(kept["jobs"]),
    "goes through jobs that fitted": lambda kept: list(kept["fitting"]),
    "goes through jobs in an order": lambda kept: list(kept["fitting in an order"]),
    "goes by an old reservation": lambda kept: list(
        kept["cluster"].fitting(beside=kept["reservation"], only_new=True)
    ),
    "admits to an old reservation": lambda kept: kept["reservation"].admit(kept["running"]),
    "looks at old columns": lambda kept: kept["columns"].size,
    "goes by an old plan": lambda kept: [
        kept["plan"].job_ended(kept["running"]),
        kept["plan"].advance(),
        kept["plan"].move_forward(),
        kept["plan"].reserve_new(),
        kept["plan"].due(),
    ],
    "goes by an old profile": lambda kept: kept["profile"].earliest(2, 5),
}


@needs_both
def test_what_was_kept_does_no_harm_later(tmp_path: Path) -> None:
    policies = {name: lambda use=use: Lingering(use) for name, use in LATER.items()}
    found = outcomes(policies, tmp_path)
    assert [outcome for outcome in found.values() if not blames_the_policy(outcome)] == []


@needs_both
@pytest.mark.parametrize("late", ["start", "reject", "kill", "call_at", "expect", "order_queue", "on_end"])
def test_nothing_can_be_decided_when_all_is_over(late: str, tmp_path: Path) -> None:
    def decide(engine: str) -> str:
        policy = Lingering(lambda kept: None)
        outcome_of_policy(engine, policy, tmp_path)
        cluster, argument = policy.kept["cluster"], policy.kept["job"]
        given = {"call_at": (1e9,), "expect": (argument, 5.0), "order_queue": (None,), "on_end": (print,)}
        try:
            return repr(getattr(cluster, late)(*given.get(late, (argument,))))
        except Exception as error:
            return f"{type(error).__name__}: {error}"

    assert decide("native") == decide("python")
