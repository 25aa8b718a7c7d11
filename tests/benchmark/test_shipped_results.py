"""The results that ship, and the page of the documentation that is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.benchmark.results import Result
from batsched_py.benchmark.tasks import standard
from tests.processes import call_here

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "benchmarks" / "results").glob("*.benchmark.json"))


def test_twenty_results_ship_and_the_documentation_has_their_table(tmp_path: Path) -> None:
    assert len(SHIPPED) == 20
    code, _, error = call_here(["benchmark", "table", *SHIPPED, "--output", tmp_path / "made.md"])
    assert (code, error) == (0, "")
    table = (tmp_path / "made.md").read_text().partition("\n\n")[2]
    assert table.strip() in (ROOT / "docs" / "benchmark.md").read_text()


def test_the_program_that_ships_has_the_schedules_of_the_same_policy() -> None:
    ours, its = (
        Result.read(ROOT / "benchmarks" / "results" / f"{name}.benchmark.json").tasks
        for name in ("fcfs", "fcfs.py-over-ZeroMQ")
    )
    both = [name for name, done in its.items() if done.state == "ok"]
    assert len(both) == 76 and all(its[name] == ours[name] for name in both)


@pytest.mark.slow
def test_a_sample_of_what_ships_comes_out_the_same(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``batsched-py benchmark verify benchmarks/results/*.json --logs ../shared/logs --trust`` does all."""
    pytest.importorskip("batsim")
    monkeypatch.chdir(ROOT)
    assert standard().version == "1"
    command = ["benchmark", "verify", *SHIPPED, "--tasks", "2", "--logs", shared / "logs", "--trust"]
    code, told, _ = call_here(command)
    assert (code, told.count("the same: 2 of 2")) == (0, 20)
