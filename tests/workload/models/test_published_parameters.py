"""The parameters of models, as they are published or stated, and what generated logs show of them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from batsched_py.workload.models import MODELS
from batsched_py.workload.models.cluster import DAY, KINDS
from batsched_py.workload.models.lublin import BATCH, EITHER, INTERACTIVE, JobClass
from batsched_py.workload.models.realistic import Realistic
from batsched_py.workload.swf.log import SwfLog
from tests.logs import log_of

HOUR = 3600

#: U. Lublin and D. Feitelson, JPDC 63(11), 2003, and the authors' program of 1999: sizes (serial, power of
#: two, the two pieces of the logarithm and the share of the first), run times (two gammas, and how the share
#: of the first depends on the size), gaps with the factor for a whole day, and the daily cycle.
PUBLISHED = {
    "batch": (
        (0.2927, 0.6686, 1.2, 5.0, 7.0, 0.875),
        ((6.57, 0.823), (639.1, 0.0156), -0.003, 0.6986),
        ((6.0415, 0.8531), 1.0519, (6.1271, 5.2740)),
    ),
    "interactive": (
        (0.1541, 0.625, 1.0, 3.0, 5.5, 0.705),
        ((3.8351, 0.6605), (7.073, 0.6856), -0.0118, 0.9156),
        ((6.5510, 0.6621), 0.9797, (8.9186, 3.6680)),
    ),
    "either": (
        (0.244, 0.576, 0.8, 4.5, 7.0, 0.86),
        ((4.2, 0.94), (312.0, 0.03), -0.0054, 0.78),
        ((10.2303, 0.4871), 1.0225, (8.1737, 3.9631)),
    ),
}


@pytest.mark.parametrize(
    ("name", "jobs"), [("batch", BATCH), ("interactive", INTERACTIVE), ("either", EITHER)]
)
def test_lublin_has_the_published_parameters(name: str, jobs: JobClass) -> None:
    sizes, run_times, arrivals = PUBLISHED[name]
    assert (jobs.serial, jobs.power_of_two, jobs.low, jobs.middle, jobs.high, jobs.below) == sizes
    assert (jobs.first, jobs.second, jobs.slope, jobs.start) == run_times
    assert (jobs.gap, jobs.whole_day, jobs.day) == arrivals


#: The made-up cluster: the share of each kind of job in its partition; of what it asks for so many; gigabytes
#: for each core or GPU; the median of run times in hours and the spread of their logarithm; jobs at once.
KINDS_OF_JOBS = [
    (0.55, "core", {1}, {1, 2, 4}, 0.4, 1.5, 12.0),
    (0.27, "part", {2, 4, 8, 16, 32}, {2, 4}, 1.0, 1.4, 3.0),
    (0.08, "part", {1, 2, 4, 8}, {16, 24, 28}, 2.0, 1.2, 2.0),
    (0.10, "node", {1, 2, 4, 8, 16, 32}, {2, 3}, 2.0, 1.4, 1.5),
    (1.00, "gpu", {1, 2, 4, 8}, {32, 48, 60}, 3.0, 1.3, 2.0),
]
MEANS_OF_COUNTS = [1.0, 12.4, 3.75, 7.1, 2.5]
BUSY_HOURS = (3, 2, 2, 2, 2, 2, 3, 5, 9, 12, 13, 13, 11, 12, 13, 13, 12, 10, 8, 7, 6, 6, 5, 4)


def test_the_kinds_of_jobs_of_the_cluster_are_those_that_are_stated() -> None:
    found = [
        (kind.share, kind.unit, set(kind.counts), set(kind.gigabytes), kind.median / HOUR, kind.spread)
        for kind in KINDS
    ]
    assert found == [each[:6] for each in KINDS_OF_JOBS]
    assert [kind.together for kind in KINDS] == [each[6] for each in KINDS_OF_JOBS]
    assert [sum(kind.counts) / len(kind.counts) for kind in KINDS] == pytest.approx(MEANS_OF_COUNTS)
    assert DAY == BUSY_HOURS


@pytest.fixture(scope="module")
def cluster() -> SwfLog:
    return MODELS.create("cluster", {}).generate(6000, 1)


def test_jobs_of_the_cluster_ask_for_the_least_of_a_few_walltimes(cluster: SwfLog) -> None:
    walltimes = HOUR * np.array([0.25, 0.5, 1, 2, 4, 8, 12, 24, 48, 72])
    assert set(cluster.requested_time.tolist()) == set(walltimes.tolist())
    below = np.append(0, walltimes)[np.searchsorted(walltimes, cluster.requested_time)]
    asked_at_most = np.minimum(4 * cluster.run_time, walltimes[-1])
    assert (asked_at_most >= below).all()


def test_each_job_of_the_cluster_is_of_a_kind(cluster: SwfLog) -> None:
    seen = set()
    for request, size in zip(cluster.more["request"], cluster.processors.tolist(), strict=True):
        asked = json.loads(request)
        if "per_task" in asked:
            unit, count, memory = "gpu", asked["tasks"], asked["per_task"]["memory"]
            assert (size, asked["cores"], asked["per_task"]["gpu"]) == (8 * count, 8, 1)
        else:
            unit = "node" if asked.get("exclusive") else "part" if asked.get("nodes") else "core"
            count, memory = asked["nodes"] if unit == "node" else size, asked["per_core"]["memory"]
            assert size == count * (64 if unit == "node" else 1)
        seen.add((unit, count, int(memory.removesuffix(" GB"))))
    possible = {
        ("core" if unit == "part" and count == 1 else unit, count, memory)
        for _, unit, counts, gigabytes, *_ in KINDS_OF_JOBS
        for count in counts
        for memory in gigabytes
    }
    assert seen <= possible
    assert len(seen) > 0.8 * len(possible)


def test_at_weekends_users_of_the_cluster_are_half_as_busy(cluster: SwfLog) -> None:
    """Groups of jobs count, which come at one time: two days of a half beside five whole ones are a sixth."""
    times = np.unique(cluster.submit)
    week = 7 * 24 * HOUR
    times = times[times < times.max() // week * week]
    weekend = times // (24 * HOUR) % 7 >= 5
    expected = 1 / 6
    assert weekend.mean() == pytest.approx(expected, abs=5 * np.sqrt(expected * (1 - expected) / len(times)))
    assert len(times) > 800


def test_times_that_are_asked_for_are_those_of_the_log_and_no_run_times() -> None:
    number = np.arange(1.0, 301.0)
    log = log_of(
        job_number=number.astype(np.int64),
        submit=60 * number,
        run_time=1000 + number,
        allocated_processors=np.ones(300, dtype=np.int64),
        requested_processors=np.ones(300, dtype=np.int64),
        requested_time=np.full(300, 7200.0),
        user=1 + number.astype(np.int64) % 5,
    )
    generated = Realistic().fit(log).generate(200, seed=1)
    assert (generated.requested_time == 7200).all()
