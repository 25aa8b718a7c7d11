"""EASY that chooses the sizes of moldable jobs."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import batsched_py as bp
from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import validate
from batsched_py.errors import PolicyError
from batsched_py.simulator.setup import Setup
from batsched_py.testing import schedule_of
from batsched_py.workload.model import Workload
from tests.drive import GIGA, workload
from tests.power import machine, power60, random_jobs, run
from tests.processes import PATIENCE, call_here, serving
from tests.scheduling import policy

#: 80 s on one host.
TOTAL = {"type": "parallel_homogeneous_total", "cpu": 80 * GIGA, "com": 0}
SIZES = {"1": 80, "2": 40, "4": 20, "8": 10}


def moldable(*jobs: dict[str, Any]) -> Workload:
    """Jobs of 80 s on one host, which give several sizes if nothing else is said."""
    default = {"res": 2, "walltime": 100, "profile": "total", "sizes": SIZES}
    return workload(*(default | job for job in jobs), profiles={"total": TOTAL})


def made(jobs: Workload, hosts: int, folder: Path) -> dict[str, tuple[float, int]]:
    """When each job started, and on how many hosts."""
    run(Setup(machine(hosts), [jobs]), "easy-moldable", folder)
    schedule = read_schedule(folder / "out_jobs.csv")
    assert validate(schedule, hosts, [jobs]) == []
    return {row.job_id: (row.starting_time, round(80 / row.execution_time)) for row in schedule.itertuples()}


def test_a_job_takes_the_size_with_which_it_ends_first(tmp_path: Path) -> None:
    jobs = moldable(
        {"id": "a"}, {"id": "b", "subtime": 1, "sizes": {"1": 80, "2": 40}}, {"id": "c", "subtime": 9}
    )
    assert made(jobs, 8, tmp_path) == {"a": (0, 8), "b": (10, 2), "c": (10, 4)}


def test_a_job_starts_small_if_waiting_for_more_hosts_takes_longer(tmp_path: Path) -> None:
    jobs = moldable({"id": "a", "res": 3, "sizes": {"3": 90}}, {"id": "b"}, {"id": "c", "subtime": 30})
    assert made(jobs, 4, tmp_path) == {"a": (0, 3), "b": (0, 1), "c": (30, 2)}


def test_the_validator_finds_a_size_that_a_job_does_not_give(tmp_path: Path) -> None:
    jobs = moldable({"id": "a", "sizes": {"1": 80, "4": 20}})
    assert made(jobs, 6, tmp_path) == {"a": (0, 4)}
    schedule = read_schedule(tmp_path / "out_jobs.csv").assign(allocated_resources="0-2")
    (violation,) = validate(schedule, 6, [jobs])
    assert violation.rule == "sizes"
    assert violation.text == "job w0!a runs on 3 hosts, which is none of its sizes: 1, 2, 4"


def test_a_moldable_job_may_have_another_size_when_it_begins_again(tmp_path: Path) -> None:
    file, trace = tmp_path / "w.json", tmp_path / "trace.csv"
    job = {"id": "a", "subtime": 0, "res": 2, "walltime": 100, "profile": "total", "sizes": SIZES}
    file.write_text(json.dumps({"nb_res": 8, "jobs": [job], "profiles": {"total": TOTAL}}))
    trace.write_text("hosts,down,up\n7,5,500\n")
    result = bp.simulate(file, "easy-moldable", hosts=8, failure_trace=trace)
    assert result.jobs["allocated_resources"].to_list() == ["0-7", "0-3"]
    assert result.validate() == []


def test_it_is_easy_for_jobs_of_one_size(tmp_path: Path) -> None:
    for seed in range(3):
        jobs = random_jobs(seed, 50, 4)
        one, other = (schedule_of(policy(name), jobs, 6) for name in ("easy", "easy-moldable"))
        assert one.equals(other)


def test_random_moldable_jobs_are_all_run_and_none_delays_the_head(tmp_path: Path) -> None:
    random = Random(5)
    jobs = moldable(
        *(
            {
                "id": f"{number:02}",
                "subtime": number * 7,
                "sizes": {size: SIZES[size] for size in random.sample(sorted(SIZES), random.randint(1, 4))},
            }
            for number in range(60)
        )
    )
    chosen = made(jobs, 8, tmp_path)
    assert len(chosen) == 60
    for job in jobs.jobs:
        assert str(chosen[job.name][1]) in job.extra["sizes"]


def test_a_job_whose_work_is_not_divided_keeps_its_size() -> None:
    jobs = workload({"id": "a", "res": 2, "walltime": 50, "sizes": {"2": 20, "4": 10}})
    with pytest.raises(PolicyError, match="the job needs 2 hosts and was given 4"):
        run(Setup(machine(4), [jobs]), "easy-moldable")


@pytest.mark.parametrize("sizes", [{"0": 5}, {"2": -1}, {"two": 5}, 7])
def test_sizes_with_faults_are_one_line(sizes: object) -> None:
    jobs = moldable({"id": "a", "sizes": sizes})
    with pytest.raises(PolicyError, match="InputError: job w0!a: sizes: "):
        run(Setup(machine(4), [jobs]), "easy-moldable")


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_another_process_runs_moldable_jobs_in_the_same_way(protocol: str, tmp_path: Path) -> None:
    jobs = [
        {"id": str(number), "subtime": number, "res": 2, "walltime": 100, "profile": "t", "sizes": SIZES}
        for number in range(6)
    ]
    (tmp_path / "w.json").write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": {"t": TOTAL}}))
    simulated = ["-w", str(tmp_path / "w.json"), "-p", power60().platform.path]
    assert call_here(["run", *simulated, "-s", "easy-moldable", "-e", f"{tmp_path}/one"])[0] == 0
    with serving("-s", "easy-moldable") as service:
        end = [service.endpoint] if protocol == "4" else [service.endpoint, ""]
        prefix = f"{tmp_path}/two" + ("" if protocol == "4" else "_")
        options = ["--protocol", protocol, "-s", *end, "-e", prefix, "--timeout", str(PATIENCE)]
        assert call_here(["batsim", *simulated, *options]) == (0, "", "")
    one, two = ((tmp_path / f"{side}_jobs.csv").read_bytes() for side in ("one", "two"))
    assert one == two
    assert b"0-7" in one
