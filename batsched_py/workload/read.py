"""Reading a workload from any kind of file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from batsched_py.workload.lines import check_is_file
from batsched_py.workload.model import CancelledRule, WalltimeRule, Workload

if TYPE_CHECKING:
    from batsched_py.workload.requests import NodeWords


def read_workload(
    path: str | Path,
    name: str,
    walltime_factor: float = 2.0,
    walltime: WalltimeRule = "at-least-run-time",
    cancelled: CancelledRule = "leave-out",
    options: Mapping[str, str] | None = None,
    words: NodeWords | None = None,
) -> Workload:
    """Read an SWF log (``.swf``, ``.swf.gz``), a Batsim workload (``.json``) or a log of another known kind.

    The rules for walltimes and for jobs that were cancelled while they waited are those of
    :func:`~batsched_py.workload.swf.workload.swf_to_workload`; a Batsim workload says its jobs' walltimes
    itself, and knows nothing of cancelled ones. ``options`` are those of the kind of the file, if it has any.
    With the ``words`` of a machine of nodes, jobs of logs get requests.
    """
    path = check_is_file(path)
    ending = path.name.lower()
    if ending.endswith((".swf", ".swf.gz")) and not options and words is None:
        from batsched_py.workload.swf.quick_reader import read_quickly

        if cancelled == "leave-out":
            workload = read_quickly(path, name, walltime_factor, walltime)
            if workload is not None:
                return workload
        from batsched_py.workload.swf.workload import read_swf_workload  # which needs numpy

        return read_swf_workload(path, name, walltime_factor, walltime, cancelled)
    if ending.endswith(".json") and not options:
        from batsched_py.workload.batsim_json import read_batsim_json

        return read_batsim_json(path, name)
    from batsched_py.workload.sources import read_log
    from batsched_py.workload.swf.workload import swf_to_workload

    log = read_log(path, options=options)
    return swf_to_workload(log, name, walltime_factor, walltime, cancelled, words)
