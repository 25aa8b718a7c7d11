"""What an agent is shown and asked, and what is done with its answers."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import batsched_py as bp
from batsched_py.analysis.explain import remarks_beside
from batsched_py.errors import InputError
from batsched_py.gym import Backfill, ChoosePolicy, PickJob, QueueObservation, SchedulingEnv
from batsched_py.gym.features import Seen
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import SCHEDULERS
from batsched_py.testing import Workbench
from batsched_py.workload.model import Workload
from tests.gym.agents import Trained, play


def job(number: int, size: int, walltime: float, submission: float = 0.0) -> Job:
    return Job(f"w0!{number}", submission, size, walltime, "p")


def bench(*jobs: Job, now: float = 100.0) -> Workbench:
    made = Workbench(8, now=now)
    made.submit(*jobs)
    return made


def test_jobs_are_rows_of_features_and_the_rest_is_zero() -> None:
    cluster = bench(job(1, 2, 60.0), job(2, 4, 3600.0, 40.0), job(3, 8, inf, 100.0)).cluster
    cluster.start(cluster.queue.head)
    month = np.log1p(28 * 24 * 3600.0)
    shown = QueueObservation().show(cluster, Seen(cluster, 3), 3, None)
    assert_allclose(
        shown["jobs"],
        [[np.log1p(60.0) / month, np.log1p(3600.0) / month, 0.5, 1], [0, 1, 1, 0], [0, 0, 0, 0]],
        rtol=1e-6,
    )
    assert_allclose(shown["machine"][:3], [6 / 8, np.log1p(2) / np.log1p(10_000), 1], rtol=1e-6)


def test_only_the_first_of_a_long_queue_are_seen() -> None:
    cluster = bench(*(job(number, 1 + number % 8, 60.0) for number in range(300))).cluster
    shown = QueueObservation().show(cluster, Seen(cluster, 5), 5, None)
    assert_allclose(shown["jobs"][:, 2] * 8, [1, 2, 3, 4, 5])


def test_a_pick_of_nobody_is_a_pick_of_the_first(log: bp.Log, workload: Workload) -> None:
    env = SchedulingEnv(PickJob(slots=512), log, hosts=64)
    assert play(env, lambda _: 0, workload=workload) == play(env, lambda _: 511, workload=workload)


def questions(task: Any, cluster: bp.Cluster) -> list[list[int]]:
    """The masks of a turn in which the agent always takes the first that it is offered."""
    task.begin(cluster)
    asking, masks = task.turn(cluster), list[list[int]]()
    observation = next(asking, None)
    while observation is not None:
        masks.append(observation["action_mask"].tolist())
        try:
            observation = asking.send(int(observation["action_mask"].argmax()))
        except StopIteration:
            return masks
    return masks


def test_nobody_is_offered_for_backfilling_who_would_delay_the_head() -> None:
    made = bench(job(1, 6, 100.0))
    made.cluster.start(made.cluster.queue.head)
    made.submit(job(2, 7, 50.0), job(3, 1, 100.0), job(4, 3, 10.0), job(5, 1, 200.0), job(6, 1, 200.0))
    # The head needs seven hosts, which leaves one; the fourth does not fit.
    assert questions(Backfill(slots=6), made.cluster) == [[0, 1, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 0, 1]]


def test_nothing_is_asked_while_nothing_can_be_backfilled() -> None:
    made = bench(job(1, 8, 100.0), job(2, 7, 50.0), job(3, 1, 10.0))
    assert questions(Backfill(slots=6), made.cluster) == []


def test_a_policy_that_takes_over_sees_who_waited_before() -> None:
    """As long as nothing ends, first fit looks at new jobs only: those it has seen itself."""
    made = bench(job(1, 6, 100.0), job(2, 8, 50.0), job(3, 1, 10.0))
    task = ChoosePolicy([SCHEDULERS.create(name, {}) for name in ("sjf", "filler")], period=10.0)
    task.begin(made.cluster)
    for now, action in ((100.0, 0), (110.0, 1)):
        made.cluster._go_to(now)
        asking = task.turn(made.cluster)
        next(asking)
        with pytest.raises(StopIteration):
            asking.send(action)
        made.ledger.settle()
    assert [running.job.name for running in made.cluster.running] == ["3", "1"]
    assert made.cluster.order is None


def test_a_policy_that_predicts_cannot_be_changed_for_others() -> None:
    with pytest.raises(InputError, match="scheduler 'easy-sjbf' has estimates of its own"):
        ChoosePolicy([SCHEDULERS.create("easy-sjbf", {})])


def ends(chosen: list[tuple[float, int]]) -> Iterator[float]:
    """When the periods of the second policy are over."""
    for number, (_, which) in enumerate(chosen):
        if which == 1:
            yield chosen[number + 1][0] if number + 1 < len(chosen) else inf


@pytest.mark.parametrize("other", ["filler", "easy"])
def test_conservative_keeps_its_promises_from_when_it_takes_over(
    log: bp.Log, other: str, tmp_path: Path
) -> None:
    """In each of its periods it reserves for all who wait, and no reservation is broken or moves back."""
    period = 20_000.0
    task = ChoosePolicy([SCHEDULERS.create(name, {}) for name in (other, "conservative")], period=period)
    chosen: list[tuple[float, int]] = []

    class Noting(Trained):
        """Takes turns, and notes when."""

        def schedule(self, cluster: bp.Cluster) -> None:
            self.now = cluster.now
            super().schedule(cluster)

    def alternate(_: object) -> int:
        chosen.append((agent.now, len(chosen) % 2))
        return chosen[-1][1]

    agent = Noting(task, alternate)
    result = bp.simulate(log, agent, hosts=64, remarks=True, export=tmp_path / "out")
    assert result.validate() == []
    remarks = remarks_beside(tmp_path / "out_jobs.csv")
    waited = 0
    for begin, end in zip([time for time, which in chosen if which], [*ends(chosen)], strict=True):
        for row in result.jobs.itertuples():
            if row.submission_time >= end or row.starting_time <= max(begin, row.submission_time):
                continue
            made = remarks.get(f"w0!{row.job_id}", ())
            starts = [each.start for each in made if begin <= each.time < end and each.start is not None]
            assert starts, "it waits without a reservation"
            assert starts == sorted(starts, reverse=True), "its reservation moved back"
            assert row.starting_time <= starts[-1] or starts[-1] >= end, "its reservation was broken"
            waited += 1
    assert waited > 100


def test_any_change_of_policies_gives_a_valid_schedule(log: bp.Log) -> None:
    names = ("fcfs", "sjf", "filler", "easy", "conservative", "user-aware", "multi-queue")
    task = ChoosePolicy([SCHEDULERS.create(name, {}) for name in names], period=3600.0)
    random = np.random.default_rng(1)
    result = bp.simulate(log, Trained(task, lambda _: int(random.integers(len(names)))), hosts=64)
    assert result.validate() == []
    assert len(result.jobs) == len(log)
