"""Logs that are read in pieces give the same jobs as those that are read as a whole."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.workload.model import CancelledRule, Workload, as_jobs
from batsched_py.workload.read import read_workload
from batsched_py.workload.sources import read_log, sacct, table, write_log
from batsched_py.workload.sources.accounting import most_in_use
from batsched_py.workload.sources.published import Gwf
from batsched_py.workload.swf.workload import swf_to_workload
from tests.processes import PATIENCE, environment

SAMPLE = Path(__file__).parents[3] / "workloads" / "sample.swf"

HEAD = (
    "job,submit,wait,run_time,allocated_processors,requested_processors,requested_time,user,partition,status"
)


@pytest.fixture
def piece(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many records are read at a time."""
    monkeypatch.setattr(table, "PIECE", 9)
    monkeypatch.setattr(sacct, "_PIECE", 9)
    return 9


def same_jobs(path: Path, cancelled: CancelledRule = "leave-out", **options: str) -> Workload:
    """The jobs of a file, which are the same if it is read as a whole."""
    made = read_workload(path, "w0", cancelled=cancelled, options=options)
    whole = swf_to_workload(read_log(path, options=options), "w0", cancelled=cancelled)
    assert [*map(repr, made.jobs)] == [*map(repr, whole.jobs)]
    assert dict(made.profiles) == dict(whole.profiles)
    assert made.finishes is not None and whole.finishes is not None
    assert list(made.finishes) == list(whole.finishes)
    assert (made.nb_hosts, made.has_cancelled) == (whole.nb_hosts, whole.has_cancelled)
    assert made.calendar == whole.calendar
    assert as_jobs(made.jobs).users()[0] == as_jobs(whole.jobs).users()[0]
    return made


def rows(count: int, users: tuple[str, ...], date: bool = False) -> list[str]:
    random = Random(1)
    lines = []
    for number in range(count):
        submit: object = random.randrange(5000)
        if date:
            submit = (
                f"2024-03-0{random.randrange(1, 9)} {random.randrange(24):02}:00:{random.randrange(60):02}"
            )
        cancelled = random.random() < 0.2
        run_time = 0 if cancelled else random.randrange(1, 900)
        size = 0 if cancelled else random.randrange(1, 9)
        cells = (number, submit, random.randrange(50), run_time, size, 4, 900, random.choice(users), "p")
        lines.append(",".join(map(str, (*cells, 5 if cancelled else 1))))
    return lines


@pytest.mark.parametrize("users", [("3", "11"), ("bob", "alice", "")])
@pytest.mark.parametrize("date", [False, True])
def test_tables(tmp_path: Path, piece: int, users: tuple[str, ...], date: bool) -> None:
    path = tmp_path / "jobs.csv"
    lines = rows(40, users, date)
    lines[11] = lines[11].replace(",p,", ",,")
    path.write_text("\n".join(["# MaxProcs: 64", HEAD, *lines]) + "\n")
    made = same_jobs(path)
    assert made.nb_hosts == 64
    assert (made.calendar is not None) == date
    assert len(made.jobs) < 40
    assert same_jobs(path, "withdraw").nb_hosts == 64


def test_tables_with_faults(tmp_path: Path, piece: int, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "jobs.csv"
    lines = rows(20, ("a", "b"))
    lines[4] = "4,soon,1,1,1,1,1,a,p,1"
    lines[17] = "17,1,1,-5,1,1,1,a,p,1"
    path.write_text("\n".join([HEAD, *lines]) + "\n")
    same_jobs(path)
    first, second = [record.message for record in caplog.records if "bad lines" in record.message]
    assert first == second
    assert "line 6: submit is no number or time; line 19: run_time is unknown or negative" in first


@pytest.mark.parametrize(
    "later",
    [
        '7,100,1,5,1,1,9,3,"two\nlines",1',
        "7,100,1,5,1,1,9,carol,p,1",
        "7,2024-01-01 10:00:00,1,5,1,1,9,1,p,1",
    ],
)
def test_pieces_that_disagree_are_read_as_a_whole(tmp_path: Path, piece: int, later: str) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([HEAD, *rows(30, ("1", "2")), later]) + "\n")
    same_jobs(path)


def test_columns_of_other_names_and_tables_without_jobs(tmp_path: Path, piece: int) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("When,For,Cores\n" + "".join(f"{9 - each},{each + 1},2\n" for each in range(9)))
    names = "submit:When,run_time:For,requested_processors:Cores"
    assert [job.submission_time for job in same_jobs(path, columns=names).jobs] == list(range(9))
    with pytest.raises(InputError, match="there is no column submit"):
        read_workload(path, "w0")
    path.write_text("submit,run_time,requested_processors\n")
    with pytest.raises(InputError, match="no record of a finished job"):
        read_workload(path, "w0")


@pytest.mark.parametrize("ending", ["parquet", "sacct"])
def test_other_kinds(tmp_path: Path, piece: int, ending: str) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join(["# MaxProcs: 9", HEAD, *rows(40, ("bob", "alice", "x"), True)]) + "\n")
    write_log(tmp_path / f"jobs.{ending}", read_log(path))
    assert len(same_jobs(tmp_path / f"jobs.{ending}").jobs) > 20


def test_sacct_with_steps_arrays_and_jobs_that_run(tmp_path: Path, piece: int) -> None:
    lines = ["JobID|User|Submit|Start|End|State|ReqCPUS|AllocCPUS|MaxRSS"]
    for number in range(20):
        day = f"2024-05-{28 - number:02}T10:00:"
        state = "RUNNING" if number % 7 == 3 else "COMPLETED"
        lines.append(f"{number}|u{number % 3}|{day}00|{day}30|{day}50|{state}|2|4|")
        lines.append(f"{number}.batch||{day}30|{day}30|{day}50|COMPLETED|2|4|100K")
    day = "2024-05-30T10:00:"
    lines.append(f"40_[1-3]|u9|{day}00|None|{day}20|CANCELLED by 7|6|0|")
    path = tmp_path / "jobs.sacct"
    path.write_text("\n".join(lines) + "\n")
    assert len(same_jobs(path).jobs) == 17
    assert len(same_jobs(path, "withdraw").jobs) == 20


def test_most_in_use_against_a_clock() -> None:
    random = np.random.default_rng(1)
    for _ in range(50):
        starts = random.integers(0, 20, 12).astype(float)
        ends, sizes = starts + random.integers(0, 5, 12), random.integers(1, 9, 12)
        at = [int(sizes[(starts <= now) & (now < ends)].sum()) for now in range(30)]
        assert most_in_use(starts, ends, sizes) == max(at)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["csv", "sacct"])
def test_memory_of_a_large_log(tmp_path: Path, ending: str) -> None:
    """Each of a million jobs takes less than 150 bytes."""
    log = read_log(SAMPLE)
    write_log(tmp_path / f"part.{ending}", log)
    text = (tmp_path / f"part.{ending}").read_text().splitlines(keepends=True)
    first = 1 + next(place for place, line in enumerate(text) if not line.startswith("#"))
    head, lines = "".join(text[:first]), text[first:]
    peaks = []
    for times in (4, 334):
        path = tmp_path / f"{times}.{ending}"
        with path.open("w") as file:
            file.write(head)
            for number, line in enumerate(lines * times, 1):
                file.write(line if ending == "sacct" else f"{number}{line[line.index(',') :]}")
        program = (
            "import sys; from batsched_py.workload.read import read_workload; from tests.peak import peak;"
            "jobs = read_workload(sys.argv[1], 'w0').jobs; print(len(jobs), peak())"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        count, peak = map(int, done.stdout.split())
        assert count == len(lines) * times
        peaks.append((count, peak))
    (few, low), (many, high) = peaks
    assert (high - low) / (many - few) < 150


@pytest.mark.parametrize("count", [2, 3, 9])
def test_the_first_rows_of_a_log_with_more_fields(count: int, tmp_path: Path) -> None:
    path = tmp_path / "log.gwf"
    path.write_text("".join(f"{number} {10 * number} 0 5 1{' -1' * 24}\n" for number in range(5)))
    table, log = Gwf().beginning(path, count)
    assert len(table) == len(log) == min(count, 5)
