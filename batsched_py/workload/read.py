"""Reading a workload from any kind of file."""

from __future__ import annotations

from os.path import isfile
from pathlib import Path

from batsched_py.errors import InputError
from batsched_py.workload.model import WalltimeRule, Workload


def read_workload(
    path: str | Path,
    name: str,
    walltime_factor: float = 2.0,
    walltime: WalltimeRule = "at-least-run-time",
) -> Workload:
    """Read an SWF log (``.swf``, ``.swf.gz``), a Batsim workload (``.json``) or a log of another known kind.

    The walltime rules are those of :func:`~batsched_py.workload.swf.workload.swf_to_workload`; a Batsim
    workload says its jobs' walltimes itself.
    """
    path = Path(path)
    if not isfile(path):
        raise InputError(f"{path}: there is no such file")
    ending = path.name.lower()
    if ending.endswith((".swf", ".swf.gz")):
        from batsched_py.workload.swf.quick_reader import read_quickly

        if (workload := read_quickly(path, name, walltime_factor, walltime)) is not None:
            return workload
        from batsched_py.workload.swf.workload import read_swf_workload  # which needs numpy

        return read_swf_workload(path, name, walltime_factor, walltime)
    if ending.endswith(".json"):
        from batsched_py.workload.batsim_json import read_batsim_json

        return read_batsim_json(path, name)
    from batsched_py.workload.sources import read_log
    from batsched_py.workload.swf.workload import swf_to_workload

    return swf_to_workload(read_log(path), name, walltime_factor, walltime)
