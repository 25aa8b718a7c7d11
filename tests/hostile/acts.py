"""Hostile acts of policies on everything that they are handed, made from tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import inf, nan
from typing import Any

from batsched_py.schedulers import Cluster
from batsched_py.testing import Workbench, job

Act = Callable[[Cluster], object]

#: What a policy is handed, by how it gets at it when jobs wait and run.
HANDED: dict[str, Callable[[Any], Any]] = {
    "cluster": lambda cluster: cluster,
    "queue": lambda cluster: cluster.queue,
    "running": lambda cluster: cluster.running,
    "job": lambda cluster: cluster.queue.head,
    "extra": lambda cluster: cluster.queue.head.extra,
    "running job": lambda cluster: next(iter(cluster.running)),
    "its hosts": lambda cluster: next(iter(cluster.running)).hosts,
    "free": lambda cluster: cluster.free,
    "reservation": lambda cluster: cluster.reservation(cluster.queue.head),
    "profile": lambda cluster: cluster.profile(),
    "plan": lambda cluster: cluster.plan(),
    "columns": lambda cluster: cluster.queue.first(9),
    "users": lambda cluster: cluster.queue.users,
    "settings": lambda cluster: cluster.settings,
    "events": lambda cluster: cluster.events,
    "decided": lambda cluster: cluster.decided,
}

#: Arguments that methods do not have, or not of these kinds.
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "nothing": ((), {}),
    "None": ((None,), {}),
    "an int": ((5,), {}),
    "a text": (("x",), {}),
    "nan": ((nan,), {}),
    "a list": (([],), {}),
    "an odd object": ((object,), {}),
    "huge numbers": ((2**70, -(2**63), 10**400), {}),
    "negative numbers": ((-(2**63), -1, -1), {}),
    "infinities": ((-inf, inf, inf), {}),
    "fractions": ((Fraction(1, 3), Fraction(2, 3), Fraction(1, 3)), {}),
    "five of them": ((1, 2, 3, 4, 5), {}),
    "a wrong name": ((), {"nonsense": 1}),
}


def names_of(what: str) -> list[str]:
    """The public attributes of what a policy is handed."""
    bench = Workbench(4)
    bench.start(job("a", size=3))
    bench.submit(job("b", size=2, user="u"))
    return [name for name in dir(HANDED[what](bench.cluster)) if not name.startswith("_")]


def changes(what: str) -> Iterator[tuple[str, Act]]:
    """Sets and deletes each attribute, and one that there is not."""
    get = HANDED[what]
    for name in [*names_of(what), "nonsense"]:
        yield f"{what}.{name} = None", lambda cluster, name=name: setattr(get(cluster), name, None)
        yield f"del {what}.{name}", lambda cluster, name=name: delattr(get(cluster), name)


def calls(what: str) -> Iterator[tuple[str, Act]]:
    """Calls each method with arguments of all kinds."""
    get = HANDED[what]
    for name in names_of(what):
        for kind, (given, named) in ARGUMENTS.items():
            yield (
                f"{what}.{name}({kind})",
                lambda cluster, name=name, given=given, named=named: called(
                    getattr(get(cluster), name), given, named
                ),
            )


def called(method: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Call a method, and go through what it gives."""
    if callable(method):
        found = method(*given, **named)
        if hasattr(found, "__next__"):
            list(found)


def operations(what: str) -> Iterator[tuple[str, Act]]:
    """What any object may be used for, whether it makes sense or not."""
    import copy
    import pickle

    get = HANDED[what]
    for name, use in {
        "repr": repr,
        "copy": copy.copy,
        "deep copy": copy.deepcopy,
        "pickle": pickle.dumps,
        "length": len,
        "iteration": list,
        "first item": lambda thing: thing[0],
        "call": lambda thing: thing(),
        "item set": lambda thing: thing.__setitem__(0, None),
        "a member": lambda thing: 5 in thing,
        "hash": hash,
        "number": float,
        "sum": lambda thing: thing + thing,
        "comparison": lambda thing: thing < thing,
        "raw attribute": lambda thing: object.__setattr__(thing, "now", -1.0),
    }.items():
        yield f"{name} of {what}", lambda cluster, use=use: use(get(cluster))


#: All of them, by what is done.
ACTS: dict[str, dict[str, Act]] = {
    what: dict(one for family in (changes, calls, operations) for one in family(what)) for what in HANDED
}
