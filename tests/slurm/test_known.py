"""Every setting and every word of Slurm 22.05 to 24.11 becomes something that is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from batsched_py.slurm.known import group_of
from batsched_py.slurm.policy.settings import Preemption
from batsched_py.slurm.scenario import Sources, read_scenario

LISTED: dict[str, dict[str, list[str]]] = json.loads(
    (Path(__file__).parents[2] / "docs" / "hooks" / "slurm_settings.json").read_text()
)


def test_all_kinds_are_listed() -> None:
    assert {"slurm.conf", "partition", "node", "qos", "association", "reservation flag"} <= LISTED.keys()
    assert sum(map(len, LISTED.values())) > 500


@pytest.mark.parametrize("kind", LISTED)
def test_every_setting_is_in_a_group(kind: str) -> None:
    missing = [name for name in LISTED[kind] if group_of(kind, name) is None]
    assert not missing


@pytest.mark.parametrize(
    ("kind", "name", "group"),
    [
        ("slurm.conf", "PriorityWeightAge", "modelled"),
        ("slurm.conf", "SlurmctldPort", "shapes no schedule"),
        ("slurm.conf", "PriorityUsageResetPeriod", "modelled"),
        ("slurm.conf", "Frobnicate", None),
        ("partition", "AllowGroups", "modelled"),
        ("partition", "AllocNodes", "not modelled"),
        ("SchedulerParameters", "bf_interval", "modelled"),
        ("SchedulerParameters", "strict_order", None),
        ("PreemptParameters", "strict_order", "modelled"),
        ("SelectTypeParameters", "LL_SHARED_GRES", "not modelled"),
        ("SelectTypeParameters", "CR_Frobnicate", None),
        ("PriorityFlags", "NO_NORMAL_ALL", "modelled"),
        ("PriorityFlags", "FROBNICATE", None),
        ("qos flag", "Relative", "not modelled"),
        ("qos flag", "Frobnicate", None),
        ("qos", "MaxWall", "modelled"),
        ("reservation flag", "WEEKLY", "modelled"),
        ("reservation flag", "HOURLY", "modelled"),
        ("reservation flag", "WEEKDAY", "not modelled"),
    ],
)
def test_groups(kind: str, name: str, group: str | None) -> None:
    assert group_of(kind, name) == group


def test_words_of_later_versions_are_listed_and_the_others_count(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU,LL_SHARED_GRES\n"
        "PreemptParameters=strict_order,reorder_count=3,min_exempt_priority=9\nTLSType=tls/none\n"
        "NodeName=n[1-4] CPUs=4\nPartitionName=batch Nodes=ALL\n"
    )
    scenario = read_scenario(Sources(conf=conf))
    assert scenario.configuration.selection.consumed == "cpu"
    assert scenario.configuration.preemption == Preemption(strict_order=True, reorder_count=3)
    assert [each.what for each in scenario.findings.unmodelled] == [
        "SelectTypeParameters=CR_CPU,LL_SHARED_GRES: 'LL_SHARED_GRES' is not modelled",
        "min_exempt_priority is not modelled",
    ]
