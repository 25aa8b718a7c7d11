"""Priorities by a formula: the weight of the age as a formula comes out the same, and others can be tried."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.processes import call_here

WEEK = 7 * 86400


def jobs_of(folder: Path, root: Path, name: str, lines: str) -> tuple[int, str, bytes]:
    """The exit code, what is said, and the schedule of the sample under these lines of a configuration."""
    file = folder / f"{name}.toml"
    file.write_text(lines)
    sample = root / "workloads" / "sample.swf"
    options = ["-s", "slurm", "-o", f"configuration_file={file}", "-e", folder / name]
    code, _, err = call_here(["run", "-w", sample, "--hosts", "64", *options])
    table = folder / f"{name}_jobs.csv"
    return code, err, table.read_bytes() if table.exists() else b""


def test_a_formula_of_the_age_is_the_weight_of_the_age(tmp_path: Path, root: Path) -> None:
    weight = 'start = ""\n[priority]\ntype = "multifactor"\nweight_age = 100000\n'
    formula = f'start = ""\n[priority]\nformula = "100000 * min(wait / {WEEK}, 1) + 0 * size"\n'
    weighted = jobs_of(tmp_path, root, "weights", weight)
    assert weighted[0] == 0
    assert jobs_of(tmp_path, root, "formula", formula)[2] == weighted[2]


def test_a_formula_says_who_goes_first(tmp_path: Path, root: Path) -> None:
    small, large = (
        jobs_of(tmp_path, root, name, f'[priority]\nformula = "{text}"\n')
        for name, text in (("small", "1000 - size"), ("large", "size + 1"))
    )
    assert small[0] == large[0] == 0
    assert small[2] != large[2]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("size +", "priority.formula: order 'size +' is neither a name nor a formula"),
        ("1000 - usage", "priority.formula: it names the usage of users, who have no associations"),
    ],
)
def test_a_formula_that_cannot_be_used(text: str, fault: str, tmp_path: Path, root: Path) -> None:
    code, err, _ = jobs_of(tmp_path, root, "wrong", f'[priority]\nformula = "{text}"\n')
    assert code == 1
    assert fault in err


def test_values_that_are_all_one_priority_are_told(
    tmp_path: Path, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert jobs_of(tmp_path, root, "small", '[priority]\nformula = "-size"\n')[0] == 0
    (said,) = (each.getMessage() for each in caplog.records)
    assert said.startswith("priority.formula comes to -")
