"""What a kind of figure is, and drawing a figure of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from batsched_py.analysis.plots.style import PAGE, Look
from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.plugins import Registry

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.plots.runs import Run
    from batsched_py.analysis.plots.sheet import Sheet as Sheet
else:
    Sheet = Any  # kinds name it in their signatures; matplotlib is not imported before something is drawn


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
    """How the kind is called on the command line; without it, as its class in small letters."""
    shows: ClassVar[str]
    """What it shows, in a line of ``batsched-py plot --help``; every shipped kind says so."""


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


def name_of(kind: type[Kind]) -> str:
    """How a kind is called."""
    return str(getattr(kind, "name", kind.__name__.lower()))


def summary_of(kind: type[Kind]) -> str:
    """What a kind shows, in a line."""
    return (kind.__doc__ or name_of(kind)).strip().partition("\n")[0]


#: The known kinds of figures.
KINDS = Registry[Kind](
    "figure", Kind, package="batsched_py.analysis.plots.kinds", group="batsched_py.figures"
)


def draw(
    kind: str | Kind,
    data: Sequence[Run] | pd.DataFrame,
    recorded: Run | None = None,
    look: Look = PAGE,
    **options: Any,
) -> Sheet:
    """The figure of a kind, by its name and its options or as an object.

    It shows runs, beside what was ``recorded`` where a kind has a use for that; or a table of results with a
    row for each run. What comes back is a matplotlib figure, which notebooks show; ``save`` writes it.
    """
    made = KINDS.create(kind, options) if isinstance(kind, str) else kind
    sheet = blank(look)
    with sheet.styled(), naming(f"figure {name_of(type(made))!r}"):
        match made:
            case RunsKind():
                made.draw(sheet, data, recorded)
            case TableKind():
                made.draw(sheet, data)
    return sheet


def blank(look: Look) -> Sheet:
    """An empty figure, where matplotlib is installed."""
    try:
        from batsched_py.analysis.plots.sheet import Sheet
    except ImportError:
        raise InputError(
            "figures need matplotlib; install it with `pip install batsched-py[plots]`"
        ) from None
    return Sheet(look)
