"""The simulator and the decision process that are made of an experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.experiment.build import (
    check_sizes,
    new_batsim,
    new_process,
    read_machine,
    read_workloads,
)
from batsched_py.experiment.run import run_experiment
from batsched_py.protocol.events import Settings
from batsched_py.protocol.jobs import Job
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.workload.model import Workload

ROOT = Path(__file__).parents[2]
SAMPLE = str(ROOT / "workloads" / "sample.swf")
POWER = str(ROOT / "platforms" / "power16.xml")


def made_for(*sizes: int | None) -> list[Workload]:
    return [Workload(f"w{number}", [], {}, size) for number, size in enumerate(sizes)]


def test_workloads_are_named_as_batsim_names_them() -> None:
    read = read_workloads(Workloads(files=(SAMPLE, SAMPLE), walltime="requested"))
    assert [workload.name for workload in read] == ["w0", "w1"]


@pytest.mark.parametrize(
    ("machine", "sizes", "hosts"),
    [
        (Machine(), (64,), 64),
        (Machine(), (None, 8, 16), 16),
        (Machine(hosts=4), (64,), 4),
        (Machine(hosts=100, mmax=10), (64,), 10),
        (Machine(hosts=100, mmax_workload=True), (64, 32), 64),
        (Machine(mmax=3), (64,), 3),
        (Machine(file=POWER), (64,), 16),
        (Machine(file=POWER, mmax=5), (64,), 5),
        (Machine(file=POWER, roles=("node00,node01:storage",)), (64,), 14),
    ],
)
def test_the_machine_is_as_large_as_asked_for(
    machine: Machine, sizes: tuple[int | None, ...], hosts: int
) -> None:
    assert len(read_machine(machine, made_for(*sizes)).hosts) == hosts


@pytest.mark.parametrize(
    ("machine", "error"),
    [
        (Machine(), "no workload says how large its machine was; give --hosts N or -p PLATFORM.xml"),
        (Machine(hosts=4, mmax_workload=True), "--mmax-workload: a workload does not say how large"),
        (Machine(hosts=4, roles=("node00",)), "role 'node00' is not of the form"),
        (Machine(file=POWER, hosts=4), "both --hosts and -p say what the machine is"),
        (Machine(file=POWER, speed=2.0), "--speed is for the hosts of --hosts"),
    ],
)
def test_a_machine_that_cannot_be_is_told(machine: Machine, error: str) -> None:
    with pytest.raises(InputError, match=error):
        read_machine(machine, made_for(None))


def test_profiles_are_kept_for_dynamic_jobs_only() -> None:
    scenario = Scenario(settings=Settings(profile_reuse=True))
    with pytest.raises(
        InputError, match="--enable-profile-reuse makes sense with --enable-dynamic-jobs only"
    ):
        new_batsim(scenario, read_machine(Machine(hosts=1), ()), (), prefix=None)


@pytest.mark.parametrize("more", [{"users": Choice("rigid")}, {"scheduling_delay": 1.0}])
def test_pybatsim_decides_alone_and_at_once(more: dict[str, object]) -> None:
    actors = Actors(scheduler=Choice("pybatsim:fillerSched"), **more)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="decides without users and without a scheduling delay"):
        new_process(actors)


def test_rigid_users_make_the_schedule_of_the_simulator(tmp_path: Path) -> None:
    """Who submits a job, the simulator or a user, does not matter to when it runs."""
    scenario = Scenario(workloads=Workloads(files=(SAMPLE,)), machine=Machine(hosts=64))
    workloads = read_workloads(scenario.workloads)
    waits = []
    for users in (None, Choice("rigid")):
        actors = Actors(scheduler=Choice("fcfs"), users=users)
        experiment = Experiment(scenario=scenario, actors=actors)
        results = run_experiment(experiment, workloads, str(tmp_path / "out")).outputs.results
        waits.append((results.nb_jobs, results.sum_waiting, results.makespan))
    assert waits[0] == waits[1]


@pytest.mark.parametrize(
    ("larger", "jobs", "refused"), [(10, 20, False), (11, 20, True), (11, 110, False), (12, 110, True)]
)
def test_a_workload_is_refused_of_which_many_jobs_can_never_run(
    larger: int, jobs: int, refused: bool
) -> None:
    sizes = [9] * larger + [8] * (jobs - larger)
    workload = Workload("w0", [Job(f"w0!{n}", 0.0, size, 1.0, "p") for n, size in enumerate(sizes)], {})
    if refused:
        with pytest.raises(InputError, match=f"^{larger} of {jobs} jobs"):
            check_sizes([workload], Platform.homogeneous(8), reject_larger=False)
    else:
        check_sizes([workload], Platform.homogeneous(8), reject_larger=False)
    check_sizes([workload], Platform.homogeneous(8), reject_larger=True)


def test_on_nodes_the_cores_count() -> None:
    platform = platform_of([NodeKind(["a", "b"], 4, {})], {}, "")
    workload = Workload("w0", [Job(f"w0!{number}", 0.0, 9, 1.0, "p") for number in range(11)], {})
    with pytest.raises(InputError, match=r"more than the 8 cores of the 2 nodes .* more nodes"):
        check_sizes([workload], platform, reject_larger=False)
