"""What the validator finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

#: How far apart two times may be and still be taken for one. Batsim prints times with six decimals, so each
#: printed number is up to half a microsecond off. The longest comparison made of them has four (a start and
#: a walltime against another start and walltime); the rest is room for the rounding of their sums.
SLACK: Final = 3e-6


@dataclass(frozen=True)
class Violation:
    """A rule that a schedule breaks, by whom, when and how."""

    rule: str
    jobs: tuple[str, ...]
    """Full identifiers, ``WORKLOAD!JOB``."""
    time: float
    """When it happened in the simulation; where that makes no sense, the job's submission."""
    text: str

    def __str__(self) -> str:
        return f"{self.rule} at {self.time:.6f}: {self.text}"
