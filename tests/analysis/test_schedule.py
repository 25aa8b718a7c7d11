"""Reading jobs.csv: what is good is typed, what is bad is named by its line."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.analysis.schedule import full_ids, host_intervals, host_sets, read_schedule
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.testing import JobSpec
from tests.reference_schedulers import jobs_csv

GOLDEN = Path(__file__).parents[1] / "data" / "golden"


@pytest.fixture
def lines() -> list[str]:
    """A schedule of two jobs, one of them rejected."""
    jobs = [JobSpec("1", 0.5, 2, 10.0, 20.0), JobSpec("2", 1.0, 9, 10.0)]
    return jobs_csv(jobs, {"1": 0.5}, hosts=4).splitlines()


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join([*lines, ""]))
    return path


def test_columns_are_typed(tmp_path: Path, lines: list[str]) -> None:
    schedule = read_schedule(write(tmp_path / "jobs.csv", lines))
    row = schedule.loc[schedule["job_id"] == "1"].iloc[0]
    assert row["requested_number_of_resources"] == 2
    assert row["success"] == 1
    assert row["finish_time"] == 10.5
    assert row["metadata"] == ""
    assert sorted(full_ids(schedule)) == ["w0!1", "w0!2"]


def test_identifiers_stay_text(tmp_path: Path, lines: list[str]) -> None:
    lines[1:] = [line.replace("1,w0,", "007,w0,", 1) for line in lines[1:]]
    assert "007" in set(read_schedule(write(tmp_path / "jobs.csv", lines))["job_id"])


def test_rejected_jobs_have_no_times(tmp_path: Path, lines: list[str]) -> None:
    schedule = read_schedule(write(tmp_path / "jobs.csv", lines))
    rejected = schedule[schedule["final_state"] == "REJECTED"]
    assert rejected[["starting_time", "finish_time", "stretch", "consumed_energy"]].isna().all(axis=None)
    assert host_sets(rejected) == [HostSet()]


def test_a_schedule_without_jobs_is_read(tmp_path: Path, lines: list[str]) -> None:
    assert len(read_schedule(write(tmp_path / "jobs.csv", lines[:1]))) == 0


def test_commas_in_metadata_do_not_shift_columns(tmp_path: Path, lines: list[str]) -> None:
    lines[-1] = lines[-1].removesuffix('""') + '"a, b, c"'
    assert read_schedule(write(tmp_path / "jobs.csv", lines))["metadata"].iloc[-1] == "a, b, c"


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("*/jobs.csv")), ids=lambda path: path.parent.name)
def test_files_of_the_real_batsim_are_read_completely(folder: Path) -> None:
    assert len(read_schedule(folder)) == len(folder.read_text().splitlines()) - 1


@pytest.mark.parametrize(
    ("column", "text", "message"),
    [
        ("starting_time", "soon", "`starting_time` is 'soon' instead of a number"),
        ("starting_time", "", "`starting_time` is '' instead of a number"),
        ("finish_time", "nan", "`finish_time` is 'nan', which is not finite"),
        ("submission_time", "inf", "`submission_time` is 'inf', which is not finite"),
        ("success", "yes", "`success` is 'yes' instead of an integer"),
        (
            "requested_number_of_resources",
            "2.5",
            "`requested_number_of_resources` is '2.5' instead of an integer",
        ),
        ("final_state", "RUNNING", "`final_state` is 'RUNNING', which is no state in which a job ends"),
    ],
)
def test_a_bad_field_is_named_with_its_line(
    tmp_path: Path, lines: list[str], column: str, text: str, message: str
) -> None:
    header = lines[0].split(",")
    number = next(number for number, line in enumerate(lines) if line.startswith("1,"))
    fields = lines[number].split(",")
    fields[header.index(column)] = text
    lines[number] = ",".join(fields)
    path = write(tmp_path / "jobs.csv", lines)
    with pytest.raises(InputError) as error:
        read_schedule(path)
    assert str(error.value) == f"{path}:{number + 1}: {message}"


@pytest.mark.parametrize("number", [1, 2])
def test_a_cut_row_is_named_with_its_line(tmp_path: Path, lines: list[str], number: int) -> None:
    lines[number] = ",".join(lines[number].split(",")[:6])
    with pytest.raises(InputError, match=rf"jobs.csv:{number + 1}: 6 fields instead of 17"):
        read_schedule(write(tmp_path / "jobs.csv", lines))


@pytest.mark.parametrize("numbers", [[1], [2], [1, 2]])
def test_a_row_with_too_many_fields_is_named_with_its_line(
    tmp_path: Path, lines: list[str], numbers: list[int]
) -> None:
    for number in numbers:
        lines[number] += ",x"
    with pytest.raises(InputError, match=rf"jobs.csv:{numbers[0] + 1}: 18 fields instead of 17"):
        read_schedule(write(tmp_path / "jobs.csv", lines))


def test_a_missing_column_is_named(tmp_path: Path, lines: list[str]) -> None:
    path = write(tmp_path / "jobs.csv", [lines[0].replace("stretch,", "")])
    with pytest.raises(InputError, match="no column `stretch`"):
        read_schedule(path)


def test_an_empty_file_is_no_schedule(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no column `job_id`"):
        read_schedule(write(tmp_path / "jobs.csv", []))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.csv: cannot be read: No such file"):
        read_schedule(tmp_path / "none.csv")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_bytes(b"\xff\xfe\x00job")
    with pytest.raises(InputError, match="is not text in UTF-8"):
        read_schedule(path)


def test_bad_hosts_are_named_with_their_job(tmp_path: Path, lines: list[str]) -> None:
    lines = [line.replace(",0 1,", ",0-x,") for line in lines]
    with pytest.raises(InputError, match="job w0!1: `allocated_resources`: '0-x' is not a host"):
        host_sets(read_schedule(write(tmp_path / "jobs.csv", lines)))


def assert_intervals_are_those_of_the_sets(texts: list[str]) -> None:
    schedule = pd.DataFrame({"allocated_resources": texts, "workload_name": "w", "job_id": "1"})
    expected = [
        (place, low, high) for place, hosts in enumerate(host_sets(schedule)) for low, high in hosts.runs()
    ]
    assert list(host_intervals(schedule).itertuples(index=False, name=None)) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["0-3 7", "", "5", "0-3 7"],
        ["7 0-2 3", "4"],
        ["0-2 1-5"],
        ["0-1 2"],
        ["", ""],
        ["9 9", "3"],
        ["0\n2", "5"],
    ],
)
def test_intervals_are_those_of_the_sets(texts: list[str]) -> None:
    assert_intervals_are_those_of_the_sets(texts)


@given(st.lists(st.sets(st.integers(0, 30)), min_size=1))
def test_intervals_of_any_hosts_are_those_of_the_sets(sets: list[set[int]]) -> None:
    assert_intervals_are_those_of_the_sets([str(HostSet.of(hosts)) for hosts in sets])


@pytest.mark.parametrize("text", ["3-", "-3", "a", "3-1", "1-2-3", "99999999", "1_0"])
def test_intervals_that_are_none(text: str) -> None:
    schedule = pd.DataFrame({"allocated_resources": ["0", text], "workload_name": "w", "job_id": "1"})
    with pytest.raises(InputError, match="job w!1: `allocated_resources`"):
        host_intervals(schedule)
