"""Schedules of AccaSim 1.1.3, job by job: the same starts, ends and nodes.

Its users read a log as ``--walltime estimate --processors requested --ties numbers`` does: walltimes are what
was requested, a late job runs on, sizes are what was requested, jobs of one instant keep the log's order.
"""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from pathlib import Path

import pandas as pd
import pytest

import batsched_py as bp
from batsched_py.protocol.hosts import HostSet

SHARED = Path(__file__).parents[3] / "shared"
HPC2N = SHARED / "logs" / "HPC2N-2002-2.2-cln.swf.gz"

#: The machine of its paper: a processor of the log is two cores.
SETH = (
    '{"equivalence": {"processor": {"core": 2}}, "groups": {"g0": {"core": 4, "mem": 1000000}}, '
    '"resources": {"g0": 120}}'
)

needs_recordings = pytest.mark.skipif(
    not (HPC2N.is_file() and (SHARED / "accasim").is_dir()), reason="needs ../shared"
)


@pytest.fixture(scope="module")
def log() -> bp.Log:
    return bp.read_log(HPC2N).first(5000)


def nodes(hosts: str) -> dict[int, int]:
    return dict(Counter(host // 2 + 1 for host in HostSet.parse(hosts)))


def on_seth(log: bp.Log, policy: str, choice: str, folder: Path) -> bp.Result:
    (folder / "seth.config").write_text(SETH)
    return bp.simulate(
        log,
        policy,
        options={"nodes": choice},
        platform=folder / "seth.config",
        walltime="estimate",
        processors="requested",
        ties="numbers",
    )


@needs_recordings
@pytest.mark.parametrize(("ours", "theirs"), [("fcfs", "fifo"), ("sjf", "sjf"), ("ljf", "ljf")])
def test_all_starts_and_nodes_are_those_of_accasim(
    log: bp.Log, tmp_path: Path, ours: str, theirs: str
) -> None:
    result = on_seth(log, ours, "first-fit", tmp_path)
    recorded = pd.read_csv(SHARED / "accasim" / f"{theirs}_first-fit.csv", index_col="job")
    jobs = result.jobs.set_index(result.jobs["job_id"].astype(int)).loc[recorded.index]
    assert jobs["starting_time"].tolist() == recorded["started"].tolist()
    assert jobs["finish_time"].tolist() == recorded["ended"].tolist()
    expected = [
        {int(node): int(count) for node, count in (part.split(":") for part in text.split())}
        for text in recorded["processors_by_node"]
    ]
    assert list(map(nodes, jobs["allocated_resources"])) == expected
    assert result.validate() == []


#: Of a line for each job with its number, its start and its processors by node, as AccaSim 1.1.3 has them.
BEST_FIT = {
    "fcfs": "6fe5da3394843ce6c90ede9a2047ba1daee4653a3795486c5e15d291a99a15af",
    "sjf": "29aebb5eb0548a9d56ab04fae80b5c225d4510fba7515279b1726408e1da0af0",
    "ljf": "b1bc1a7a421161611e0dd114dfb08354fb276730dc1b41bcf3a3f0ceafffff88",
}


#: The same of all 202,871 jobs of the log, first come, first served, with first fit.
WHOLE_LOG = "3d165597dde2842a9907701cdfce5700414cf2d714c222f6b8918ea2d37482fb"


def digest(jobs: pd.DataFrame) -> str:
    lines = {
        int(job): f"{job} {start:.0f} {' '.join(f'{k}:{n}' for k, n in sorted(nodes(hosts).items()))}\n"
        for job, start, hosts in zip(
            jobs["job_id"], jobs["starting_time"], jobs["allocated_resources"], strict=True
        )
    }
    return sha256("".join(lines[job] for job in sorted(lines)).encode()).hexdigest()


@needs_recordings
@pytest.mark.slow
@pytest.mark.parametrize("policy", BEST_FIT)
def test_best_fit_takes_the_nodes_that_accasim_takes(log: bp.Log, tmp_path: Path, policy: str) -> None:
    """The digests are of what AccaSim 1.1.3 wrote, with first fit as recorded."""
    assert digest(on_seth(log, policy, "best-fit", tmp_path).jobs) == BEST_FIT[policy]


@needs_recordings
@pytest.mark.slow
def test_the_whole_log_is_dispatched_as_accasim_does(tmp_path: Path) -> None:
    """The digest is of what AccaSim 1.1.3 wrote for the whole log: each start, and each node."""
    assert digest(on_seth(bp.read_log(HPC2N), "fcfs", "first-fit", tmp_path).jobs) == WHOLE_LOG


def test_a_processor_may_take_several_cores(tmp_path: Path) -> None:
    (tmp_path / "seth.config").write_text(SETH)
    (tmp_path / "log.swf").write_text("1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n")
    result = bp.simulate(tmp_path / "log.swf", "fcfs", platform=tmp_path / "seth.config")
    assert result.overview.hosts == 240
