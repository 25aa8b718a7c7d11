"""Who comes first in the queue: before priorities count, and by the ages of the tasks of an array.

Jobs come before those that they may preempt by QOS, whatever the priorities. Slurm compares two jobs at a
time, so with a QOS that has nothing to do with preemption its order may depend on chance. Here such a QOS has
the first turn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from batsched_py.protocol.dependencies import array_of
from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord
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


class AgesOfTasks:
    """Since when the tasks of arrays with a limit (``%2``) grow older.

    A task joins the queue when one before it has ended. Only if as many as may run did so until then, Slurm
    has held the rest of the array, and its age begins anew; otherwise it is as old as the first task.
    """

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def settle(self, records: Sequence[WaitingRecord], running: Sequence[RunningRecord]) -> None:
        """Give a job that joins the queue its age, if it is such a task."""
        array = array_of(records[0].job)
        if array is None or array.limit is None:
            return
        nb_running = sum(each.waiting.array == array.name for each in running)
        if array.name not in self._since or nb_running + 1 >= array.limit:
            self._since[array.name] = records[0].aged
        for record in records:
            record.aged = self._since[array.name]
