"""How the tasks of a job are dealt out to nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from batsched_py.ledger.nodes import place
from batsched_py.protocol.requests import Request


@pytest.mark.parametrize(
    ("request_", "capacities", "filled", "in_turn"),
    [
        (Request(7), [3, 5, 2], [3, 4, 0], [3, 2, 2]),
        (Request(7, most_nodes=2), [3, 5, 2], [3, 4, 0], [3, 4, 0]),
        (Request(8, most_nodes=2), [1, 5, 3], [0, 5, 3], [0, 5, 3]),
        (Request(4, most_nodes=2), [3, 5, 2], [3, 1, 0], [2, 2, 0]),
        (Request(4, least_nodes=3), [3, 5, 2], [2, 1, 1], [2, 1, 1]),
        (Request(3), [0, 1, 9], [0, 1, 2], [0, 1, 2]),
    ],
    ids=str,
)
def test_nodes_are_filled_or_get_tasks_in_turn(
    request_: Request, capacities: list[int], filled: list[int], in_turn: list[int]
) -> None:
    demand = SimpleNamespace(request=request_, per_task=np.array([1, 0]), per_node=np.array([0, 1]))
    offer: Any = SimpleNamespace(demand=demand, capacities=np.array(capacities), nodes=np.array([4, 6, 7]))
    for one_by_one, wanted in ((False, filled), (True, in_turn)):
        found = place(offer, np.arange(3), one_by_one)
        assert found.nodes.tolist() == [node for node, tasks in zip((4, 6, 7), wanted, strict=True) if tasks]
        assert found.tasks.tolist() == [tasks for tasks in wanted if tasks]
        assert found.taken.tolist() == [[tasks, 1] for tasks in wanted if tasks]
