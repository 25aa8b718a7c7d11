"""Whose bag it is: users who come, stay for a session, return, and leave after some weeks or months.

Each bag belongs to the user of the last bag, or to that of some bags before, or to any user, in proportion to
how many bags of that class of sizes each has in the log (:class:`Recurrence`). Thus at any time few users
submit most of the jobs, and they change: Feitelson (2007) calls this locality of sampling. How likely the
user of the last bag goes on depends on how long ago that was.
"""

from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.workload.description.jobs import DELTA, Bags
from batsched_py.workload.models.shapes import BAG_CLASSES, bag_classes, is_large
from batsched_py.workload.swf.log import Floats, Integers, Random

#: Classes of steps: 1, 2, 3, 4, 5 to 8, 9 to 16, ... Each begins after the end of the one before.
_ENDS: Final = (0, 1, 2, 3, 4, *(2**power for power in range(3, 14)))
_LAGS: Final = 80
#: From how many steps of a class its mean is computed.
_SAMPLES: Final = 16
#: Fewer labels tell nothing.
_FEWEST: Final = 8
_LITTLE: Final = 1e-9


class Recurrence(Struct):
    """Which of the labels before comes again, if one does.

    The discrete autoregressive process of Jacobs and Lewis (1978): each label of a series is that of d
    steps before, with a probability for each d, else a new one. It has the distribution of the new ones,
    whatever the probabilities are, and how often labels d steps apart are the same follows from them as
    in any autoregressive process (the equations of Yule and Walker). So the probabilities are those with
    which labels recur as often as in the log, from one step to thousands: users who stay for a session,
    return the next day, and leave after some months.
    """

    new: float
    """Share of the labels that are new."""
    last: list[float]
    """For each situation, how likely it is the last one."""
    others: list[float]
    """If it is not, how likely it is that of 2 steps before, 3, 4, 5 to 8, 9 to 16, ..."""


def fit_recurrence(
    labels: Integers, series: Integers, situations: Integers, count: int, by_chance: float = 0.0
) -> Recurrence:
    """Learn from labels that belong to one or more series, in order of time.

    Each label has one of ``count`` situations. ``by_chance`` is how likely two new labels are the same.
    """
    from scipy.optimize import nnls  # type: ignore[import-untyped]

    if len(labels) < _FEWEST or by_chance == 1:
        return Recurrence(1.0, [0.0] * count, [1.0] + [0.0] * (len(_ENDS) - 3))
    order = np.argsort(series, kind="stable")
    labels, series, situations = labels[order], series[order], situations[order]
    longest = max(min(_ENDS[-1], len(labels) // 4), 1)
    lags = np.unique(np.round(np.geomspace(1, longest, _LAGS)).astype(np.int64))
    every = np.ones(len(labels), dtype=bool)
    same = np.array([_same(labels, series, lag, every) for lag in lags.tolist()])
    known = np.clip((same - by_chance) / (1 - by_chance), 0, 1)
    columns = np.array([_recurring(lags, known, end, next_end) for end, next_end in pairwise(_ENDS)])
    chances = nnls(columns.T, known)[0]
    new = float(np.clip(1 - chances.sum(), 0.001, 1))
    others = chances[1:] / max(chances[1:].sum(), _LITTLE)
    by_others = float(others @ columns[1:, 0])
    last = []
    for situation in range(count):
        again = _same(labels, series, 1, situations == situation)
        again = (again - by_chance) / (1 - by_chance) / (1 - new + _LITTLE)
        last.append(float(np.clip((again - by_others) / (1 - by_others + _LITTLE), 0, 1)))
    return Recurrence(round(new, 5), np.round(last, 5).tolist(), np.round(others, 5).tolist())


def draw_steps(recurrence: Recurrence, situations: Integers, random: Random) -> Integers:
    """For each label, how many steps before the one is that it repeats, or 0 if it is a new one."""
    count = len(situations)
    ends = np.array(_ENDS[1:])
    cumulated = np.cumsum(recurrence.others)
    classes = np.searchsorted(cumulated, random.random(count) * cumulated[-1], side="right")
    classes = np.minimum(classes, len(ends) - 2)
    steps = ends[classes] + 1 + (random.random(count) * np.diff(ends)[classes]).astype(np.int64)
    steps = np.where(random.random(count) < np.array(recurrence.last)[situations], 1, steps)
    return np.where(random.random(count) < recurrence.new, 0, steps)


def _same(labels: Integers, series: Integers, lag: int, chosen: NDArray[np.bool_]) -> float:
    """How likely chosen labels are the same as those of their series that are so many steps before."""
    inside = chosen[lag:] & (series[lag:] == series[:-lag])
    return float(np.mean((labels[lag:] == labels[:-lag])[inside])) if inside.any() else 0.0


def _recurring(lags: Integers, known: Floats, end: int, next_end: int) -> Floats:
    """How much labels recur at each lag from a label that is some steps before: the mean over a class."""
    steps = np.unique(np.round(np.linspace(end + 1, next_end, _SAMPLES)))
    between = np.abs(lags - steps[:, None])
    found = np.interp(np.log(np.maximum(between, 1)), np.log(lags), known)
    return np.asarray(np.where(between == 0, 1.0, found).mean(axis=0))


#: How long ago the last bag may be: up to delta, up to so many seconds, or longer.
_OWNER_BREAKS: Final = (300.0, 900.0, 3600.0)
_OWNER_SITUATIONS: Final = len(_OWNER_BREAKS) + 2


class Owners(Struct):
    """The parameters of who submits."""

    recurrence: Recurrence
    """Among all bags."""
    of_large_bags: Recurrence
    """Among the large bags alone."""
    bags: list[list[int]]
    """For each class of bags, how many each user has; users count from 1."""
    groups: list[int]
    """The group of each user."""


def fit_owners(submit: Floats, users: Integers, groups: Integers, bags: Bags, delta: float = DELTA) -> Owners:
    """Learn from the bags of a log."""
    _, first, codes = np.unique(users, return_index=True, return_inverse=True)
    place = np.empty(len(first), dtype=np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    owners = place[codes][bags.order[bags.starts]]
    owned = np.zeros((BAG_CLASSES, len(first)), dtype=np.int64)
    np.add.at(owned, (bag_classes(bags.sizes), owners), 1)
    shares = owned.sum(axis=0) / owned.sum()
    by_chance = float((shares**2).sum())
    large, situations = is_large(bags), _owner_situations(submit, bags, delta)
    one = np.zeros(len(owners), dtype=np.int64)
    return Owners(
        recurrence=fit_recurrence(owners, one, situations, _OWNER_SITUATIONS, by_chance),
        of_large_bags=fit_recurrence(owners[large], one[large], one[large], 1, by_chance),
        bags=owned.tolist(),
        groups=groups[np.sort(first)].tolist(),
    )


def draw_owners(owners: Owners, submit: Floats, bags: Bags, random: Random, delta: float = DELTA) -> Integers:
    """The user of each bag."""
    large = is_large(bags)
    steps = draw_steps(owners.recurrence, _owner_situations(submit, bags, delta), random)
    steps[large] = draw_steps(owners.of_large_bags, np.zeros(int(large.sum()), dtype=np.int64), random)
    anyone = _any_users(owners, bags, random).tolist()
    chosen: list[int] = []
    with_large_bags: list[int] = []
    for user, step, many in zip(anyone, steps.tolist(), large.tolist(), strict=True):
        before = with_large_bags if many else chosen
        owner = before[-step] if 0 < step <= len(before) else user
        chosen.append(owner)
        if many:
            with_large_bags.append(owner)
    return np.array(chosen) + 1


def _any_users(owners: Owners, bags: Bags, random: Random) -> Integers:
    """For each bag, any user, by how many such bags each has."""
    users = np.zeros(len(bags.sizes), dtype=np.int64)
    classes = bag_classes(bags.sizes)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        weights = np.cumsum(owners.bags[each] if any(owners.bags[each]) else np.sum(owners.bags, axis=0))
        users[members] = np.searchsorted(weights, random.random(len(members)) * weights[-1], side="right")
    return users


def _owner_situations(submit: Floats, bags: Bags, delta: float) -> Integers:
    """For each bag, the class of how long ago the last one was."""
    gaps = bags.first(submit)[1:] - bags.last(submit)[:-1]
    return np.append(_OWNER_SITUATIONS - 1, np.searchsorted([delta, *_OWNER_BREAKS], gaps))


#: How long ago the user's last bag may be: up to delta, up to so many seconds, or longer.
_PROGRAM_BREAKS: Final = (900.0, 3600.0, 43200.0)
_PROGRAM_SITUATIONS: Final = len(_PROGRAM_BREAKS) + 3


class Programs(Struct):
    """The parameters of what users run again.

    What users run again: each bag is of a program, with one size, one requested time and similar run
    times.

    Some programs of a user are run once, more or less often by each user. Among the other bags of a user
    each is of the program of the last one, or of that of some bags before, or of a new program
    (:class:`Recurrence`). How likely the last program goes on depends on how long ago the user's last bag
    was. A bag that follows the user's last one within delta, with none of others in between, has another
    program: else both would be one bag.
    """

    once: list[float]
    """For each user, which share of the small bags is of a program that is run once."""
    recurrence: Recurrence
    """Of the programs of the other bags."""
    of_large_bags: Recurrence
    """Of the programs of large bags, among these alone."""


def fit_programs(
    submit: Floats, users: Integers, keys: Integers, bags: Bags, delta: float = DELTA
) -> Programs:
    """Learn from the bags of a log, given the user and the number of the program of each bag."""
    large = is_large(bags)
    again = (np.bincount(keys)[keys] > 1) | large
    situations = _program_situations(submit, users, bags, delta)
    _, first, codes, count = np.unique(users, return_index=True, return_inverse=True, return_counts=True)
    once = 1 - np.bincount(codes, again) / count
    one = np.zeros(int(large.sum()), dtype=np.int64)
    return Programs(
        once=np.round(once[np.argsort(first)], 5).tolist(),
        recurrence=fit_recurrence(keys[again], users[again], situations[again], _PROGRAM_SITUATIONS),
        of_large_bags=fit_recurrence(keys[large], users[large], one, 1),
    )


def draw_programs(
    programs: Programs, submit: Floats, users: Integers, bags: Bags, random: Random, delta: float = DELTA
) -> Integers:
    """The program of each bag, as numbers from 0; no two users share one."""
    situations = _program_situations(submit, users, bags, delta)
    large = is_large(bags)
    steps = draw_steps(programs.recurrence, situations, random)
    once = random.random(len(users)) < np.array(programs.once)[users - 1]
    once[large] = False
    steps[once] = 0
    steps[large] = draw_steps(programs.of_large_bags, np.zeros(int(large.sum()), dtype=np.int64), random)
    used: dict[tuple[int, bool], list[int]] = {}
    last: dict[int, int] = {}
    chosen = []
    count = 0
    columns = (users, steps, once, large, situations == 0)
    for user, step, alone, many, other in zip(*(column.tolist() for column in columns), strict=True):
        before = used.setdefault((user, many), [])
        place = 1 + (step - 1) % len(before) if step and before else 0
        while other and 0 < place <= len(before) and before[-place] == last[user]:
            place += 1
        if 0 < place <= len(before):
            program = before[-place]
        else:
            program = count
            count += 1
        if not alone:
            before.append(program)
        if many:
            used.setdefault((user, False), []).append(program)
        last[user] = program
        chosen.append(program)
    return np.array(chosen)


def _program_situations(submit: Floats, users: Integers, bags: Bags, delta: float) -> Integers:
    """For each bag, the class of how long ago its user's last one was; 0 if it follows that within delta."""
    starts, lasts = bags.first(submit), bags.last(submit)
    order = np.argsort(users, kind="stable")
    same = np.diff(users[order]) == 0
    since = np.full(len(users), np.inf)
    since[order[1:]] = np.where(same, starts[order[1:]] - lasts[order[:-1]], np.inf)
    situations = 1 + np.searchsorted([delta, *_PROGRAM_BREAKS], since)
    follows = np.append(False, (np.diff(users) == 0) & (starts[1:] - lasts[:-1] <= delta))
    return np.where(follows, 0, situations)
