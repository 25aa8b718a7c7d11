"""``PREFIX_absences.csv``: which hosts failed or were closed, and when, for those who read the results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from batsched_py.outside.closures import Closure
from batsched_py.outside.failures import Outage

HEADER: Final = "hosts,state,since,until\n"


def absence_lines(outages: Iterable[Outage], closures: Iterable[Closure]) -> Iterator[str]:
    """The lines of the file; hosts are ``away`` or ``closed``."""
    for outage in outages:
        yield f"{outage.hosts},away,{outage.start:.6f},{outage.end:.6f}\n"
    for closure in closures:
        yield f"{closure.hosts},closed,{closure.start:.6f},{closure.end:.6f}\n"
