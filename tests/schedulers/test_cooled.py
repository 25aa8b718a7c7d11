"""Jobs that wait while it is hot outside, under any policy."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.report.figures import Subject, curves
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import validate
from batsched_py.errors import PolicyError
from batsched_py.outside.curve import Curve, Known
from batsched_py.simulator.setup import Setup
from batsched_py.testing import workload_of
from tests.power import INNER, machine, random_jobs, run, sized, starts
from tests.processes import call_here

#: A day of 400 s: it is hot in its third quarter.
DAYS = Curve([0.0, 100.0, 200.0, 300.0], [18.0, 30.0, 33.0, 22.0], period=400.0)


def test_no_job_starts_while_it_is_hot_and_those_that_run_go_on(tmp_path: Path) -> None:
    jobs = [sized("a", 0, 1, 250), sized("b", 150, 1, 20), sized("c", 220, 1, 20), sized("d", 650, 1, 20)]
    run(Setup(machine(4), [workload_of(jobs)]), "cooled(fcfs)", tmp_path, Known(temperature=DAYS))
    assert starts(tmp_path) == {"a": 0, "b": 150, "c": 300, "d": 700}
    run(Setup(machine(4), [workload_of(jobs)]), "cooled", tmp_path, Known(temperature=DAYS), degrees="29")
    assert starts(tmp_path) == {"a": 0, "b": 300, "c": 300, "d": 700}


@pytest.mark.parametrize("inner", INNER)
def test_no_job_is_lost_under_any_policy(inner: str, tmp_path: Path) -> None:
    jobs = random_jobs(3, 60, 4)
    run(Setup(machine(4), [jobs]), f"cooled({inner})", tmp_path, Known(temperature=DAYS))
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    assert validate(schedule, 4, [jobs]) == []
    assert schedule["success"].all() and len(schedule) == 60
    assert all(DAYS.at(start) <= 30 for start in schedule["starting_time"])
    assert (schedule["starting_time"] % 400 == 300).any()


def test_without_a_temperature_nothing_changes(tmp_path: Path) -> None:
    jobs = random_jobs(3, 30, 4)
    written = []
    for name in ("easy", "cooled(easy)"):
        run(Setup(machine(4), [jobs]), name, tmp_path)
        written.append((tmp_path / "out_jobs.csv").read_bytes())
    assert written[0] == written[1]


def test_a_summer_without_end_is_an_error(tmp_path: Path) -> None:
    known = Known(temperature=Curve([0.0, 50.0], [20.0, 40.0]))
    with pytest.raises(PolicyError, match="from 60 on it is hotter than 30 degrees for ever"):
        run(Setup(machine(4), [workload_of([sized("a", 60, 1, 5)])]), "cooled", tmp_path, known)


def test_it_reads_the_file_and_the_report_can_draw_it(tmp_path: Path) -> None:
    log, temperature = tmp_path / "log.swf", tmp_path / "temperature.csv"
    log.write_text("1 10 -1 20 1 -1 -1 1 30 -1 1 1 1 1 1 1 -1 -1\n")
    temperature.write_text("time,value\n0,31\n100,25\n")
    arguments = [
        "run",
        "-w",
        log,
        "--hosts",
        "2",
        "-s",
        "cooled(easy)",
        "--temperature",
        temperature,
        "--remarks",
    ]
    code, _, err = call_here([*arguments, "-e", tmp_path / "out"])
    assert code == 0, err
    assert starts(tmp_path) == {"1": 100}
    lines = (tmp_path / "out_outside.csv").read_text().splitlines()
    assert lines == ["name,time,value", "temperature,0.000000,31", "temperature,100.000000,25"]
    code, out, _ = call_here(["explain", tmp_path / "out", "1"])
    assert "waits until it is cooler outside" in out
    assert set(curves(Subject(read_run(f"{tmp_path}/out_jobs.csv", "run")))["Temperature"][1]) == {31, 25}
