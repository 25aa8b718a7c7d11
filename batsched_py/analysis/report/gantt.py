"""The Gantt charts of a report: every job where they are few, else an image of how busy each host is."""

from __future__ import annotations

import base64
import struct
import zlib
from math import ceil, log10
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.plots.kinds.gantt import gantt_image, rectangles
from batsched_py.analysis.plots.runs import Run
from batsched_py.analysis.remarks import in_words as remark_in_words
from batsched_py.analysis.report.series import end_of
from batsched_py.analysis.schedule import full_ids

#: The size of an image; if there are more hosts than rows, neighbouring hosts share one.
COLUMNS: Final = 900
ROWS: Final = 100
#: The most remarks on a job; the last ones are shown.
MOST_REMARKS: Final = 3
#: Shades of grey, so that two pixels fit into a byte.
SHADES: Final = 16


def gantt(run: Run, most: int) -> dict[str, Any]:
    """The chart of a run from time 0 to its end; its jobs if they make at ``most`` so many rectangles."""
    areas = rectangles(run)
    chart: dict[str, Any] = {"hosts": run.hosts, "end": float(f"{end_of(run):.6g}")}
    if run.nodes:
        chart["nodes"] = {"names": list(run.nodes), "firsts": list(run.nodes.values())}
    if len(areas) <= most:
        return chart | _outlines(run, areas)
    return chart | {"image": base64.b64encode(_png(_shades(run, areas))).decode()}


def _outlines(run: Run, areas: pd.DataFrame) -> dict[str, Any]:
    """The jobs in the order of their starts; for each rectangle the place of its job, and its sides.

    ``remarks`` has what the policy remarked, by the places of the jobs.
    """
    jobs = run.executed.sort_values("starting_time", kind="stable")
    decimals = max(0, 6 - ceil(log10(end_of(run))))
    times = {side: areas[side].round(decimals).to_list() for side in ("begin", "end")}
    remarks = {place: run.remarks[job] for place, job in enumerate(full_ids(jobs)) if job in run.remarks}
    told = {
        place: [remark_in_words(remark) for remark in each[-MOST_REMARKS:]] for place, each in remarks.items()
    }
    return ({"remarks": told} if told else {}) | {
        "jobs": jobs["job_id"].to_list(),
        "job": jobs.index.get_indexer(areas["job"]).tolist(),
        "from": [int(time) if time.is_integer() else time for time in times["begin"]],
        "to": [int(time) if time.is_integer() else time for time in times["end"]],
        "low": areas["low"].astype(int).to_list(),
        "high": areas["high"].astype(int).to_list(),
    }


def _shades(run: Run, areas: pd.DataFrame) -> NDArray[np.uint8]:
    """Host 0 in the last row, the busier the darker."""
    black, all_of_it = np.zeros((1, 1)), np.zeros(len(areas), np.int8)
    image = gantt_image(areas, black, all_of_it, end_of(run), run.hosts, (COLUMNS, ROWS))
    return np.round((SHADES - 1) * image[::-1, :, 0]).astype(np.uint8)


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
