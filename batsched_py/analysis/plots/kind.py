"""What a kind of figure is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.plots.runs import Run
    from batsched_py.analysis.plots.sheet import Sheet

#: What the recorded log is for, in the words of the command line.
SHOWN_TOO: Final = "It is shown, too."
TELLS_USERS: Final = "It tells the users; not needed for feedback users, who note it."
TELLS_LATENESS: Final = "Lateness is against it; not needed for feedback users, who note it."


@dataclass(frozen=True)
class Kind(ABC):
    """A kind of figure: a frozen dataclass of its options.

    A subclass in a file of its own is all it takes. The meaning of an option is in
    ``Annotated[..., Meta(description=...)]``, what its value is called in ``Meta(title=...)``.
    """

    name: ClassVar[str]
    """How the kind is called on the command line."""


@dataclass(frozen=True)
class RunsKind(Kind):
    """A figure of runs, and of the log that they replay."""

    use_of_log: ClassVar[str] = SHOWN_TOO
    """What the recorded log is for."""
    shows_nodes: ClassVar[bool] = False
    """Whether it shows which hosts are cores of a node, where the machine is known."""
    labels_are_distinct: ClassVar[bool] = True
    """Whether no two runs may have the same label."""

    @abstractmethod
    def draw(self, sheet: Sheet, runs: Sequence[Run], recorded: Run | None) -> None:
        """Draw some runs, at least one, beside what was recorded if that is known."""


@dataclass(frozen=True)
class TableKind(Kind):
    """A figure of a table of results: a row a run, with its place on each axis of a plan and its metrics."""

    @abstractmethod
    def draw(self, sheet: Sheet, table: pd.DataFrame) -> None:
        """Draw the table."""
