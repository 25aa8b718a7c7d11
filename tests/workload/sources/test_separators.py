"""Lines of sacct with its separator inside of values."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.sacct import realigned

NAMES = ["JobID", "Constraints", "NNodes", "JobName", "State"]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("7|a|b|2|sim|FAILED", ["7", "a|b", "2", "sim", "FAILED"]),
        ("7|a|2|s|im|FAILED", ["7", "a", "2", "s|im", "FAILED"]),
        ("7|a|b|2|s|i|m|FAILED", ["7", "a|b", "2", "s|i|m", "FAILED"]),
        ("7|a|b|c|2|s|im|FAILED", ["7", "a|b|c", "2", "s|im", "FAILED"]),
        ("7|a|2|2|sim|FAILED", None),
        ("7|a|b|c|sim|FAILED", None),
        ("7|a|2|sim|FAILED", None),
    ],
)
def test_there_is_one_way_to_read_it_or_none(line: str, values: list[str] | None) -> None:
    """Of the last but two: the 2 may belong to the constraints or to the name of the job."""
    assert realigned(NAMES, line.split("|"), "|") == values


def test_a_log_in_which_each_line_has_one(tmp_path: Path) -> None:
    path = tmp_path / "jobs.sacct"
    path.write_text(
        "JobID|User|Submit|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|Constraints\n"
        "1|ann|100|160|220|COMPLETED|60|05:00|2|2|old|new\n"
    )
    assert read_log(path).more["features"].tolist() == ["old|new"]
