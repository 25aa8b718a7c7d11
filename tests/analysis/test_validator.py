"""The validator finds what is wrong, says which rule it breaks, and is silent on what is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from math import inf
from pathlib import Path
from random import Random

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.analysis import validator
from batsched_py.analysis.conditions import Absence
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Facts, Policy, validate, validate_file
from batsched_py.analysis.validator.job_rules import as_queued, lengths
from batsched_py.analysis.validator.rules import on_failed_hosts
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.protocol.profiles import (
    Composed,
    Delay,
    Homogeneous,
    HomogeneousTotal,
    Parallel,
    Profile,
    Receive,
)
from batsched_py.simulator.platform import read_platform
from batsched_py.testing import JobSpec
from batsched_py.testing.strategies import workloads
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.reference_schedulers import jobs_csv, simulate

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
HOSTS = 4
POLICIES = ["fcfs", "easy", "conservative"]


def written(jobs: list[JobSpec], starts: dict[str, float], folder: Path) -> pd.DataFrame:
    path = folder / "jobs.csv"
    path.write_text(jobs_csv(jobs, starts, HOSTS))
    return read_schedule(path)


def workload_of(jobs: list[JobSpec]) -> Workload:
    return Workload(
        "w0",
        [Job(f"w0!{job.id}", job.submission, job.size, job.walltime, f"p{job.id}") for job in jobs],
        {f"p{job.id}": Delay(job.run_time) for job in jobs},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("schedules")


# --- silence -------------------------------------------------------------------------------------


@given(jobs=workloads(HOSTS), policy=st.sampled_from(POLICIES))
def test_what_the_obvious_schedulers_do_is_clean(folder: Path, jobs: list[JobSpec], policy: str) -> None:
    schedule = written(jobs, simulate(jobs, HOSTS, policy), folder)
    assert validate(schedule, HOSTS, [workload_of(jobs)], policy) == []


@given(jobs=workloads(HOSTS), divisor=st.sampled_from([3, 7, 900]), policy=st.sampled_from(["fcfs", "easy"]))
def test_times_that_do_not_fit_into_six_decimals_are_no_violations(
    folder: Path, jobs: list[JobSpec], divisor: int, policy: str
) -> None:
    jobs = [
        replace(
            job,
            submission=job.submission / divisor,
            run_time=job.run_time / divisor,
            walltime=job.walltime / divisor,
        )
        for job in jobs
    ]
    schedule = written(jobs, simulate(jobs, HOSTS, policy), folder)
    assert validate(schedule, HOSTS, [workload_of(jobs)], policy) == []


@pytest.mark.parametrize("policy", [None, *POLICIES])
def test_a_file_is_judged_the_same_piece_by_piece(
    tmp_path: Path, policy: Policy | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    random, path = Random(str(policy)), tmp_path / "jobs.csv"
    sizes_and_times = [(random.randint(1, HOSTS), random.randint(0, 9)) for _ in range(40)]
    jobs = [JobSpec(f"{n:02}", n * 3.0, size, time, 10.0) for n, (size, time) in enumerate(sizes_and_times)]
    text = jobs_csv(jobs, simulate(jobs, HOSTS, policy or "easy"), HOSTS)
    table = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)
    chosen = table.iloc[[row for row in range(40) for _ in range(random.choice((1, 1, 1, 1, 0, 2)))]]
    chosen = chosen.sample(frac=1, random_state=3)
    chosen.iloc[5:30:3, chosen.columns.get_loc("allocated_resources")] = "0-3"
    chosen.iloc[7:30:9, chosen.columns.get_loc("starting_time")] = "21.000000"
    chosen.iloc[6:30:9, chosen.columns.get_loc("profile")] = "p08"
    chosen.to_csv(path, index=False)
    options = HOSTS, [workload_of(jobs)], policy
    whole = validate(read_schedule(path), *options)
    assert {"lost", "twice", "overlap", "workload"} <= {violation.rule for violation in whole}
    monkeypatch.setattr(validator, "_PIECE", 3)
    assert validate_file(path, *options) == (len(chosen), whole)


def recording(folder: Path) -> tuple[pd.DataFrame, int, list[Workload]]:
    words = (folder / "command.txt").read_text().splitlines()[0].split()
    files = [words[index + 1] for index, word in enumerate(words) if word == "-w"]
    workloads = [read_workload(folder / file, f"w{number}") for number, file in enumerate(files)]
    platform = read_platform(folder / words[words.index("-p") + 1])
    return read_schedule(folder / "jobs.csv"), len(platform.hosts), workloads


#: Where Batsim itself goes astray. In kinds120, job 120 is a sequence whose walltime passes exactly between
#: two of its parts; a rounding error makes what is left of it negative, which Batsim takes for no walltime.
#: In probe_dynw0, jobs are registered under the name of the static workload.
KNOWN = {
    **{
        f"kinds120_{scheduler}": [("walltime", ("w0!120",))]
        for scheduler in ("conservative_bf", "easy_bf", "easy_bf_fast", "filler")
    },
    "probe_dynw0": [("invented", ("w0!exist",)), ("invented", ("w0!new",))],
}


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in GOLDEN.glob("*/jobs.csv")), ids=lambda path: path.name
)
def test_the_schedules_of_the_real_batsim_are_clean(folder: Path) -> None:
    schedule, hosts, workloads = recording(folder)
    found = [(violation.rule, violation.jobs) for violation in validate(schedule, hosts, workloads)]
    assert found == KNOWN.get(folder.name, [])


@pytest.mark.parametrize("name", ["rigid200", "busy400", "uneven100"])
def test_fcfs_of_the_real_batsim_keeps_its_promise(name: str) -> None:
    schedule, hosts, workloads = recording(GOLDEN / f"{name}_fcfs")
    assert validate(schedule, hosts, workloads, "fcfs") == []


@pytest.mark.parametrize("name", ["rigid200_easy_bf", "busy400_easy_bf", "two_workloads"])
def test_easy_of_the_real_batsim_keeps_its_promises(name: str) -> None:
    schedule, hosts, workloads = recording(GOLDEN / name)
    assert validate(schedule, hosts, workloads, "easy") == []


@pytest.mark.parametrize("name", ["rigid200_filler", "busy400_easy_bf_fast"])
def test_backfilling_without_regard_for_the_head_breaks_the_promises_of_easy(name: str) -> None:
    schedule, hosts, workloads = recording(GOLDEN / name)
    assert "easy-backfill" in {violation.rule for violation in validate(schedule, hosts, workloads, "easy")}


# --- one rule at a time --------------------------------------------------------------------------

A = JobSpec("a", 0, 3, 10, 20)
B = JobSpec("b", 1, 2, 10, 5)
C = JobSpec("c", 2, 5, 1, 1)
D = JobSpec("d", 3, 1, 0, 1)
Change = Callable[[pd.DataFrame], pd.DataFrame]


def example(folder: Path) -> pd.DataFrame:
    """a on hosts 0-2 from 0 to 10, b on 0-1 from 10 until killed at 15; c is too wide; d takes no time."""
    return written([A, B, C, D], {"a": 0, "b": 10, "d": 3}, folder).set_index("job_id", drop=False)


def field(job: str, column: str, value: object) -> Change:
    """One field is another."""

    def change(schedule: pd.DataFrame) -> pd.DataFrame:
        schedule.loc[job, column] = value
        return schedule

    return change


def times(job: str, start: float, ran: float) -> Change:
    """A job runs at another time, and all that follows from it is as it must be."""

    def change(schedule: pd.DataFrame) -> pd.DataFrame:
        turnaround = start + ran - schedule.loc[job, "submission_time"]
        columns = [
            "starting_time",
            "execution_time",
            "finish_time",
            "waiting_time",
            "turnaround_time",
            "stretch",
        ]
        values = [start, ran, start + ran, turnaround - ran, turnaround, turnaround / ran]
        schedule.loc[job, columns] = values
        return schedule

    return change


def failed(schedule: pd.DataFrame) -> pd.DataFrame:
    """Job a fails, as nothing in its profile makes it."""
    schedule.loc["a", ["success", "final_state"]] = [0, "COMPLETED_FAILED"]
    return schedule


def stopped(job: str, start: float, ran: float) -> Change:
    """A job is said to have been stopped by its walltime."""

    def change(schedule: pd.DataFrame) -> pd.DataFrame:
        schedule = times(job, start, ran)(schedule)
        schedule.loc[job, ["success", "final_state"]] = [0, "COMPLETED_WALLTIME_REACHED"]
        return schedule

    return change


def with_another(name: str) -> Change:
    """The row of c is there again, under this name."""
    return lambda schedule: pd.concat([schedule, schedule.loc[["c"]].assign(job_id=name)])


@pytest.mark.parametrize(
    ("rule", "jobs", "change"),
    [
        ("overlap", ("w0!a", "w0!b"), times("b", 9, 5)),
        ("overlap", ("w0!a", "w0!d"), field("d", "allocated_resources", "2")),
        ("capacity", ("w0!a",), field("a", "allocated_resources", "0-1")),
        ("capacity", ("w0!a",), field("a", "allocated_resources", "")),
        ("capacity", ("w0!b",), field("b", "allocated_resources", "0 4")),
        ("causality", ("w0!d",), times("d", 2, 1e-5)),
        ("walltime", ("w0!b",), times("b", 10, 5.00001)),
        ("walltime", ("w0!b",), times("b", 10, 4.9)),
        ("arithmetic", ("w0!d",), field("d", "finish_time", 3.1)),
        ("arithmetic", ("w0!b",), field("b", "waiting_time", 9.00001)),
        ("arithmetic", ("w0!b",), field("b", "turnaround_time", 13.9)),
        ("arithmetic", ("w0!b",), field("b", "stretch", 2.80001)),
        ("arithmetic", ("w0!a",), times("a", 0, -1)),
        ("state", ("w0!a",), field("a", "success", 0)),
        ("state", ("w0!b",), field("b", "success", 1)),
        ("state", ("w0!c",), field("c", "success", 1)),
        ("state", ("w0!c",), field("c", "allocated_resources", "3")),
        ("twice", ("w0!c",), with_another("c")),
        ("invented", ("w0!e",), with_another("e")),
        ("lost", ("w0!c",), lambda schedule: schedule.drop("c")),
        ("workload", ("w0!c",), field("c", "submission_time", 2.1)),
        ("workload", ("w0!c",), field("c", "requested_number_of_resources", 6)),
        ("workload", ("w0!a",), field("a", "requested_time", 21.0)),
        ("workload", ("w0!a",), field("a", "requested_time", -1.0)),
        ("workload", ("w0!a",), field("a", "profile", "pb")),
        ("workload", ("w0!a",), failed),
        ("profile", ("w0!a",), times("a", 0, 9.9)),
        ("profile", ("w0!d",), stopped("d", 3, 1)),
    ],
)
def test_a_broken_rule_is_named(tmp_path: Path, rule: str, jobs: tuple[str, ...], change: Change) -> None:
    found = validate(change(example(tmp_path)), HOSTS, [workload_of([A, B, C, D])])
    assert {violation.rule for violation in found} == {rule}
    assert found[0].jobs == jobs


def test_the_example_breaks_no_rule(tmp_path: Path) -> None:
    assert validate(example(tmp_path), HOSTS, [workload_of([A, B, C, D])]) == []


def test_a_violation_says_who_when_and_how(tmp_path: Path) -> None:
    (found,) = validate(times("b", 9, 5)(example(tmp_path)))
    assert str(found) == "overlap at 9.000000: jobs w0!a and w0!b both run on 0-1"


def test_violations_come_in_the_order_of_time(tmp_path: Path) -> None:
    schedule = field("a", "success", 0)(times("b", 9, 5)(example(tmp_path)))
    assert [violation.rule for violation in validate(schedule)] == ["state", "overlap"]


def test_a_third_job_on_a_contested_host_is_found_when_the_first_has_left(tmp_path: Path) -> None:
    jobs = [JobSpec(name, 0, 1, 10, inf) for name in "abc"]
    schedule = written(jobs, {"a": 0, "b": 5, "c": 12}, tmp_path)
    schedule["allocated_resources"] = "0"
    assert [violation.jobs for violation in validate(schedule)] == [("w0!a", "w0!b"), ("w0!b", "w0!c")]


def test_jobs_of_no_length_may_share_a_host_with_whatever_starts_then(tmp_path: Path) -> None:
    jobs = [JobSpec("a", 0, 4, 0, 5), JobSpec("b", 0, 4, 0, 5), JobSpec("c", 0, 4, 7, 9)]
    assert validate(written(jobs, {"a": 0, "b": 0, "c": 0}, tmp_path), HOSTS) == []


def test_a_job_whose_work_is_a_total_may_run_on_any_number_of_hosts(tmp_path: Path) -> None:
    workload = workload_of([A, B, C, D])
    workload.profiles["total"] = HomogeneousTotal(1e9)
    workload.profiles["pa"] = Composed(("total",), repeat=2)
    schedule = field("a", "allocated_resources", "0-1")(example(tmp_path))
    assert validate(schedule, HOSTS, [workload]) == []


def test_a_sequence_returns_what_its_first_failing_part_returns(tmp_path: Path) -> None:
    workload = workload_of([A, B, C, D])
    workload.profiles |= {"works": Delay(9), "fails": Delay(1, return_code=3)}
    workload.profiles["pa"] = Composed(("works", "fails", "works"))
    assert validate(failed(example(tmp_path)), HOSTS, [workload]) == []
    assert [violation.text for violation in validate(example(tmp_path), HOSTS, [workload])] == [
        "job w0!a ends COMPLETED_SUCCESSFULLY, but its profile returns 3"
    ]


@pytest.mark.parametrize(
    ("profile", "rules"),
    [
        (Homogeneous(20e9), []),
        (Homogeneous(19e9), ["profile"]),
        (Homogeneous(19e9, bytes_sent=1), []),
        (HomogeneousTotal(60e9), []),
        (HomogeneousTotal(61e9), ["profile"]),
        (Parallel((40e9, 10e9, 10e9), (0.0,) * 9), []),
        (Parallel((20e9, 10e9, 10e9), (0.0,) * 9), ["profile"]),
        (Composed(("part",), repeat=2), []),
        (Composed(("part",), repeat=3), ["profile"]),
        (Receive(), []),
    ],
)
def test_a_job_that_computes_runs_as_long_as_its_hosts_need(
    tmp_path: Path, profile: Profile, rules: list[str]
) -> None:
    """Job a runs for 10 s; the first of its three hosts is twice as fast as the others."""
    workload = workload_of([A, B, C, D])
    workload.profiles |= {"pa": profile, "part": Homogeneous(10e9)}
    facts = Facts(speeds=[4e9, 2e9, 2e9, 2e9])
    found = validate(example(tmp_path), HOSTS, [workload], facts=facts)
    assert [violation.rule for violation in found] == rules


def test_jobs_registered_under_other_names_are_not_looked_for_in_the_workloads(tmp_path: Path) -> None:
    schedule = example(tmp_path)
    schedule.loc[["a", "b"], "workload_name"] = "dynamic"
    assert validate(schedule, HOSTS, [workload_of([C, D])]) == []


# --- corruption at random ------------------------------------------------------------------------

NUMBERS = ["submission_time", "requested_time", "starting_time", "execution_time", "finish_time"]
NUMBERS += ["waiting_time", "turnaround_time", "stretch"]


@settings(max_examples=2 * settings().max_examples)
@given(jobs=workloads(HOSTS), column=st.sampled_from(NUMBERS), delta=st.floats(1e-4, 1e4), data=st.data())
def test_a_corrupted_number_is_noticed(
    folder: Path, jobs: list[JobSpec], column: str, delta: float, data: st.DataObject
) -> None:
    schedule = written(jobs, simulate(jobs, HOSTS, "easy"), folder)
    filled = schedule.index[schedule[column].notna()]
    if len(filled):
        row = data.draw(st.sampled_from(list(filled)))
        bound = 1e-4 * (1 + schedule.loc[row, "stretch"]) if column == "stretch" else 0
        schedule.loc[row, column] += data.draw(st.sampled_from([1, -1])) * (delta + bound)
        assert validate(schedule, HOSTS, [workload_of(jobs)])


@settings(max_examples=2 * settings().max_examples)
@given(
    jobs=workloads(HOSTS),
    kind=st.sampled_from(["drop", "repeat", "rename", "flag", "state", "hosts", "size"]),
    seed=st.integers(0, 99),
)
def test_a_corrupted_row_is_noticed(folder: Path, jobs: list[JobSpec], kind: str, seed: int) -> None:
    schedule = written(jobs, simulate(jobs, HOSTS, "easy"), folder)
    random = Random(seed)
    row = random.choice(list(schedule.index))
    match kind:
        case "drop":
            schedule = schedule.drop(row)
        case "repeat":
            schedule = pd.concat([schedule, schedule.loc[[row]]])
        case "rename":
            schedule.loc[row, "job_id"] = "another"
        case "flag":
            schedule.loc[row, "success"] = 1 - schedule.loc[row, "success"]
        case "state":
            states = ["COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "REJECTED"]
            states.remove(schedule.loc[row, "final_state"])
            schedule.loc[row, "final_state"] = random.choice(states)
        case "hosts":
            schedule.loc[row, "allocated_resources"] += f" {HOSTS}"
        case "size":
            schedule.loc[row, "requested_number_of_resources"] += random.choice([-1, 1])
    assert validate(schedule, HOSTS, [workload_of(jobs)])


# --- promises ------------------------------------------------------------------------------------


def promises_broken(
    folder: Path, jobs: list[JobSpec], starts: dict[str, float], policy: str
) -> list[tuple[str, tuple[str, ...], float]]:
    found = validate(written(jobs, starts, folder), HOSTS, [workload_of(jobs)], policy)
    return [(violation.rule, violation.jobs, violation.time) for violation in found]


def test_fcfs_order(tmp_path: Path) -> None:
    jobs = [JobSpec("a", 0, 4, 10, 10), JobSpec("b", 1, 4, 5, 5), JobSpec("c", 2, 4, 5, 5)]
    assert promises_broken(tmp_path, jobs, {"a": 0, "b": 15, "c": 10}, "fcfs") == [
        ("fcfs-order", ("w0!c", "w0!b"), 10)
    ]


def test_fcfs_may_start_jobs_of_equal_submission_in_any_order(tmp_path: Path) -> None:
    jobs = [JobSpec("a", 0, 4, 10, 10), JobSpec("b", 0, 4, 5, 5)]
    assert promises_broken(tmp_path, jobs, {"a": 5, "b": 0}, "fcfs") == []


def test_easy_idle(tmp_path: Path) -> None:
    jobs = [JobSpec("a", 0, 2, 10, 10), JobSpec("b", 1, 2, 5, 5)]
    assert ("easy-idle", ("w0!b",), 1) in promises_broken(tmp_path, jobs, {"a": 0, "b": 10}, "easy")


def test_easy_reservation(tmp_path: Path) -> None:
    """c delays b, and c had not the right to overtake it: both are named."""
    jobs = [JobSpec("a", 0, 2, 10, 10), JobSpec("b", 1, 4, 5, 5), JobSpec("c", 2, 1, 20, 20)]
    assert promises_broken(tmp_path, jobs, {"a": 0, "b": 22, "c": 2}, "easy") == [
        ("easy-reservation", ("w0!b",), 1),
        ("easy-backfill", ("w0!c", "w0!b"), 2),
    ]


def test_easy_backfill_without_harm_done(tmp_path: Path) -> None:
    """c ends before it could do harm, but by its walltime it could have."""
    jobs = [JobSpec("a", 0, 2, 10, 10), JobSpec("b", 1, 4, 5, 5), JobSpec("c", 2, 1, 3, 20)]
    assert promises_broken(tmp_path, jobs, {"a": 0, "b": 10, "c": 2}, "easy") == [
        ("easy-backfill", ("w0!c", "w0!b"), 2)
    ]


def test_easy_backfill_onto_more_than_the_extra_hosts(tmp_path: Path) -> None:
    jobs = [
        JobSpec("a", 0, 2, 10, 10),
        JobSpec("b", 1, 3, 5, 5),
        JobSpec("c", 2, 1, 3, 20),
        JobSpec("d", 3, 1, 3, 20),
    ]
    starts = {"a": 0, "b": 10, "c": 2, "d": 3}
    assert promises_broken(tmp_path, jobs, starts, "easy") == [("easy-backfill", ("w0!d", "w0!b"), 3)]


def test_the_head_may_be_any_of_those_submitted_first(tmp_path: Path) -> None:
    """Behind b, c may be backfilled; behind x it may not. Both were submitted at once."""
    jobs = [
        JobSpec("a", 0, 2, 10, 10),
        JobSpec("b", 1, 3, 5, 5),
        JobSpec("c", 2, 1, 20, 20),
        JobSpec("x", 1, 4, 5, 5),
    ]
    assert promises_broken(tmp_path, jobs, {"a": 0, "b": 10, "c": 2, "x": 22}, "easy") == []


def test_conservative_reservation(tmp_path: Path) -> None:
    """EASY lets d overtake, which delays c beyond its reservation at 20."""
    jobs = [
        JobSpec("a", 0, 2, 10, 10),
        JobSpec("b", 1, 3, 10, 10),
        JobSpec("c", 2, 4, 10, 10),
        JobSpec("d", 3, 1, 30, 30),
    ]
    starts = simulate(jobs, HOSTS, "easy")
    assert promises_broken(tmp_path, jobs, starts, "easy") == []
    assert promises_broken(tmp_path, jobs, starts, "conservative") == [
        ("conservative-reservation", ("w0!c",), 2)
    ]


@pytest.mark.parametrize("policy", ["easy", "conservative"])
def test_promises_about_free_hosts_need_their_number(tmp_path: Path, policy: str) -> None:
    with pytest.raises(InputError, match="depend on the number of hosts"):
        validate(example(tmp_path), policy=policy)


@settings(max_examples=2 * settings().max_examples)
@given(jobs=workloads(HOSTS), late=st.integers(0, 14), delay=st.integers(1, 40))
def test_a_job_that_is_held_back_is_noticed(folder: Path, jobs: list[JobSpec], late: int, delay: int) -> None:
    """With distinct submissions and nobody behind it, a job alone in the queue must start when it fits."""
    jobs = [replace(job, submission=100.0 * number) for number, job in enumerate(jobs)]
    starts = simulate(jobs, HOSTS, "easy")
    held = sorted(starts)[late % len(starts)] if starts else None
    if held is not None:
        starts[held] += delay
        rules = {rule for rule, _, _ in promises_broken(folder, jobs, starts, "easy")}
        assert rules & {"easy-idle", "easy-reservation"}


@pytest.mark.parametrize(
    ("failed", "away", "told"),
    [
        ("1", "1", False),
        ("1", "1 3", False),
        ("0,1", "0-1", False),
        ("1", "0", True),  # that host did not fail
        ("0,1", "1", True),  # one of them did not
        ("2", "2", True),  # it failed, and the job was not on it
        ("1,2", "1-2", True),
    ],
)
def test_a_job_that_failed_was_on_the_hosts_that_it_names_and_they_failed_then(
    failed: str, away: str, told: bool
) -> None:
    """The job runs on hosts 0 and 1 of 4 until 10 s."""
    schedule = pd.DataFrame(
        {
            "workload_name": ["w0"],
            "job_id": ["1"],
            "final_state": ["COMPLETED_KILLED"],
            "starting_time": [0.0],
            "finish_time": [10.0],
            "allocated_resources": ["0-1"],
            "metadata": [f"failed={failed}"],
        }
    )
    found = list(on_failed_hosts(schedule, [Absence(HostSet.parse(away), "away", 10.0, 20.0)]))
    assert [violation.rule for violation in found] == ["failure"] * told


@pytest.mark.parametrize(("note", "told"), [("failed=0", False), ("", True)])
def test_a_malleable_job_that_is_started_again_takes_its_time(note: str, told: bool) -> None:
    """It takes 10 s on 4 hosts, fails, and takes 20 s on 2; without a failure the second is another job."""
    size = {"malleable": {"min": 1, "max": 4}}
    job = Job("w0!1", 0.0, 4, 100.0, "p", extra=size)
    again = pd.DataFrame(
        {
            "workload_name": "w0",
            "job_id": ["1", "1#1"],
            "id": ["w0!1", "w0!1#1"],
            "profile": "p",
            "final_state": [JobState.KILLED, JobState.SUCCESS],
            "starting_time": [0.0, 5.0],
            "execution_time": [5.0, 20.0],
            "finish_time": [5.0, 25.0],
            "requested_time": 100.0,
            "hosts": [HostSet.parse("0-3"), HostSet.parse("1-2")],
            "held": [4, 2],
            "highest": [3, 2],
            "metadata": [note, "restart=1"],
        }
    )
    found = list(lengths(again, [Workload("w0", [job], {"p": Delay(10.0)})], None))
    assert [(violation.rule, violation.jobs) for violation in found] == [("profile", ("w0!1#1",))] * told


def test_jobs_that_waited_for_starts_of_this_instant_join_the_queue_after_the_others() -> None:
    """At 10 s the long one ends and the first starts. What the late one asks for was over long before."""
    after = {"c": "afterok:long", "late": "afterok:short", "second": "after:first"}
    jobs = [
        Job(f"w0!{name}", 0.0, 1, 100.0, "p", extra={"after": after[name]} if name in after else {})
        for name in ("long", "short", "first", "c", "late", "second")
    ]
    schedule = pd.DataFrame(
        {
            "id": [job.id for job in jobs],
            "submission_time": [0.0, 0.0, 1.0, 3.0, 10.0, 2.0],
            "starting_time": [0.0, 0.0, 10.0, 12.0, 12.0, 12.0],
            "finish_time": [10.0, 5.0, 20.0, 22.0, 22.0, 22.0],
        }
    )
    arrivals = {f"w0!{name}": 10.0 for name in after}
    queued = as_queued(schedule, [Workload("w0", jobs, {"p": Delay(10.0)})], arrivals).set_index("id")
    assert queued["turn"].sort_values(kind="stable").index.tolist()[-3:] == ["w0!c", "w0!late", "w0!second"]
    assert queued["turn"].tolist() == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]
