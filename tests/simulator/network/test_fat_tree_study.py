"""The study of allocations on a fat tree runs, and says that neighbours are better."""

from __future__ import annotations

from pathlib import Path

from experiments.contiguous_on_a_fat_tree import communicating_jobs, slowdowns


def test_contiguous_allocation_pays_on_a_fat_tree(tmp_path: Path) -> None:
    found = slowdowns(communicating_jobs(tmp_path / "jobs.json", 120, seed=1))
    assert 1 <= found["contiguous"][0] < found["random"][0]
    assert 1 <= found["best-fit"][0] < found["spread"][0]
