"""Jobs that wait for others, from the file to the explanation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import batsched_py as bp
from batsched_py.errors import Deadlock, InputError
from batsched_py.protocol.dependencies import read_array, read_dependency
from batsched_py.schedulers import SCHEDULERS
from batsched_py.testing.runs import schedule_of
from batsched_py.workload.sources import read_log
from tests.dependencies.reference import random_jobs, workload_of
from tests.drive import workload
from tests.processes import call_here, serving

CHAIN: list[dict[str, Any]] = [
    {"id": "1", "subtime": 0, "walltime": 100},
    {"id": "2", "subtime": 1, "walltime": 100, "after": "afterok:1"},
    {"id": "3", "subtime": 1, "walltime": 100, "after": "afterok:2+5s"},
    {"id": "4", "subtime": 1, "walltime": 5},
    {"id": "5", "subtime": 1, "walltime": 50, "after": "afterok:4"},
    {"id": "6", "subtime": 1, "walltime": 50, "after": "afternotok:5,afterany:a"},
    {"id": "7", "subtime": 1, "walltime": 50, "array": "a%1"},
    {"id": "8", "subtime": 1, "walltime": 50, "array": "a%1"},
    {"id": "9", "subtime": 2, "walltime": 50, "after": "singleton", "name": "x", "user": "u"},
    {"id": "10", "subtime": 3, "walltime": 50, "after": "singleton?afterok:5", "name": "x", "user": "u"},
]
STARTS = {"1": 0, "2": 10, "3": 25, "4": 1, "6": 21, "7": 1, "8": 11, "9": 2, "10": 12}


def written(path: Path, jobs: list[dict[str, Any]], delay: str = "delay") -> Path:
    """A workload file; its jobs sleep for 10 s."""
    jobs = [{"res": 1, "profile": "sleep"} | job for job in jobs]
    profiles = {"sleep": {"type": delay, "delay": 10}}
    path.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles}))
    return path


def starts_in(file: Path) -> dict[str, float]:
    lines = [line.split(",") for line in file.read_text().splitlines()]
    job, start = lines[0].index("job_id"), lines[0].index("starting_time")
    return {line[job]: float(line[start]) for line in lines[1:] if line[start]}


def test_jobs_start_when_what_they_wait_for_has_happened(tmp_path: Path) -> None:
    result = bp.simulate(written(tmp_path / "chain.json", CHAIN), "fcfs", hosts=8, progress=False)
    starts = result.jobs.dropna(subset=["starting_time"]).set_index("job_id").starting_time
    assert starts.to_dict() == STARTS
    held = result.held.set_index("job_id")
    assert held.eligible_time.dropna().to_dict() == {
        "w0!2": 10, "w0!3": 25, "w0!6": 21, "w0!8": 11, "w0!10": 12,
    }  # fmt: skip
    assert held.reason["w0!5"] == "afterok:4 can never be met, because 4 did not succeed"
    assert "eligible   after 24 s, when it joined the queue: afterok:2+5s" in str(result.explain("3"))
    assert "eligible   never: afterok:4 can never be met" in str(result.explain("5"))
    assert result.validate() == []


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_over_zeromq_a_batsim_that_knows_nothing_of_it_does_the_same(protocol: str, tmp_path: Path) -> None:
    file = written(tmp_path / "chain.json", CHAIN)
    assert call_here(["run", "-w", file, "--hosts", "8", "-s", "easy", "-e", tmp_path / "one"])[0] == 0
    with serving("-s", "easy") as service:
        if protocol == "4":
            batsim = ["batsim", "-w", file, "--hosts", "8", "--socket-endpoint", service.endpoint]
            batsim += ["-e", tmp_path / "two"]
        else:
            batsim = ["batsim", "--protocol", "5", "-w", file, "--hosts", "8", "-s", service.endpoint, "hi"]
            batsim += ["-e", f"{tmp_path}/two_"]
        code, _, err = call_here(batsim)
    assert (code, err) == (0, "")
    assert starts_in(tmp_path / "one_jobs.csv") == STARTS
    found = next(tmp_path.glob("two*jobs.csv"))
    assert starts_in(found) == STARTS
    if protocol == "4":
        assert found.read_bytes() == (tmp_path / "one_jobs.csv").read_bytes()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"after": "afterok:9"}, "job w0!2: field `after`: afterok:9: there is no job w0!9"),
        ({"after": "afterok:3"}, "the job waits for itself: w0!2 -> w0!3 -> w0!2"),
        ({"after": "afterok:2"}, "the job waits for itself: w0!2 -> w0!2"),
        ({"after": "afterok:1?afterok:3,singleton"}, "has both , (all of them) and ? (any of them)"),
        ({"after": "expand:1"}, "'expand:1' in 'expand:1' is none of afterok:JOB, afterany:JOB"),
        ({"after": 1}, "after: 1 is not a text"),
        ({"array": "a%0"}, "array: 'a%0' is not of the form NAME or NAME%LIMIT"),
        ({"array": "1"}, "its array has the name of the job w0!1"),
        ({"array": "b%2"}, "other tasks of array w0!b have another limit"),
    ],
)
def test_a_file_whose_jobs_could_never_start_is_refused(
    fields: dict[str, Any], message: str, tmp_path: Path
) -> None:
    jobs = [
        {"id": "1", "subtime": 0},
        {"id": "2", "subtime": 0} | fields,
        {"id": "3", "subtime": 0, "after": "afterany:2"},
        {"id": "4", "subtime": 0, "array": "b%1"},
    ]
    code, _, err = call_here(
        ["run", "-w", written(tmp_path / "bad.json", jobs), "-s", "fcfs", "-e", tmp_path / "out"]
    )
    assert code != 0
    assert message in err
    assert err.count("\n") == 1


def test_a_simulation_that_would_get_stuck_says_why() -> None:
    jobs = [{"id": "1", "walltime": 50, "after": "afterok:2"}, {"id": "2", "after": "singleton"}]
    with pytest.raises(
        Deadlock, match="2 jobs wait for others for ever, w0!1 first: afterok:2: w0!2 is held"
    ):
        schedule_of(SCHEDULERS.create("fcfs", {}), workload(*jobs), 4)
    with pytest.raises(Deadlock, match=r"after:w1!7: w1!7 was never submitted"):
        schedule_of(SCHEDULERS.create("fcfs", {}), workload({"id": "1", "after": "after:w1!7"}), 4)
    with pytest.raises(Deadlock, match=r"afterok:w1!7: w1!7 was never submitted"):
        schedule_of(SCHEDULERS.create("fcfs", {}), workload({"id": "1", "after": "afterok:w1!7"}), 4)


def test_the_validator_finds_jobs_that_did_not_wait(tmp_path: Path) -> None:
    jobs = [{"id": "1", "subtime": 0}, {"id": "2", "subtime": 0}, {"id": "3", "subtime": 0}]
    free = written(tmp_path / "free.json", jobs)
    assert call_here(["run", "-w", free, "-s", "fcfs", "-e", tmp_path / "free"])[0] == 0
    bound = written(
        tmp_path / "bound.json",
        [{**jobs[0], "array": "a%1"}, {**jobs[1], "array": "a%1"}, {**jobs[2], "after": "afterok:1"}],
    )
    code, out, _ = call_here(["validate", tmp_path / "free_jobs.csv", "-w", bound])
    assert code == 1
    assert "array at 0.000000: 2 tasks of array w0!a run at once, 1 may" in out
    assert "array: 1, dependency: 1" in out


def test_the_validator_finds_jobs_that_did_not_wait_for_a_start(tmp_path: Path) -> None:
    jobs = [{"id": "1", "subtime": 5}, {"id": "2", "subtime": 0}, {"id": "3", "subtime": 6}]
    free = written(tmp_path / "free.json", jobs)
    assert call_here(["run", "-w", free, "-s", "fcfs", "-e", tmp_path / "free"])[0] == 0
    bound = written(
        tmp_path / "bound.json", [jobs[0], jobs[1] | {"after": "after:1"}, jobs[2] | {"after": "after:1"}]
    )
    code, out, _ = call_here(["validate", tmp_path / "free_jobs.csv", "-w", bound])
    assert code == 1
    assert "job w0!2 starts, yet after:1 is not met" in out and "dependency: 1" in out


def test_the_validator_finds_namesakes_that_did_not_wait_and_other_workloads(tmp_path: Path) -> None:
    same = {"user": "u", "name": "n"}
    jobs = [{"id": "1", "subtime": 0, **same}, {"id": "2", "subtime": 1, **same}, {"id": "3", "subtime": 1}]
    free = written(tmp_path / "free.json", jobs)
    assert call_here(["run", "-w", free, "-w", free, "-s", "fcfs", "-e", tmp_path / "free"])[0] == 0
    later = [jobs[0], jobs[1] | {"after": "singleton"}, jobs[2] | {"after": "afterany:w1!1"}]
    bound = written(tmp_path / "bound.json", later)
    code, out, _ = call_here(["validate", tmp_path / "free_jobs.csv", "-w", bound, "-w", free])
    assert code == 1
    assert "job w0!2 starts, yet w0!1 of the same user and name is not over" in out
    assert "dependency: 2" in out


def test_a_job_waits_for_a_namesake_that_fails_twice(tmp_path: Path) -> None:
    same = {"user": "u", "name": "n", "walltime": 50}
    jobs = [{"id": "1", "subtime": 0, **same}, {"id": "2", "subtime": 4, "after": "singleton", **same}]
    trace = tmp_path / "trace.csv"
    trace.write_text("hosts,down,up\n0,3,5\n1,6,8\n")
    file = written(tmp_path / "jobs.json", jobs)
    run = ["run", "-w", file, "-s", "fcfs", "--failure-trace", trace, "-e", tmp_path / "out"]
    code, _, err = call_here(run)
    assert code == 0, err
    assert starts_in(tmp_path / "out_jobs.csv") == {"1": 0, "1#1": 3, "1#2": 6, "2": 16}


SACCT = """JobID|User|JobName|Submit|Start|End|State|ElapsedRaw|Timelimit|AllocCPUS|SubmitLine
{line}100_1{same}1-3%2 a.sh
100_2{same}1-3%2 a.sh
100_3{same}1-3%2 a.sh
105|u|sum|2024-01-01T00:00:10|2024-01-01T00:03:20|2024-01-01T00:05:00|COMPLETED|100|01:00:00|1|sbatch -d afterok:100 s.sh
106|u|sum|2024-01-01T00:00:20|2024-01-01T00:05:00|2024-01-01T00:05:10|COMPLETED|10|01:00:00|1|sbatch --dependency=singleton,afterany:99 s.sh
107|u|x|2024-01-01T00:00:20|2024-01-01T00:05:00|2024-01-01T00:05:10|COMPLETED|10|01:00:00|1|sbatch --dependency=after:105+5,expand:9,afternotok:100_2 x
"""  # noqa: E501


def test_dependencies_and_arrays_of_slurm_are_simulated(tmp_path: Path) -> None:
    same = (
        "|u|prep|2024-01-01T00:00:00|2024-01-01T00:00:00|2024-01-01T00:01:40|COMPLETED|100|01:00:00|1|"
        "sbatch --array="
    )
    file = tmp_path / "jobs.sacct"
    file.write_text(SACCT.format(line="", same=same))
    log = read_log(file)
    assert log.more["array"].tolist() == ["100%2"] * 3 + [""] * 3
    assert log.more["after"].tolist() == [""] * 3 + [
        "afterok:100",
        "singleton,afterany:99",
        "after:105+300s,afterany:100_2",
    ]
    assert log.guessed["dependency of a kind that is not simulated: left out"] == 1
    assert call_here(["convert", file, tmp_path / "jobs.json"])[0] == 0
    assert '"array":"array100%2"' in (tmp_path / "jobs.json").read_text()
    for name in ("jobs.sacct", "jobs.json"):
        run = ["run", "-w", tmp_path / name, "--hosts", "8", "-s", "fcfs", "-e", tmp_path / "out"]
        assert call_here(run)[0] == 0
        assert starts_in(tmp_path / "out_jobs.csv") == {
            "1": 0, "2": 0, "3": 100, "4": 200, "5": 300, "6": 500,
        }  # fmt: skip


def test_jobs_wait_for_their_preceding_jobs_if_that_is_asked_for(tmp_path: Path) -> None:
    rest = "1 -1 -1 1 200 -1 1 1 1 1 1 1"
    log = tmp_path / "log.swf"
    log.write_text(f"; MaxProcs: 4\n1 0 0 100 {rest} -1 -1\n2 10 0 10 {rest} 1 7\n3 300 0 10 {rest} 2 500\n")
    for rule, starts in (("ignore", {"1": 0, "2": 10, "3": 300}), ("wait", {"1": 0, "2": 107, "3": 617})):
        run = ["run", "-w", log, "-s", "easy", "--preceding", rule, "-e", tmp_path / rule]
        assert call_here(run)[0] == 0
        assert starts_in(tmp_path / f"{rule}_jobs.csv") == starts


def test_a_scheduler_of_pybatsim_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("batsim")
    file = written(tmp_path / "chain.json", CHAIN)
    with pytest.raises(InputError, match="does not know jobs that wait for others"):
        bp.simulate(file, "pybatsim:fillerSched", hosts=8, progress=False)


def test_a_name_is_read_as_slurm_writes_it() -> None:
    assert [str(end) for end in read_dependency("afterok:1:2,afterany:3").ends] == [
        "afterok:1", "afterok:2", "afterany:3",
    ]  # fmt: skip
    assert read_dependency("afterok:1:2?afterany:3").any
    assert read_array("sweep").limit is None


def test_reading_a_machine_made_workload_gives_what_was_written(tmp_path: Path) -> None:
    from random import Random

    from batsched_py.workload.batsim_json import read_batsim_json, write_batsim_json

    made = workload_of(random_jobs(Random(3), 12, 4), 4)
    write_batsim_json(tmp_path / "w.json", made)
    read = read_batsim_json(tmp_path / "w.json", "w0")
    assert [dict(job.extra) for job in read.jobs] == [dict(job.extra) for job in made.jobs]
