"""Whose bag it is: users who come, stay for a session, return, and leave after some weeks or months.

Each bag belongs to the user of the last bag, or to that of some bags before, or to any user, in proportion to
how many bags of that class of sizes each has in the log (``recurrence``). Thus at any time few users submit
most of the jobs, and they change: Feitelson (2007) calls this locality of sampling. How likely the user of
the last bag goes on depends on how long ago that was.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.bags import DELTA, Bags
from batsched_py.workload.models.recurrence import Recurrence, draw_steps, fit_recurrence
from batsched_py.workload.models.shapes import BAG_CLASSES, bag_classes, is_large
from batsched_py.workload.swf.log import Floats, Integers

#: How long ago the last bag may be: up to delta, up to so many seconds, or longer.
_BREAKS: Final = (300.0, 900.0, 3600.0)
_SITUATIONS: Final = len(_BREAKS) + 2


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
    large, situations = is_large(bags), _situations(submit, bags, delta)
    one = np.zeros(len(owners), dtype=np.int64)
    return Owners(
        recurrence=fit_recurrence(owners, one, situations, _SITUATIONS, by_chance),
        of_large_bags=fit_recurrence(owners[large], one[large], one[large], 1, by_chance),
        bags=owned.tolist(),
        groups=groups[np.sort(first)].tolist(),
    )


def draw_owners(
    owners: Owners, submit: Floats, bags: Bags, random: np.random.Generator, delta: float = DELTA
) -> Integers:
    """The user of each bag."""
    large = is_large(bags)
    steps = draw_steps(owners.recurrence, _situations(submit, bags, delta), random)
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


def _any_users(owners: Owners, bags: Bags, random: np.random.Generator) -> Integers:
    """For each bag, any user, by how many such bags each has."""
    users = np.zeros(len(bags.sizes), dtype=np.int64)
    classes = bag_classes(bags.sizes)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        weights = np.cumsum(owners.bags[each] if any(owners.bags[each]) else np.sum(owners.bags, axis=0))
        users[members] = np.searchsorted(weights, random.random(len(members)) * weights[-1], side="right")
    return users


def _situations(submit: Floats, bags: Bags, delta: float) -> Integers:
    """For each bag, the class of how long ago the last one was."""
    gaps = bags.first(submit)[1:] - bags.last(submit)[:-1]
    return np.append(_SITUATIONS - 1, np.searchsorted([delta, *_BREAKS], gaps))
