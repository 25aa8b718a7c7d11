"""One backfill cycle of the twin plans what the log of a real one shows, start by start and node by node.

The logs were made with ``DebugFlags=Backfill``; of each, only the lines are kept that are read here.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tests.slurm.cycles import Comparison, compare_cycles
from tests.slurm.scenario import RECORDED, SHARED

SCENARIOS = [
    ("mixed-2", RECORDED),
    ("parts-1", RECORDED),
    ("tuned-1", RECORDED),
    ("walltime-1", RECORDED),
    ("blind-3", RECORDED),
    ("late-4", RECORDED),
    pytest.param("basic-1", SHARED, marks=pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")),
    pytest.param("shared-1", SHARED, marks=pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared")),
]


def comparisons(name: str, scenarios: Path) -> list[Comparison]:
    log = gzip.decompress((RECORDED / name / "cycles.log.gz").read_bytes()).decode()
    return list(compare_cycles(scenarios / name, log.splitlines()))


@pytest.mark.parametrize(("name", "scenarios"), SCENARIOS)
def test_each_cycle_plans_what_the_log_shows(name: str, scenarios: Path) -> None:
    compared = comparisons(name, scenarios)
    assert len(compared) > 60
    assert sum(len(cycle.real) for cycle in compared) > 100
    for cycle in compared:
        assert [(plan.job, plan.nodes, plan.now) for plan in cycle.twin] == [
            (plan.job, plan.nodes, plan.now) for plan in cycle.real
        ], cycle.time
        for mine, its in zip(cycle.twin, cycle.real, strict=True):
            later = its.start - mine.start
            assert later == 0 or (later == 1 and crosses_a_second(cycle)), (cycle.time, its)


def crosses_a_second(cycle: Comparison) -> bool:
    """Whether a cycle began so late in a second that jobs it started itself began in the next one."""
    return cycle.time % 1 > 0.5
