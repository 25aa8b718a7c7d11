"""A figure that depends on its data alone, and how it becomes a file.

Neither the user's matplotlib settings, nor a display, nor the date matter: the same data gives the same
bytes. This is the one module that needs matplotlib when it is imported.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from batsched_py.analysis.plots.style import DASHES, GREY, PALETTE, Look
from batsched_py.errors import InputError
from batsched_py.output_files import writing

if TYPE_CHECKING:
    from batsched_py.analysis.plots.runs import Run

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

#: Letters that come with matplotlib, and so are the same everywhere.
_SERIF: Final[dict[str, Any]] = {"font.family": "STIXGeneral", "mathtext.fontset": "stix"}

#: What would otherwise say when and by what version the file was written.
_METADATA: Final[dict[str, dict[str, None]]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


class Sheet(Figure):
    """A figure in one look."""

    def __init__(self, look: Look) -> None:
        self.look = look
        with self.styled():
            super().__init__()

    @contextmanager
    def styled(self) -> Iterator[None]:
        """What is drawn meanwhile has this look."""
        letters = _SERIF if self.look.font == "serif" else {}
        with matplotlib.style.context(["default", _SETTINGS | letters]):
            yield

    def save(self, path: str | Path) -> None:
        """Write it as PNG, SVG or PDF, whichever the name ends in."""
        path = Path(path)
        metadata = _METADATA.get(path.suffix.lower())
        if metadata is None:
            raise InputError(f"{path}: a figure is written as .png, .svg or .pdf")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self.styled(), writing(path) as file:
                self.savefig(file, format=path.suffix[1:].lower(), metadata=metadata)
        except OSError as error:
            raise InputError(f"{path}: cannot be written: {error.strerror}") from None

    def as_svg(self) -> str:
        """It as an element of a page."""
        image = io.StringIO()
        with self.styled():
            self.savefig(image, format="svg", metadata=_METADATA[".svg"])
        return image.getvalue()[image.getvalue().index("<svg") :]

    def _repr_png_(self) -> bytes:
        """What a notebook shows."""
        image = io.BytesIO()
        with self.styled():
            self.savefig(image, format="png", dpi=130)
        return image.getvalue()

    # --- for those who draw ----------------------------------------------------------------------

    def resize(self, height: float) -> None:
        """Make it so many inches high, and as wide as its look says."""
        self.set_size_inches(self.look.inches, height)

    def panels(self, titles: Sequence[str], columns: int = 1, height: float = 1.8) -> list[Axes]:
        """Panels with shared axes under their titles, row by row, each ``height`` inches high."""
        columns = min(columns if self.look.width == "page" else 1, len(titles))
        rows = -(-len(titles) // columns)
        self.resize(0.6 + height * rows)
        grid = self.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        axes = list(grid.flat)
        for panel in axes[len(titles) :]:
            panel.remove()
        shown = axes[: len(titles)]
        for panel, title in zip(shown, titles, strict=True):
            panel.set_title(title)
        for panel in shown[-columns:]:
            panel.xaxis.set_tick_params(labelbottom=True)
        return shown

    def colours(self, count: int) -> list[str]:
        """A colour for each of ``count`` runs; they begin again when there are more runs than colours."""
        if self.look.ink == "colour":
            return [PALETTE[number % len(PALETTE)] for number in range(count)]
        return [str(0.65 * number / max(1, count - 1)) for number in range(count)]

    def colours_with_recorded(self, runs: Sequence[Run], recorded: Run | None) -> list[str]:
        """A colour for each of the runs; if something was recorded, it comes first, in grey."""
        return [GREY] * (recorded is not None) + self.colours(len(runs))

    def line_looks(self, count: int) -> list[dict[str, Any]]:
        """How to draw each of ``count`` lines, so that they can be told apart in black and white, too."""
        return [
            {"color": colour, "linestyle": DASHES[number % len(DASHES)]}
            for number, colour in enumerate(self.colours(count))
        ]

    @property
    def highlight(self) -> str:
        """The colour of what stands alone."""
        return self.colours(1)[0]
