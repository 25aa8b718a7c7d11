"""What may explain why a simulation differs from a log: what the log does not tell, or nobody simulates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.swf.log import Integers, SwfLog


def causes(log: SwfLog, hosts: int) -> dict[str, int]:
    """How many jobs each cause concerns; those that concern none are left out."""
    executed = ~log.never_started & (log.processors > 0)
    estimated = log.requested_time > 0
    found = {
        _machine(log, hosts): np.ones(len(log), dtype=bool),
        "larger than the machine, so they are rejected": executed & (log.processors > hosts),
        "started when more processors were in use than the machine has": executed & _above(log, hosts),
        "cancelled while they waited": log.never_started,
        "without a recorded wait": executed & (log.wait < 0),
        "without a requested time": executed & ~estimated,
        "ran for longer than they had requested": executed & estimated & (log.run_time > log.requested_time),
        "name a preceding job, for which a simulation does not wait": executed & (log.preceding_job > 0),
        "in one of several partitions, which are simulated as one machine": executed
        & _in_several(log.partition),
        "in one of several queues, whose priorities and limits are not simulated": executed
        & _in_several(log.queue),
    }
    found.pop("", None)
    return {kind: int(jobs.sum()) for kind, jobs in found.items() if jobs.any()}


def _machine(log: SwfLog, hosts: int) -> str:
    """What is uncertain about the size of the machine, if anything is."""
    if log.machine_size is None:
        return "recorded on a machine of unknown size"
    if any(kind.startswith("size of the machine") for kind in log.guessed):
        return "recorded on a machine whose size was guessed from its use"
    if log.machine_size != hosts:
        return f"recorded on a machine of {log.machine_size:,} processors, not {hosts:,}"
    return ""


def _in_several(numbers: Integers) -> NDArray[np.bool_]:
    """The jobs that are in any of the parts with a number, if there are several."""
    known = numbers >= 0
    return known & (len(np.unique(numbers[known])) > 1)


def _above(log: SwfLog, hosts: int) -> NDArray[np.bool_]:
    """The jobs with which the use of the machine is above its size."""
    sizes = np.where(log.never_started, 0, np.maximum(log.processors, 0))
    starts = log.submit + np.maximum(log.wait, 0)
    times = np.concatenate([starts, starts + log.run_time])
    order = np.lexsort((np.repeat([1, 0], len(log)), times))
    in_use = np.empty(len(times), dtype=np.int64)
    in_use[order] = np.cumsum(np.concatenate([sizes, -sizes])[order])
    return in_use[: len(log)] > hosts
