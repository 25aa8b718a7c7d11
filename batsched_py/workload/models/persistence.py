"""How users stay with what they do: hidden values of bags, in whose order run times and sizes are given out.

Each bag has a hidden value that is a sum of five parts: one of its user for good, one of what the user does
at present, which changes slowly from bag to bag, one of what all users do at present, one of its program, and
one of its own. How much each part varies is told by the log: by how alike bags of different users are that
follow each other, successive bags of a user that have different programs, or the same, and bags of a user
that are far apart. The shortest run times go to the bags of the least values, and so on. Thus run times
persist as they do in the log, whatever their distribution is.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.swf.log import Floats, Integers

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
    random: np.random.Generator,
) -> Floats:
    """A hidden value for each bag, given its user, program and number of jobs, and how full its day is."""
    crowding = min(persistence.crowding, persistence.everyone)
    parts = (
        (persistence.user, levels(users, jobs, random)),
        (persistence.present, _slowly(users, persistence.keeping, random)),
        (crowding, -fullness),
        (
            persistence.everyone - crowding,
            _slowly(np.zeros_like(users), persistence.everyones_keeping, random),
        ),
        (persistence.program, levels(programs, jobs, random)),
    )
    own = max(1 - sum(share for share, _ in parts), 0.0)
    values = np.sqrt(own) * random.standard_normal(len(users))
    for share, part in parts:
        values += np.sqrt(share) * part
    return values


def levels(whose: Integers, weights: Integers, random: np.random.Generator) -> Floats:
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
    likeness: float, users: Integers, programs: Integers, jobs: Integers, random: np.random.Generator
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


def _slowly(series: Integers, keeping: float, random: np.random.Generator) -> Floats:
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


def _mean(products: NDArray[np.float64]) -> float:
    return float(products.mean()) if len(products) else 0.0
