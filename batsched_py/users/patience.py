"""Users who leave when they have waited for too long.

D. Feitelson, "Resampling with Feedback: A New Paradigm of Using Workload Data for Performance Evaluation",
JSSPP 2021 (there figure 13: a user thinks and submits, waits, or is away); E. Shmueli and D. Feitelson,
"Uncovering the Effect of System Performance on User Behavior from Traces of Parallel Systems", MASCOTS 2007.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Annotated, Literal
from zlib import crc32

import numpy as np
from msgspec import Meta, Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users import Action, EachUser, Submission, User, WrappedUser, one_by_one
from batsched_py.workload.model import Workload

#: Into how many classes of about equal size response times are divided, at most; equal ones are in one class.
CLASSES = 20


@dataclass
class Patience(EachUser):
    """Users who may leave when a job keeps them waiting: for a while, or for good.

    How likely a user stays is learned from the log: the share of jobs after which the next one came within
    20 minutes of think time, by the response time of the job. A user who begins to wait draws how much of
    that chance it takes to stay, and leaves at the moment when a job's response time has made it smaller.
    Who stayed, as recorded, for the recorded response time has shown that much patience, so only longer
    responses count; with `tolerated=nothing` all do. Who leaves comes back after a break such as the log has,
    and submits nothing before.
    """

    name = "patience"

    think_minutes: Annotated[
        float, Meta(gt=0, description="A user who thinks for longer has taken a break.")
    ] = 20.0
    for_good: Annotated[
        float, Meta(ge=0, le=1, description="The chance that a user who leaves never comes back.")
    ] = 0.1
    withdraw: Annotated[
        bool, Meta(description="Whether who leaves withdraws the jobs that wait; those that run go on.")
    ] = False
    tolerated: Annotated[
        Literal["recorded", "nothing"],
        Meta(description="How long a response is endured in any case: as long as the recorded one, or not."),
    ] = "recorded"
    seed: Annotated[int, Meta(ge=0, description="Of what users draw.")] = 0

    def __post_init__(self) -> None:
        self._learned: Breaks | None = None

    def learn(self, workload: Workload) -> None:
        """Learn when users go on, and how long they are away."""
        super().learn(workload)
        self._learned = Breaks.of(workload, self.think_minutes * 60)

    def named_users(self, workload: Workload) -> list[User]:
        """A patient user around each."""
        breaks = self._learned or Breaks.of(workload, self.think_minutes * 60)
        users: list[User] = []
        for name, part in one_by_one(workload).items():
            assert part.finishes is not None
            responses = {
                job.id: finish - job.submission_time
                for job, finish in zip(part.jobs, part.finishes, strict=True)
                if self.tolerated == "recorded"
            }
            random = np.random.default_rng([self.seed, crc32(name.encode())])
            users += [
                PatientUser(user, self, breaks, responses, len(part.jobs), random)
                for user in self.inner.users(part)
            ]
        return users


class Breaks(Struct, eq=False):
    """How users of a log go on after a job."""

    responses: NDArray[np.float64]
    """Response times, growing."""
    chances: NDArray[np.float64]
    """How likely a user goes on without a break from each of them up to the next; never growing."""
    lengths: NDArray[np.float64]
    """How long users thought when they took a break."""

    @classmethod
    def of(cls, workload: Workload, longest_thought: float) -> Breaks:
        """What the jobs show after which a user submitted another one, as recorded."""
        if workload.finishes is None:
            raise InputError(
                f"{workload.path or workload.name} does not say when its jobs had finished; patience needs "
                "an SWF log"
            )
        responses, thoughts = [np.empty(0)], [np.empty(0)]
        for part in one_by_one(workload).values():
            submissions = np.array([job.submission_time for job in part.jobs])
            finishes = np.array(part.finishes)
            responses.append((finishes - submissions)[:-1])
            thoughts.append(submissions[1:] - finishes[:-1])
        response, thought = np.concatenate(responses), np.concatenate(thoughts)
        waited = thought >= 0
        response, thought = response[waited], thought[waited]
        lengths = thought[thought >= longest_thought]
        if not len(response):
            return cls(np.zeros(1), np.ones(1), lengths)
        starts = np.unique(np.sort(response)[:: ceil(len(response) / CLASSES)])
        place = np.searchsorted(starts, response, side="right") - 1
        sizes = np.bincount(place, minlength=len(starts))
        stayed = np.bincount(place, weights=thought < longest_thought, minlength=len(starts))
        return cls(starts, _never_growing((stayed / sizes).tolist(), sizes.tolist()), lengths)

    def patience(self, mood: float, endured: float) -> float:
        """The response time at which a user leaves.

        That is where the chance to go on has fallen to ``mood`` times what it is after the response time
        that the user is known to endure.
        """
        known = max(int(np.searchsorted(self.responses, endured, side="right")) - 1, 0)
        too_low = np.flatnonzero(self.chances[known + 1 :] < mood * self.chances[known])
        return float(self.responses[known + 1 + too_low[0]]) if len(too_low) else inf


def _never_growing(values: Sequence[float], weights: Sequence[int]) -> NDArray[np.float64]:
    """The nearest values, by least squares, that never grow: neighbours that do are pooled.

    >>> _never_growing([0.9, 0.5, 0.7], [1, 1, 1]).round(2).tolist()
    [0.9, 0.6, 0.6]
    """
    pools: list[tuple[float, int, int]] = []
    for value, weight in zip(values, weights, strict=True):
        count = 1
        while pools and pools[-1][0] < value:
            before, heavy, many = pools.pop()
            value = (before * heavy + value * weight) / (heavy + weight)
            weight, count = heavy + weight, many + count
        pools.append((value, weight, count))
    return np.repeat([pool[0] for pool in pools], [pool[2] for pool in pools])


class PatientUser(WrappedUser):
    """Hands on what another user does while it is there."""

    def __init__(
        self,
        user: User,
        rules: Patience,
        breaks: Breaks,
        responses: dict[str, float],
        nb_jobs: int,
        random: np.random.Generator,
    ) -> None:
        super().__init__(user)
        self._rules = rules
        self._breaks = breaks
        self._responses = responses
        self._nb_to_come = nb_jobs
        self._random = random
        self._mood = 0.0
        self._back = -inf
        """When it is there again."""
        self._too_long: dict[str, float] = {}
        """When each of the jobs that it waits for will have taken too long."""

    def next_time(self) -> float:
        """When it leaves, or submits unless it is away."""
        submits = inf if self._back == inf else max(self.user.next_time(), self._back)
        return min(submits, min(self._too_long.values(), default=inf))

    def submit(self, now: float) -> Sequence[Action]:
        """What the user does who is there, and what is done by one who leaves."""
        late = next((job_id for job_id, time in self._too_long.items() if time <= now), None)
        actions = [] if late is None else self._leave(late, now)
        if self._back <= now and self.user.next_time() <= now:
            actions += super().submit(now)
            if not self._too_long:
                self._mood = self._random.random()
            for action in actions:
                if isinstance(action, Submission):
                    endured = self._responses.get(action.job.id, 0.0)
                    patience = self._breaks.patience(self._mood, endured)
                    action.note = f"{action.note} patience={patience:g}".strip()
                    self._nb_to_come -= 1
                    self._too_long[action.job.id] = now + patience
        return actions

    def _leave(self, job_id: str, now: float) -> list[Action]:
        """Go away because of a job."""
        self._too_long = {}
        if self._random.random() < self._rules.for_good:
            self._back = inf
            left = f"left=for-good abandoned={self._nb_to_come}"
        else:
            length = float(self._random.choice(self._breaks.lengths)) if len(self._breaks.lengths) else 0.0
            self._back = now + length
            left = f"left={length:g}"
        withdrawn = list(self.waiting) if self._rules.withdraw else []
        others = [self.withdraw(waiting, "withdrawn=waiting") for waiting in withdrawn if waiting != job_id]
        if job_id in withdrawn:
            return [*others, self.withdraw(job_id, f"{left} withdrawn=waiting")]
        return [*others, self.remark(job_id, left)]

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """Wait no longer for this one."""
        self._too_long.pop(job.id, None)
        super().job_ended(job, state, now)
