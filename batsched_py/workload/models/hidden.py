"""How users stay with what they do: hidden values of bags, in whose order run times and sizes are given out.

Each bag has a hidden value that is a sum of five parts: one of its user for good, one of what the user does
at present, which changes slowly from bag to bag, one of what all users do at present, one of its program, and
one of its own. How much each part varies is told by the log: by how alike bags of different users are that
follow each other, successive bags of a user that have different programs, or the same, and bags of a user
that are far apart. The shortest run times go to the bags of the least values, and so on. Thus run times
persist as they do in the log, whatever their distribution is.
"""

from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.workload.description.jobs import log_run_times
from batsched_py.workload.description.over_time import LAGS, autocorrelation, daily_work, intervals, variation
from batsched_py.workload.models import Columns, Progress
from batsched_py.workload.swf.log import DAY, Floats, Integers, Random

#: How far apart bags are that tell how slowly the present changes.
_APART: Final = 10
_FAR_APART: Final = 100
_KEEPING: Final = 1 - np.geomspace(0.5, 1e-4, 60)


class Persistence(Struct):
    """Shares of the variance of the hidden values; what is left to 1 belongs to the bag."""

    user: float
    present: float
    everyone: float
    program: float
    keeping: float
    """The correlation of what a user is doing from one bag of the user to the next."""
    everyones_keeping: float
    """The correlation of what all are doing from one bag to the next."""
    crowding: float
    """How much of what all are doing is that busy days have shorter jobs: a share of all variance."""


def fit_persistence(values: Floats, users: Integers, programs: Integers, fullness: Floats) -> Persistence:
    """Learn from the hidden values of a log's bags, in order of time.

    Each bag has a user, a program and a day that is more or less full.
    """
    crowding = max(-_mean(values * fullness), 0.0) ** 2
    others = [
        _mean((values[lag:] * values[:-lag])[users[lag:] != users[:-lag]]) for lag in (1, _APART, _FAR_APART)
    ]
    order = np.argsort(users, kind="stable")
    values, users, programs = values[order], users[order], programs[order]
    again, near = _alike(values, users, programs, 1)
    apart = _alike(values, users, programs, _APART)[1]
    near = float(np.clip(near, 0, 1))
    far = float(np.clip(_far(values, users, programs), 0, near))
    everyone = float(np.clip(others[0], 0, near - far))
    return Persistence(
        user=far,
        present=near - far - everyone,
        everyone=everyone,
        program=float(np.clip(again, near, 1)) - near,
        keeping=_keeping(near - far, [_APART], [apart - far]),
        everyones_keeping=_keeping(everyone, [_APART, _FAR_APART], others[1:]),
        crowding=crowding,
    )


def draw_values(
    persistence: Persistence,
    users: Integers,
    programs: Integers,
    jobs: Integers,
    fullness: Floats,
    random: Random,
) -> Floats:
    """A hidden value for each bag, given its user, program and number of jobs, and how full its day is."""
    crowding = min(persistence.crowding, persistence.everyone)
    one = np.zeros_like(users)
    parts = (
        (persistence.user, levels(users, jobs, random)),
        (persistence.present, _slowly(users, persistence.keeping, random)),
        (crowding, -fullness),
        (persistence.everyone - crowding, _slowly(one, persistence.everyones_keeping, random)),
        (persistence.program, levels(programs, jobs, random)),
    )
    own = max(1 - sum(share for share, _ in parts), 0.0)
    values = np.sqrt(own) * random.standard_normal(len(users))
    for share, part in parts:
        values += np.sqrt(share) * part
    return values


def levels(whose: Integers, weights: Integers, random: Random) -> Floats:
    """A normal value for each owner, given to all that is of this owner.

    Weighted by their jobs the values have the mean 0 and the variance 1, even if few owners have most of the
    jobs.
    """
    values = random.standard_normal(int(whose.max()) + 1)[whose]
    values -= np.average(values, weights=weights)
    return values / max(float(np.sqrt(np.average(values**2, weights=weights))), 1e-9)


def likeness_of_programs(values: Floats, users: Integers, programs: Integers) -> float:
    """The correlation of values of a user's successive bags that have different programs."""
    values = (values - values.mean()) / (values.std() or 1.0)
    order = np.argsort(users, kind="stable")
    return float(np.clip(_alike(values[order], users[order], programs[order], 1)[1], 0, 1))


def draw_program_values(
    likeness: float, users: Integers, programs: Integers, jobs: Integers, random: Random
) -> Floats:
    """A hidden value for each program; those of a user's programs are as alike as said."""
    first = np.unique(programs, return_index=True)[1]
    values = np.sqrt(likeness) * levels(users, jobs, random)[first]
    values += np.sqrt(1 - likeness) * random.standard_normal(len(first))
    return values


def normal_scores(ranks: Floats) -> Floats:
    """Standard normal values at ranks between 0 and 1."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(rank) for rank in np.clip(ranks, 1e-6, 1 - 1e-6).tolist()])


def _slowly(series: Integers, keeping: float, random: Random) -> Floats:
    """Normal values that change slowly along each of some series."""
    news = random.standard_normal(len(series)).tolist()
    change = float(np.sqrt(1 - keeping**2))
    now: dict[int, float] = {}
    values = []
    for each, new in zip(series.tolist(), news, strict=True):
        before = now.get(each)
        now[each] = new if before is None else keeping * before + change * new
        values.append(now[each])
    return np.array(values)


def _keeping(share: float, lags: Sequence[int], alike: Sequence[float]) -> float:
    """The correlation from one bag to the next that explains best how alike those of some lags are."""
    expected = share * _KEEPING ** (np.array(lags)[:, None] - 1)
    return float(_KEEPING[((expected - np.array(alike)[:, None]) ** 2).sum(axis=0).argmin()])


def _alike(values: Floats, users: Integers, programs: Integers, apart: int) -> tuple[float, float]:
    """The correlation of a user's bags so far apart, with the same program and with different ones."""
    same_user = users[apart:] == users[:-apart]
    same_program = programs[apart:] == programs[:-apart]
    products = values[apart:] * values[:-apart]
    return _mean(products[same_user & same_program]), _mean(products[same_user & ~same_program])


def _far(values: Floats, users: Integers, programs: Integers) -> float:
    """The correlation of a user's bags with those half of the user's bags later, of different programs."""
    _, count = np.unique(users, return_counts=True)
    here = np.arange(len(users))
    there = here + np.repeat(count // 2, count)
    inside = there < np.repeat(np.cumsum(count), count)
    here, there = here[inside], there[inside]
    return _mean((values[here] * values[there])[programs[here] != programs[there]])


def _mean(products: Floats) -> float:
    return float(products.mean()) if len(products) else 0.0


_MOST_STEPS: Final = 12
#: In so many steps days are compared with those around them less and less.
_STEPS_OF_WEEKS: Final = 7
#: How close to the wanted variation is close enough.
_CLOSE: Final = 1.2
#: How often the last step is halved, so as not to go farther than needed.
_HALVINGS: Final = 3
#: By how much the hidden values of a day with e times the mean work fall in a step, at most.
_LARGEST_STEP: Final = 0.3
#: Days with less than this share of the mean work count as if they had it; work varies at least so much.
_LEAST: Final = 0.1


def make_room(
    values: Floats,
    whose: Integers,
    starts: Floats,
    wanted: float,
    weigh: Callable[[Floats], Floats | Integers],
) -> Floats:
    """The hidden values, lower on days with much, until what days bring varies as wanted.

    Each bag starts at some time and has one of the values: its own, or that of its program. ``weigh`` tells
    how much each bag brings, given the hidden values.

    In a log the work of a day varies less than it would if its jobs had come in any order: a day with
    many jobs has smaller and shorter ones. Users see the queue, and the machine does no more than it can
    (Feitelson calls this self-regulation). So programs of days that ask for more processors than the days
    around them exchange sizes with programs of other days, until the processors of days vary about as in
    the log at most. Then bags of days with more work exchange run times with bags of days with less,
    until the work of days varies as it does in the log. Without the first step the second has more or
    less to do in each generated log, and as it makes the run times of a day alike, their autocorrelation
    would differ much between seeds.
    """
    days = intervals(starts, DAY)
    bags = np.bincount(whose)
    limit = _CLOSE * max(wanted, _LEAST)
    before = values
    for step in range(_MOST_STEPS):
        brought = daily_work(starts, weigh(values))
        found = variation(brought)
        if found <= limit:
            break
        fullness = np.log(np.maximum(brought / brought.mean(), _LEAST))
        fullness -= max(1 - step / _STEPS_OF_WEEKS, 0) * _around(fullness)
        size = min((_CLOSE * found / limit - 1) / 2, _LARGEST_STEP)
        before, values = values, values - size * np.bincount(whose, fullness[days]) / bags
    for _ in range(_HALVINGS if before is not values else 0):
        middle = (before + values) / 2
        if variation(daily_work(starts, weigh(middle))) <= limit:
            values = middle
        else:
            before = middle
    return values


def fullness_of_days(starts: Floats, processors: Integers) -> Floats:
    """For each bag, how much the bags of its day ask for: a logarithm, with the mean 0 and the variance 1."""
    days = intervals(starts, DAY)
    full = np.log(daily_work(starts, processors)[days])
    return (full - full.mean()) / max(float(full.std()), 1e-9)


def _around(values: Floats) -> Floats:
    """For each day the mean of the week around it."""
    days = np.ones(len(values))
    return np.asarray(np.convolve(values, np.ones(7))[3:-3] / np.convolve(days, np.ones(7))[3:-3])


TRIALS: Final = 6
#: How little is corrected where jobs share little.
_RIDGE: Final = 0.01
#: The largest share of all parts but the bag's own.
_MOST: Final = 0.99


def calibrate(
    persistence: Persistence,
    run_times: Floats,
    bags_per_job: float,
    trial: Callable[[Persistence, int], Columns],
    progress: Progress,
) -> Persistence:
    """Correct the parts, if there are enough jobs; ``trial`` generates a log with some parts and a seed.

    Run times follow hidden values by their ranks, so they are less alike than the values are, and how
    much less depends on their distribution and on everything else in the model. So some logs are
    generated when a model is fitted. Where the autocorrelation of the logarithms of run times is not that
    of the log, the parts of the user and of everyone are corrected by what is missing far apart, the part
    of the present by what is missing between, and that of the program by what is missing from one job to
    the next. This is the method of simulated moments. What everyone does fades as slowly as the log's
    autocorrelation does from 10 to 100 jobs apart, or more slowly if bags of different users show it.
    """
    if len(run_times) <= LAGS[-1]:
        return persistence
    wanted = _moments(run_times)
    ratio = float(np.clip(wanted[2] / max(wanted[1], _RIDGE), _RIDGE, 1 - _RIDGE))
    fading = ratio ** (1 / ((LAGS[2] - LAGS[1]) * bags_per_job))
    persistence = replace(persistence, everyones_keeping=max(persistence.everyones_keeping, fading))
    for seed in range(TRIALS):
        jobs = trial(persistence, seed)
        missing = (wanted - _moments(jobs["run_time"])) / (seed + 1)
        near, between, far = (float(np.mean(jobs["user"][lag:] == jobs["user"][:-lag])) for lag in LAGS)
        lasting = persistence.everyones_keeping ** (LAGS[2] * bags_per_job)
        user, everyone = _corrections(missing[2], far, lasting)
        (present,) = _corrections(missing[1] - between * user - everyone, between)
        (program,) = _corrections(missing[0] - near * (user + present) - everyone, near)
        changes = {"program": program, "present": present, "everyone": everyone, "user": user}
        persistence = _corrected(persistence, changes)
        progress(seed + 1, TRIALS)
    return persistence


def _corrections(missing: float, *shared: float) -> list[float]:
    """By how much parts change that jobs share to these degrees, to add together what is missing."""
    scale = missing / (sum(degree**2 for degree in shared) + _RIDGE)
    return [scale * degree for degree in shared]


def _corrected(persistence: Persistence, changes: dict[str, float]) -> Persistence:
    """The corrected parts; none is negative, and together they leave something to the bag.

    If there is too much of them, those that last least become smaller first: ``changes`` are in that order.
    """
    parts = {name: max(float(getattr(persistence, name) + by), 0.0) for name, by in changes.items()}
    excess = sum(parts.values()) - _MOST
    for name, part in parts.items():
        parts[name] = part - float(np.clip(excess, 0, part))
        excess -= part
    return replace(persistence, **parts)


def _moments(run_times: Floats) -> Floats:
    return np.array([autocorrelation(log_run_times(run_times), lag) or 0.0 for lag in LAGS])
