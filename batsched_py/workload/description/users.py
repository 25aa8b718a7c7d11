"""Who submits: the busiest users and their sessions, flurries, and how alike the jobs of a time are."""

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.jobs import Distribution, bag_keys, distribution, requested
from batsched_py.workload.description.over_time import intervals
from batsched_py.workload.swf.log import WEEK, Integers, SwfLog

#: A user who has not submitted for this many seconds has left (Zakay and Feitelson 2012).
SILENCE: Final = 3600.0
_SHOWN_USERS: Final = 10


class BusyUser(Struct, frozen=True, kw_only=True):
    """One of the users with the most jobs."""

    user: int
    jobs: int
    share_of_jobs: float
    share_of_work: float


class Users(Struct, frozen=True, kw_only=True):
    """The users of a log and how they work, as far as jobs say whose they are."""

    users: int
    unknown: int
    """How many jobs do not say whose they are; all the rest here is about the others."""
    busiest: list[BusyUser]
    half_of_jobs: int
    """How few users submit half of the jobs."""
    sessions: int
    """A session is a longest run of submissions of a user with less than an hour between any two."""
    jobs_per_session: Distribution
    session_durations: Distribution
    """From the first to the last submission of a session."""
    breaks: Distribution | None
    """From the last submission of a session to the first of the same user's next one."""


def users(log: SwfLog) -> Users | None:
    """Describe the users of a log; none if no job says whose it is."""
    whole, log = log, log.select(log.user >= 0)
    if not len(log):
        return None
    numbers, who = np.unique(log.user, return_inverse=True)
    jobs = np.bincount(who)
    work = np.bincount(who, log.run_time * np.maximum(log.processors, 0))
    busiest = np.argsort(-jobs, kind="stable")
    order = np.lexsort((log.submit, who))
    submit, who = log.submit[order], who[order]
    gaps = np.diff(submit)
    same_user = who[1:] == who[:-1]
    opens = np.concatenate([[True], ~same_user | (gaps >= SILENCE)])
    firsts = np.flatnonzero(opens)
    lasts = np.append(firsts[1:], len(submit)) - 1
    jobs_per_session = distribution(lasts - firsts + 1)
    durations = distribution(submit[lasts] - submit[firsts])
    assert jobs_per_session is not None and durations is not None
    return Users(
        users=len(numbers),
        unknown=len(whole) - len(log),
        busiest=[
            BusyUser(
                user=int(numbers[i]),
                jobs=int(jobs[i]),
                share_of_jobs=float(jobs[i] / jobs.sum()),
                share_of_work=float(work[i] / work.sum()) if work.any() else 0.0,
            )
            for i in busiest[:_SHOWN_USERS]
        ],
        half_of_jobs=int(np.searchsorted(np.cumsum(jobs[busiest]), jobs.sum() / 2)) + 1,
        sessions=len(firsts),
        jobs_per_session=jobs_per_session,
        session_durations=durations,
        breaks=distribution(gaps[same_user & (gaps >= SILENCE)]),
    )


SHARE: Final = 0.5
FACTOR: Final = 3.0
DOMINATING_SHARE: Final = 0.25
_LISTED_USERS: Final = 5


class Flurry(Struct, frozen=True, kw_only=True):
    """A surge of one user."""

    user: int
    first_week: int
    """Weeks count from 0, which begins with the first submission."""
    last_week: int
    jobs: int
    """Jobs of the user in these weeks."""
    share_of_jobs: float
    """Their share of all jobs of these weeks."""


class DominatingUser(Struct, frozen=True, kw_only=True):
    """A user whose jobs are a large part of the whole log."""

    user: int
    jobs: int
    share_of_jobs: float


class Flurries(Struct, frozen=True, kw_only=True):
    """What single users do to the statistics of a log.

    The rule is explicit, so that a paper can state it. Time is cut into weeks from the first submission.
    A *flurry* is a week in which one user submits at least half of the jobs, and at least three times as
    many as the median week has in all; consecutive such weeks of a user are one flurry. A *dominating
    user* submits at least a quarter of all jobs of the log. Both numbers can be chosen.
    """

    flurries: list[Flurry]
    dominating: list[DominatingUser]
    weekly: dict[str, list[int]]
    """Jobs in each week of the users that stand out or are the busiest, by number, then of all ``others``."""


def flurries(log: SwfLog) -> Flurries:
    """Find the flurries and dominating users of a log."""
    found = find_flurries(log)
    weeks = intervals(log.submit, WEEK)
    count = int(weeks.max()) + 1
    numbers, jobs = np.unique(log.user[log.user >= 0], return_counts=True)
    busiest = numbers[np.argsort(-jobs, kind="stable")].tolist()
    shown = list(dict.fromkeys([*(flurry.user for flurry in found), *busiest]))[:_LISTED_USERS]
    whose = {str(user): log.user == user for user in shown} | {"others": ~np.isin(log.user, shown)}
    weekly = {name: np.bincount(weeks[mine], minlength=count).tolist() for name, mine in whose.items()}
    return Flurries(flurries=found, dominating=find_dominating(log), weekly=weekly)


def find_flurries(log: SwfLog, share: float = SHARE, factor: float = FACTOR) -> list[Flurry]:
    """The flurries of a log, in the order of their weeks; jobs without a user are never a flurry."""
    weeks = intervals(log.submit, WEEK)
    per_week = np.bincount(weeks)
    numbers, who = np.unique(log.user, return_inverse=True)
    table = np.zeros((len(numbers), len(per_week)), dtype=np.int64)
    np.add.at(table, (who, weeks), 1)
    surge = (table >= share * per_week) & (table >= factor * np.median(per_week)) & (numbers >= 0)[:, None]
    found = []
    for row in np.flatnonzero(surge.any(axis=1)).tolist():
        padded = np.concatenate([[0], surge[row].astype(np.int8), [0]])
        firsts, lasts = np.flatnonzero(np.diff(padded) == 1), np.flatnonzero(np.diff(padded) == -1) - 1
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            user, jobs = int(numbers[row]), int(table[row, first : last + 1].sum())
            part = jobs / int(per_week[first : last + 1].sum())
            found.append(Flurry(user=user, first_week=first, last_week=last, jobs=jobs, share_of_jobs=part))
    return sorted(found, key=lambda flurry: (flurry.first_week, flurry.user))


def find_dominating(log: SwfLog, share: float = DOMINATING_SHARE) -> list[DominatingUser]:
    """The users with at least this share of the jobs, busiest first."""
    numbers, jobs = np.unique(log.user, return_counts=True)
    return [
        DominatingUser(user=int(numbers[i]), jobs=int(jobs[i]), share_of_jobs=float(jobs[i] / len(log)))
        for i in np.argsort(-jobs, kind="stable")
        if jobs[i] >= share * len(log) and numbers[i] >= 0
    ]


_BINS: Final = 24
_SEED: Final = 0


class AttributeLocality(Struct, frozen=True, kw_only=True):
    """How far weeks are from the whole log in one attribute."""

    distance: float
    """Mean over weeks, weighted by their jobs, of the total variation distance to the whole log."""
    by_chance: float
    """The same with the jobs in a random order."""


class Locality(Struct, frozen=True, kw_only=True):
    """How much jobs are like those around them.

    Locality of sampling: at any time the jobs are more alike than those of the whole log (Feitelson
    2007).

    For each week the distribution of an attribute is compared with that of the whole log by their total
    variation distance, half the sum of the absolute differences of the shares of each bin: 0 when a week
    is like the whole log, 1 when they have nothing in common. Weeks of few jobs differ from the whole by
    chance, too. So the same is computed with the jobs in a random order, and the ratio of the two is what
    is left.
    """

    run_time: AttributeLocality
    size: AttributeLocality
    user: AttributeLocality | None
    """Of the jobs that say whose they are, if there are any."""
    repetition: float | None
    """Share of the jobs that agree in all attributes of a bag with the same user's previous job."""


def locality(log: SwfLog) -> Locality:
    """Describe the locality of a log."""
    weeks = np.unique(intervals(log.submit, WEEK), return_inverse=True)[1]
    known = log.user >= 0
    order = np.argsort(log.user, kind="stable")
    same_user = (np.diff(log.user[order]) == 0) & known[order][1:]
    again = (np.diff(bag_keys(log)[order]) == 0)[same_user]
    return Locality(
        run_time=_locality(_binned(log.run_time), weeks),
        size=_locality(_binned(requested(log)), weeks),
        user=_locality(np.unique(log.user[known], return_inverse=True)[1], weeks[known])
        if known.any()
        else None,
        repetition=float(np.mean(again)) if len(again) else None,
    )


def _binned(values: NDArray[Any]) -> Integers:
    """The bin of each value; bins have about the same number of values, and equal values share one."""
    borders = np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS))
    return np.searchsorted(borders, values, side="left")


def _locality(bins: Integers, weeks: Integers) -> AttributeLocality:
    shuffled = np.random.default_rng(_SEED).permutation(bins)
    return AttributeLocality(distance=_distance(bins, weeks), by_chance=_distance(shuffled, weeks))


def _distance(bins: Integers, weeks: Integers) -> float:
    count = int(bins.max()) + 1
    table = np.bincount(weeks * count + bins, minlength=(int(weeks.max()) + 1) * count).reshape(-1, count)
    jobs = table.sum(axis=1)
    whole = table.sum(axis=0) / table.sum()
    distances = np.abs(table / jobs[:, None] - whole).sum(axis=1) / 2
    return float(np.average(distances, weights=jobs))
