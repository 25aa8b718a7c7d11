"""What a validator is told of a simulation beside its schedule, by the command and by programs alike."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from batsched_py.analysis.conditions import Absence
from batsched_py.analysis.validator import Facts
from batsched_py.experiment import Choice
from batsched_py.outside.closures import read_closures
from batsched_py.outside.curve import Curve, read_curve
from batsched_py.plugins import PYBATSIM
from batsched_py.schedulers import SCHEDULERS, Scheduler, Wrapper
from batsched_py.schedulers.capped import Capped
from batsched_py.simulator.platform import Platform


def facts_of(
    platform: Platform,
    *,
    nodes: str,
    closures: str | None,
    power_cap: Curve | None,
    absences: Sequence[Absence] | None = None,
    events: Sequence[Absence] | None,
) -> Facts:
    """What is known of a machine, and what was known beforehand of what happens to it."""
    machine = platform.as_protocol()[0]
    return Facts(
        machine=machine,
        speeds=[host.speed for host in platform.hosts],
        nodes=nodes,
        absences=absences,
        events=events,
        closures=() if closures is None else read_closures(closures, machine).all,
        power_cap=power_cap,
    )


def power_cap(file: str | None, period: float | None, watts: float = inf) -> Curve | None:
    """What may be drawn, by a file and by a number of watts; the lower one holds, and without both none."""
    if file is not None:
        return read_curve(file, period).at_most(watts)
    return Curve([0.0], [watts]) if watts < inf else None


def watts_of(choice: Choice, policy: Scheduler | None) -> float:
    """The number of watts that a policy has as its option, or one inside of it; infinite without one.

    The policy is named, or is an object.
    """
    if policy is None and choice.name.startswith(PYBATSIM):
        return inf
    watts, layer = inf, policy or SCHEDULERS.create(choice.name, choice.options)
    while isinstance(layer, Wrapper):
        if isinstance(layer, Capped):
            watts = min(watts, layer.watts)
        layer = layer.inner
    return watts
