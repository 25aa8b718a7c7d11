"""How all figures look, and how one becomes a file.

The palette is that of Okabe and Ito, which people with any kind of colour vision can tell apart. A figure
depends on its data alone: not on the user's matplotlib settings, not on a display, not on the date, so the
same data gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, VERMILLION = "#0072B2", "#E69F00", "#009E73", "#D55E00"
SKY, PURPLE, YELLOW, BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#000000"

#: One for each run of a comparison, in this order.
PALETTE: Final = (BLUE, ORANGE, GREEN, VERMILLION, PURPLE, SKY, BLACK, YELLOW)
#: What was recorded, and what is not worth a colour of its own.
GREY: Final = "#8A8A8A"
LIGHT_GREY: Final = "#D9D9D9"

#: Width of a figure in inches: the text width of a paper.
WIDTH: Final = 7.2

_SETTINGS: Final[dict[str, Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#4D4D4D",
    "axes.grid": True,
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "figure.labelsize": 8.5,
    "font.size": 8.5,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.6,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "lines.linewidth": 1.3,
    "path.simplify": True,
    "pdf.fonttype": 42,
    "savefig.dpi": 220,
    "svg.hashsalt": "batsched_py",
    "xtick.color": "#4D4D4D",
    "xtick.labelcolor": "#1A1A1A",
    "xtick.labelsize": 8,
    "ytick.color": "#4D4D4D",
    "ytick.labelcolor": "#1A1A1A",
    "ytick.labelsize": 8,
}

#: What would otherwise say when and by what version the file was written.
_METADATA: Final[dict[str, dict[str, None]]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def write_figure(path: str | Path, draw: Callable[[Figure], None]) -> None:
    """Let ``draw`` fill an empty figure, and write it as PNG, SVG or PDF, whichever the name ends in."""
    path = Path(path)
    if path.suffix.lower() not in _METADATA:
        raise InputError(f"{path}: a figure is written as .png, .svg or .pdf")
    content = render(draw, path.suffix.lower())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def render(draw: Callable[[Figure], None], ending: str) -> bytes:
    """The same as the bytes of a file whose name ends so."""
    try:
        import matplotlib.style
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "figures need matplotlib; install it with `pip install batsched-py[plots]`"
        ) from None
    buffer = io.BytesIO()
    with matplotlib.style.context(["default", _SETTINGS]):
        figure = Figure()
        draw(figure)
        figure.savefig(buffer, format=ending[1:], metadata=_METADATA[ending])
    return buffer.getvalue()


def colours(count: int) -> list[str]:
    """A colour for each of ``count`` runs; they begin again when there are more runs than colours."""
    return [PALETTE[number % len(PALETTE)] for number in range(count)]


def time_unit(seconds: float) -> tuple[float, str]:
    """The unit in which a span of time is best shown, as its length in seconds and its name.

    >>> time_unit(30 * 86400)
    (86400.0, 'days')
    """
    for unit, name in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= 3 * unit:
            return unit, name
    return 1.0, "seconds"


def panels(figure: Figure, titles: Sequence[str], columns: int = 1, height: float = 1.8) -> list[Axes]:
    """Panels with shared axes under their titles, row by row, each ``height`` inches high."""
    columns = min(columns, len(titles))
    rows = -(-len(titles) // columns)
    figure.set_size_inches(WIDTH, 0.6 + height * rows)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    axes = list(grid.flat)
    for panel in axes[len(titles) :]:
        panel.remove()
    for panel, title in zip(axes, titles, strict=False):
        panel.set_title(title)
    return axes[: len(titles)]


def number(value: float, form: str = ",.12g") -> str:
    """A number as text, with a real minus sign."""
    return f"{value:{form}}".replace("-", "\N{MINUS SIGN}")


def plain_numbers(*axes: Axis) -> None:
    """Write the numbers on these axes in full, as 10,000, also where the scale is logarithmic."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: number(value))


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
