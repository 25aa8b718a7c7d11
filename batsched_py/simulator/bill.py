"""What the energy costs, and the carbon that it causes, added up from the power as it changes."""

from __future__ import annotations

from msgspec import Struct

from batsched_py.outside.curve import CURVES, Curve, Known
from batsched_py.simulator.outputs import Outputs, Results

JOULES_PER_KWH = 3.6e6

OUTSIDE_HEADER = "name,time,value\n"


class _Account(Struct):
    """The sum of one curve's value over the energy that was drawn."""

    name: str
    curve: Curve
    total: float = 0.0
    counted: float = 0.0
    """What it was at the last end of a job."""


class Bill:
    """Multiplies energy by its price and its carbon intensity.

    As in the account of energy, what counts is what was drawn until the last end of a job.
    """

    def __init__(self, known: Known) -> None:
        self._accounts = [
            _Account(name, curve)
            for name, curve in (("energy_cost", known.price), ("carbon_grams", known.carbon))
            if curve is not None
        ]

    def draw(self, start: float, end: float, watts: float) -> None:
        """Add the energy of this power from one time to another."""
        for account in self._accounts:
            for since, until, value in account.curve.steps(start, end):
                account.total += (until - since) * watts / JOULES_PER_KWH * value

    def job_ends(self) -> None:
        """A job ends: count what was drawn until now."""
        for account in self._accounts:
            account.counted = account.total

    def complete(self, results: Results) -> None:
        """Put the sums into the results."""
        results.bill = {account.name: account.counted for account in self._accounts}


def write_outside(known: Known, outputs: Outputs, end: float) -> None:
    """Write down what prices, carbon, temperature and power cap were until the end."""
    write = outputs.open("outside", OUTSIDE_HEADER)
    for name in CURVES:
        curve = getattr(known, name)
        for since, _, value in () if curve is None else curve.steps(0.0, end):
            write(f"{name},{since:.6f},{value:.10g}\n")
