"""The list of settings that the policy does not act on, against its code."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest

from batsched_py.slurm.policy.job import JobFields
from batsched_py.slurm.policy.settings import (
    UNUSED,
    Association,
    Limits,
    NodeSettings,
    Partition,
    Preemption,
    Priority,
    Qos,
    Reservation,
    Scheduling,
    Selection,
)

TABLES: dict[str, type[msgspec.Struct]] = {
    "scheduling": Scheduling, "selection": Selection, "nodes": NodeSettings, "priority": Priority,
    "preemption": Preemption, "partitions": Partition, "limits": Limits, "qos": Qos,
    "associations": Association, "reservations": Reservation, "job": JobFields,
}  # fmt: skip

#: What the importer acts on, or what says no more than something else does.
NOT_FOR_THE_POLICY = {
    "scheduling.bf_continue",  # a cycle is never broken off
    "selection.consumed",  # processors are cores here
    "selection.def_cpu_per_gpu", "selection.def_mem_per_gpu", "partitions.def_cpu_per_gpu",
    "partitions.def_mem_per_gpu", "partitions.default_time", "job.no_time_limit", "job.id",
}  # fmt: skip


@pytest.fixture(scope="module")
def used(root: Path) -> set[str]:
    """The names of all attributes that the code of the policy reads, directly or by a text."""
    used = set()
    for source in (root / "batsched_py" / "slurm" / "policy").glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text())):
            if isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and source.name != "settings.py"  # where a text is a value that a setting may have
            ):
                used.add(node.value)
    return used


def own_fields(table: str) -> set[str]:
    """The fields of a table, without the limits that associations and QOS share."""
    fields = {field.name for field in msgspec.structs.fields(TABLES[table])}
    return fields - set(Limits.__struct_fields__) if table in ("qos", "associations") else fields


@pytest.mark.parametrize("table", TABLES)
def test_every_setting_is_used_or_listed(table: str, used: set[str]) -> None:
    own = own_fields(table)
    assert UNUSED[table] <= own
    excused = {name.partition(".")[2] for name in NOT_FOR_THE_POLICY if name.startswith(f"{table}.")}
    missing = own - used - UNUSED[table] - excused
    assert not missing, "the policy does not act on these; list them in settings.py"


def test_what_the_policy_acts_on_is_not_listed(used: set[str]) -> None:
    others = {name for table in TABLES for name in own_fields(table) - UNUSED[table]}
    wrong = {name for names in UNUSED.values() for name in names if name in used - others}
    assert not wrong, "the policy acts on these; take them off the list in settings.py"
