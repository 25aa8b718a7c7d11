"""Reading a workload from whatever kind of file it is in."""

from __future__ import annotations

from pathlib import Path

from batsched_py.errors import InputError
from batsched_py.workload.batsim_json import read_batsim_json
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.swf import read_swf, swf_to_workload


def read_workload(
    path: str | Path,
    name: str,
    walltime_factor: float = 2.0,
    walltime: WalltimeRule = "at-least-run-time",
) -> Workload:
    """Read an SWF log (``.swf``, ``.swf.gz``) or a Batsim workload (``.json``), told apart by their endings.

    The walltime rules are those of :func:`~batsched_py.workload.swf.swf_to_workload`; a Batsim workload says
    its jobs' walltimes itself.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    ending = path.name.lower()
    if ending.endswith((".swf", ".swf.gz")):
        return swf_to_workload(read_swf(path), name, walltime_factor, walltime)
    if ending.endswith(".json"):
        return read_batsim_json(path, name)
    raise InputError(f"{path}: neither an SWF log (.swf, .swf.gz) nor a Batsim workload (.json)")
