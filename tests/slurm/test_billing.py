"""What jobs are billed for by the weights of their partition."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from batsched_py.slurm.policy.limits import Accounts
from batsched_py.slurm.policy.nodes import Machine, Node
from batsched_py.slurm.policy.settings import Configuration, Partition, Priority, PriorityFlag


@pytest.mark.parametrize(
    ("weights", "flags", "billed"),
    [
        ({"cpu": 2.0, "mem": 0.001, "gres/gpu": 5.0}, (), 12.0),
        ({"cpu": 2.0, "mem": 0.001, "gres/gpu": 5.0}, ("max_tres",), 8.0),
        ({"gres/gpu": 5.0}, (), 0.0),
        ({}, (), 4.0),
    ],
)
def test_what_a_job_is_billed_without_a_gpu(
    weights: dict[str, float], flags: tuple[PriorityFlag, ...], billed: float
) -> None:
    """Four processors and 4096 MB: 2 * 4 + 0.001 * 4096 = 12.096, which is billed as 12."""
    partition = Partition(name="batch", tres_billing_weights=weights)
    configuration = Configuration(priority=Priority(flags=flags), partitions=(partition,))
    accounts = Accounts(configuration, Machine([Node("n1", 0, 8, 4 << 20)]), ["gpu"])
    record: Any = SimpleNamespace(partition=SimpleNamespace(settings=partition))
    share: Any = SimpleNamespace(exclusive=False, nodes=1, parts=[(0, 4, 4096 * 1024)], others=[])
    assert accounts.tres(record, share)["billing"] == billed
