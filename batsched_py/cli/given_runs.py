"""Runs that are given to a command, as ``[LABEL=]PREFIX_jobs.csv`` or as a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.analysis.plots.runs import Run
    from batsched_py.workload.swf.log import SwfLog


def read_runs(texts: Sequence[str], log: SwfLog | None = None, distinct: bool = True) -> Iterator[Run]:
    """The runs that were given; no two have one label, unless it need not be ``distinct``.

    ``log`` is the one that they replay.
    """
    from batsched_py.analysis.plots.runs import read_run, recorded_run

    labels = {"recorded"}
    for text in texts:
        label, equals, file = text.partition("=")
        if not equals:
            label, file = _default_label(Path(text)), text
        if distinct and label in labels:
            raise InputError(f"{text}: the label {label!r} is taken; give another one, as in LABEL={file}")
        labels.add(label)
        recorded = _read_log(file)
        yield read_run(file, label, log) if recorded is None else recorded_run(recorded, label)


def _read_log(file: str) -> SwfLog | None:
    """The log in a file, if it is one: of the Standard Workload Format, or a table with a column submit."""
    from batsched_py.workload.sources import read_log
    from batsched_py.workload.sources.table import Table
    from batsched_py.workload.swf.reader import read_swf

    path = Path(file)
    if file.lower().endswith((".swf", ".swf.gz")):
        return read_swf(path)
    try:
        with path.open("rb") as opened:
            beginning = opened.read(1 << 16)
    except OSError:
        return None
    return read_log(path, "csv") if Table().recognises(beginning) else None


def _default_label(path: Path) -> str:
    """The prefix of a ``PREFIX_jobs.csv``, the name of a log, or the folder of a ``jobs.csv`` alone."""
    if ".swf" in path.name.lower():
        return path.name[: path.name.lower().index(".swf")]
    return path.name.removesuffix("jobs.csv").removesuffix("_") or path.absolute().parent.name
