"""What users run again: each bag is of a program, with one size, one requested time and similar run times.

Some programs of a user are run once, more or less often by each user. Among the other bags of a user each is
of the program of the last one, or of that of some bags before, or of a new program (``recurrence``). How
likely the last program goes on depends on how long ago the user's last bag was. A bag that follows the user's
last one within delta, with none of others in between, has another program: else both would be one bag.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.bags import DELTA, Bags
from batsched_py.workload.models.recurrence import Recurrence, draw_steps, fit_recurrence
from batsched_py.workload.models.shapes import is_large
from batsched_py.workload.swf.log import Floats, Integers

#: How long ago the user's last bag may be: up to delta, up to so many seconds, or longer.
_BREAKS: Final = (900.0, 3600.0, 43200.0)
_SITUATIONS: Final = len(_BREAKS) + 3


class Programs(Struct):
    """The parameters of what users run again."""

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
    situations = _situations(submit, users, bags, delta)
    _, first, codes, count = np.unique(users, return_index=True, return_inverse=True, return_counts=True)
    once = 1 - np.bincount(codes, again) / count
    one = np.zeros(int(large.sum()), dtype=np.int64)
    return Programs(
        once=np.round(once[np.argsort(first)], 5).tolist(),
        recurrence=fit_recurrence(keys[again], users[again], situations[again], _SITUATIONS),
        of_large_bags=fit_recurrence(keys[large], users[large], one, 1),
    )


def draw_programs(
    programs: Programs,
    submit: Floats,
    users: Integers,
    bags: Bags,
    random: np.random.Generator,
    delta: float = DELTA,
) -> Integers:
    """The program of each bag, as numbers from 0; no two users share one."""
    situations = _situations(submit, users, bags, delta)
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


def _situations(submit: Floats, users: Integers, bags: Bags, delta: float) -> Integers:
    """For each bag, the class of how long ago its user's last one was; 0 if it follows that within delta."""
    starts, lasts = bags.first(submit), bags.last(submit)
    order = np.argsort(users, kind="stable")
    same = np.diff(users[order]) == 0
    since = np.full(len(users), np.inf)
    since[order[1:]] = np.where(same, starts[order[1:]] - lasts[order[:-1]], np.inf)
    situations = 1 + np.searchsorted([delta, *_BREAKS], since)
    follows = np.append(False, (np.diff(users) == 0) & (starts[1:] - lasts[:-1] <= delta))
    return np.where(follows, 0, situations)
