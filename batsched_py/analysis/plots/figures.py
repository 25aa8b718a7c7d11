"""Drawing a figure of any kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from batsched_py.analysis.plots.kind import Kind, RunsKind, TableKind
from batsched_py.analysis.plots.look import PAGE, Look
from batsched_py.errors import InputError
from batsched_py.plugins import Registry

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.plots.runs import Run
    from batsched_py.analysis.plots.sheet import Sheet

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
    with sheet.styled():
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
