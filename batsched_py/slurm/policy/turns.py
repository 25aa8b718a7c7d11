"""Who comes first in the queue, whatever the priorities: jobs come before those that they may preempt by QOS.

Slurm compares two jobs at a time, so with a QOS that has nothing to do with preemption its order may depend
on chance. Here such a QOS has the first turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from batsched_py.slurm.policy.settings import Configuration

RUNS_ALREADY = -1_000_000
"""The turn of jobs that are to run from the beginning on: before any other."""


def turns_of(configuration: Configuration) -> Mapping[str | None, int]:
    """In which turn the jobs of each QOS come: before those of all QOS that it may preempt.

    A QOS that has nothing to do with preemption comes in the first turn.
    """
    has_turns = configuration.preemption.type == "qos" and configuration.preemption.mode != "off"
    preempts = {each.name: set(each.preempt) for each in configuration.qos if has_turns}
    below = dict.fromkeys(preempts, 0)
    for _ in preempts:  # a chain of them is no longer than that
        for name, others in preempts.items():
            below[name] = max([below[name], *(below[each] + 1 for each in others & below.keys() - {name})])
    most = max(below.values(), default=0)
    has_part = {name for name, others in preempts.items() if others}.union(*preempts.values())
    return defaultdict(lambda: -most, {name: -below[name] for name in has_part & below.keys()})
