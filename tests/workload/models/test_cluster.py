"""The made-up log of a cluster of today."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from batsched_py.campaign.prepare import make
from batsched_py.errors import InputError
from batsched_py.protocol.requests import read_request
from batsched_py.workload.models import MODELS
from batsched_py.workload.models.cluster import WALLTIMES
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf.log import SwfLog
from examples.experiments.administrator import answers, in_pieces
from tests.processes import call_here

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def log() -> SwfLog:
    return MODELS.create("cluster", {}).generate(3000, 1)


def test_the_same_seed_gives_the_same_log(log: SwfLog) -> None:
    again, other = (MODELS.create("cluster", {}).generate(3000, seed) for seed in (1, 2))
    assert np.array_equal(log.submit, again.submit)
    assert log.more["request"].tolist() == again.more["request"].tolist()
    assert not np.array_equal(log.submit, other.submit)


def test_its_jobs_ask_for_all_kinds_of_things(log: SwfLog) -> None:
    requests = list(map(json.loads, log.more["request"]))
    made = [read_request(int(size), asked) for size, asked in zip(log.processors, requests, strict=True)]
    assert {request.partitions for request in made} == {("cpu",), ("gpu",)}
    assert any(request.exclusive for request in made)
    assert any(dict(request.per_task).get("gpu") for request in made)
    assert all(dict(request.per_task)["memory"] for request in made)
    assert (log.requested_time >= log.run_time).all()
    assert (np.diff(log.submit) >= 0).all()


def test_users_ask_for_up_to_four_times_the_run_time(log: SwfLog) -> None:
    limits = np.array(WALLTIMES)
    wanted = np.minimum(np.outer([1.0, 1.5, 2.0, 4.0], log.run_time), limits[-1])
    allowed = limits[np.searchsorted(limits, wanted)]
    asked = [int(np.sum(log.requested_time == each)) for each in allowed]
    assert (allowed == log.requested_time).any(axis=0).all()
    assert min(asked) > len(log.run_time) / 5


def test_users_submit_by_day(log: SwfLog) -> None:
    hours = log.submit // 3600 % 24
    assert ((hours >= 9) & (hours < 17)).sum() > 1.5 * ((hours >= 18) | (hours < 2)).sum()


def test_it_is_kept_in_a_workload_and_runs_on_its_machine(tmp_path: Path) -> None:
    workload = tmp_path / "cluster.json"
    code, _, stderr = call_here(["generate", "cluster", "-n", "400", "--seed", "3", "--output", workload])
    assert code == 0, stderr
    assert all("request" in job.extra for job in read_workload(workload, "w0").jobs)
    machine = ROOT / "platforms" / "cluster.toml"
    code, stdout, stderr = call_here(
        ["run", "-w", workload, "-p", machine, "-s", "easy", "-e", tmp_path / "out", "--json"]
    )
    assert code == 0, stderr
    told = json.loads(stdout)
    assert (told["jobs"], told["rejected"], told["hosts"]) == (400, 0, 140 * 64)


def test_a_plan_does_not_lose_what_jobs_ask_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"would be lost .* FILE.json"):
        make(tmp_path / "log.swf", {"model": "cluster", "jobs": 10})
    assert not list(tmp_path.iterdir())


def test_a_job_in_pieces_is_as_long_as_before(log: SwfLog) -> None:
    pieces = in_pieces(log, 7200.0)
    assert pieces.run_time.max() <= 7200 and pieces.requested_time.max() <= 7200
    assert (pieces.run_time > 0).all()
    assert (pieces.run_time * pieces.processors).sum() == (log.run_time * log.processors).sum()


def test_the_questions_of_an_administrator_are_answered() -> None:
    found = answers(jobs=500, seed=1)
    assert list(found.index) == [
        "as it is", "20 nodes more", "no backfilling", "at most 24 h", "fair share", "half of the GPUs",
    ]  # fmt: skip
    assert found.notna().all(axis=None)
    waits = found["GPUs"]
    assert waits["half of the GPUs"] > waits["as it is"]
    assert found["parts of nodes"]["no backfilling"] >= found["parts of nodes"]["as it is"]
