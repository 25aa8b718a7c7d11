"""The study of allocations on a fat tree runs, and says that neighbours are better."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.experiments import contiguous_on_a_fat_tree as study


def test_hosts_behind_one_switch_pay_on_a_fat_tree_where_jobs_send_a_lot(tmp_path: Path) -> None:
    workload = study.communicating_jobs(tmp_path / "jobs.json", 80, share=0.75, seed=1)
    near, far = (study.measured(workload, selection) for selection in ("fewest-switches", "random"))
    assert 1 <= near[0] < far[0]
    assert 1 <= near[1] < far[1]
    assert near[1] <= near[0] + 1e-9


def test_the_table_has_a_row_for_each_share_and_selection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "SELECTIONS", ("fewest-switches", "random"))
    rows = [line.split(" | ") for line in study.table(jobs=4, seeds=[1, 2])]
    assert [row[:2] for row in rows[2:]] == [
        [f"| {share:.0%}", f"`{selection}`"]
        for share in study.SHARES
        for selection in ("fewest-switches", "random")
    ]
