from __future__ import annotations

import json
from math import inf
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.workload.batsim_json import read_batsim_json, write_batsim_json
from batsched_py.workload.model import Workload

JOB = {"id": "a", "subtime": 1.5, "res": 2, "walltime": 10, "profile": "p"}
PROFILES = {"p": {"type": "delay", "delay": 5}}


@pytest.fixture
def workload_of(tmp_path: Path):
    """Write a workload file of these jobs and profiles, and read it as ``w0``."""

    def read(jobs: Any, profiles: Any = PROFILES, **others: Any) -> Workload:
        path = tmp_path / "workload.json"
        path.write_text(json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles} | others))
        return read_batsim_json(path, "w0")

    return read


def test_a_job_is_read_with_all_that_is_said_about_it(workload_of) -> None:
    workload = workload_of([JOB | {"user": "ada", "deps": [1]}], description="ignored")
    (job,) = workload.jobs
    assert (job.id, job.submission_time, job.size, job.walltime, job.profile) == ("w0!a", 1.5, 2, 10, "p")
    assert job.extra == {"user": "ada", "deps": [1]}
    assert workload.nb_hosts == 4


@pytest.mark.parametrize(("written", "full"), [("a", "w0!a"), (7, "w0!7"), ("w0!b", "w0!b")])
def test_identifiers_get_the_name_of_the_workload_once(workload_of, written: Any, full: str) -> None:
    assert workload_of([JOB | {"id": written}]).jobs[0].id == full


@pytest.mark.parametrize("walltime", [{}, {"walltime": -1}])
def test_no_walltime(workload_of, walltime: dict[str, int]) -> None:
    job = {key: value for key, value in JOB.items() if key != "walltime"}
    assert workload_of([job | walltime]).jobs[0].walltime == inf


def test_jobs_come_in_the_order_of_submission(workload_of) -> None:
    jobs = [JOB | {"id": name, "subtime": time} for name, time in [("a", 9), ("b", 3), ("c", 9), ("d", 0)]]
    assert [job.name for job in workload_of(jobs).jobs] == ["d", "b", "a", "c"]


def test_profiles_that_no_job_needs_are_left_out(workload_of) -> None:
    profiles = {
        "unused": {"type": "delay", "delay": 1},
        "part": {"type": "delay", "delay": 1},
        "inner": {"type": "composed", "seq": ["part", "part"]},
        "p": {"type": "composed", "seq": ["inner", "listen", "p"]},
        "listen": {"type": "recv", "success": "well", "failure": "ill", "timeout": "late"},
        "well": {"type": "delay", "delay": 1},
        "ill": {"type": "delay", "delay": 1},
        "late": {"type": "delay", "delay": 1},
        "unused too": {"type": "composed", "seq": ["part"]},
    }
    expected = ["part", "inner", "p", "listen", "well", "ill", "late"]
    assert list(workload_of([JOB], profiles).profiles) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": None}, "job 1 (None): field `job.id`"),
        ({"id": "w0!a!b"}, "job 1 (w0!a!b): field `job.id`"),
        ({"id": "a"}, "job 1 (w0!a): field `id`: job 0 has it already"),
        ({"res": -1}, "job 1 (b): field `job.res`"),
        ({"res": 1.5}, "job 1 (b): field `job.res`"),
        ({"subtime": "now"}, "job 1 (b): field `job.subtime`"),
        ({"walltime": 0}, "job 1 (b): field `job.walltime`"),
        ({"profile": 3}, "job 1 (b): field `job.profile`"),
        ({"profile": "q"}, "job 1 (w0!b): field `profile`: there is no 'q'"),
    ],
)
def test_a_wrong_job_is_named_with_its_field(workload_of, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        workload_of([JOB, JOB | {"id": "b"} | change])
    assert f"workload.json: {message}" in str(error.value)


@pytest.mark.parametrize("field", ["id", "subtime", "res", "profile"])
def test_a_missing_field_is_named(workload_of, field: str) -> None:
    job = {key: value for key, value in JOB.items() if key != field}
    with pytest.raises(InputError, match=f"job 0.*`{field}`"):
        workload_of([job])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "not a Batsim workload"),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"nb_res": 1, "jobs": []}', "missing required field `profiles`"),
        (b'{"nb_res": 0, "jobs": [], "profiles": {}}', "field `nb_res`: must be positive"),
        (b'{"nb_res": 1, "jobs": [3], "profiles": {}}', "$.jobs[0]"),
        (b'{"nb_res": 1, "jobs": [], "profiles": {"p": 1}}', "$.profiles"),
        (b'{"nb_res": 1, "jobs": [], "profiles": {"\xff": {}}}', "not a Batsim workload"),
    ],
)
def test_text_that_is_no_workload_is_refused(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "workload.json"
    path.write_bytes(text)
    with pytest.raises(InputError) as error:
        read_batsim_json(path, "w0")
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


NAMES = st.text("abcxyz_-0123456789", min_size=1, max_size=6)
SECONDS = st.floats(0, 1e9)


@given(
    st.lists(
        st.tuples(NAMES, SECONDS, st.integers(0, 100), SECONDS.filter(bool) | st.just(inf), NAMES, NAMES),
        unique_by=lambda job: job[0],
        max_size=10,
    ),
    st.integers(1, 1000),
)
def test_what_is_written_is_read_back(tmp_path_factory, jobs: list[tuple[Any, ...]], nb_hosts: int) -> None:
    workload = Workload(
        name="load",
        jobs=sorted(
            (
                Job(f"load!{name}", submit, size, limit, profile, {"user": user})
                for name, submit, size, limit, profile, user in jobs
            ),
            key=lambda job: job.submission_time,
        ),
        profiles={job[4]: Delay(5.25) for job in jobs},
        nb_hosts=nb_hosts,
    )
    path = tmp_path_factory.mktemp("json") / "workload.json"
    write_batsim_json(path, workload)
    again = read_batsim_json(path, "load")
    assert [asdict(job) for job in again.jobs] == [asdict(job) for job in workload.jobs]
    assert list(again.profiles.items()) == list(workload.profiles.items())
    assert again.nb_hosts == nb_hosts


def test_identifiers_are_written_without_the_workload(tmp_path: Path, workload_of) -> None:
    workload = workload_of([JOB])
    write_batsim_json(tmp_path / "again.json", workload)
    assert read_batsim_json(tmp_path / "again.json", "other").jobs[0].id == "other!a"


def test_recorded_workloads_can_be_read(shared: Path) -> None:
    for path in sorted((shared / "golden" / "own").glob("*_fcfs/*.json")):
        raw = json.loads(path.read_text())
        workload = read_batsim_json(path, "w0")
        assert len(workload.jobs) == len(raw["jobs"]), path
        assert set(workload.profiles) <= set(raw["profiles"]), path


def test_jobs_may_tell_when_they_had_finished(workload_of) -> None:
    jobs = [JOB | {"recorded_finish": 9}, JOB | {"id": "b", "subtime": 0, "recorded_finish": 7.5}]
    assert workload_of(jobs).finishes == [7.5, 9.0]
    assert workload_of([*jobs, JOB | {"id": "c"}]).finishes is None
    with pytest.raises(InputError, match="job w0!a: field `recorded_finish`: 'late' is no time"):
        workload_of([JOB | {"recorded_finish": "late"}])
