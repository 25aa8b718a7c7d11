"""What makes no sense in a log is said when it is read, with a figure."""

from __future__ import annotations

from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.workload.sources import read_log
from tests.processes import call_here

#: For each log: columns other than these, and what is said. The usual load is 60 x 1,000 / (59 x 1,000 x 4).
SENSELESS: dict[str, tuple[dict[str, float], str]] = {
    "limits in minutes": ({"requested_time": 60}, "60 of 60 requested times are below the run time"),
    "limits that are run times": ({"requested_time": 1000}, "60 of 60 requested times equal the run time"),
    "run times in ms": ({"run_time": 10_000_000, "requested_time": 20_000_000}, "the load is 2.54e+03 on 4"),
    "run times in days": ({"run_time": 0.0001}, "the load is 2.54e-08 on 4 processors"),
    "run times in us": (
        {"run_time": 1e9, "requested_time": 2e9},
        "years after the first submission: check the unit of run_time",
    ),
    "no run times": ({"run_time": 0}, "all 60 jobs have run times of 0"),
    "submissions in ms": ({"submit": 1e9}, "submissions span 1,870 years"),
}


def written(folder: Path, changed: dict[str, float], ending: str) -> Path:
    """60 jobs of 1,000 s, one every 1,000 s, which request 2,000 s; ``changed`` says what is otherwise."""
    usual = {"submit": 1000, "run_time": 1000, "requested_time": 2000} | changed
    path = folder / f"log.{ending}"
    rows = ((n + 1, n * usual["submit"], usual["run_time"], usual["requested_time"]) for n in range(60))
    if ending == "csv":
        head = "# MaxProcs: 4\njob_number,submit,run_time,requested_time,requested_processors\n"
        path.write_text(head + "".join(f"{number},{a},{b},{c},1\n" for number, a, b, c in rows))
    else:
        lines = (f"{number} {a} 0 {b} 1 -1 -1 1 {c}" + " -1" * 9 + "\n" for number, a, b, c in rows)
        path.write_text("; MaxProcs: 4\n" + "".join(lines))
    return path


@pytest.mark.parametrize("kind", SENSELESS)
@pytest.mark.parametrize("ending", ["csv", "swf"])
def test_what_makes_no_sense_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: str, ending: str
) -> None:
    changed, said = SENSELESS[kind]
    path = written(tmp_path, changed, ending)
    read_log(path)
    assert caplog.text.count(said) == 1
    caplog.clear()
    bp.simulate(path, "easy")
    assert caplog.text.count(said) == 1
    caplog.clear()
    bp.simulate(bp.read_log(path), "easy")
    assert caplog.text.count(said) == 1


@pytest.mark.parametrize("ending", ["csv", "swf"])
def test_nothing_is_said_of_a_sensible_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, ending: str
) -> None:
    path = written(tmp_path, {}, ending)
    read_log(path)
    bp.simulate(path, "easy")
    assert not caplog.text


def test_jobs_that_are_larger_than_the_machine_are_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("# MaxProcs: 4\nsubmit,run_time,requested_processors\n0,10,4\n1,10,5\n")
    read_log(path)
    assert "1 of 2 jobs are larger than the machine of 4 processors" in caplog.text


def test_the_load_is_that_of_the_given_machine(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, {}, "swf")
    assert call_here(["run", "-s", "easy", "-w", path, "-e", tmp_path / "a"])[0] == 0
    assert not caplog.text
    assert call_here(["run", "-s", "easy", "-w", path, "--hosts", "4000", "-e", tmp_path / "b"])[0] == 0
    assert "the load is 0.000254 on 4,000 processors: check the units" in caplog.text
