"""What is read without numpy, against what is read with it."""

from __future__ import annotations

import gzip
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import asdict

from batsched_py import native
from batsched_py.errors import InputError
from batsched_py.workload.model import WalltimeRule, Workload
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf import quick_reader
from batsched_py.workload.swf.log import COLUMNS, WHOLE
from batsched_py.workload.swf.quick_reader import NativeJobs
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.records import Record, read_jobs
from batsched_py.workload.swf.workload import LoggedJobs, swf_to_workload

RULES: tuple[WalltimeRule, ...] = ("at-least-run-time", "max", "requested")

RECORD = "1 0 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1"

COUNTS = st.integers(-1, 3)
SECONDS = st.integers(0, 5) | st.floats(0, 5) | st.integers(0, 2**53)
FIELDS = {name: COUNTS if name in WHOLE else COUNTS | SECONDS for name in COLUMNS}
FIELDS["status"] = st.sampled_from([0, 1, 5])

#: Records in the order of their submissions; their numbers do not count.
RECORDS = st.lists(
    st.tuples(*(FIELDS | {"submit": SECONDS, "run_time": SECONDS}).values()), min_size=1, max_size=6
).map(lambda records: sorted(records, key=lambda record: record[1]))

#: A usual log: lines of words.
USUAL = RECORDS.map(
    lambda records: [[str(number), *map(repr, record[1:])] for number, record in enumerate(records, 1)]
)

#: Numbers that a log may have, words that are no numbers, and letters that mean something in JSON.
ODD = st.sampled_from(
    [
        *"nan inf -inf 1e400 1e5 1E2 1e-3 1e17 -1 -2 -0 -0.0 0.5 .5 5. +5 007 1_0 0x1 4.0".split(),
        *"9007199254740993 9007199254740992.0 99999999999999999999 2 3".split(),
        *'null true [] ],[ 1,2 "1" {} é ; ;1 \0 1\x1c2'.split(" "),
    ]
)

#: Lines that are no records.
OTHERS = [
    "",
    ";",
    "; MaxProcs: 12",
    "; UnixStartTime: 1704067200",
    ";MaxNodes: 7\r",
    ";  goes on ; here",
    "  ; Note: é",
    "\t",
    "1 ; 2",
]


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A usual log in which a few things have changed."""
    lines = draw(USUAL)
    for change in draw(st.lists(st.sampled_from(["word", "order", "copy", "length", "other"]), max_size=2)):
        place = draw(st.integers(0, len(lines) - 1))
        match change:
            case "word" if lines[place]:
                word = draw(st.integers(0, len(lines[place]) - 1))
                lines[place] = [*lines[place][:word], draw(ODD), *lines[place][word + 1 :]]
            case "order":
                lines.append(lines.pop(place))
            case "copy":
                lines.insert(draw(st.integers(0, len(lines))), lines[place])
            case "length":
                lines[place] = (lines[place] + ["5"])[: draw(st.sampled_from([19, 17, 1]))]
            case "other":
                lines.insert(place, [draw(st.sampled_from(OTHERS))])
    space = draw(st.sampled_from([" ", "  ", "\t", " \r "]))
    return draw(st.sampled_from(["\n", "\r\n", " \n "])).join(map(space.join, lines))


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log.swf"


@pytest.fixture(params=["pure", "native"])
def either_engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With and without the native library."""
    if request.param == "native" and native.library is None:
        pytest.skip("the native engine is not in use")
    monkeypatch.setattr(native, "library", native.library if request.param == "native" else None)


def told(read: Any, *arguments: Any) -> Any:
    """All that reading a log tells, warnings and errors included."""
    warnings: list[str] = []
    handler = logging.Handler()
    handler.emit = lambda record: warnings.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("batsched_py")
    logger.addHandler(handler)
    try:
        workload: Workload = read(*arguments)
    except InputError as error:
        return str(error), warnings
    finally:
        logger.removeHandler(handler)
    assert workload.finishes is not None
    return (
        [asdict(job) for job in workload.jobs],
        [type(value) for job in workload.jobs for value in asdict(job).values()],
        list(workload.profiles.items()),
        [float(finish) for finish in workload.finishes],
        (workload.name, workload.nb_hosts, workload.path),
        (workload.nb_unrequested, workload.nb_raised, workload.nb_equal),
        workload.calendar,
        warnings,
    )


def by_columns(path: Path, walltime: WalltimeRule) -> Workload:
    """The specification: all records in columns, and jobs made of them."""
    return swf_to_workload(read_swf(path), "w1", 3.0, walltime)


def by_either(path: Path, walltime: WalltimeRule) -> Workload:
    return read_workload(path, "w1", 3.0, walltime)


@pytest.mark.usefixtures("either_engine")
@given(texts(), st.sampled_from(RULES), st.booleans())
@example(f"{RECORD}\n{RECORD.replace('1 0', '2,0', 1)}", "max", False)
@example(f"{RECORD}],[{RECORD.replace('1 0', '2 0', 1)}", "max", False)
@example(f"{RECORD}\n{RECORD.replace('1 0', '2 0', 1)} 5", "max", False)
@example(f"{RECORD.replace('1 0', '1 1e9', 1)}\n{RECORD.replace('1 0', '2 1000000000.1', 1)}", "max", False)
@example(f"{RECORD}\n \r\n{RECORD.replace('1 0', '2 0', 1)}\r\n", "max", False)
def test_any_text_tells_the_same(path: Path, text: str, walltime: WalltimeRule, packed: bool) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0) if packed else text.encode())
    assert told(by_either, path, walltime) == told(by_columns, path, walltime)


CANCELLED = "2 5 90 {run_time} {allocated} -1 -1 4 120 -1 5 7 -1 -1 -1 -1 -1 -1"


@pytest.mark.usefixtures("either_engine")
@pytest.mark.parametrize(("run_time", "allocated"), [("0", "0"), ("0", "-1"), ("-1", "-1"), ("-1", "4")])
def test_a_job_that_was_cancelled_while_it_waited_is_left_out(
    path: Path, caplog: pytest.LogCaptureFixture, run_time: str, allocated: str
) -> None:
    path.write_text(f"{RECORD}\n{CANCELLED.format(run_time=run_time, allocated=allocated)}\n")
    assert [job.id for job in read_workload(path, "w0").jobs] == ["w0!1"]
    (message,) = caplog.messages
    assert "left out because they were cancelled while they waited: 1 of 2 jobs" in message


@pytest.mark.usefixtures("either_engine")
def test_a_job_that_was_cancelled_while_it_ran_is_kept(path: Path) -> None:
    path.write_text(f"{RECORD}\n{CANCELLED.format(run_time='0', allocated='4')}\n")
    assert [job.id for job in read_workload(path, "w0").jobs] == ["w0!1", "w0!2"]


def test_a_log_of_cancelled_jobs_only_is_refused(path: Path) -> None:
    path.write_text(f"{CANCELLED.format(run_time='-1', allocated='4')}\n")
    with pytest.raises(InputError, match="every job was cancelled while it waited"):
        read_workload(path, "w0")


def test_a_log_of_the_archive_tells_the_same(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "library", None)
    path = shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz"
    assert told(by_either, path, "max") == told(by_columns, path, "max")


def read_text(*pieces: str) -> Any:
    """The jobs of a text and what comes with them, without the native library."""
    return read_jobs([piece.encode() for piece in pieces], 10**6, "w0", 2.0)


@given(USUAL)
def test_records_in_order_are_usual(lines: list[list[str]]) -> None:
    text = "\n".join(["; MaxProcs: 4", *map(" ".join, lines), ""])
    found = read_text(text)
    sized = [words for words in lines if max(int(words[4]), int(words[7])) > 0]
    kept = [words for words in sized if (words[10], float(words[3]) or int(words[4]) > 0) != ("5", False)]
    if not kept:
        assert found is None
        return
    assert found is not None
    assert [job.id for job in found.jobs] == [f"w0!{number}" for number, *_ in kept]
    assert (found.nb_unsized, found.nb_cancelled) == (len(lines) - len(sized), len(sized) - len(kept))
    assert found.nb_all == len(lines)
    assert found.nb_unrequested == sum(float(words[8]) <= 0 for words in kept)
    assert found.nb_raised == sum(0 < float(words[8]) < 2 * float(words[3]) for words in kept)
    assert found.nb_equal == sum(0 < float(words[8]) == float(words[3]) for words in kept)
    assert found.comments == [b"; MaxProcs: 4"]


@pytest.mark.parametrize(
    "unusual",
    [
        "5 8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 7 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 -8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 8 0 -1 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 8 0 60 4.5 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 8 0 60 4 -1 -1 4 120 -1 1 9007199254740993 -1 -1 -1 -1 -1 -1",
        "6 8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1e16",
        "6 8 0 60 4 -1 nan 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 8 0 60 4 -1 1e400 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1",
        "6 8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1 -1",
        "6,8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1",
        "6 8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1 ; a comment",
    ],
)
def test_whatever_has_to_be_reported_is_left_to_those_who_do(unusual: str) -> None:
    before = "5 8 0 60 4 -1 -1 4 120 -1 1 7 -1 -1 -1 -1 -1 -1"
    assert read_text(before) is not None
    assert read_text(f"{before}\n{unusual}\n") is None


@given(texts())
def test_where_pieces_end_changes_nothing(text: str) -> None:
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    assert told_by_jobs(*lines) == told_by_jobs(text)


def told_by_jobs(*pieces: str) -> Any:
    """What is found in a usual text."""
    if (found := read_text(*pieces)) is None:
        return None
    told = asdict(found)
    return [asdict(job) for job in told.pop("jobs")], told


def test_a_usual_record_has_the_fields_of_every_record() -> None:
    whole = {name for name, kind in Record.__annotations__.items() if kind == "_Whole"}
    assert Record.__struct_fields__ == COLUMNS
    assert whole == WHOLE


def test_without_the_library_jobs_of_a_large_log_are_made_when_they_are_asked_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "library", None)
    path.write_text(f"{RECORD}\n")
    assert not isinstance(read_workload(path, "w0").jobs, LoggedJobs)
    monkeypatch.setattr(quick_reader, "LARGE", 40)
    assert isinstance(read_workload(path, "w0").jobs, LoggedJobs)


@pytest.mark.skipif(native.library is None, reason="the native engine is not in use")
def test_the_library_reads_a_log_with_faults_and_reports_them(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = RECORD.replace("1 0 0 60", "2 0 0 -1", 1)
    path.write_text(f"{RECORD}\n1 2 3\n{unknown}\n{RECORD}\n{RECORD.replace('1 0', '3 1e1', 1)}\n")
    workload = read_workload(path, "w0")
    assert isinstance(workload.jobs, NativeJobs)
    assert [(job.id, job.submission_time) for job in workload.jobs] == [("w0!1", 0.0), ("w0!3", 10.0)]
    (message,) = caplog.messages
    assert message.endswith(
        "3 of 5 records left out: 2 bad lines (line 2: 3 fields instead of 18; line 4: job_number came "
        "before), 1 of unknown run time"
    )
