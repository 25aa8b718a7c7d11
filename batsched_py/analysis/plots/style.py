"""Colours, units and numbers that all figures have in common, and what a journal may ask of them.

The palette is that of Okabe and Ito, which people with any kind of colour vision can tell apart. Lines differ
in their dashes as well, so that they can be told apart without any colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import log10
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from batsched_py.analysis.plots.sheet import Sheet


@dataclass(frozen=True)
class Look:
    """The look of a figure."""

    width: Annotated[
        Literal["page", "column"], Meta(description="As wide as a page's text, or as one of two columns.")
    ] = "page"
    font: Annotated[Literal["sans", "serif"], Meta(description="Letters without serifs, or with.")] = "sans"
    ink: Annotated[
        Literal["colour", "grey"],
        Meta(description="Colours that everybody can tell apart, or shades of grey."),
    ] = "colour"

    @classmethod
    def taken_from(cls, options: dict[str, Any]) -> Look:
        """The look that is among the options of a figure, which are taken away."""
        return cls(**{field.name: options.pop(field.name) for field in fields(cls) if field.name in options})

    @property
    def inches(self) -> float:
        """How wide a figure is."""
        return 7.2 if self.width == "page" else 3.5


#: What figures look like unless told otherwise.
PAGE: Final = Look()


BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW, BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#000000"

#: One for each run of a comparison, in this order.
PALETTE: Final = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, BLACK, YELLOW)
#: What was recorded, and what is not worth a colour of its own.
GREY: Final = "#8A8A8A"
LIGHT_GREY: Final = "#D9D9D9"

#: One for each line of a comparison, in this order.
DASHES: Final[tuple[Any, ...]] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2)))

#: How a line looks that shows what was recorded.
RECORDED: Final[dict[str, Any]] = {"color": LIGHT_GREY, "linewidth": 4, "zorder": 1.5}


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which a span of time is best shown, as its length in seconds and its name.

    >>> time_unit(30 * 86400)
    (86400.0, 'days')
    """
    for unit, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 3 * unit:
            return unit, name
    return 1.0, "seconds"


def number(value: float, form: str = ",.12g") -> str:
    """A number as text, with a real minus sign."""
    return f"{value:{form}}".replace("-", "\N{MINUS SIGN}")


def plain_numbers(*axes: Axis) -> None:
    """Write the numbers on these axes in full, as 10,000, also where the scale is logarithmic.

    A logarithmic scale that reaches over few decades has numbers between powers of ten, too.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, SymmetricalLogLocator

    for axis in axes:
        axis.set_major_formatter(lambda value, _: number(value))
        if axis.get_scale() == "linear":
            continue
        axis.set_minor_formatter(NullFormatter())
        low, high = axis.get_view_interval()
        linear = getattr(axis.get_transform(), "linthresh", 0.0)
        decades = log10(max(-low, high) / max(low, linear))
        if decades < 1.7:
            steps = (1, 2, 5) if decades > 0.8 else tuple(range(1, 10))
            axis.set_major_locator(
                SymmetricalLogLocator(base=10, subs=steps, linthresh=linear)
                if linear
                else LogLocator(base=10, subs=steps)
            )


def shades(colour: str, count: int) -> list[tuple[float, ...]]:
    """A colour from pale to full, in ``count`` steps."""
    from matplotlib.colors import to_rgb

    return [tuple(1 - (1 - part) * (step + 1) / count for part in to_rgb(colour)) for step in range(count)]


def name_bars(panel: Axes, names: Sequence[str]) -> None:
    """Write names under groups of bars, aslant where they would touch."""
    crowded = sum(map(len, names)) > 40
    panel.set_xticks(
        range(len(names)),
        names,
        rotation=30 if crowded else 0,
        ha="right" if crowded else "center",
        rotation_mode="anchor",
    )
    panel.grid(False, axis="x")


def shared_legend(sheet: Sheet, axes: Sequence[Axes]) -> None:
    """One legend below all panels, with each name once."""
    handles = {
        name: handle
        for panel in axes
        for handle, name in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    columns = 4 if sheet.look.width == "page" else 2
    sheet.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=columns)
