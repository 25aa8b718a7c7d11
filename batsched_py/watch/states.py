"""In which state hosts and jobs are, and what comes from outside, in a few words."""

from __future__ import annotations

from batsched_py.ledger.ledger import Ledger
from batsched_py.outside.known import Known
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.malleable import malleable_of
from batsched_py.protocol.shapes import shapes_of


def host_states(ledger: Ledger, now: float) -> dict[str, HostSet]:
    """The hosts in each state; one that is free may be closed now, or reserved for some users."""
    free, closed, reserved = ledger.free.hosts(), HostSet(), HostSet()
    closures = None if ledger.nodes is None else ledger.nodes.closures
    for closure in () if closures is None else closures.all:
        if closure.start <= now < closure.end and closure.users:
            reserved = reserved | closure.hosts & free
        elif closure.start <= now < closure.end:
            closed = closed | closure.hosts & free
    return {
        "free": free - closed - reserved,
        "busy": ledger.busy(),
        "away": ledger.unavailable,
        "closed": closed,
        "reserved": reserved - closed,
        "asleep": ledger.asleep - ledger.switching,
        "switching": ledger.switching,
    }


def waiting_text(ledger: Ledger) -> str:
    """How many jobs wait: in the queue, for other jobs, and for cheap hours."""
    words = [f"{len(ledger.queue):,} waiting"]
    if ledger.holds is not None and ledger.holds.held:
        words.append(f"{len(ledger.holds.held):,} held")
    if ledger.deferred:
        words.append(f"{len(ledger.deferred):,} deferred")
    return ", ".join(words)


def sizes_text(job: Job) -> str:
    """Which other sizes a job can have; nothing if it is rigid.

    >>> sizes_text(Job("w0!1", 0.0, 4, 900.0, "p", {"malleable": {"min": 2, "max": 16}}))
    ' (2-16)'
    """
    if (malleable := malleable_of(job)) is not None:
        return f" ({malleable.least}-{malleable.most})"
    sizes = "|".join(str(shape.job.size) for shape in shapes_of(job))
    return sizes and f" ({sizes})"


def outside_text(outside: Known, now: float) -> str:
    """What comes from outside, as it is now; nothing if nothing is known."""
    curves = (
        ("price {:g}", outside.price),
        ("carbon {:g} g/kWh", outside.carbon),
        ("{:g} °C", outside.temperature),
        ("at most {:,g} W", outside.power_cap),
    )
    return "   ".join(words.format(curve.at(now)) for words, curve in curves if curve is not None)
