"""Tables as strangers bring them: what makes no sense is refused or told, never taken in silence."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
import pyarrow.parquet
import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.workload.sources import read_log
from batsched_py.workload.swf.log import SwfLog

NEEDED = "submit,run_time,requested_processors"
HOUR = 3600


def read(folder: Path, head: str, *rows: str, **options: str) -> SwfLog:
    path = folder / "log.csv"
    path.write_text("\n".join([head, *rows, ""]))
    return read_log(path, options=options)


def frame(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"submit": [0, 60], "run_time": [10, 20], "requested_processors": [1, 2]} | columns)


def test_dates_with_the_offsets_of_winter_and_summer(tmp_path: Path) -> None:
    log = read(tmp_path, NEEDED, "2024-03-31T01:00:00+01:00,1,1", "2024-03-31T04:00:00+02:00,1,1")
    assert log.submit.tolist() == [0, 2 * HOUR]


def test_some_dates_with_a_zone_and_some_on_the_clock_of_the_table(tmp_path: Path) -> None:
    rows = ("2024-01-01T00:00:00Z,1,1", "2024-01-01 02:00:00,1,1", "2024-01-02,1,1")
    log = read(tmp_path, NEEDED, *rows, zone="Europe/Paris")
    assert log.submit.tolist() == [0, HOUR, 23 * HOUR]
    both = [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 2, tzinfo=dt.UTC)]
    assert bp.read_log(frame(submit=both)).columns.submit.tolist() == [0, 24 * HOUR]


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (("01/02/2024", "13/02/2024", "02/03/2024"), [0, 12, 30]),
        (("01/02/2024", "01/13/2024", "02/03/2024"), [0, 11, 32]),
        (("1.2.2024 00:00", "13.2.2024 00:00", "2.3.2024 00:00"), [0, 12, 30]),
    ],
)
def test_all_dates_of_a_column_have_the_same_order(
    tmp_path: Path, dates: tuple[str, ...], days: list
) -> None:
    """Before, 01/02 was in January and 13/02 in February of the same column."""
    log = read(tmp_path, NEEDED, *(f"{date},1,1" for date in dates))
    assert (log.submit / 86400).tolist() == days


def test_dates_that_may_be_of_either_order_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'01/02/2024' may be day/month or month/day; write them as YYYY"):
        read(tmp_path, NEEDED, "01/02/2024,1,1", "02/02/2024,1,1")


@pytest.mark.parametrize("factor", [1e3, 1e6, 1e9])
def test_unix_times_in_other_units_are_refused_unless_they_are_named(tmp_path: Path, factor: float) -> None:
    """Before, two jobs a minute apart were 16 hours apart or more."""
    rows = [f"{(1_700_000_000 + 60 * job) * factor:.0f},1,1" for job in range(2)]
    reason = "in a year beyond 5000, unless it has another unit" if factor < 1e9 else "no number or time"
    with pytest.raises(InputError, match=f"submit is {reason}"):
        read(tmp_path, NEEDED, *rows)
    unit = {1e3: "ms", 1e6: "us", 1e9: "ns"}[factor]
    log = read(tmp_path, NEEDED, *rows, columns=f"submit:submit/{unit}")
    assert log.submit.tolist() == pytest.approx([0, 60], abs=1e-3)


def test_dates_that_are_written_as_numbers_are_refused_unless_they_have_a_unit(tmp_path: Path) -> None:
    """Before, the second of February was 101 seconds after the first of January."""
    rows = ("20240101,1,1", "20240202,1,1")
    with pytest.raises(InputError, match="numbers like 20240101 look like dates"):
        read(tmp_path, NEEDED, *rows)
    assert read(tmp_path, NEEDED, *rows, columns="submit:submit/s").submit.tolist() == [20240101, 20240202]
    assert read(tmp_path, NEEDED, "20240101,1,1", "20240199,1,1").submit.tolist() == [20240101, 20240199]


def test_numbers_of_slurm_are_no_states_of_a_log(tmp_path: Path) -> None:
    """Before, a job that completed was a part of one, and one that failed was cancelled."""
    head, rows = f"{NEEDED},state", ("0,1,1,3", "1,1,1,3", "2,1,1,5", "3,1,1,3")
    with pytest.raises(InputError, match="status:state/slurm or /swf"):
        read(tmp_path, head, *rows, columns="status:state")
    log = read(tmp_path, head, *rows, "4,1,1,6", "5,1,1,4", columns="status:state/slurm")
    assert log.status.tolist() == [1, 1, 0, 1, 0, 5]
    assert read(tmp_path, head, *rows, columns="status:state/swf").status.tolist() == [3, 3, 5, 3]


def test_a_start_in_another_unit_than_the_submission_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="start is in a year beyond 5000"):
        read(tmp_path, "submit,start,end,requested_processors", "1700000000,1700000001000,1700000061000,1")


@pytest.mark.parametrize("empty", ["", "NaN", "null", "None", "N/A", "-"])
def test_a_field_that_is_empty_is_unknown_and_its_job_stays(tmp_path: Path, empty: str) -> None:
    log = read(tmp_path, f"{NEEDED},requested_time", f"0,10,1,{empty}", "5,10,1,20")
    assert log.requested_time.tolist() == [-1, 20]
    assert log.left_out == {}


def test_a_column_without_any_value_is_unknown() -> None:
    table = pyarrow.Table.from_pandas(frame()).append_column("requested_time", pyarrow.nulls(2))
    assert bp.read_log(table).columns.requested_time.tolist() == [-1, -1]
    sizes = frame(requested_processors=[None, 2], allocated_processors=[4, None])
    assert bp.read_log(sizes).columns.processors.tolist() == [4, 2]


def test_a_word_where_a_number_should_be_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = read(tmp_path, f"{NEEDED},requested_time", "0,10,1,soon", "5,10,1,20")
    assert log.left_out == {"requested_time is no number or time": 1}
    assert "line 2: requested_time is no number or time" in caplog.text


@pytest.mark.parametrize("code", [2**32 - 1, 2**32 - 2])
def test_a_time_without_limit_in_slurm_is_unknown(code: int) -> None:
    times = np.array([code, 60], dtype=np.uint32)
    assert bp.read_log(frame(requested_time=times)).columns.requested_time.tolist() == [-1, 60]


def test_parts_of_processors_are_rounded_up_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Before, 3.7 processors were 3, and half of one none."""
    log = read(tmp_path, NEEDED, "0,10,3.7", "5,10,0.5", "6,10,2")
    assert log.processors.tolist() == [4, 1, 2]
    assert "sizes rounded up to whole processors: 2 of 3 jobs" in caplog.text


def test_a_start_before_the_submission_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Before, the wait was negative, and one of -1 s could not be told from one that is unknown."""
    log = read(tmp_path, "submit,start,end,requested_processors", "100,40,160,1", "100,130,160,1")
    assert log.wait.tolist() == [-1, 30]
    assert "wait unknown, for a start before the submission: 1 of 2 jobs" in caplog.text


def test_a_job_number_that_comes_twice_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As in SWF; before, a schedule had two rows of one name."""
    log = read(tmp_path, f"job_number,{NEEDED}", "1,0,10,1", "1,5,10,1", "2,6,10,1")
    assert log.job_number.tolist() == [1, 2]
    assert "line 3: job_number came before" in caplog.text


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    """Before, the second one was ignored in CSV, and ended in a traceback in Parquet."""
    with pytest.raises(InputError, match="2 columns are called 'run_time'"):
        read(tmp_path, "submit,run_time,run_time,requested_processors", "0,10,99,1")
    arrays = [pyarrow.array([0]), pyarrow.array([10]), pyarrow.array([99]), pyarrow.array([1])]
    names = ["submit", "run_time", "run_time", "requested_processors"]
    pyarrow.parquet.write_table(pyarrow.Table.from_arrays(arrays, names=names), tmp_path / "log.parquet")
    with pytest.raises(InputError, match="2 columns are called 'run_time'"):
        read_log(tmp_path / "log.parquet")


def test_states_that_are_none_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = read(tmp_path, f"{NEEDED},status", "0,10,1,1", "1,10,1,7", "2,10,1,eaten")
    assert log.status.tolist() == [1, -1, -1]
    assert "status unknown, for '7': 1 of 3 jobs" in caplog.text
    assert "status unknown, for 'eaten': 1 of 3 jobs" in caplog.text


def test_users_who_are_no_whole_numbers_stay_apart(tmp_path: Path) -> None:
    log = read(tmp_path, f"{NEEDED},user", "0,10,1,2.5", "1,10,1,2", "2,10,1,2.5")
    assert len(set(log.user.tolist())) == 2


def test_an_index_with_a_name_is_a_column(tmp_path: Path) -> None:
    named = frame().set_index("submit")
    named.to_parquet(tmp_path / "log.parquet")
    for log in (bp.read_log(named).columns, read_log(tmp_path / "log.parquet")):
        assert log.submit.tolist() == [0, 60]


def test_days_and_months_of_pandas_are_dates() -> None:
    """Before, they were counted in days, and read as seconds."""
    log = bp.read_log(frame(submit=pd.period_range("2024-01-01", periods=2, freq="D"))).columns
    assert log.submit.tolist() == [0, 86400]


def test_columns_of_moments_that_count_from_different_times_are_refused(tmp_path: Path) -> None:
    """Before, jobs had waited for 54 years."""
    rows = ("0,2024-01-01 00:00,2024-01-01 01:00,1", "5,2024-01-01 00:00,2024-01-01 01:00,1")
    with pytest.raises(InputError, match="start is a date or counts seconds since 1970, and submit does not"):
        read(tmp_path, "submit,start,end,requested_processors", *rows)


@pytest.mark.parametrize("none", ["0", "1970-01-01", "1970-01-01 01:00:00"])
def test_the_beginning_of_unix_time_is_no_moment_of_a_job(tmp_path: Path, none: str) -> None:
    """Before, a job that was cancelled while it waited, or failed before it started, ran for 50 years."""
    head = "submit,start,end,requested_processors,status"
    moments = [1_600_000_000 + each for each in (0, 60, 1, 2, 60, 3)]
    if "-" in none:
        moments = [str(pd.Timestamp(each, unit="s")) for each in moments]
    submit, end, late, start, done, last = moments
    log = read(
        tmp_path, head,
        f"{submit},{none},{end},1,CANCELLED", f"{late},{start},{done},2,COMPLETED",
        f"{late},{none},{done},2,FAILED", f"{last},{start},{none},2,COMPLETED",
    )  # fmt: skip
    assert log.run_time.tolist() == [0, 58]
    assert log.wait.tolist() == [60, 1]
    assert log.never_started.tolist() == [True, False]
    assert log.left_out == {"run_time is no number or time": 2}


def test_times_of_day_that_belong_to_no_day_are_refused(tmp_path: Path) -> None:
    """Before, they were of the day on which the log was read."""
    with pytest.raises(InputError, match="times like '00:01:00' belong to no day"):
        read(tmp_path, NEEDED, "00:01:00,10,1", "23:59:00,10,1")


def test_dates_that_may_begin_with_a_short_year_are_refused(tmp_path: Path) -> None:
    """Before, the second and the third of January 2024 were a year apart."""
    with pytest.raises(InputError, match="'24-01-02' may be day/month/year or year/month/day"):
        read(tmp_path, NEEDED, "24-01-02,10,1", "24-01-03,10,1")
    assert read(tmp_path, NEEDED, "01/13/24,10,1", "01/14/24,10,1").submit.tolist() == [0, 24 * HOUR]


def test_columns_that_contradict_each_other_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As when one of them is in another unit."""
    rows = ("0,1,60,3660,60,1", "5,1,125,3725,3600,1", "6,54,60,100,40,1")
    read(tmp_path, "submit,wait,start,end,run_time,requested_processors", *rows)
    assert "run_time taken from its column, which is not end - start: 1 of 3 jobs" in caplog.text
    assert "wait taken from its column, which is not start - submit: 1 of 3 jobs" in caplog.text


def test_durations_of_two_numbers_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = read(tmp_path, NEEDED, "0,10:30,1", "5,0:05,1")
    assert log.run_time.tolist() == [630, 5]
    assert "run_time: durations like 10:30 are minutes and seconds" in caplog.text


@pytest.mark.parametrize(
    ("amount", "is_told"), [("4G", True), ("8Gn", True), ("4Gc", False), ("4096", False)]
)
def test_amounts_of_memory_are_told_to_be_those_of_a_processor(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, amount: str, is_told: bool
) -> None:
    read(tmp_path, NEEDED + ",ReqMem", f"0,60,8,{amount}", columns="requested_memory:ReqMem")
    said = f"requested_memory: amounts like {amount} are those of one processor"
    assert (said in caplog.text) == is_told


@pytest.mark.parametrize("numbers", [(1.5, 1.25), (-1, -1), ("12_3", "13")])
def test_numbers_of_jobs_that_are_none_are_replaced(numbers: tuple[object, ...]) -> None:
    """Before, 1.5 and 1.25 were both called 1, and of several jobs called -1 one was left."""
    log = bp.read_log(frame(job_number=list(numbers))).columns
    assert log.job_number.tolist() == [1, 2]


def test_rows_with_more_fields_than_names_are_refused(tmp_path: Path) -> None:
    """Before, each field was taken for the one before it."""
    with pytest.raises(InputError, match="the first row has 4 fields, but 3 columns have names"):
        read(tmp_path, NEEDED, "0,10,1,7", "1,10,1,8")


def test_durations_of_arrow_are_durations() -> None:
    table = frame(run_time=pd.array([dt.timedelta(hours=1)] * 2, dtype=pd.ArrowDtype(pyarrow.duration("us"))))
    assert bp.read_log(table).columns.run_time.tolist() == [HOUR, HOUR]


@pytest.mark.parametrize("first_piece", ["13/02/2024", "02/02/2024"])
def test_a_table_that_is_read_in_pieces_has_dates_of_one_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_piece: str
) -> None:
    """A piece may not tell which number is the day, or tell another one than the piece before it."""
    monkeypatch.setattr("batsched_py.workload.sources.table.PIECE", 2)
    path = tmp_path / "log.csv"
    days = [first_piece, first_piece, "14/02/2024", "14/02/2024"]
    path.write_text("\n".join([NEEDED, *(f"{day},60,1" for day in days), ""]))
    span = 24 * HOUR * (1 if first_piece.startswith("13") else 12)
    assert bp.simulate(path, "fcfs", hosts=4).jobs["submission_time"].tolist() == [0, 0, span, span]
    path.write_text(path.read_text().replace("14/02", "02/14"))
    if first_piece.startswith("13"):
        with pytest.raises(InputError, match="may be day/month or month/day"):
            bp.simulate(path, "fcfs", hosts=4)


def test_a_table_that_is_read_in_pieces_has_numbers_of_jobs_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, jobs of the first piece were all called -1."""
    monkeypatch.setattr("batsched_py.workload.sources.table.PIECE", 2)
    path = tmp_path / "log.csv"
    rows = [f"{name},{row},60,1" for row, name in enumerate(("7_1", "8", "9", "10"))]
    path.write_text("\n".join([f"job_number,{NEEDED}", *rows, ""]))
    assert set(bp.simulate(path, "fcfs", hosts=4).jobs["job_id"].astype(str)) == {"1", "2", "3", "4"}


def test_users_are_called_as_they_are_written(tmp_path: Path) -> None:
    log = read(tmp_path, NEEDED + ",user", "0,1,1,007", "1,1,1,7", "2,1,1,07", "3,1,1,7")
    assert log.user.tolist() == [1, 2, 3, 2]
    assert log.header["User"] == "1 007\n2 7\n3 07"
    assert len(set(read(tmp_path, NEEDED + ",user", "0,1,1,1e3", "1,1,1,1000").user.tolist())) == 2
    assert read(tmp_path, NEEDED + ",user", "0,1,1,12", "1,1,1,", "2,1,1,7.0").user.tolist() == [12, -1, 7]


def test_a_user_stays_one_in_a_long_table(tmp_path: Path) -> None:
    """pandas reads a long table in parts, of which some have numbers only, and some a name, too."""
    rows = [f"{n},1,1,{n % 7 or ''}" for n in range(100_000)]
    log = read(tmp_path, NEEDED + ",user", *rows, "100000,1,1,root")
    assert np.unique(log.user).tolist() == [-1, 1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_of_pandas_may_be_missing(unit: str) -> None:
    hours: Any = pd.Series([pd.Timedelta(hours=1), pd.NaT]).astype(f"timedelta64[{unit}]")
    assert bp.read_log(frame(requested_time=hours)).columns.requested_time.tolist() == [HOUR, -1]


@pytest.mark.parametrize(
    "written",
    [[pd.Timedelta(days=1, hours=1), dt.timedelta(hours=2)], ["1 days 01:00:00", "0 days 02:00:00.0"],
     ["1 day, 1:00:00", "2:00:00"]],
)  # fmt: skip
def test_durations_as_python_and_pandas_write_them(written: list[Any]) -> None:
    table = frame(requested_time=pd.Series(written, dtype=object))
    assert bp.read_log(table).columns.requested_time.tolist() == [25 * HOUR, 2 * HOUR]


def test_moments_in_too_few_bits_are_refused() -> None:
    """As 32 bits, moments of our time are 128 s apart."""
    with pytest.raises(InputError, match="submit: numbers of 32 bits cannot tell seconds"):
        bp.read_log(frame(submit=np.array([1.7e9, 1.7e9 + 60], dtype=np.float32)))
    assert bp.read_log(frame(submit=np.array([0, 60], dtype=np.float32))).columns.submit.tolist() == [0, 60]


@pytest.mark.parametrize("date", ["2401311530", "202401311530", "20240131153058"])
def test_moments_that_are_written_as_numbers_are_refused(tmp_path: Path, date: str) -> None:
    with pytest.raises(InputError, match=f"numbers like {date} look like dates"):
        read(tmp_path, NEEDED, f"{date},1,1", f"{int(date) + 1},1,1")


def test_a_job_without_a_start_was_cancelled_also_if_its_run_time_is_0(tmp_path: Path) -> None:
    head = "submit,start,end,run_time,allocated_processors,status"
    log = read(tmp_path, head, "0,,50,0,8,CANCELLED", "5,6,16,10,1,CANCELLED", "5,20,20,0,4,CANCELLED")
    assert log.never_started.tolist() == [True, False, False]
    assert log.wait.tolist() == [50, 1, 15]


def test_jobs_that_are_not_over_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = read(tmp_path, NEEDED + ",status", "0,10,1,COMPLETED", "1,7,1,Running", "2,0,1,PENDING")
    assert len(log) == 1
    assert log.left_out == {"the job is not over": 2}
    assert "line 3: the job is not over" in caplog.text
    rows = ["0,10,1,3", "1,7,1,1"]
    assert len(read(tmp_path, NEEDED + ",state", *rows, columns="status:state/slurm")) == 1


def test_return_codes_in_a_column_that_does_not_say_so_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [f"{n},1,1,{int(n == 3)}" for n in range(5)]
    said = "status: most numbers are 0, which is a failure in a log"
    read(tmp_path, NEEDED + ",status", *rows)
    assert said in caplog.text
    caplog.clear()
    for unit, states in (("exit", [1, 1, 1, 0, 1]), ("swf", [0, 0, 0, 1, 0])):
        log = read(tmp_path, NEEDED + ",status", *rows, columns=f"status:status/{unit}")
        assert log.status.tolist() == states
    assert said not in caplog.text


def test_what_arrow_cannot_read_is_one_line() -> None:
    table = polars.DataFrame({"submit": [0], "run_time": [1], "requested_processors": [1]})
    with pytest.raises(InputError, match="a table in memory that Arrow cannot read"):
        bp.read_log(table.with_columns(polars.col("run_time").cast(polars.Int128)))


STEPS = [
    "7,0,0,60,4",
    "7.batch,0,0,60,4",
    "7.extern,0,0,60,4",
    "7.0,0,0,60,4",
    "8_1,5,60,90,4",
    "8_1.1,5,60,90,4",
]


@pytest.mark.parametrize("columns", ["", "job_number:JobID"])
def test_steps_of_jobs_are_no_jobs(tmp_path: Path, caplog: pytest.LogCaptureFixture, columns: str) -> None:
    """As in what sacct writes, made a table; each step has the processors of its job once more."""
    log = read(tmp_path, "JobID,submit,start,end,allocated_processors", *STEPS, columns=columns)
    assert log.run_time.tolist() == [60, 30]
    assert log.left_out == {"step of a job": 4}
    assert "steps of jobs, such as 7.batch, are no jobs, and left out" in caplog.text


def test_numbers_of_jobs_are_waited_for_as_names_are(tmp_path: Path) -> None:
    def starts(*after: str) -> list[float]:
        rows = [f"{job},0,10,1,{each}" for job, each in enumerate(after, start=1)]
        (tmp_path / "log.csv").write_text("\n".join(["id,submit,run_time,requested_processors,after", *rows]))
        jobs = bp.simulate(tmp_path / "log.csv", "fcfs", hosts=2).jobs
        return sorted(jobs["starting_time"].tolist())

    assert starts("", "afterok:1") == [0, 10]
    with pytest.raises(InputError, match="column after: '1' in '1' is none of afterok:JOB"):
        starts("", "1")


@pytest.mark.parametrize("array", [7, True, "0-5"])
def test_columns_of_arrays_may_be_of_any_type(array: Any) -> None:
    assert len(bp.simulate(bp.read_log(frame(id=[1, 2], array=[array, array])), "fcfs", hosts=2).jobs) == 2


def test_the_wait_of_a_job_that_never_started_and_has_no_end_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(
        "submit,start,run_time,allocated_processors,requested_processors,status\n10,30,5,1,1,1\n20,,0,0,1,5\n"
    )
    assert read_log(path).wait.tolist() == [20, -1]
