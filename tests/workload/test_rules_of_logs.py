"""How jobs are made of the records of a log: sizes, walltimes, the order of one instant; and what is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import batsched_py as bp
from tests.processes import call_here

#: Job 9 was allocated 4 processors and requested 2, job 10 the other way round; all are submitted at once.
#: Job 9 runs for longer than it requested, job 11 requested nothing.
LOG = """\
; MaxProcs: 4
9 0 0 100 4 -1 -1 2 60 -1 1 1 1 1 1 1 -1 -1
10 0 0 50 2 -1 -1 4 80 -1 1 1 1 1 1 1 -1 -1
11 0 0 20 2 -1 -1 2 -1 -1 1 1 1 1 1 1 -1 -1
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


@pytest.fixture(params=["native", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "python":
        monkeypatch.setattr("batsched_py.native.library", None)
    return str(request.param)


def column(result: bp.Result, name: str) -> list[float]:
    jobs = result.jobs.set_index(result.jobs["job_id"].astype(str))
    return [jobs[name][job] for job in ("9", "10", "11")]


def test_sizes_are_allocated_or_requested_processors(log: Path, engine: str) -> None:
    sizes = "requested_number_of_resources"
    assert column(bp.simulate(log, "fcfs"), sizes) == [4, 2, 2]
    assert column(bp.simulate(log, "fcfs", processors="requested"), sizes) == [2, 4, 2]


def test_a_late_job_is_killed_or_stays(log: Path, engine: str) -> None:
    killed = bp.simulate(log, "fcfs", walltime="requested")
    assert column(killed, "execution_time") == [60, 50, 20]
    assert killed.overview.killed == 1
    stays = bp.simulate(log, "fcfs", walltime="estimate")
    assert column(stays, "execution_time") == [100, 50, 20]
    assert column(stays, "requested_time") == [60, 80, -1]
    assert stays.overview.killed == 0
    assert stays.validate() == []


def test_a_schedule_of_late_jobs_is_valid_only_under_that_rule(log: Path, tmp_path: Path) -> None:
    bp.simulate(log, "fcfs", walltime="estimate", export=tmp_path / "x")
    told = ["validate", tmp_path / "x_jobs.csv", "-w", log, "--hosts", "4"]
    assert call_here([*told, "--walltime", "estimate"])[0] == 0
    assert "walltime" in call_here([*told, "--walltime", "requested"])[1]


def test_jobs_of_one_instant_are_ordered_by_letters_or_by_numbers(log: Path, engine: str) -> None:
    by_letters = bp.simulate(log, "fcfs")
    assert column(by_letters, "starting_time") == [50, 0, 0]
    by_numbers = bp.simulate(log, "fcfs", ties="numbers")
    assert column(by_numbers, "starting_time") == [0, 100, 100]
    users = bp.simulate(log, "fcfs", ties="numbers", users="rigid")
    assert column(users, "starting_time") == [0, 100, 100]


def test_replaced_estimates_are_counted(log: Path, engine: str) -> None:
    overview = bp.simulate(log, "fcfs").overview
    assert (overview.unrequested, overview.raised) == (1, 1)
    rows = dict(overview.rows())
    assert rows["  without a request"] == "1 jobs, run time instead"
    assert rows["  raised to the run time"] == "1 jobs"
    assert rows["sizes"] == "allocated, else requested"
    assert not any("size" in name and "without" in name for name in rows)
    twice = dict(bp.simulate(log, "fcfs", walltime="max", walltime_factor=2).overview.rows())
    assert twice["  raised to 2 x the run time"] == "2 jobs"
    assert twice["  without a request"] == "1 jobs, 2 x run time instead"
    requested = bp.simulate(log, "fcfs", walltime="requested").overview
    assert (requested.unrequested, requested.raised) == (1, 0)
    assert dict(requested.rows())["  without a request"] == "1 jobs, none instead"


def test_jobs_of_the_other_size_are_counted(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "log.swf"
    path.write_text(LOG.replace(" 50 2 -1", " 50 -1 -1").replace(" 20 2 -1 -1 2 ", " 20 2 -1 -1 -1 "))
    allocated, requested = (bp.simulate(path, "fcfs", processors=each) for each in ("allocated", "requested"))
    rows = [dict(each.overview.rows()) for each in (allocated, requested)]
    assert rows[0]["  without an allocated size"] == "1 jobs, requested instead"
    assert rows[1]["sizes"] == "requested, else allocated"
    assert rows[1]["  without a requested size"] == "1 jobs, allocated instead"
    bp.read_log(path).save(tmp_path / "log.csv")
    assert bp.simulate(tmp_path / "log.csv", "fcfs").overview.sized_otherwise == 1


def test_a_large_log_without_allocated_sizes_is_counted_in_full(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "log.swf"
    lines = [f"{n} {n} 0 1 {1 if n < 1900 else -1} -1 -1 1 60 -1 1{' -1' * 7}\n" for n in range(1, 3001)]
    path.write_text("; MaxProcs: 4\n" + "".join(lines))
    assert bp.simulate(path, "fcfs").overview.sized_otherwise == 1101


def test_every_way_to_read_a_log_counts_alike(log: Path, tmp_path: Path) -> None:
    quick, whole = bp.simulate(log, "fcfs"), bp.simulate(log, "fcfs", attribute=["status"])
    bp.read_log(log).save(tmp_path / "log.csv")
    table = bp.simulate(tmp_path / "log.csv", "fcfs")
    in_memory = bp.simulate(bp.read_log(log), "fcfs")
    counts = {(each.overview.unrequested, each.overview.raised) for each in (quick, whole, table, in_memory)}
    assert counts == {(1, 1)}


def test_serve_cannot_let_late_jobs_stay(log: Path) -> None:
    done = call_here(["serve", "-s", "easy", "-w", log, "--users", "rigid", "--walltime", "estimate"])
    assert done[0] != 0
    assert "--walltime estimate is for run" in "".join(map(str, done))


def test_jobs_without_a_request_get_an_estimate_of_a_model_in_one_word(log: Path, engine: str) -> None:
    known, modelled = bp.simulate(log, "fcfs"), bp.simulate(log, "fcfs", walltime="modelled")
    assert dict(modelled.overview.rows())["  without a request"] == "1 jobs, a modelled one instead"
    before, after = column(known, "requested_time"), column(modelled, "requested_time")
    run_times = column(known, "execution_time")
    (changed,) = [place for place in range(3) if before[place] != after[place]]
    assert before[changed] == run_times[changed] < after[changed]
    assert known.validate() == modelled.validate() == []


def test_policies_that_go_by_estimates_are_told_that_they_know_too_much(
    log: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for policy, walltime in (("fcfs", "at-least-run-time"), ("easy", "modelled"), ("easy", "requested")):
        bp.simulate(log, policy, walltime=walltime)
        assert "requested no time" not in caplog.text
    bp.simulate(log, "easy")
    assert "1 of 3 jobs requested no time, so easy knows how long they run" in caplog.text
