from __future__ import annotations

import gzip
import logging
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.errors import InputError
from batsched_py.protocol.profiles import Homogeneous
from batsched_py.workload.swf import conventions, reader
from batsched_py.workload.swf.conventions import LOG_SPEED
from batsched_py.workload.swf.log import COLUMNS, SwfLog, write_swf
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import swf_to_workload

RECORD = dict(zip(COLUMNS, (1, 0, 0, 60, 4, -1, -1, 4, 120, -1, 1, 7, -1, -1, -1, -1, -1, -1), strict=True))


def line(**values: float | str) -> str:
    """A record of an SWF log: a usual one, with some fields changed."""
    return " ".join(str(value) for value in (RECORD | values).values())


@pytest.fixture
def log_of(tmp_path: Path):
    """Write lines to a file and read it as a log."""

    def read(*lines: str) -> SwfLog:
        path = tmp_path / "log.swf"
        path.write_text("\n".join(lines) + "\n")
        return read_swf(path)

    return read


# --- reading -------------------------------------------------------------------------------------


def test_fields_stand_in_the_order_of_the_format(log_of) -> None:
    log = log_of(" ".join(str(number) for number in range(1, 19)))
    assert [getattr(log, name).tolist() for name in COLUMNS] == [[number] for number in range(1, 19)]


def test_header_comments_are_kept_by_key_and_in_order(log_of) -> None:
    log = log_of(
        "; Computer: a cluster",
        ";",
        ";MaxProcs: 128",
        "; Information: http://example.org",
        ";              http://example.net",
        "; Note: one",
        line(),
        "; Note: two",
    )
    assert list(log.header.items()) == [
        ("Computer", "a cluster"),
        ("MaxProcs", "128"),
        ("Information", "http://example.org\nhttp://example.net"),
        ("Note", "one\ntwo"),
    ]


@pytest.mark.parametrize(
    ("header", "size"),
    [
        (["; MaxNodes: 10", "; MaxProcs: 20"], 20),
        (["; MaxNodes: 10"], 10),
        (["; MaxProcs: 1664 (72, 1368, 224)"], 1664),
        (["; MaxProcs: unknown"], None),
        ([], None),
    ],
)
def test_machine_size_comes_from_the_header(log_of, header: list[str], size: int | None) -> None:
    assert log_of(*header, line()).machine_size == size


def test_gzip_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress(line().encode()))
    assert read_swf(path).user.tolist() == [7]


def test_records_are_sorted_by_submission_and_keep_their_order_where_it_is_equal(log_of) -> None:
    log = log_of(*(line(job_number=i, submit=submit) for i, submit in enumerate([50, 10, 50, 0, 10])))
    assert log.job_number.tolist() == [3, 1, 4, 0, 2]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("1 2 3", "3 fields instead of 18"),
        (line() + " 5", "19 fields instead of 18"),
        (line(wait="soon"), "'soon' is not a number"),
        (line(run_time="nan"), "'nan' is not a number"),
        (line(submit="inf"), "'inf' is not a number"),
        (line(submit=-5), "submit is negative"),
        (line(run_time=-2), "run_time is negative"),
        (line(user=1.5), "user is not a whole number"),
        (line(user=1e300), "user is too large"),
        (line(job_number=99), "job_number came before"),
    ],
)
def test_a_bad_line_is_left_out_and_named(log_of, caplog, bad: str, reason: str) -> None:
    log = log_of("; a comment", line(job_number=99), bad, line(job_number=100))
    assert log.job_number.tolist() == [99, 100]
    assert f"1 of 3 records left out: 1 bad line (line 3: {reason})" in caplog.text


def test_where_pieces_end_changes_nothing(log_of, caplog, monkeypatch) -> None:
    """Bad lines are counted from the beginning, and a number may have come before in another piece."""
    monkeypatch.setattr(reader, "_PIECE", 60)
    log = log_of(
        *("; Note: one", line(job_number=2), "oops", line(job_number=1, submit=9), "; Note: two"),
        *("", line(job_number=2, submit=4), line(job_number=3, run_time=-1), line(job_number=3)),
    )
    assert log.job_number.tolist() == [2, 1]
    assert log.header == {"Note": "one\ntwo"}
    assert (
        "4 of 6 records left out: 3 bad lines (line 3: 1 field instead of 18; line 7: job_number came "
        "before; line 9: job_number came before), 1 of unknown run time"
    ) in caplog.text


def test_a_log_of_too_many_records_is_refused(log_of, monkeypatch) -> None:
    monkeypatch.setattr(conventions, "MOST_RECORDS", 2)
    with pytest.raises(InputError, match="has more than 2 records"):
        log_of(*(line(job_number=number) for number in range(3)))


def test_a_log_of_too_many_comments_is_refused(log_of, monkeypatch) -> None:
    monkeypatch.setattr(conventions, "MOST_COMMENTS", 10)
    with pytest.raises(InputError, match="has more than 10 bytes of comments"):
        log_of("; one two", "; three", line())


def test_jobs_of_unknown_run_time_are_left_out_and_counted(log_of, caplog) -> None:
    log = log_of(line(), line(job_number=2, run_time=-1), line(job_number=3, run_time=-1))
    assert log.job_number.tolist() == [1]
    assert "2 of 3 records left out: 2 of unknown run time" in caplog.text


def test_a_good_log_gives_no_warning(log_of, caplog) -> None:
    log_of("; MaxProcs: 4", line(), line(job_number=2, run_time=0))
    assert caplog.records == []


def test_thousands_of_bad_lines_give_one_short_warning(log_of, caplog) -> None:
    log_of(*[line(), *(["oops"] * 5000)])
    assert len(caplog.records) == 1
    assert "5000 bad lines (line 2: 1 field instead of 18; line 3:" in caplog.text
    assert len(caplog.records[0].getMessage()) < 300


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "it has none"),
        (b"; MaxProcs: 4\n", "it has none"),
        (b"id,size\n1,2\n", "2 bad lines (line 1: 1 field instead of 18"),
        (bytes(range(256)) * 50, "bad lines"),
        (line(run_time=-1).encode(), "1 of unknown run time"),
        (b"\x1f\x8b but no gzip", "cannot be read"),
        (gzip.compress(line().encode() * 100, mtime=0)[:-20], "cannot be read"),
    ],
)
def test_a_file_without_a_usable_record_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_swf(path)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# --- writing -------------------------------------------------------------------------------------

WHOLE = st.integers(-1, 10**6)
SECONDS = st.integers(0, 10**8) | st.floats(0, 1e8)


@given(
    records=st.lists(st.tuples(SECONDS, SECONDS, WHOLE, WHOLE), min_size=1, max_size=20),
    header=st.dictionaries(
        st.from_regex(r"[A-Z][a-z]{0,8}", fullmatch=True),
        st.lists(st.from_regex(r"([!-~]([ -~]*[!-~])?)?", fullmatch=True), min_size=1).map("\n".join),
    ),
    ending=st.sampled_from([".swf", ".swf.gz"]),
)
def test_what_is_written_is_read_back(tmp_path_factory, records, header, ending: str) -> None:
    records.sort(key=lambda record: record[0])
    submit, run_time, user, processors = (list(column) for column in zip(*records, strict=True))
    unknown = np.full(len(records), -1)
    log = SwfLog(
        **dict.fromkeys(COLUMNS, unknown)
        | {
            "job_number": np.arange(len(records)),
            "submit": np.array(submit, dtype=float),
            "run_time": np.array(run_time, dtype=float),
            "user": np.array(user),
            "allocated_processors": np.array(processors),
        },
        header=header,
    )
    path = tmp_path_factory.mktemp("swf") / f"log{ending}"
    write_swf(path, log)
    again = read_swf(path)
    assert list(again.header.items()) == list(header.items())
    for name in COLUMNS:
        assert getattr(again, name).tolist() == getattr(log, name).tolist(), name


# --- jobs ----------------------------------------------------------------------------------------


def test_a_record_becomes_a_job(log_of) -> None:
    log = log_of("; MaxProcs: 8", line(job_number=12, run_time=90, group=3, queue=0))
    workload = swf_to_workload(log, name="w3")
    (job,) = workload.jobs
    assert (job.id, job.submission_time, job.size) == ("w3!12", 0, 4)
    assert job.extra == {"user": 7, "group": 3, "queue": 0}
    assert workload.profiles == {job.profile: Homogeneous(90 * LOG_SPEED)}
    assert (workload.name, workload.nb_hosts, workload.path) == ("w3", 8, log.path)


@pytest.mark.parametrize(
    ("allocated", "requested", "size"),
    [(5, 8, 5), (5, -1, 5), (-1, 8, 8), (0, 8, 8), (-1, -1, None), (0, 0, None)],
)
def test_processors_are_those_allocated_else_those_requested(
    log_of, caplog, allocated: int, requested: int, size: int | None
) -> None:
    log = log_of(line(), line(job_number=2, allocated_processors=allocated, requested_processors=requested))
    sizes = {job.name: job.size for job in swf_to_workload(log).jobs}
    assert sizes.get("2") == size
    assert ("left out for want of processors: 1 of 2 jobs" in caplog.text) == (size is None)


def test_times_are_shifted_to_the_first_job_that_is_kept(log_of) -> None:
    log = log_of(
        line(job_number=1, submit=100, allocated_processors=-1, requested_processors=-1),
        line(job_number=2, submit=150),
        line(job_number=3, submit=175.5),
    )
    assert [job.submission_time for job in swf_to_workload(log).jobs] == [0, 25.5]


@pytest.mark.parametrize(
    ("requested", "run_time", "enough", "largest", "as_requested"),
    [
        (100, 60, 100, 120, 100),
        (60, 60, 60, 120, 60),
        (50, 60, 60, 120, 50),
        (200, 60, 200, 200, 200),
        (-1, 60, 60, 120, inf),
        (0, 60, 60, 120, inf),
        (100, 0, 100, 100, 100),
        (-1, 0, inf, inf, inf),
    ],
)
def test_walltime_rules(
    log_of, requested: int, run_time: int, enough: float, largest: float, as_requested: float
) -> None:
    log = log_of(line(requested_time=requested, run_time=run_time))
    assert swf_to_workload(log).jobs[0].walltime == enough
    assert swf_to_workload(log, walltime="max").jobs[0].walltime == largest
    assert swf_to_workload(log, walltime="requested").jobs[0].walltime == as_requested


def test_walltime_factor(log_of) -> None:
    log = log_of(line(requested_time=100, run_time=60))
    assert swf_to_workload(log, walltime="max", walltime_factor=5).jobs[0].walltime == 300


@pytest.mark.parametrize("factor", [0, -1, inf, float("nan")])
def test_a_walltime_factor_that_makes_no_sense_is_refused(log_of, factor: float) -> None:
    with pytest.raises(InputError, match="walltime factor"):
        swf_to_workload(log_of(line()), walltime_factor=factor)


def test_jobs_of_one_run_time_share_a_profile_and_those_of_one_user_their_extra(log_of) -> None:
    log = log_of(line(), line(job_number=2), line(job_number=3, run_time=61.5, user=8))
    workload = swf_to_workload(log)
    first, second, third = workload.jobs
    assert first.profile == second.profile == "run_60"
    assert first.extra is second.extra
    assert (third.profile, third.extra) == ("run_61.5", {"user": 8})
    assert list(workload.profiles) == ["run_60", "run_61.5"]


def test_a_log_without_processors_is_refused(log_of) -> None:
    log = log_of(line())
    nothing = np.array([-1])
    with pytest.raises(InputError, match="positive number of processors"):
        swf_to_workload(replace(log, allocated_processors=nothing, requested_processors=nothing))


# --- real logs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "records", "jobs", "users", "hosts"),
    [
        ("KTH-SP2-1996-2.1-cln", 28_476, 28_475, 214, 100),
        ("HPC2N-2002-2.2-cln", 202_871, 202_871, 257, 240),
    ],
)
def test_logs_of_the_archive(
    shared: Path, caplog, name: str, records: int, jobs: int, users: int, hosts: int
) -> None:
    log = read_swf(shared / "logs" / f"{name}.swf.gz")
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert (len(log), int(log.header["MaxRecords"])) == (records, records)
    workload = swf_to_workload(log)
    assert (len(workload.jobs), workload.nb_hosts) == (jobs, hosts)
    assert len({job.user for job in workload.jobs}) == users


def test_nothing_is_left_out_before_anything_is_read(tmp_path: Path) -> None:
    assert reader.SwfReader(tmp_path / "log.swf").left_out == {}
