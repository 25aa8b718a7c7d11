"""Jobs of which Slurm counts processors, and not tasks, when it chooses nodes.

A task of ``-c 3`` needs a node with three free processors. But of ``-n 4 -c 3``, Slurm puts 8 processors on a
node that has 8 free, and the other 4 elsewhere: it cuts a task in two. It does so with ``CR_CPU`` and with
``CR_Core``. Tasks stay whole where memory is given out by processor, and where tasks are counted by node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_COUNTED_BY_TASK = ("tasks_per_node", "per_task")


def divided(request: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, int]]:
    """A request of single cores if Slurm may cut its tasks, and what then has to be told the policy.

    >>> divided({"tasks": 4, "cores": 3})
    ({}, {'cpus_per_task': 3})
    >>> divided({"tasks": 4, "cores": 3, "per_core": {"memory": 100}})[1]
    {}
    """
    made, cores = dict(request), request.get("cores", 1)
    if (
        cores == 1
        or request.get("tasks", 1) == 1
        or "memory" in request.get("per_core", ())
        or any(request.get(name) for name in _COUNTED_BY_TASK)
    ):
        return made, {}
    del made["cores"], made["tasks"]
    return made, {"cpus_per_task": cores}
