"""Whose bag it is: users who come, stay for a session, and leave, so that a generated log can be replayed.

At any time some users are in a session: they submitted something within the last hour. The next bag belongs
to one of them with the probability that the log shows for so many users; then each has a weight, the product
of how likely the one who submitted last, second last, ... goes on, and of how many bags of that class of
sizes the user has in the log. Else a user begins a session, in proportion to how often each user
opened one with such a bag.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec import Struct

from batsched_py.workload.description.bags import Bags
from batsched_py.workload.description.users import SILENCE
from batsched_py.workload.models.shapes import BAG_CLASSES, bag_classes
from batsched_py.workload.swf.log import Floats, Integers

_MOST_ACTIVE: Final = 16
#: The weight of a user who has no such bag.
_LITTLE: Final = 0.01


class Owners(Struct):
    """The parameters of who submits."""

    stays: list[float]
    """Probability that a bag belongs to a user in a session, when 0, 1, 2, ... users are."""
    ranks: list[float]
    """Then, how likely it is the one who submitted last, second last, ..."""
    bags: list[list[int]]
    """For each class of bags, how many each user has; users count from 1."""
    opens: list[list[int]]
    """For each class of bags, how many sessions each user opened with one; users count from 1."""
    groups: list[int]
    """The group of each user."""


def fit_owners(submit: Floats, users: Integers, groups: Integers, bags: Bags) -> Owners:
    """Learn from the bags of a log."""
    starts = bags.first(submit).tolist()
    lasts = bags.last(submit).tolist()
    numbers, first, codes = np.unique(users, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    owners = place[codes][bags.order[bags.starts]].tolist()
    present, stayed = np.zeros(_MOST_ACTIVE + 1), np.zeros(_MOST_ACTIVE + 1)
    ranks, opens = np.zeros(_MOST_ACTIVE), np.zeros((BAG_CLASSES, len(numbers)), dtype=np.int64)
    active: dict[int, float] = {}
    classes = bag_classes(bags.sizes).tolist()
    owned = np.zeros((BAG_CLASSES, len(numbers)), dtype=np.int64)
    np.add.at(owned, (classes, owners), 1)
    for start, last, owner, bag_class in zip(starts, lasts, owners, classes, strict=True):
        _leave(active, start)
        count = min(len(active), _MOST_ACTIVE)
        present[count] += 1
        if owner in active:
            stayed[count] += 1
            ranks[min(list(reversed(active)).index(owner), _MOST_ACTIVE - 1)] += 1
            del active[owner]
        else:
            opens[bag_class, owner] += 1
        active[owner] = last
    return Owners(
        stays=np.round(stayed / np.maximum(present, 1), 5).tolist(),
        ranks=np.round(ranks / max(ranks.sum(), 1), 5).tolist(),
        bags=owned.tolist(),
        opens=opens.tolist(),
        groups=groups[np.sort(first)].tolist(),
    )


def draw_owners(owners: Owners, submit: Floats, bags: Bags, random: np.random.Generator) -> Integers:
    """The user of each bag."""
    starts = bags.first(submit).tolist()
    lasts = bags.last(submit).tolist()
    count = len(starts)
    newcomers = _newcomers(owners, bags, random).tolist()
    classes = bag_classes(bags.sizes).tolist()
    chances, places = random.random((2, count)).tolist()
    active: dict[int, float] = {}
    chosen = []
    for bag, owner in enumerate(newcomers):
        _leave(active, starts[bag])
        if chances[bag] < owners.stays[min(len(active), _MOST_ACTIVE)]:
            owner = _continuing_user(owners, active, classes[bag], places[bag])
        active.pop(owner, None)
        active[owner] = lasts[bag]
        chosen.append(owner)
    return np.array(chosen) + 1


def _continuing_user(owners: Owners, active: dict[int, float], bag_class: int, place: float) -> int:
    """Which of the users in a session submits a bag of some class; ``place`` is between 0 and 1."""
    users = list(reversed(active))[:_MOST_ACTIVE]
    owned = owners.bags[bag_class]
    weights = [rank * (owned[user] + _LITTLE) for user, rank in zip(users, owners.ranks, strict=False)]
    at = place * sum(weights)
    for user, weight in zip(users, weights, strict=True):
        at -= weight
        if at < 0:
            return user
    return users[-1]


def _newcomers(owners: Owners, bags: Bags, random: np.random.Generator) -> Integers:
    """For each bag, the user who would begin a session with it."""
    users = np.zeros(len(bags.sizes), dtype=np.int64)
    classes = bag_classes(bags.sizes)
    for each in np.unique(classes).tolist():
        members = np.flatnonzero(classes == each)
        weights = np.cumsum(owners.opens[each] if any(owners.opens[each]) else np.sum(owners.opens, axis=0))
        users[members] = np.searchsorted(weights, random.random(len(members)) * weights[-1], side="right")
    return users


def _leave(active: dict[int, float], now: float) -> None:
    """Remove the users who have been silent for too long."""
    for user in [user for user, last in active.items() if now - last >= SILENCE]:
        del active[user]
