"""By how much each further job adds to the lateness of its user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from batsched_py.analysis.plots.figures import TELLS_LATENESS, RunsKind, Sheet
from batsched_py.analysis.plots.kinds.lateness import draw_users
from batsched_py.analysis.plots.runs import Run

HOUR: Final = 3600.0


@dataclass(frozen=True)
class AdditionalLateness(RunsKind):
    """By how much each job adds to its user's lateness, against the number of the user's jobs.

    Users with a single job are left out. A line shows the median user, a band the users from the 10th to the
    90th percentile.
    """

    name = "additional-lateness"
    shows = "By how much each further job adds to the lateness of its user."
    use_of_log: ClassVar[str] = TELLS_LATENESS

    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw it."""
        draw_users(sheet, runs, "additional_lateness", HOUR, "h")
        sheet.supylabel("additional lateness of the user (hours)")
