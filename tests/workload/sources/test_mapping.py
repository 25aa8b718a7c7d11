"""What a table calls the columns of a log, in which units and words."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import batsched_py as bp
from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from batsched_py.workload.sources import read_log, write_log

HEAD = "submit,run_time,requested_processors"


def written(folder: Path, text: str) -> Path:
    path = folder / "jobs.csv"
    path.write_text(text)
    return path


def test_a_limit_in_minutes_is_no_limit_in_seconds(tmp_path: Path) -> None:
    path = written(tmp_path, f"{HEAD},time_limit\n0,3000,1,60\n")
    log = read_log(path, options={"columns": "requested_time:time_limit/min"})
    assert log.requested_time.tolist() == [3600]


@pytest.mark.parametrize(
    ("unit", "kilobytes"), [("B", 2), ("KiB", 2048), ("MiB", 2048 * 1024), ("MB", 2e9 / 1024 * 1.024)]
)
def test_memory_has_units(tmp_path: Path, unit: str, kilobytes: float) -> None:
    path = written(tmp_path, f"{HEAD},mem\n0,1,1,2048\n")
    log = read_log(path, options={"columns": f"requested_memory:mem/{unit}"})
    assert log.requested_memory.tolist() == pytest.approx([kilobytes])


def test_durations_and_memory_may_be_texts(tmp_path: Path) -> None:
    path = written(
        tmp_path, f"{HEAD},requested_time,requested_memory\n0,1,1,1-00:00:10,4GB\n1,1,1,02:00:00,512M\n"
    )
    log = read_log(path)
    assert log.requested_time.tolist() == [86410, 7200]
    assert log.requested_memory.tolist() == [4 * 1024**2, 512 * 1024]


def test_thousandths_of_a_processor_count_as_whole_ones(tmp_path: Path) -> None:
    path = written(tmp_path, "submit,run_time,cpu\n0,1,500\n1,1,4000\n2,1,4001\n")
    log = read_log(path, options={"columns": "requested_processors:cpu/milli"})
    assert log.processors.tolist() == [1, 4, 5]


def test_words_about_the_end_of_jobs_are_understood(tmp_path: Path) -> None:
    words = [
        "COMPLETED",
        "Pass",
        "failed",
        "CANCELLED by 1000",
        "OUT_OF_MEMORY",
        "1",
        "0:0",
        "9:0",
        "",
        "eaten",
    ]
    rows = "".join(f"{row},5,1,{word}\n" for row, word in enumerate(words))
    log = read_log(written(tmp_path, f"{HEAD},status\n{rows}"))
    assert log.status.tolist() == [1, 1, 0, 5, 0, 1, 1, 0, -1, -1]
    assert log.guessed == {"status unknown, for 'eaten'": 1}


@pytest.mark.parametrize("columns", ["status:EXIT_STATUS", "status:code/exit"])
def test_a_return_code_of_0_is_a_success(tmp_path: Path, columns: str) -> None:
    name = columns.partition(":")[2].removesuffix("/exit")
    path = written(tmp_path, f"{HEAD},{name}\n0,5,1,0\n1,5,1,1\n2,5,1,137\n")
    assert read_log(path, options={"columns": columns}).status.tolist() == [1, 0, 0]


def test_what_is_taken_without_being_named_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = written(tmp_path, "asked,run_time,requested_processors,queue\n0,5,1,32\n")
    log = read_log(path, options={"columns": "submit:asked"})
    assert log.queue.tolist() == [32]
    assert "taken because of their names: columns run_time, requested_processors, queue" in caplog.text
    log = read_log(path, options={"columns": "submit:asked,wait:queue"})
    assert (log.wait.tolist(), log.queue.tolist()) == ([32], [-1])


@pytest.mark.parametrize("name", ["queue", "partition", "wait"])
def test_so_are_names_that_mean_something_else_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    log = read_log(written(tmp_path, f"submit,run_time,requested_processors,{name}\n0,5,1,32\n"))
    taken = f"taken because of their names: columns submit, run_time, requested_processors, {name}"
    assert taken in caplog.text
    caplog.clear()
    write_log(tmp_path / "ours.csv", log)
    assert getattr(read_log(tmp_path / "ours.csv"), name).tolist() == [32]
    assert "taken because" not in caplog.text, "a log that was written here has these columns"


def test_times_in_the_hour_that_comes_twice_are_counted(tmp_path: Path) -> None:
    rows = "2023-10-29T02:30:00,5,1\n2023-10-29T02:40:00+01:00,5,1\n2023-10-29T04:00:00,5,1\n"
    log = read_log(written(tmp_path, f"{HEAD}\n{rows}"), options={"zone": "Europe/Paris"})
    assert log.guessed == {"time in the hour that comes twice when summer time ends": 1}
    assert log.submit.tolist() == [0, 4200, 9000]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ("submit:nowhere", "there is no column 'nowhere' \\(columns=submit:nowhere\\)"),
        ("requested_time:limit/mins", "there is no unit 'mins'; requested_time can be in ns, us, ms, s, min"),
        ("wait:limit,wait:submit", "there are two columns for wait"),
        ("speed:limit", "write NAME:COLUMN or NAME:COLUMN/UNIT, where NAME is one of job_number, submit"),
    ],
)
def test_a_mapping_that_cannot_be_is_refused(tmp_path: Path, columns: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read_log(written(tmp_path, f"{HEAD},limit\n0,1,1,1\n"), options={"columns": columns})


def test_lists_that_nobody_asked_for_are_left_out(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table({"submit": [0], "run_time": [1], "requested_processors": [1], "nodes": [[1, 2, 3]]})
    pyarrow.parquet.write_table(table, tmp_path / "jobs.parquet")
    assert read_log(tmp_path / "jobs.parquet").more == {}


def test_the_mapping_is_shown_with_rows_in_both_forms(tmp_path: Path) -> None:
    path = written(tmp_path, "asked,run_time,cores,limit\n2024-01-01,60,4,2\n2024-01-02,60,4,2\n")
    columns = "columns=submit:asked,requested_processors:cores,requested_time:limit/min"
    done = CliRunner().invoke(batsched_py, ["convert", str(path), "--show-mapping", "-i", columns])
    assert done.exit_code == 0, done.output
    for text in ("limit in min", "asked (dates, UTC where they have no zone)", "2024-01-02", "86400", "120"):
        assert text in done.output
    assert list(tmp_path.iterdir()) == [path]


def test_python_takes_columns_units_and_a_zone(tmp_path: Path) -> None:
    path = written(tmp_path, "asked,run_time,cores,limit\n2024-01-01 00:00,60,4,2\n")
    log = bp.read_log(
        path,
        columns={"submit": "asked", "requested_processors": "cores", "requested_time": "limit"},
        units={"requested_time": "min", "run_time": "h"},
        zone="Asia/Tokyo",
    )
    assert (log.columns.requested_time[0], log.columns.run_time[0]) == (120, 216000)
    assert log.header["UnixStartTime"] == "1704034800"
    with pytest.raises(InputError, match="units: run_time cannot be in 'MiB'"):
        bp.read_log(path, units={"run_time": "MiB"})
    with pytest.raises(InputError, match="not from <class 'int'>"):
        bp.read_log(7)


def test_a_preset_is_one_file(tmp_path: Path, root: Path) -> None:
    path = written(tmp_path, "asked,began,done,limit,cores,how\n"
                   "2024-07-01 02:00,2024-07-01 02:01,2024-07-01 02:03,30,4,fine\n")  # fmt: skip
    log = read_log(path, options={"preset": f"{root}/examples/own_preset.py:Campus"})
    assert (log.wait[0], log.run_time[0], log.requested_time[0], log.status[0]) == (60, 120, 1800, 1)
    assert log.header["UnixStartTime"] == "1719792000"
    assert log.processors.tolist() == [4]


def test_rows_with_empty_fields_are_shown(tmp_path: Path) -> None:
    path = written(tmp_path, "submit,run_time,requested_processors,start,word\n0,5,1,,\n1,5,1,2,x\n")
    done = CliRunner().invoke(batsched_py, ["convert", str(path), "--show-mapping"])
    assert done.exit_code == 0, done.output
    assert "nan" not in done.output


def test_attempts_of_philly_that_end_at_no_date_leave_the_job_out(tmp_path: Path) -> None:
    jobs = [
        f'{{"status":"Pass","vc":"a","jobid":"{end}","submitted_time":"2017-10-08","user":"u","attempts":'
        f'[{{"start_time":"2017-10-08 00:00:10","end_time":"{end}","detail":[{{"gpus":["gpu0"]}}]}}]}}'
        for end in ("garbage", "2017-10-08 00:01:00")
    ]
    (tmp_path / "log.philly.json").write_text(f"[{','.join(jobs)}]")
    log = read_log(tmp_path / "log.philly.json")
    assert log.run_time.tolist() == [50]
    assert sum(log.left_out.values()) == 1
