"""What is known beforehand of what comes from outside, as policies see it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve


class Known(Struct, frozen=True):
    """``cluster.outside``: what was not given is None, or empty."""

    price: Curve | None = None
    """Of energy, per kWh."""
    carbon: Curve | None = None
    """The carbon intensity of energy, in grams per kWh."""
    temperature: Curve | None = None
    """Outside, in degrees Celsius."""
    power_cap: Curve | None = None
    """The most power that the machine may draw, in watts."""
    closures: Sequence[Closure] = ()
    """Maintenance windows and advance reservations; ``cluster.fits`` knows them already."""


#: The fields that are curves.
CURVES = ("price", "carbon", "temperature", "power_cap")

NOTHING_KNOWN = Known()
