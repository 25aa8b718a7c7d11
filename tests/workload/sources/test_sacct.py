"""Slurm's accounting, record by record."""

# ruff: noqa: E501 (records are as long as they are)
from __future__ import annotations

import logging
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.slurm.reading import time_limit
from batsched_py.workload.sources import read_log, sacct, write_log
from batsched_py.workload.swf.log import SwfLog

FIELDS = (
    "JobID|User|Group|JobName|Partition|Submit|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|ReqMem|"
    "MaxRSS|TotalCPU|AllocTRES|NodeList"
)
#: One of everything that happens to jobs; times are in summer, where Paris is two hours ahead of UTC.
RECORDS = """\
100|alice|physics|sim|batch|2023-05-01T08:00:00|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|02:00:00|8|8|16G||06:00:00|billing=8,cpu=8,gres/gpu=2,gres/gpu:a100=2,mem=16G,node=2|n[01-02]
100.batch|||batch||2023-05-01T08:10:00|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|||8||2048K|06:00:00|cpu=8|n01
100.0|||a.out||2023-05-01T08:10:00|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|||8||1G|06:00:00|cpu=8|n01
101_1|bob|chem|arr|batch|2023-05-01T06:01:00Z|2023-05-01T06:05:00Z|2023-05-01T06:06:00Z|FAILED|60|1-00:00:00|1|1|4Gc||00:30.500|cpu=1|n03
101_2|bob|chem|arr|batch|2023-05-01T08:01:00+0200|2023-05-01T08:06:00+0200|2023-05-01T08:16:00+0200|COMPLETED|600|1-00:00:00|1|1|4Gc||05:00|cpu=1|n03
101_[3,5-6%1]|bob|chem|arr|batch|2023-05-01T08:01:00|Unknown|2023-05-01T08:30:00|CANCELLED by 1001|0|1-00:00:00|1|0|4Gc||||None assigned
103|alice|physics|sim|gpu|2023-05-01T10:00:00|2023-05-01T10:00:05|2023-05-01T10:20:00|NODE_FAIL|1195|UNLIMITED|4|4|1Gn|||cpu=4,gres/gpu:v100=1,gres/gpu:a100=2|n04
103|alice|physics|sim|gpu|2023-05-01T10:20:00|2023-05-01T10:21:00|2023-05-01T10:31:00|REQUEUED|600|00:10:00|4|4|1Gn|||cpu=4|n04
103|alice|physics|sim|gpu|2023-05-01T10:31:00|2023-05-01T10:32:00|2023-05-01T10:42:01|TIMEOUT|601|00:10:00|4|4|1Gn|||cpu=4|n05
104|carol|bio|big|batch|1682935200|1682935260|1682935320|OUT_OF_MEMORY|60|05:00|2|2|1M|||cpu=2|n05
105|carol|bio|late|batch|2023-05-01T13:00:00|Unknown|Unknown|PENDING|0|05:00|2|0|1M||||
106|carol|bio|late|batch|2023-05-01T13:00:00|2023-05-01T13:00:00|Unknown|RUNNING|10|05:00|2|2|1M||||n06
107|carol|bio|gone|batch|2023-05-01T14:00:00|2023-05-01T14:00:30|2023-05-01T14:01:00|CANCELLED by 1002|30|05:00|2|2|1M||||n06
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(records: str, fields: str = FIELDS, **options: str) -> SwfLog:
        path = tmp_path / "jobs.sacct"
        path.write_text(f"{fields}\n{records}")
        return read_log(path, options=options)

    return read


@pytest.fixture
def log(read) -> SwfLog:
    return read(RECORDS, zone="Europe/Paris")


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", ["100", "101_1", "101_2", "101_3", "101_5", "101_6", "103", "103", "103", "104", "107"]),
        ("submit", [0, 60, 60, 60, 60, 60, 7200, 8400, 9060, 14400, 21600]),
        ("wait", [600, 240, 300, 1740, 1740, 1740, 5, 60, 60, 60, 30]),
        ("run_time", [3600, 60, 600, 0, 0, 0, 1195, 600, 601, 60, 30]),
        ("allocated_processors", [8, 1, 1, 0, 0, 0, 4, 4, 4, 2, 2]),
        ("requested_processors", [8, 1, 1, 1, 1, 1, 4, 4, 4, 2, 2]),
        ("requested_time", [7200, 86400, 86400, 86400, 86400, 86400, -1, 600, 600, 300, 300]),
        ("status", [1, 0, 1, 5, 5, 5, 0, 0, 0, 0, 5]),
        ("user", [1, 2, 2, 2, 2, 2, 1, 1, 1, 3, 3]),
        ("group", [1, 2, 2, 2, 2, 2, 1, 1, 1, 3, 3]),
        ("executable", [1, 2, 2, 2, 2, 2, 1, 1, 1, 3, 4]),
        ("partition", [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1]),
        ("preceding_job", [-1, -1, -1, -1, -1, -1, -1, 7, 8, -1, -1]),
        ("average_cpu_time", [2700, 30.5, 300, -1, -1, -1, -1, -1, -1, -1, -1]),
        ("used_memory", [2**20, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1]),
        ("requested_memory", [2**21, 2**22, 2**22, 2**22, 2**22, 2**22, 2**18, 2**18, 2**18, 512, 512]),
        ("gpus", [2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0]),
        ("nodes", [2, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1]),
        (
            "state",
            ["COMPLETED", "FAILED", "COMPLETED", *["CANCELLED"] * 3, "NODE_FAIL", "REQUEUED", "TIMEOUT",
             "OUT_OF_MEMORY", "CANCELLED"],
        ),
    ],
)  # fmt: skip
def test_every_job(log: SwfLog, name: str, values: list) -> None:
    column = log.more[name] if name in log.more else getattr(log, name)
    assert column.tolist() == values


def test_the_header_tells_the_clock_and_the_names(log: SwfLog) -> None:
    assert log.header["UnixStartTime"] == "1682920800"
    assert log.header["TimeZoneString"] == "Europe/Paris"
    assert log.header["User"] == "1 alice\n2 bob\n3 carol"
    assert log.header["Partition"] == "1 batch\n2 gpu"


def test_the_machine_is_as_large_as_what_was_in_use_at_once(read) -> None:
    records = "\n".join(
        f"{job}|u|g|x|p|2023-05-01T0{start}:00:00|2023-05-01T0{start}:00:00|2023-05-01T0{end}:00:00|COMPLETED|"
        f"{(end - start) * 3600}|UNLIMITED|{size}|{size}|||||"
        for job, start, end, size in [(1, 1, 3, 4), (2, 2, 4, 2), (3, 3, 5, 3)]
    )
    assert read(records).machine_size == 6


def test_what_is_left_out_or_guessed_is_counted_by_kind(log: SwfLog) -> None:
    assert log.left_out == {"step of a job": 2, "job is pending": 1, "job is running": 1}
    assert log.guessed == {
        "task of an array that was cancelled as a whole": 3,
        "size of the machine: the most processors that were in use at once": 1,
    }


GARBAGE = """\
100|alice|physics|sim|batch|2023-05-01T08:00:00|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|02:00:00|8|8|16G||||n1
what is this?
101|alice|physics|sim|batch|yesterday|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|02:00:00|8|8|16G||||n1
102|alice|physics|sim|batch|2023-05-01T08:00:00|2023-05-01T08:10:00|2023-05-01T09:10:00|ODD|3600|02:00:00|8|8|16G||||n1
"""


def test_garbage_gets_a_line_number(read, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        log = read(GARBAGE)
    assert len(log) == 1
    (message,) = caplog.messages
    assert message.endswith(
        "left out: 3 bad lines (line 3: 1 fields instead of 18; line 4: Submit 'yesterday' is no time; "
        "line 5: State 'ODD' is unknown)"
    )
    assert log.left_out == {"another number of fields": 1, "State is unknown": 1, "Submit is no time": 1}


def test_nothing_but_garbage_is_an_error_with_a_line_number(read) -> None:
    with pytest.raises(InputError, match=r"no record of a finished job: 1 bad line \(line 2: 1 fields"):
        read("what is this?\n")


def test_a_file_without_the_header_is_refused(read) -> None:
    with pytest.raises(
        InputError, match="line 1: not the header of sacct --parsable2: there is no column JobID"
    ):
        read("", fields="1|2|3")


def test_the_hour_that_comes_twice_is_guessed(read) -> None:
    record = "1|u|g|x|p|2023-10-29T02:30:00|2023-10-29T02:30:00|2023-10-29T02:30:01|COMPLETED|1||1|1|||||\n"
    log = read(record, zone="Europe/Paris")
    assert log.guessed["time in the hour that comes twice when summer time ends"] == 3
    assert log.header["UnixStartTime"] == "1698539400"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1-02:00", 93600),
        ("0-12:00", 43200),
        ("1-02:03:04", 93784),
        ("1-02", 93600),
        ("12:30", 750),
        ("1:02:03", 3723),
    ],
)
def test_a_time_with_days_goes_on_with_hours(read, text: str, seconds: float) -> None:
    log = read(
        f"7|2023-05-01T08:00:00|COMPLETED|00:01:00|2|{text}\n",
        fields="JobID|Submit|State|Elapsed|ReqCPUS|Timelimit",
    )
    assert log.requested_time.tolist() == [seconds]
    assert time_limit(text) == seconds, "as in slurm.conf and after --time"


def test_few_columns_are_enough(read) -> None:
    log = read("7|2023-05-01T08:00:00|COMPLETED|00:01:00|2\n", fields="JobID|Submit|State|Elapsed|ReqCPUS")
    assert (log.submit[0], log.run_time[0], log.processors[0], log.user[0]) == (0, 60, 2, -1)


def test_a_log_written_as_sacct_is_read_back(log: SwfLog, tmp_path: Path) -> None:
    lost = write_log(tmp_path / "again.sacct", log)
    again = read_log(tmp_path / "again.sacct")
    for name in ("submit", "wait", "run_time", "allocated_processors", "requested_processors", "requested_time",
                 "requested_memory", "status", "user", "group", "executable", "partition", "preceding_job"):  # fmt: skip
        assert np.array_equal(getattr(again, name), getattr(log, name)), name
    for name in ("id", "state", "gpus"):
        assert np.array_equal(again.more[name], log.more[name]), name
    assert lost == {"average processor time": 3, "used memory": 1, "column nodes": 11, "column hosts": 8}


def test_it_is_known_by_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "dump.txt"
    path.write_text(f"{FIELDS}\n{RECORDS}")
    assert len(read_log(path)) == 11


def test_an_array_of_a_billion_tasks_is_refused_before_it_takes_memory(read) -> None:
    record = "7_[0-999999999]|2023-05-01T08:00:00|CANCELLED"
    with pytest.raises(InputError, match="tells of more than 1000000 tasks of arrays"):
        read(f"{record}\n", "JobID|Submit|State")


def test_a_time_that_is_too_short_for_its_zone_is_none(read) -> None:
    records = "7|2023-05-01T08:00:00|COMPLETED\n8|2023-5-1T0:0Z|COMPLETED\n"
    assert len(read(records, "JobID|Submit|State")) == 1


def test_what_a_log_has_no_column_for_is_kept_beside_it_and_its_loss_is_counted(read, tmp_path: Path) -> None:
    record = "{}|2023-05-01T08:00:00|COMPLETED|00:01:00|2|physics|{}|4294|{}\n"
    records = record.format(7, "high", "") + record.format(8, "normal", "maintenance")
    log = read(records, fields="JobID|Submit|State|Elapsed|ReqCPUS|Account|QOS|Priority|Reservation")
    assert log.more["account"].tolist() == ["physics", "physics"]
    assert log.more["reservation"].tolist() == ["", "maintenance"]
    lost = write_log(tmp_path / "log.swf", log)
    wanted = {"column account": 2, "column qos": 2, "column priority": 2, "column reservation": 1}
    assert lost.items() >= wanted.items()
    assert write_log(tmp_path / "log.csv", log) == {}
    assert read_log(tmp_path / "log.csv").more["qos"].tolist() == ["high", "normal"]


def test_a_job_that_never_started_was_cancelled_whatever_its_state_is(read) -> None:
    record = "7|2023-05-01T08:00:00|None|2023-05-01T08:05:00|{}|0|2|0\n"
    fields = "JobID|Submit|Start|End|State|ElapsedRaw|ReqCPUS|AllocCPUS"
    log = read("".join(map(record.format, ("CANCELLED by 7", "DEADLINE"))), fields=fields)
    assert log.never_started.all()
    assert log.wait.tolist() == [300, 300]


def test_memory_does_not_grow_with_the_number_of_steps(
    log: SwfLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most lines of a file are steps: 1,500,000 of them in a year of 500,000 jobs."""
    monkeypatch.setattr(sacct, "_PIECE", 200)
    step, path = RECORDS.splitlines()[1], tmp_path / "jobs.sacct"
    peaks = []
    for count in (1_000, 4_000):
        path.write_text("\n".join([FIELDS, *([step] * count), RECORDS]))
        tracemalloc.start()
        try:
            known = read_log(path)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        assert known.left_out["step of a job"] == count + log.left_out["step of a job"]
        assert known.used_memory.max() == log.used_memory.max()
    assert peaks[1] < 2 * peaks[0]


def test_a_file_with_a_header_only_has_no_job(read) -> None:
    with pytest.raises(InputError, match="no record of a finished job: it has none"):
        read("")


TIMES = "JobID|Submit|Start|End|State|ElapsedRaw|Suspended|AllocCPUS"


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("1|2024-01-01T02:00:00|2024-01-01T00:10:00|2024-01-01T01:10:00|COMPLETED|3600||4",
         "wait taken as 0, for a start before the submission"),
        ("1|2024-01-01T00:00:00|2024-01-01T02:10:00|2024-01-01T01:10:00|COMPLETED|||4",
         "run time taken as 0, for an end before the start"),
        ("1|2024-01-01T00:00:00|2024-01-01T00:10:00|2024-01-01T01:10:00|COMPLETED|60||4",
         "run time taken from Elapsed, which is not End - Start - Suspended"),
        ("1|2024-01-01T00:00:00|2024-01-01T00:10:00|2024-01-01T01:10:00|COMPLETED|3600||",
         "no job says how many processors it had, so each has 1"),
        ("1|2024-01-01T00:00:00|2024-01-01T00:10:00|2024-01-01T01:10:00|COMPLETED|1800|00:30:00|4", ""),
    ],
)  # fmt: skip
def test_records_that_contradict_themselves_are_told(
    read, caplog: pytest.LogCaptureFixture, record: str, said: str
) -> None:
    read(record + "\n", fields=TIMES)
    assert said in caplog.text
    assert bool(said) == bool(caplog.text)


def test_a_moment_of_0_is_none(read) -> None:
    log = read("1|1704067200|0|1704067260|CANCELLED|0||4\n", fields=TIMES)
    assert (log.wait[0], log.run_time[0], log.never_started[0]) == (60, 0, True)
