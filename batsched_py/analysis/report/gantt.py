"""The Gantt chart of a report: a small image of how busy each host is over time."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.analysis.plots.gantt import rectangles
from batsched_py.analysis.plots.raster import paint
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.report.series import end_of

#: The size of the image; where there are more hosts than rows, neighbours share one.
COLUMNS: Final = 900
ROWS: Final = 100
#: Shades of grey, so that two pixels fit into a byte.
SHADES: Final = 16


def gantt(run: Run) -> dict[str, Any]:
    """The chart of a run from time 0 to its end, host 0 in the lowest row, the busier the darker."""
    areas = rectangles(run.jobs)
    rows, end = min(run.hosts, ROWS), end_of(run)
    x = areas[["begin", "end"]].to_numpy() * (COLUMNS / end)
    y = areas[["low", "high"]].to_numpy() * (rows / run.hosts)
    black = np.zeros((len(areas), 1))
    image = paint(x[:, 0], x[:, 1], y[:, 0], y[:, 1], black, COLUMNS, rows)
    shades = np.round((SHADES - 1) * image[::-1, :, 0]).astype(np.uint8)
    return {
        "hosts": run.hosts,
        "end": float(f"{end:.6g}"),
        "image": base64.b64encode(_png(shades)).decode(),
    }


def _png(shades: NDArray[np.uint8]) -> bytes:
    """A PNG file of an image in 16 shades of grey, whose rows have an even number of pixels."""
    height, width = shades.shape
    rows = np.zeros((height, 1 + width // 2), dtype=np.uint8)  # each begins with its filter, which is none
    rows[:, 1:] = shades[:, ::2] << 4 | shades[:, 1::2]
    header = struct.pack(">IIBBBBB", width, height, 4, 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in parts
    )
