"""Mistakes in changes and models of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import call_here

CODE = """
from batsched_py.workload.changes import Change
from batsched_py.workload.models import Model


class Raises(Change):
    name = "raises"

    def alter(self, log):
        return log.nonsense


class Forgets(Change):
    name = "forgets"

    def alter(self, log):
        log.select(log.run_time > 0)


class Empty(Model):
    name = "empty"

    def generate(self, jobs, seed):
        return [][jobs]
"""

SAMPLE = Path(__file__).resolve().parents[2] / "workloads" / "sample.swf"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        (
            "Raises",
            "change 'raises' failed: AttributeError: 'SwfLog' object has no attribute 'nonsense' (OWN:10)",
        ),
        ("Forgets", "change 'forgets' gives back None, and not a log and a few words"),
    ],
)
def test_a_mistake_in_a_change_is_one_line(name: str, fault: str, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(CODE)
    code, _, error = call_here(["change", SAMPLE, tmp_path / "out.swf", f"{own}:{name}"])
    assert (code, error.strip()) == (1, f"batsched-py: error: {fault.replace('OWN', str(own))}")


def test_a_mistake_in_a_model_is_one_line(tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text(CODE)
    code, _, error = call_here(["generate", f"{own}:Empty", "-n", "10", "--output", tmp_path / "out.swf"])
    fault = f"model '{own}:Empty' failed: IndexError: list index out of range ({own}:24)"
    assert (code, error.strip()) == (1, f"batsched-py: error: {fault}")
