"""Published logs are read as they are. None of them can be fetched here: these are made after their columns.

Each has the same three jobs, of which the schedule is computed by hand: 4, 4 and 2 processors on a machine of
6, submitted at 0, 60 and 120 s, which run for an hour, an hour and half an hour. Under EASY the first starts
at once, the second when the first ends, and the third beside the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.workload.presets import PRESETS
from batsched_py.workload.sources import SOURCES, read_log

SUBMIT, WAIT, RUN, SIZE = [0, 60, 120], [5, 3600, 10], [3600, 3600, 1800], [4, 4, 2]
LIMITS = [7200, 7200, 3600]
#: When the first job was submitted.
BEGIN = pd.Timestamp("2023-03-01 12:00:00", tz="UTC")

START = [submit + wait for submit, wait in zip(SUBMIT, WAIT, strict=True)]
END = [start + run for start, run in zip(START, RUN, strict=True)]
MINUTES = [limit // 60 for limit in LIMITS]
USERS = ["ann", "ben", "ann"]


def dates(seconds: list[int], zone: str = "UTC") -> list[pd.Timestamp]:
    """On the clock of a place, without saying so."""
    return [(BEGIN + pd.Timedelta(seconds=each)).tz_convert(zone).tz_localize(None) for each in seconds]


def unix(seconds: list[int]) -> list[int]:
    return [int(BEGIN.timestamp()) + each for each in seconds]


def parquet(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def csv(path: Path, **columns: Any) -> Path:
    pd.DataFrame(columns).to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def pm100(path: Path) -> Path:
    return parquet(
        path, job_id=[11, 12, 13], user_id=[7, 8, 7],
        submit_time=pd.DatetimeIndex(dates(SUBMIT), tz="UTC").as_unit("us"),
        eligible_time=pd.DatetimeIndex(dates(SUBMIT), tz="UTC").as_unit("us"),
        start_time=pd.DatetimeIndex(dates(START), tz="UTC").as_unit("us"),
        end_time=pd.DatetimeIndex(dates(END), tz="UTC").as_unit("us"),
        run_time=RUN, time_limit=MINUTES, num_nodes_alloc=[1, 1, 1], num_cores_req=SIZE,
        num_gpus_req=[4, 0, 1], mem_req=[1, 1, 1], partition=[1, 1, 1], qos=[0, 0, 1], priority=[1, 2, 3],
        job_state=["COMPLETED", "TIMEOUT", "FAILED"],
        nodes=[[1], [2], [3]], node_power_consumption=[[1, 2], [3], []],
    )  # fmt: skip


def f_data(path: Path) -> Path:
    zone = "Asia/Tokyo"
    return parquet(
        path, jid=["a", "b", "c"], usr=USERS, jnam=["x", "y", "x"], nnumr=SIZE, nnuma=SIZE, cnumr=[48] * 3,
        adt=dates(SUBMIT, zone), sdt=dates(START, zone), edt=dates(END, zone), elpl=LIMITS, pri=[1, 1, 1],
        econ=[1.0, 2.0, 3.0], avgpcon=[1.0, 2.0, 3.0], duration=RUN, embedding=[[0.1], [0.2], [0.3]],
        **{"exit state": ["completed", "failed", "completed"]},
    )  # fmt: skip


def alcf(path: Path) -> Path:
    return csv(
        path, QUEUED_TIMESTAMP=dates(SUBMIT), START_TIMESTAMP=dates(START), END_TIMESTAMP=dates(END),
        NODES_REQUESTED=SIZE, NODES_USED=SIZE, WALLTIME_SECONDS=LIMITS, RUNTIME_SECONDS=RUN,
        USERNAME_GENID=[1, 2, 1], EXIT_STATUS=[0, 143, 0],
    )  # fmt: skip


def acme(path: Path) -> Path:
    return csv(
        path, job_id=["d1", "d2", "d3"], user=USERS, node_num=[1, 1, 1], gpu_num=[0, 1, 2], cpu_num=SIZE,
        state=["COMPLETED", "CANCELLED", "FAILED"], submit_time=dates(SUBMIT), start_time=dates(START),
        end_time=dates(END), duration=RUN, queue=WAIT,
    )  # fmt: skip


def helios(path: Path) -> Path:
    table = pd.read_csv(acme(path)).assign(vc=["v1", "v2", "v1"])
    table.to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def supercloud(path: Path) -> Path:
    return csv(
        path, id_job=[11, 12, 13], id_user=[7, 8, 7], time_submit=unix(SUBMIT), time_start=unix(START),
        time_end=unix(END), timelimit=[120, 120, 4294967295], nodes_alloc=[1, 1, 1],
        tres_alloc=[f"1={size},2=4000,1002=2" for size in SIZE], state=[3, 5, 6],
    )  # fmt: skip


def alibaba(path: Path) -> Path:
    return csv(
        path, name=["p1", "p2", "p3"], cpu_milli=[4000, 3500, 1800], memory_mib=[4096, 4096, 4096],
        num_gpu=[1, 1, 0], gpu_milli=[500, 1000, 0], creation_time=SUBMIT, scheduled_time=START,
        deletion_time=END, pod_phase=["Succeeded", "Failed", "Running"],
    )  # fmt: skip


def lassen(path: Path) -> Path:
    return csv(
        path, primary_job_id=[11, 12, 13], num_nodes=SIZE, job_submit_time=dates(SUBMIT),
        begin_time=dates(START), end_time=dates(END), time_limit=LIMITS, exit_status=[0, 1, 0],
    )  # fmt: skip


def frontier(path: Path) -> Path:
    lines = ["; UnixStartTime: 1677672000", "; MaxProcs: 6"]
    for job in range(3):
        unreliable = 1
        fields = [
            job + 1,
            SUBMIT[job],
            WAIT[job],
            RUN[job],
            unreliable,
            -1,
            -1,
            SIZE[job],
            LIMITS[job],
            -1,
            1,
        ]
        rest = [7, 1, -1, 1, -1, -1, -1, 8, -1, f"frontier:excl:{SIZE[job] // 2}x2"]
        lines.append(" ".join(map(str, fields + rest)))
    path.with_suffix(".swf").write_text("\n".join(lines) + "\n")
    return path.with_suffix(".swf")


def gwf(path: Path) -> Path:
    lines = ["# JobID SubmitTime WaitTime RunTime NProcs ..."]
    for job in range(3):
        fields = [job + 1, SUBMIT[job], WAIT[job], RUN[job], SIZE[job], -1, -1, SIZE[job], LIMITS[job], -1, 1]
        lines.append(" ".join(map(str, [*fields, USERS[job], "g1", "app", "q", "p", *[-1] * 13])))
    path.with_suffix(".gwf").write_text("\n".join(lines) + "\n")
    return path.with_suffix(".gwf")


def philly(path: Path) -> Path:
    jobs = [
        {
            "status": status,
            "vc": "v",
            "jobid": f"application_{number}",
            "attempts": [
                {
                    "start_time": str(dates(START)[number]),
                    "end_time": str(dates(END)[number]),
                    "detail": [{"ip": "m1", "gpus": [f"gpu{each}" for each in range(SIZE[number])]}],
                }
            ],
            "submitted_time": str(dates(SUBMIT)[number]),
            "user": USERS[number],
        }
        for number, status in enumerate(["Pass", "Killed", "Failed"])
    ]
    path.with_suffix(".philly.json").write_text(json.dumps(jobs))
    return path.with_suffix(".philly.json")


WRITERS = [pm100, f_data, alcf, acme, helios, supercloud, alibaba, lassen, frontier, gwf, philly]
STATES = {
    "pm100": [1, 0, 0], "f_data": [1, 0, 1], "alcf": [1, 0, 1], "acme": [1, 5, 0], "helios": [1, 5, 0],
    "supercloud": [1, 0, 0], "alibaba": [1, 0, 1], "lassen": [1, 0, 1], "frontier": [1, 1, 1],
    "gwf": [1, 1, 1], "philly": [1, 0, 0],
}  # fmt: skip
WITHOUT_LIMITS = ("acme", "helios", "alibaba", "philly")


@pytest.mark.parametrize("write", WRITERS, ids=lambda writer: writer.__name__)
def test_a_published_log_is_read_as_it_is(
    write: Callable[[Path], Path], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, name = write(tmp_path / "log"), write.__name__
    log = read_log(path)
    assert log.submit.tolist() == SUBMIT
    assert log.wait.tolist() == WAIT
    assert log.run_time.tolist() == RUN
    assert log.processors.tolist() == SIZE
    assert log.status.tolist() == STATES[name]
    assert log.left_out == {}
    if name in ("frontier", "gwf", "philly"):
        assert "taken because of their names" not in caplog.text, "the reader gave them these names"
    limits = [-1] * 3 if name in WITHOUT_LIMITS else LIMITS if name != "supercloud" else [7200, 7200, -1]
    assert log.requested_time.tolist() == limits
    if name not in ("alibaba", "gwf"):
        assert log.header["UnixStartTime"] == str(int(BEGIN.timestamp()))
    if name != "alibaba":
        assert len(set(log.user.tolist())) == (1 if name in ("frontier", "lassen") else 2)


@pytest.mark.parametrize("write", WRITERS, ids=lambda writer: writer.__name__)
def test_its_schedule_is_the_one_computed_by_hand(write: Callable[[Path], Path], tmp_path: Path) -> None:
    result = bp.simulate(write(tmp_path / "log"), "easy", hosts=6)
    jobs = result.jobs.sort_values("submission_time")
    assert jobs["submission_time"].tolist() == SUBMIT
    assert jobs["starting_time"].tolist() == [0, 3600, 120]
    assert jobs["finish_time"].tolist() == [3600, 7200, 1920]
    assert dict(result.overview.rows())["sizes"] == "allocated, else requested"


def test_requests_of_nodes_are_kept(tmp_path: Path) -> None:
    log = read_log(frontier(tmp_path / "log"))
    assert log.more["nodes"].tolist() == [2, 2, 1]
    assert log.more["exclusive"].tolist() == [1, 1, 1]
    assert read_log(pm100(tmp_path / "log")).more["gpus"].tolist() == [4, 0, 1]
    assert read_log(supercloud(tmp_path / "log")).more["gpus"].tolist() == [2, 2, 2]
    assert read_log(alibaba(tmp_path / "log")).more["gpus"].tolist() == [500, 1000, 0]


def test_naming_columns_tells_of_the_preset_that_is_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = f_data(tmp_path / "log")
    columns = "submit:adt,start:sdt,end:edt,requested_processors:nnumr"
    utc = read_log(path, options={"columns": columns})
    told = "looks like f-data: its zone and mapping are not used; add -i preset=f-data"
    assert caplog.text.count(told) == 1
    assert int(utc.header["UnixStartTime"]) == BEGIN.timestamp() + 9 * 3600
    with pytest.raises(InputError, match=r"there is no column submit; .*, or add -i preset=f-data$"):
        read_log(path, options={"columns": "requested_time:elpl"})
    caplog.clear()
    read_log(path, options={"columns": columns, "zone": "Asia/Tokyo"})
    assert "looks like f-data: its mapping is not used; add -i preset=f-data" in caplog.text
    caplog.clear()
    tokyo = read_log(path, options={"columns": columns, "preset": "f-data"})
    assert int(tokyo.header["UnixStartTime"]) == BEGIN.timestamp()
    assert "looks like" not in caplog.text


def test_the_mapping_tells_of_the_columns_that_a_preset_makes(tmp_path: Path) -> None:
    whence = {
        write.__name__: {name: log.mapping.get(name) for name in ("nodes", "gpus")}
        for write in (pm100, acme, helios, supercloud)
        for log in [read_log(write(tmp_path / write.__name__))]
    }
    assert whence == {
        "pm100": {"nodes": "num_nodes_alloc", "gpus": "num_gpus_req"},
        "acme": {"nodes": "node_num", "gpus": "gpu_num"},
        "helios": {"nodes": "node_num", "gpus": "gpu_num"},
        "supercloud": {"nodes": "nodes_alloc", "gpus": "computed by supercloud"},
    }


def test_a_size_that_frontier_does_not_tell_is_the_requested_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = frontier(tmp_path / "log")
    first, second, *lines = path.read_text().replace("frontier:excl:2x2", "-1").splitlines()
    lines[0] = lines[0].replace(" 1 -1 -1 4 ", " 3 -1 -1 -1 ")
    path.write_text("\n".join([first, second, *lines]) + "\n")
    log = read_log(path)
    assert log.processors.tolist() == [3, 4, 2]
    assert "size as requested, in field 8, as its properties tell none: 1 of 3 jobs" in caplog.text
    assert "size of the unreliable field 5, as its properties tell none: 1 of 3 jobs" in caplog.text


def test_attempts_without_an_end_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = philly(tmp_path / "log")
    jobs = json.loads(path.read_text())
    jobs[0]["attempts"].append(jobs[0]["attempts"][0] | {"end_time": None})
    path.write_text(json.dumps(jobs))
    assert read_log(path).run_time.tolist() == RUN
    assert "run time without the attempts that have no start or no end: 1 of 3 jobs" in caplog.text


def test_a_line_of_another_length_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = gwf(tmp_path / "log")
    path.write_text(path.read_text() + "4 5 6\n")
    assert read_log(path).left_out == {"submit is no number or time": 1}
    assert "line 5: submit is no number or time" in caplog.text


def test_every_preset_and_published_format_is_tried_here() -> None:
    tried = {writer.__name__.replace("_", "-") for writer in WRITERS}
    names = {"helios": "acme", "alibaba": "alibaba-2023"}
    assert PRESETS.all().keys() <= {names.get(name, name) for name in tried}
    assert {"frontier", "gwf", "philly"} <= SOURCES.all().keys()
