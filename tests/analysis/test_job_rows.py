"""The rows of jobs as columns of numbers: whoever reads them, they are the same."""

from __future__ import annotations

import random
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import numpy as np
import pytest

from batsched_py import native
from batsched_py.analysis import job_rows
from batsched_py.analysis.job_rows import JobRows, read_rows, rows_of
from batsched_py.analysis.schedule import read_schedule, schedule_in
from batsched_py.errors import InputError
from batsched_py.protocol.jobs import JobState
from batsched_py.simulator.outputs import JOBS_HEADER

COLUMNS = (*job_rows._NUMBERS, "state", "held", "mean_held", "highest")

#: A row that is as most are.
ROW = (
    "a,w,p,5.000000,2,9.000000,1,COMPLETED_SUCCESSFULLY,6.000000,4.000000,10.000000,1.000000,5.000000,1.250000,"
    '0-1,-1.000000,""\n'
)

needs_library = pytest.mark.skipif(
    native.library is None, reason="the library of the native engine is missing"
)


def number(random: random.Random) -> str:
    """A time as it may stand in a table, short or long."""
    return f"{random.choice((-1, 1, 1)) * random.random() * 10 ** random.randrange(-6, 17):.6f}"


def table_of(nb_jobs: int, seed: int = 1) -> str:
    """The text of a table of jobs that ended in all ways."""
    rng, lines = random.Random(seed), [JOBS_HEADER]
    for job in range(nb_jobs):
        state, low = rng.choice(list(JobState)[-5:]), rng.randrange(100)
        if state == JobState.REJECTED:
            lines.append(f'"{job}","w",p,{number(rng)},1,-1.000000,0,REJECTED,,,,,,,,,""\n')
            continue
        times = ",".join(number(rng) for _ in range(6))
        hosts = rng.choice(["", f"{low}", f"{low}-{low + 3}", f"{low} {low + 2}-{low + 9} 2000"])
        lines.append(f'{job},"w, x",p,{number(rng)},3,{number(rng)},1,{state},{times},{hosts},-1.000000,""\n')
    return "".join(lines)


def same(one: JobRows, other: JobRows) -> bool:
    """Whether all columns of the jobs that ran are equal, and the submissions of all."""
    pairs = [(one.started[name], other.started[name]) for name in COLUMNS]
    pairs.append((one["submission_time"], other["submission_time"]))
    return len(one) == len(other) and all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


@needs_library
@pytest.mark.parametrize("piece", [100, 1 << 20])
def test_numbers_are_read_as_in_the_whole_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """In however small pieces; and no table is made."""
    path = tmp_path / "out_jobs.csv"
    path.write_text(table_of(2000).removesuffix("\n"))
    expected = JobRows.of(read_schedule(path))
    monkeypatch.setattr(job_rows, "_PIECE", piece)
    monkeypatch.setattr(job_rows.jobs_csv, "read_schedule", lambda path: pytest.fail("a table was made"))
    assert same(read_rows(path), expected)


def test_rows_of_tables_in_memory() -> None:
    """They are those of files."""
    text = table_of(50)

    def table() -> object:
        return schedule_in(StringIO(text), "jobs.csv")

    def opened(name: str) -> nullcontext[StringIO] | None:
        return nullcontext(StringIO(text)) if name == "jobs" else None

    assert same(rows_of(opened, table), JobRows.of(table()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("p,5.000000", "p,5e0"),
        ("p,5.000000", 'p,"5.000000"'),
        (",0-1,", ",0 1,"),
        (",0-1,", ",1 0,"),
        ('""', "caf\u00e9"),
        ('""', '"a ""note"""'),
        ('""', '"two\nlines"'),
        ("\n", "\r\n"),
        ("\n", "\n\n"),
    ],
)
def test_unusual_rows_are_read_too(tmp_path: Path, before: str, after: str) -> None:
    """As the whole table is read."""
    path = tmp_path / "out_jobs.csv"
    path.write_bytes((JOBS_HEADER + ROW.replace(before, after)).encode())
    read = read_rows(path)
    assert same(read, JobRows.of(read_schedule(path)))
    assert [float(read[name][0]) for name in ("submission_time", "held")] == [5.0, 2.0]
    assert read.has_notes == (after in ("caf\u00e9", '"a ""note"""', '"two\nlines"'))


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("6.000000", "six", "`starting_time` is 'six' instead of a number"),
        ("6.000000", "", "`starting_time` is '' instead of a number"),
        ("6.000000", "inf", "`starting_time` is 'inf', which is not finite"),
        ("9.000000", "", "`requested_time` is '' instead of a number"),
        (",2,", ",2.5,", "`requested_number_of_resources` is '2.5' instead of an integer"),
        ("COMPLETED_SUCCESSFULLY", "DONE", "`final_state` is 'DONE', which is no state in which a job ends"),
        (",1.250000", "", "16 fields instead of 17"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, before: str, after: str, fault: str) -> None:
    """With its line."""
    path = tmp_path / "out_jobs.csv"
    path.write_text(JOBS_HEADER + ROW + ROW.replace(before, after))
    with pytest.raises(InputError, match=f"^{path}:3: {fault}$"):
        read_rows(path)


def test_a_part_of_the_rows() -> None:
    """It has the numbers and the texts of its jobs."""
    text = table_of(50)
    rows = JobRows.of(schedule_in(StringIO(text), "jobs.csv"))
    part = rows.select(np.array([3, 5]))
    assert (part["submission_time"] == rows["submission_time"][[3, 5]]).all()
    assert part.table["job_id"].tolist() == ["3", "5"]
