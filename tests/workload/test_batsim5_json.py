"""Workload files of Batsim 5: its names for profiles, `extra_data`, and the way to Batsim 4 and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import asdict

from batsched_py.errors import InputError
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import (
    Composed,
    DataStaging,
    Delay,
    FileSystemAccess,
    Homogeneous,
    HomogeneousTotal,
    MpiTrace,
    Parallel,
    Profile,
    Unintelligible,
    UsageTrace,
)
from batsched_py.workload.batsim_json import (
    read_batsim_json,
    translate_batsim_json,
    write_batsim_json,
)
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
EACH, SPREAD = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"

#: Each profile as Batsim 5 writes it, and what it means.
PROFILES: dict[str, tuple[dict[str, Any], Profile]] = {
    "delay": ({"type": "DelayProfile", "delay": 20.25}, Delay(20.25)),
    "task": (
        {"type": "ParallelTaskProfile", "cpu": [1, 2], "com": [0, 1, 2, 3]},
        Parallel((1, 2), (0, 1, 2, 3)),
    ),
    "flat": (
        {"type": "ParallelTaskHomogeneousProfile", "cpu": 1e6, "com": 0, "generation_strategy": EACH},
        Homogeneous(1e6, 0),
    ),
    "total": (
        {"type": "ParallelTaskHomogeneousProfile", "cpu": 1e6, "com": 5, "generation_strategy": SPREAD},
        HomogeneousTotal(1e6, 5),
    ),
    "steps": (
        {"type": "SequentialCompositionProfile", "repeat": 4, "seq": ["delay", "flat"]},
        Composed(("delay", "flat"), 4),
    ),
    "files": (
        {
            "type": "ParallelTaskOnStorageHomogeneousProfile",
            "bytes_to_read": 1,
            "bytes_to_write": 2,
            "storage": "nfs",
            "generation_strategy": EACH,
        },
        FileSystemAccess(bytes_read=1, bytes_written=2, storage="nfs"),
    ),
    "staging": (
        {"type": "ParallelTaskDataStagingBetweenStoragesProfile", "nb_bytes": 9, "from": "pfs", "to": "nfs"},
        DataStaging(9, "pfs", "nfs"),
    ),
    "mpi": ({"type": "TraceReplayProfile", "filename": "a.txt", "trace_type": "SMPI"}, MpiTrace("a.txt")),
    "usage": (
        {"type": "TraceReplayProfile", "filename": "b.txt", "trace_type": "FractionalComputation"},
        UsageTrace("b.txt"),
    ),
    "failing": ({"type": "DelayProfile", "delay": 1, "ret": 3}, Delay(1, return_code=3)),
    "carrying": (
        {"type": "DelayProfile", "delay": 1, "extra_data": '{"command":"sleep 1"}'},
        Delay(1, extra={"command": "sleep 1"}),
    ),
}


@pytest.fixture
def content() -> dict[str, Any]:
    """A workload file in which every profile is used, each job with something of its own."""
    jobs: list[dict[str, Any]] = [
        {"id": str(n), "subtime": n + 0.5, "res": 2, "walltime": 100.0, "profile": name}
        for n, name in enumerate(PROFILES)
    ]
    jobs[0]["extra_data"] = '{"user":"ann","memory":[1,2]}'
    jobs[1]["extra_data"] = "no JSON"
    del jobs[2]["walltime"]
    return {"nb_res": 4, "jobs": jobs, "profiles": {name: fields for name, (fields, _) in PROFILES.items()}}


def test_a_file_is_recognised_read_and_written_as_it_was(content: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "five.json"
    path.write_text(json.dumps(content))
    workload = read_workload(path, "w0")
    assert workload.profiles == {name: meaning for name, (_, meaning) in PROFILES.items()}
    assert workload.jobs[0].extra == {"user": "ann", "memory": [1, 2]}
    assert workload.jobs[0].user == "ann"
    assert workload.jobs[1].extra == {"extra_data": "no JSON"}
    write_batsim_json(path, workload, BATSIM5)
    assert json.loads(path.read_text()) == content


def jobs_of(workload: Workload) -> list[dict[str, Any]]:
    return [asdict(job) for job in workload.jobs]


def test_it_goes_to_batsim_4_and_back(content: dict[str, Any], tmp_path: Path) -> None:
    five, four, again = (tmp_path / name for name in ("five.json", "four.json", "again.json"))
    five.write_text(json.dumps(content))
    write_batsim_json(four, read_batsim_json(five, "w0", BATSIM5))
    assert json.loads(four.read_text())["profiles"]["total"]["type"] == "parallel_homogeneous_total"
    assert json.loads(four.read_text())["jobs"][0]["user"] == "ann"
    write_batsim_json(again, read_workload(four, "w0"), BATSIM5)
    assert json.loads(again.read_text()) == content


@pytest.mark.parametrize("name", ["busy400_fcfs", "kinds120_fcfs", "rigid200_fcfs", "uneven100_fcfs"])
def test_workloads_of_batsim_4_go_there_and_back(name: str, tmp_path: Path) -> None:
    original = read_batsim_json(next((GOLDEN / name).glob("*.json")), "w0")
    write_batsim_json(tmp_path / "five.json", original, BATSIM5)
    carried = read_workload(tmp_path / "five.json", "w0")
    assert jobs_of(carried) == jobs_of(original)
    assert [(key, type(profile)) for key, profile in carried.profiles.items()] == [
        (key, type(profile)) for key, profile in original.profiles.items()
    ]
    write_batsim_json(tmp_path / "four.json", carried)
    again = read_batsim_json(tmp_path / "four.json", "w0")
    assert (jobs_of(again), again.profiles) == (jobs_of(original), original.profiles)


def test_what_batsim_5_has_no_type_for_is_named(tmp_path: Path) -> None:
    path = tmp_path / "four.json"
    profiles = {"p": {"type": "send", "msg": {}}}
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p"}
    path.write_text(json.dumps({"nb_res": 1, "jobs": [job], "profiles": profiles}))
    with pytest.raises(
        InputError, match="profile 'p': a profile of the type send cannot be said to Batsim 5"
    ):
        write_batsim_json(tmp_path / "five.json", read_workload(path, "w0"), BATSIM5)
    assert not (tmp_path / "five.json").exists()


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        (
            {"type": "ForkJoinCompositionProfile"},
            "has the type 'ForkJoinCompositionProfile'; known are DelayProfile",
        ),
        ({"type": "DelayProfile"}, "needs a number as `delay`"),
        (
            {"type": "ParallelTaskHomogeneousProfile", "cpu": 1, "com": 1, "generation_strategy": 3},
            "needs DefinedAmountsUsedForEachValue or DefinedAmountsSpreadUniformly as `generation_strategy`",
        ),
        (
            {
                "type": "ParallelTaskOnStorageHomogeneousProfile",
                "bytes_to_read": 1,
                "generation_strategy": SPREAD,
            },
            "needs DefinedAmountsUsedForEachValue as `generation_strategy`",
        ),
        ({"type": "TraceReplayProfile", "filename": "x"}, "as `trace_type`"),
        ({"type": "DelayProfile", "delay": 1, "extra_data": 3}, "needs a text as `extra_data`"),
    ],
)
def test_a_profile_that_makes_no_sense_is_kept_with_its_fault(
    fields: dict[str, Any], fault: str, tmp_path: Path
) -> None:
    path = tmp_path / "five.json"
    job = {"id": "1", "subtime": 0, "res": 1, "profile": "p"}
    path.write_text(json.dumps({"nb_res": 1, "jobs": [job], "profiles": {"p": fields}}))
    profile = read_batsim_json(path, "w0", BATSIM5).profiles["p"]
    assert isinstance(profile, Unintelligible)
    assert fault in profile.fault
    assert profile.fields == fields


def test_parts_of_a_parallel_task_may_be_left_out(tmp_path: Path) -> None:
    for fields, meaning in (
        ({"cpu": [1, 2]}, Parallel((1, 2), (0, 0, 0, 0))),
        ({"com": [1, 2, 3, 4]}, Parallel((0, 0), (1, 2, 3, 4))),
    ):
        path = tmp_path / "five.json"
        job = {"id": "1", "subtime": 0, "res": 2, "profile": "p"}
        profiles = {"p": {"type": "ParallelTaskProfile", **fields}}
        path.write_text(json.dumps({"nb_res": 2, "jobs": [job], "profiles": profiles}))
        profile = read_workload(path, "w0").profiles["p"]
        assert isinstance(profile, Parallel)
        assert (profile.work, profile.bytes_sent) == (meaning.work, meaning.bytes_sent)


def test_jobs_without_work_on_one_host_have_a_profile_that_runs_there(tmp_path: Path) -> None:
    """A real 5.0.0-rc2 cannot run a profile without work on one host, but a vector with a zero in it."""
    jobs = [Job(f"w0!{size}", 0.0, size, 9.0, "idle") for size in (1, 2)]
    file = tmp_path / "w.json"
    profiles = {"idle": HomogeneousTotal(0.0, return_code=3), "busy": Homogeneous(1.0)}
    write_batsim_json(file, Workload("w0", jobs, profiles, 2), BATSIM5)
    content = json.loads(file.read_text())
    assert [job["profile"] for job in content["jobs"]] == ["idle_on_one_host", "idle"]
    assert list(content["profiles"]) == ["idle", "busy", "idle_on_one_host"]
    alone = {"type": "ParallelTaskProfile", "cpu": [0], "com": [0], "ret": 3}
    assert content["profiles"]["idle_on_one_host"] == alone
    write_batsim_json(file, Workload("w0", jobs[1:], profiles, 2), BATSIM5)
    assert list(json.loads(file.read_text())["profiles"]) == ["idle", "busy"]
    translate_batsim_json(file, file, BATSIM5)
    assert list(json.loads(file.read_text())["profiles"]) == ["idle", "busy"]
    write_batsim_json(file, Workload("w0", jobs, profiles, 2), BATSIM4)
    assert [job["profile"] for job in json.loads(file.read_text())["jobs"]] == ["idle", "idle"]
    translate_batsim_json(file, file, BATSIM5)
    assert [job["profile"] for job in json.loads(file.read_text())["jobs"]] == ["idle_on_one_host", "idle"]
