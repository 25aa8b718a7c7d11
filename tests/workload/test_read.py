from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from batsched_py.errors import InputError
from batsched_py.workload.read import read_workload

SWF = b"; MaxProcs: 4\n5 10 0 60 4 -1 -1 4 100 -1 1 7 -1 -1 -1 -1 -1 -1\n"
JSON = b"""{"nb_res": 4, "jobs": [{"id": 5, "subtime": 0, "res": 4, "profile": "p"}],
    "profiles": {"p": {"type": "delay", "delay": 60}}}"""


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.swf", SWF),
        ("LOG.SWF", SWF),
        ("log.swf.gz", gzip.compress(SWF, mtime=0)),
        ("workload.json", JSON),
    ],
)
def test_the_ending_tells_the_kind(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    workload = read_workload(path, "w1")
    assert [(job.id, job.size) for job in workload.jobs] == [("w1!5", 4)]
    assert workload.path == str(path)


def test_walltime_rules_reach_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(SWF)
    assert read_workload(path, "w0").jobs[0].walltime == 100
    assert read_workload(path, "w0", walltime="max").jobs[0].walltime == 120
    assert read_workload(path, "w0", walltime="max", walltime_factor=3).jobs[0].walltime == 180
    assert read_workload(path, "w0", walltime="requested").jobs[0].walltime == 100


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.swf: there is no such file"):
        read_workload(tmp_path / "nowhere.swf", "w0")


def test_an_unknown_ending_lists_the_known_ones(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_bytes(SWF)
    with pytest.raises(
        InputError, match=r"log\.txt: what kind of log is it\? .* known are batsim \(\.json\)"
    ):
        read_workload(path, "w0")


def test_logs_of_other_kinds_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text("submit,run_time,requested_processors,requested_time,user\n5,60,2,100,7\n")
    (job,) = read_workload(path, "w0", walltime="requested").jobs
    assert (job.submission_time, job.size, job.walltime, job.user) == (0, 2, 100, "7")
