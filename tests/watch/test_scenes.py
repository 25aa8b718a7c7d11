"""A simulation that is watched is the same simulation."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from batsched_py.api.simulating import simulate_experiment
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from batsched_py.watch.scenes import Scene, scenes, watch
from tests.scheduling import policy

LOG = Path(__file__).parents[2] / "workloads" / "sample.swf"


@pytest.mark.parametrize("users", [None, "think-time"])
@pytest.mark.parametrize("delay", [0.0, 2.5])
def test_it_writes_the_same_files(tmp_path: Path, users: str | None, delay: float) -> None:
    experiment = Experiment(
        scenario=Scenario(workloads=Workloads(files=(str(LOG),)), machine=Machine(hosts=64)),
        actors=Actors(
            scheduler=Choice("easy"), users=None if users is None else Choice(users), scheduling_delay=delay
        ),
    )
    seen: list[float] = []
    submitted: set[str] = set()

    def look(scene: Scene) -> None:
        seen.append(scene.now)
        submitted.update(event.job.id for event in scene.happened if isinstance(event, ev.JobSubmitted))
        submitted.update(each.job.id for each in scene.decided if isinstance(each, ev.RegisterJob))

    simulate_experiment(
        experiment,
        export=f"{tmp_path}/watched",
        watched=lambda batsim, process, _: watch(look, batsim, process),
    )
    simulate_experiment(experiment, export=f"{tmp_path}/alone")
    for name in ("jobs", "schedule"):
        watched, alone = (tmp_path / f"{each}_{name}.csv" for each in ("watched", "alone"))
        assert watched.read_bytes() == alone.read_bytes()
    assert seen == sorted(seen)
    assert len(seen) > 3000
    assert len(submitted) == 3000


def test_each_scene_tells_what_happened_and_what_was_decided() -> None:
    jobs = [JobSpec("a", 0, 3, 10, 10), JobSpec("b", 1, 4, 5, 5), JobSpec("c", 2, 1, 8, 8)]
    batsim = Batsim(Setup(Platform.homogeneous(4), [workload_of(jobs)]))
    told = [
        (
            scene.now,
            [type(event).__name__ for event in scene.happened],
            [each.job.name for each in scene.decided if isinstance(each, RunningJob)],
            [(remark.job_id, remark.start) for remark in scene.remarks],
            len(scene.ledger.queue),
        )
        for scene in scenes(batsim, DecisionProcess(policy("easy")))
    ]
    assert told == [
        (0.0, [], [], [], 0),
        (0.0, ["JobSubmitted"], ["a"], [], 0),
        (1.0, ["JobSubmitted"], [], [("w0!b", 10.0)], 1),
        (2.0, ["JobSubmitted"], ["c"], [], 1),
        (2.0, ["NoMoreStaticJobs"], [], [], 1),
        (10.0, ["JobCompleted", "JobCompleted"], ["b"], [], 0),
        (15.0, ["JobCompleted"], [], [], 0),
    ]


def test_by_messages_the_scenes_are_alike() -> None:
    def at_10(delay: float) -> Scene:
        batsim = Batsim(Setup(Platform.homogeneous(1), [workload_of([JobSpec("a", 10, 1, 1, inf)])]))
        process = DecisionProcess(policy("fcfs"), scheduling_delay=delay)
        return next(scene for scene in scenes(batsim, process) if scene.now == 10.0)

    (here,), (there,) = at_10(0.0).decided, at_10(0.5).decided
    assert isinstance(here, RunningJob)
    assert isinstance(there, ev.ExecuteJob)
    assert (here.job.id, here.hosts) == (there.job_id, there.hosts)


def test_what_a_watcher_raises_ends_the_simulation(tmp_path: Path) -> None:
    def bored(scene: Scene) -> None:
        raise RuntimeError("bored")

    with pytest.raises(RuntimeError, match="bored"):
        simulate_experiment(
            Experiment(
                scenario=Scenario(workloads=Workloads(files=(str(LOG),)), machine=Machine(hosts=64)),
                actors=Actors(scheduler=Choice("fcfs")),
            ),
            export=f"{tmp_path}/out",
            watched=lambda batsim, process, _: watch(bored, batsim, process),
        )
    assert not (tmp_path / "out_jobs.csv").exists()
