"""Whether a run has a steady state: then its means say something that does not depend on its length.

Where more work arrives than the machine can do under a policy, the queue grows until arrivals end, or until
there is less again: a mean wait tells how long the log is, or when it was busy. This is seen in the backlog,
the work of all waiting jobs over time: that of a steady run falls below half of its mean again and again, or
is about as large in each part of the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from batsched_py.analysis.outcome import Outcome

    Floats = NDArray[np.float64]

#: The backlog is looked at so many times, at equal distances, from the first submission to the last.
LOOKS: Final = 2000

#: A run with fewer jobs is too short to be called one or the other.
FEWEST_JOBS: Final = 200

#: The backlog of a run that is not steady is above half of its mean for this share of the time at once, ...
LONGEST: Final = 0.5
#: ... and the mean backlog of the fifths of its time differs by more than this factor, ...
GROWTH: Final = 2.0
#: ... by so much work that the whole machine is busy with it for more than this share of the time.
WORTH: Final = 0.01


class Steadiness(Struct, frozen=True, omit_defaults=True):
    """What tells whether a run is steady; loads as shares of the machine, waits in seconds."""

    offered: float
    """The work of all jobs over what the machine could do between the first submission and the last."""
    usable: float
    """The share of the machine in use while jobs waited; of the whole time, if none ever did."""
    longest: float
    """The longest time for which the backlog is above half of its mean, as a share of the whole time."""
    first_wait: float
    """The mean wait of the jobs that were submitted in the first half of this time."""
    second_wait: float
    backlogs: tuple[float, ...] = ()
    """The mean backlog in each fifth of this time, in seconds of the whole machine."""
    span: float = 0.0
    jobs: int = 0

    @property
    def is_steady(self) -> bool:
        """Whether means over this run make sense; so they do as long as nothing shows that they do not."""
        least, most = min(self.backlogs, default=0.0), max(self.backlogs, default=0.0)
        return (
            self.jobs < FEWEST_JOBS
            or self.longest <= LONGEST
            or most <= GROWTH * least
            or most - least <= WORTH * self.span
        )

    def __str__(self) -> str:
        loads = f"offered load {self.offered:.0%}, used while jobs wait {self.usable:.0%}"
        queue = f"a backlog lasts for {self.longest:.0%} of the time"
        waits = (
            f"mean wait {self.first_wait / 3600:.1f} h in the first half, {self.second_wait / 3600:.1f} h "
        )
        return f"{loads}; {queue}; {waits}in the second"


def steadiness(outcome: Outcome) -> Steadiness | None:
    """Whether a run is steady; none if it has no two submissions of jobs that were executed."""
    import numpy as np

    jobs = outcome.ran
    submitted, begun, ended = (jobs[column] for column in ("submission_time", "starting_time", "finish_time"))
    if not len(jobs) or submitted.max() <= submitted.min() or not outcome.machine_size:
        return None
    first, span = float(submitted.min()), float(submitted.max() - submitted.min())
    work = np.maximum(ended - begun, 0.0) * outcome.nb_held / outcome.machine_size
    looks = np.linspace(first, first + span, LOOKS + 1)
    one, shares = np.ones(len(jobs)), outcome.nb_held / outcome.machine_size
    work_in, jobs_in = _sums(submitted, looks, work, one)
    work_out, jobs_out, busy_since, begins = _sums(begun, looks, work, one, shares, shares * begun)
    busy_until, ends = _sums(ended, looks, shares, shares * ended)
    backlog = work_in - work_out
    waiting = jobs_in > jobs_out
    begins, ends = looks * busy_since - begins, looks * busy_until - ends
    used = begins - ends  # seconds of the whole machine, up to each time that is looked at
    is_early = submitted < first + span / 2
    wait = begun - submitted
    busy = waiting[1:] & waiting[:-1]
    return Steadiness(
        offered=float(work.sum()) / span,
        usable=float(np.diff(used)[busy].mean() if busy.any() else used[-1] / LOOKS) * LOOKS / span,
        longest=_longest(backlog > backlog.mean() / 2),
        first_wait=float(wait[is_early].mean()),
        second_wait=float(wait[~is_early].mean()),
        backlogs=tuple(round(float(each.mean()), 3) for each in np.array_split(backlog, 5)),
        span=span,
        jobs=len(jobs),
    )


def _sums(times: Floats, looks: Floats, *amounts: Floats) -> Iterator[Floats]:
    """The sums of amounts that come at some times, up to each time that is looked at."""
    import numpy as np

    order = np.argsort(times, kind="stable")
    places = np.searchsorted(times[order], looks, side="right")
    for each in amounts:
        sums: Floats = np.concatenate([[0.0], np.cumsum(each[order])])
        yield sums[places]


def _longest(found: NDArray[np.bool_]) -> float:
    """The longest row of looks that all find something, as a share of all looks."""
    import numpy as np

    others = np.flatnonzero(~np.concatenate([[False], found, [False]]))
    return float(np.diff(others).max() - 1) / len(found)
