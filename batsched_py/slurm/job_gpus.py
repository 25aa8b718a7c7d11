"""GPUs of a whole job, as ``--gpus`` asks for them.

Slurm takes nodes until they have enough GPUs, and how many each of them gives is not known before. So a
request cannot tell, unless the job is on one node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from batsched_py.schedulers.slurm.asked import GPU
from batsched_py.slurm.sbatch import Submission


def settle_gpus(asked: Submission) -> None:
    """Beside GPUs of each node or task, those of the whole job tell how many nodes or tasks there are."""
    total = asked.resources_per_job.get(GPU, 0)
    if not total:
        return
    if of_node := asked.resources_per_node.get(GPU):
        nodes = max(total // of_node, 1)
        asked.nodes = nodes, nodes
    elif of_task := asked.resources_per_task.get(GPU):
        asked.tasks = asked.tasks or max(total // of_task, 1)
    else:
        return
    asked.resources_per_job = {}


def without_shared_gpus(request: Mapping[str, Any], tasks: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A request without GPUs of the whole job, and what then has to be told the policy.

    >>> without_shared_gpus({"per_job": {"gpu": 4}}, 8)
    ({}, {'gpus': {'gpu': 4}})
    >>> without_shared_gpus({"per_job": {"gpu": 4}, "nodes": 1}, 8)
    ({'nodes': 1, 'per_node': {'gpu': 4}}, {})
    """
    made = dict(request)
    gpus = made.pop("per_job", None)
    if not gpus:
        return made, {}
    if tasks == 1 or made.get("nodes") == 1:
        return made | {"per_node": {**made.get("per_node", {}), **gpus}}, {}
    return made, {"gpus": gpus}
