"""What the validator finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: Times that differ by at most this count as equal. Batsim prints times with six decimals, so each printed
#: number is up to half a microsecond off. The longest comparison has four of them (a start and a walltime
#: against another start and walltime); the rest is room for the rounding of their sums.
SLACK: Final = 3e-6


@dataclass(frozen=True)
class Violation:
    """A broken rule: by which jobs, when and how."""

    rule: str
    jobs: tuple[str, ...]
    """Full identifiers, ``WORKLOAD!JOB``."""
    time: float
    """When it happened in the simulation, or the job's submission if that makes no sense."""
    text: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.time:.6f}: {self.text}"
