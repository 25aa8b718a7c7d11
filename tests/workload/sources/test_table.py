"""Tables with named columns."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.workload.sources import read_log, write_log
from batsched_py.workload.swf.log import COLUMNS
from tests.logs import log_of


@pytest.fixture
def table(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "jobs.csv"
        path.write_text(text)
        return path

    return write


def test_columns_are_found_by_name(table) -> None:
    log = read_log(table("user,submit,run_time,requested_processors\nbob,20,5,2\nalice,10,7,1\nbob,30,9,4\n"))
    assert log.submit.tolist() == [10, 20, 30]
    assert log.run_time.tolist() == [7, 5, 9]
    assert log.processors.tolist() == [1, 2, 4]
    assert log.user.tolist() == [2, 1, 1]
    assert log.header["User"] == "1 bob\n2 alice"


def test_columns_may_have_other_names_and_times_may_be_dates(table) -> None:
    path = table("Owner,Asked,Began,Ended,Cores\n7,2024-01-01 08:00,2024-01-01 08:01,2024-01-01 08:11,16\n")
    options = {
        "columns": "user:Owner,submit:Asked,start:Began,end:Ended,allocated_processors:Cores",
        "zone": "Europe/Stockholm",
    }
    log = read_log(path, options=options)
    assert (log.submit[0], log.wait[0], log.run_time[0], log.processors[0], log.user[0]) == (
        0,
        60,
        600,
        16,
        7,
    )
    assert log.header["UnixStartTime"] == "1704092400"


def test_other_columns_are_kept_beside_the_log(table) -> None:
    log = read_log(table("submit,run_time,requested_processors,colour\n1,1,1,red\n0,1,1,blue\n"))
    assert log.more["colour"].tolist() == ["blue", "red"]


def test_bad_rows_get_a_line_number(table, caplog: pytest.LogCaptureFixture) -> None:
    path = table("# Note: a comment\nsubmit,run_time,requested_processors\n1,1,1\n2,soon,1\n,3,1\n")
    with caplog.at_level(logging.WARNING):
        log = read_log(path)
    assert len(log) == 1
    assert "line 4: run_time is no number or time" in caplog.text
    assert "line 5: submit is no number or time" in caplog.text
    assert log.header == {"Note": "a comment"}


def test_what_makes_no_sense_is_left_out_by_kind(table) -> None:
    log = read_log(table("submit,run_time,requested_processors\n1,1,1\n-2,1,1\n3,-1,1\n4,inf,1\n5,1,many\n"))
    assert log.submit.tolist() == [1]
    assert log.left_out == {
        "run_time is no number or time": 1,
        "requested_processors is no number or time": 1,
        "submit is negative": 1,
        "run_time is unknown or negative": 1,
    }


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        ("a,b", "there is no column submit"),
        ("submit,start", "there is no column run_time, nor start and end"),
        ("submit,run_time", "there is no column requested_processors or allocated_processors"),
    ],
)
def test_a_column_that_is_needed_is_asked_for(table, names: str, missing: str) -> None:
    with pytest.raises(InputError, match=missing):
        read_log(table(f"{names}\n1,1\n"))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_log_is_read_back_whole_with_its_header(tmp_path: Path, ending: str) -> None:
    log = log_of(
        {"MaxProcs": "8", "Note": "one\ntwo"},
        submit=[0, 1.5, 3],
        user=[3, 1, -1],
        average_cpu_time=[0.5, -1, 2],
        requested_processors=[1, 2, 8],
    )
    log.more["hosts"] = np.array(["a", "b", "c"])
    assert write_log(tmp_path / f"log.{ending}", log) == {}
    again = read_log(tmp_path / f"log.{ending}")
    for name in COLUMNS:
        assert np.array_equal(getattr(again, name), getattr(log, name)), name
    assert again.more["hosts"].tolist() == ["a", "b", "c"]
    assert again.header == log.header


def test_parquet_without_pyarrow_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(
        InputError, match=r"Parquet needs pyarrow; install it with: pip install 'batsched-py\[models"
    ):
        write_log(tmp_path / "log.parquet", log_of(submit=[0]))


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_text("nonsense")
    with pytest.raises(InputError, match=r"x.parquet: not a table in Parquet"):
        read_log(tmp_path / "x.parquet")


@pytest.mark.parametrize(
    "text",
    [
        "submit,start,end,requested_processors,status\n0,5,9,4,1\n10,,40,4,5\n",
        "submit,wait,run_time,requested_processors,status\n0,5,4,4,1\n10,30,-1,4,5\n",
        "submit,wait,run_time,allocated_processors,status\n0,5,4,4,1\n10,30,-1,4,5\n",
    ],
)
def test_a_job_that_was_cancelled_while_it_waited_is_known(table, text: str) -> None:
    log = read_log(table(text))
    assert log.never_started.tolist() == [False, True]
    assert log.wait.tolist() == [5, 30]
    assert log.run_time.tolist() == [4, 0]
    assert log.processors.tolist() == [4, 4]
    assert log.left_out == {}
