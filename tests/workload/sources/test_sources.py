"""Files of any kind: how they are told apart, and what survives from one kind to another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.workload.sources import SOURCES, read_log, source_of, write_log
from tests.logs import log_of

ENDINGS = ["swf", "swf.gz", "json", "batsim5.json", "sacct", "pbs", "csv", "parquet"]
KEPT_BY_ALL = ("submit", "run_time", "requested_processors", "requested_time")


def test_every_kind_is_known_by_name() -> None:
    kinds = "batsim batsim5 csv frontier gwf parquet pbs philly sacct swf"
    assert list(SOURCES.all()) == kinds.split()


@pytest.mark.parametrize("first", ENDINGS)
@pytest.mark.parametrize("second", ENDINGS)
def test_jobs_survive_the_way_through_any_two_kinds(tmp_path: Path, first: str, second: str) -> None:
    log = log_of(
        {"MaxProcs": "64", "UnixStartTime": "1704067200"},
        submit=[0, 5, 90],
        wait=[0, 3, 7],
        run_time=[60, 3600, 86400],
        requested_processors=[1, 16, 64],
        allocated_processors=[1, 16, 64],
        requested_time=[120, 7200, 100_000],
        user=[1, 2, 1],
    )
    write_log(tmp_path / f"one.{first}", log)
    write_log(tmp_path / f"two.{second}", read_log(tmp_path / f"one.{first}"))
    again = read_log(tmp_path / f"two.{second}")
    for name in (*KEPT_BY_ALL, "user"):
        assert np.array_equal(getattr(again, name), getattr(log, name)), name


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(1, 4096), st.integers(1, 10**6)),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from(ENDINGS),
)
def test_any_jobs_are_read_back(tmp_path_factory: pytest.TempPathFactory, jobs: list, ending: str) -> None:
    submit, run_time, sizes, limits = (np.array(column) for column in zip(*sorted(jobs), strict=True))
    limits = np.maximum(limits, 2 * run_time)
    log = log_of(
        {"UnixStartTime": "1704067200"},
        submit=submit - submit.min(),
        run_time=run_time,
        requested_processors=sizes,
        allocated_processors=sizes,
        requested_time=limits,
        wait=0,
    )
    path = tmp_path_factory.mktemp("any") / f"log.{ending}"
    write_log(path, log)
    again = read_log(path)
    for name in KEPT_BY_ALL:
        assert np.array_equal(getattr(again, name), getattr(log, name)), name


def test_a_file_of_an_unknown_kind_is_asked_about(tmp_path: Path) -> None:
    (tmp_path / "x.dat").write_text("hm")
    with pytest.raises(
        InputError,
        match=r"x.dat: what kind of log is it\? Name it so, or say which; known are batsim \(.json\)",
    ):
        read_log(tmp_path / "x.dat")
    with pytest.raises(InputError, match="there is no kind of log 'xml'"):
        source_of(tmp_path / "x.dat", "xml")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_log(tmp_path / "nowhere.swf")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"log.swf: cannot be written: No such file"):
        write_log(tmp_path / "nowhere" / "log.swf", log_of(submit=[0]))


def test_jobs_of_batsim_whose_run_time_is_unknown_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text(
        '{"nb_res": 4, "jobs": [{"id": "a!2", "subtime": 1, "res": 2, "walltime": 9, "profile": "d"},'
        '{"id": "3", "subtime": 2, "res": 1, "profile": "m"}],'
        '"profiles": {"d": {"type": "delay", "delay": 5}, "m": {"type": "parallel", "cpu": [1], "com": [0]}}}'
    )
    log = read_log(path)
    assert (log.job_number.tolist(), log.run_time.tolist(), log.machine_size) == ([2], [5], 4)
    assert log.left_out == {"run time of a profile of the type parallel": 1}


def test_a_job_of_batsim_without_a_size_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text('{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "profile": "d"}], "profiles": {}}')
    with pytest.raises(InputError, match=r"w.json: job 0 \(1\): field `job`: a job needs `res`"):
        read_log(path)
