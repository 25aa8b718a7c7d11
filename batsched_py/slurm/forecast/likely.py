"""What is likely at a moment: how long the jobs of a queue run, and which jobs come, draw by draw."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np
from msgspec.structs import replace

from batsched_py.slurm.forecast.history import History, Kind, Past
from batsched_py.slurm.forecast.live import RunTime, limit_of
from batsched_py.slurm.forecast.queue_log import QueueLog
from batsched_py.slurm.sbatch import Submission
from batsched_py.workload.swf.log import DAY, HOUR, Floats, Integers, Random

#: Jobs keep coming in a forecast until all who wait would have started by limits, within these bounds.
LEAST_AHEAD, MOST_AHEAD = 6 * HOUR, 14 * DAY


def ahead(by_limits: Floats) -> float:
    """For how long jobs come in a forecast, by the starts of those who wait; some may never start."""
    latest = float(by_limits[np.isfinite(by_limits)].max(initial=0.0))
    return min(max(latest, LEAST_AHEAD), MOST_AHEAD)


def coming(
    past: Past, history: History, length: float, random: Random
) -> tuple[Integers, Floats, list[float | None]]:
    """Jobs that come: which of the history, when from now, and the shares of their limits that are known."""
    jobs, at = past.coming(random, length)
    return jobs, at, [past.share(job) for job in jobs.tolist()]


class Likely:
    """What is likely at a moment, for some jobs that run or wait then."""

    def __init__(self, queue: QueueLog, moment: float, jobs: Sequence[tuple[Kind, Submission]]) -> None:
        self._queue, self._moment, self._jobs = queue, moment, jobs
        self._past = queue.history.before(moment)

    @classmethod
    def now(cls, queue: QueueLog, jobs: Sequence[Submission]) -> Likely:
        """The same for the jobs that are listed now."""
        return cls(queue, queue.now, [(queue.kind_of(job), job) for job in jobs])

    def longer(self, user: str, share: float) -> float:
        """The share of the user's jobs that used more than such a share of their limits."""
        return self._past.longer(self._queue.user(user), share)

    def drawn(self, seed: int, length: float) -> tuple[RunTime, list[Submission]]:
        """A draw: how long jobs run in all, and the jobs that come in such a time."""
        random = np.random.default_rng(seed)
        numbers, at, known = coming(self._past, self._queue.history, length, random)
        kinds = [self._queue.history.kind(number) for number in numbers.tolist()]
        now = [
            (kind, max(self._moment - job.started, 0.0) if job.runs and job.started is not None else 0.0)
            for kind, job in self._jobs
        ]
        drawn = self._past.drawn(random, [*now, *((kind, 0.0) for kind in kinds)])
        shares = {job.id: share for (_, job), share in zip(self._jobs, drawn, strict=False)}
        further: list[Submission] = []
        rest = zip(numbers.tolist(), at.tolist(), known, drawn[len(now) :], strict=True)
        for place, (number, later, share, other) in enumerate(rest):
            if (job := self._queue.job(number)) is not None:
                name = f"next{place}"
                further.append(_at(job, name, self._moment, later))
                shares[name] = other if share is None else share

        def run_time(job: Submission, ran: float) -> float:
            return min(shares[job.id], 1.0) * limit_of(job)

        return run_time, further


def _at(job: Submission, name: str, now: float, later: float) -> Submission:
    """A job of the past that is submitted later."""
    fields = {**job.fields, "priority": None}
    fields.pop("id", None)
    return replace(
        job, id=name, name=name, at=later, eligible=now + later, dependency="", array="", fields=fields
    )


def lowest_last(jobs: Sequence[Submission], further: Sequence[Submission]) -> list[Submission]:
    """Jobs that come, each with a lower priority than all before, where nothing else tells of priorities."""
    lowest = min((job.fields["priority"] for job in jobs if not job.runs and not job.is_held), default=inf)
    first = 1 << 31 if lowest == inf else int(lowest)
    return [
        replace(job, fields={**job.fields, "priority": max(first - place, 1)})
        for place, job in enumerate(further, start=1)
    ]
