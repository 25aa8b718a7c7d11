"""Accounting logs of PBS and Torque, record by record."""

# ruff: noqa: E501 (records are as long as they are)
from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from batsched_py.errors import InputError
from batsched_py.workload.sources import read_log, write_log
from batsched_py.workload.swf.log import SwfLog

RECORDS = """\
05/01/2023 06:00:00;Q;1.srv;queue=batch
05/01/2023 06:10:00;S;1.srv;user=alice group=phys jobname=sim queue=batch ctime=1682920800
05/01/2023 07:10:00;E;1.srv;user=alice group=phys jobname=sim queue=batch ctime=1682920800 qtime=1682920800 etime=1682920800 start=1682921400 exec_host=n1/0*4+n2/0*4 Resource_List.select=2:ncpus=4:ngpus=1 Resource_List.nodect=2 Resource_List.walltime=02:00:00 Resource_List.mem=8gb session=1 end=1682925000 Exit_status=0 resources_used.cput=06:00:00 resources_used.mem=4194304kb resources_used.walltime=01:00:00
05/01/2023 06:03:00;E;2.srv;user=bob group=chem jobname=x queue=long ctime=1682920860 qtime=1682920860 start=1682920920 exec_host=n3/0+n3/1 Resource_List.nodes=1:ppn=2 Resource_List.walltime=00:01:00 end=1682920980 Exit_status=271 resources_used.walltime=00:01:01
05/01/2023 06:05:00;E;3.srv;user=bob group=chem jobname=y queue=long qtime=1682920870 start=1682921000 Resource_List.ncpus=1 Resource_List.walltime=01:00:00 end=1682921100 Exit_status=271
05/01/2023 06:06:00;D;4.srv;requestor=bob@login
05/01/2023 06:07:00;E;5.srv;user=bob group=chem jobname=z queue=long qtime=1682921000 start=1682921000 Resource_List.ncpus=1 end=1682921220 Exit_status=1
05/01/2023 06:08:00;R;5.srv;
05/01/2023 06:20:00;E;5.srv;user=bob group=chem jobname=z queue=long qtime=1682921300 start=1682921310 Resource_List.ncpus=1 end=1682921400 Exit_status=0
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(records: str) -> SwfLog:
        path = tmp_path / "20230501"
        path.write_text(records)
        return read_log(path)

    return read


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", ["1.srv", "2.srv", "3.srv", "5.srv", "5.srv"]),
        ("submit", [0, 60, 70, 200, 500]),
        ("wait", [600, 60, 130, 0, 10]),
        ("run_time", [3600, 61, 100, 220, 90]),
        ("allocated_processors", [8, 2, 1, 1, 1]),
        ("requested_processors", [8, 2, 1, 1, 1]),
        ("requested_time", [7200, 60, 3600, -1, -1]),
        ("requested_memory", [2**20, -1, -1, -1, -1]),
        ("used_memory", [2**19, -1, -1, -1, -1]),
        ("average_cpu_time", [2700, -1, -1, -1, -1]),
        ("status", [1, 0, 5, 0, 1]),
        ("user", [1, 2, 2, 2, 2]),
        ("queue", [1, 2, 2, 2, 2]),
        ("executable", [1, 2, 3, 4, 4]),
        ("preceding_job", [-1, -1, -1, -1, 4]),
        ("gpus", [2, 0, 0, 0, 0]),
        ("nodes", [2, 0, 0, 0, 0]),
    ],
)
def test_every_job(read, name: str, values: list) -> None:
    log = read(RECORDS)
    column = log.more[name] if name in log.more else getattr(log, name)
    assert column.tolist() == values


def test_what_is_left_out_is_counted_by_kind(read) -> None:
    assert read(RECORDS).left_out == {
        "record that ends no job": 3,
        "job was deleted before it started, which says nothing of its size": 1,
    }


def test_garbage_gets_a_line_number(read, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        log = read(
            RECORDS
            + "garbage\n"
            + "05/01/2023 06:20:00;E;6.srv;user=bob start=soon end=2 qtime=1\n"
            + "05/01/2023 06:20:00;E;7.srv;user=bob end=2 qtime=1\n"
            + "05/01/2023 06:20:00;E;8.srv;start=1 end=2 qtime=1 Exit_status=odd\n"
        )
    assert len(log) == 5
    assert "line 10: not DATE TIME;TYPE;JOB;TEXT; line 11: could not convert string to float" in caplog.text
    assert log.left_out["a field is missing"] == 1
    assert log.left_out["a field is no number"] == 2


def test_a_log_without_ends_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.pbs").write_text("nonsense\n")
    with pytest.raises(InputError, match=r"no record of a finished job: 1 bad line .line 1: not DATE TIME"):
        read_log(tmp_path / "x.pbs")


def test_a_log_written_as_pbs_is_read_back(read, tmp_path: Path) -> None:
    log = read(RECORDS)
    write_log(tmp_path / "again.pbs", log)
    again = read_log(tmp_path / "again.pbs")
    for name in ("submit", "wait", "run_time", "requested_processors", "requested_time", "requested_memory",
                 "user", "group", "executable", "queue", "preceding_job"):  # fmt: skip
        assert np.array_equal(getattr(again, name), getattr(log, name)), name
    assert again.more["gpus"].tolist() == log.more["gpus"].tolist()
