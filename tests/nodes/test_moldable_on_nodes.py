"""Moldable jobs on machines of nodes, against the slow and obvious reference."""

from __future__ import annotations

from math import inf
from random import Random

import pytest
from msgspec.structs import replace

from batsched_py.analysis.schedule import host_sets
from batsched_py.analysis.validator import Facts, validate
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines import new_simulation, why_not_native
from batsched_py.engines.python import Batsim, PythonSimulation
from batsched_py.errors import PolicyError
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, HomogeneousTotal
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup
from batsched_py.testing.runs import schedule_of
from batsched_py.workload.model import Workload
from tests.nodes.reference import Node, Place, Reference, RefJob, State, beside, leaves
from tests.nodes.test_reference import as_job, as_platform, places, random_jobs, random_machine
from tests.scheduling import over_zeromq, text

#: The seconds of work of a job: every number of hosts up to 12 divides it.
WORK = 27720


class Moldable(Reference):
    """EASY with jobs of several sizes; each size of a job is a job that ends when it is expected to."""

    def __init__(
        self, nodes: list[Node], licences: int, jobs: list[RefJob], shapes: dict[int, dict[int, RefJob]]
    ) -> None:
        self.shapes = shapes
        super().__init__(nodes, licences, jobs, "moldable")

    def possible(self, job: RefJob) -> list[RefJob]:
        """The sizes that the empty machine could hold, the smallest first."""
        empty = State(self.nodes, [dict(n.has) for n in self.nodes], [0] * len(self.nodes), self.licences)
        given = [shape for _, shape in sorted(self.shapes[job.id].items())]
        return [shape for shape in given if empty.place(shape) is not None] or [job]

    def shadow(self, shape: RefJob, now: int) -> tuple[float, State]:
        """When there is a place, and what is free then."""
        future = self.state()
        if future.place(shape) is not None:
            return now, future
        for run in sorted(self.running, key=lambda run: (run.end, run.number)):
            future.put(run.job, run.place, 1)
            if future.place(shape) is not None:
                return max(run.end, now), future
        return inf, future

    def moldable(self, now: int) -> None:
        while self.queue:
            head = self.queue[0]
            ends = [self.shadow(shape, now)[0] + expected(shape) for shape in self.possible(head)]
            chosen = self.possible(head)[ends.index(min(ends))]
            place = self.state().place(chosen)
            if place is None:
                self.fill_beside(chosen, now)
                return
            self.start_as(head, chosen, place, now)

    def fill_beside(self, head: RefJob, now: int) -> None:
        shadow, future = self.shadow(head, now)
        for job in [job for job in self.queue if job.id != head.id]:
            for shape in sorted(self.possible(job), key=expected):
                place = self.state().place(shape)
                late = now + expected(shape) > shadow
                if place is not None and late and not leaves(future, shape, place, head):
                    place = beside(self.state(), future, shape, head)
                if place is not None:
                    self.start_as(job, shape, place, now)
                    if now + shape.walltime > shadow:
                        future.put(shape, place)
                    break

    def start_as(self, job: RefJob, shape: RefJob, place: Place, now: int) -> None:
        self.queue[self.queue.index(job)] = shape
        self.start(shape, place, now)


def expected(shape: RefJob) -> int:
    """How long a job is expected to run with a size."""
    return getattr(shape, "expected", shape.walltime)


def hosts(job: RefJob) -> int:
    return job.tasks * job.per_task["cores"]


def random_shapes(random: Random, job: RefJob) -> dict[int, RefJob]:
    """Sizes of a job, with requests of their own; with the size that it asks for it has its own request."""
    shapes: dict[int, RefJob] = {}
    work = WORK * random.randint(1, 3)
    for other in [job, *random_jobs(random, random.randint(0, 3))]:
        size = hosts(other)
        if size not in shapes:
            shapes[size] = other
            other.id, other.submission, other.run_time = job.id, job.submission, work // size
            other.expected = work // size + random.randint(0, 2000)  # type: ignore[attr-defined]
            other.walltime = other.expected  # type: ignore[attr-defined]
    # What runs with the size that was asked for is expected to run for its walltime, which all sizes share.
    job.walltime = max(shape.walltime for shape in shapes.values())
    return shapes


def as_moldable(job: RefJob, shapes: dict[int, RefJob]) -> Job:
    described = as_job(job)
    sizes = {
        str(size): {"run_time": expected(shape), "request": as_job(shape).extra["request"]}
        for size, shape in shapes.items()
    }
    extra = {**described.extra, "sizes": sizes}
    return replace(described, profile=f"{job.id}", extra=extra)


def drawn(seed: int) -> tuple[list[Node], int, list[RefJob], dict[int, dict[int, RefJob]], Workload]:
    random = Random(seed)
    nodes, licences = random_machine(random)
    jobs = random_jobs(random, 25)
    for job in jobs:
        job.submission *= 300
    shapes = {job.id: random_shapes(random, job) for job in jobs}
    speed = as_platform(nodes, licences).hosts[0].speed
    works = {job.id: hosts(job) * job.run_time for job in jobs}
    profiles = {f"{id}": HomogeneousTotal(work=work * speed) for id, work in works.items()}
    described = [as_moldable(job, shapes[job.id]) for job in jobs]
    return nodes, licences, jobs, shapes, Workload("w0", described, profiles)


SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_that_schedules_are_those_of_the_reference(seed: int) -> None:
    nodes, licences, jobs, shapes, workload = drawn(seed)
    platform = as_platform(nodes, licences)
    schedule = schedule_of(SCHEDULERS.create("easy-moldable", {}), workload, platform)
    reference = Moldable(nodes, licences, jobs, shapes)
    had = {int(job): len(each) for job, each in zip(schedule["job_id"], host_sets(schedule), strict=True)}
    if seed == 0:
        assert sum(had[id] != hosts(job) for id, job in enumerate(jobs) if id in reference.starts) > 3
    cores = {id: shapes[id][had[id]].per_task["cores"] for id in reference.starts}
    assert places(schedule, nodes) == {
        id: (start, {node: tasks * cores[id] for node, tasks in reference.places[id].items()})
        for id, start in reference.starts.items()
    }
    facts = Facts(machine=platform.as_protocol()[0])
    assert validate(schedule, len(platform.hosts), [workload], None, facts) == []


def test_another_process_chooses_the_same_sizes() -> None:
    """What leaves are allocations of hosts; a real Batsim divides the work among them."""
    nodes, licences, *_, workload = drawn(1)
    platform = as_platform(nodes, licences)
    here = schedule_of(SCHEDULERS.create("easy-moldable", {}), workload, platform)
    assert text(over_zeromq(SCHEDULERS.create("easy-moldable", {}), workload, platform)) == text(here)


#: Two nodes of 4 cores and 8 kB.
MACHINE = as_platform([Node({"cores": 4, "memory": 8})] * 2, 0)


def moldable(sizes: object, request: dict[str, object] | None = None) -> Workload:
    """A job of 80 s on one core that asks for 2, and one that keeps a core of each node for 30 s."""
    extra = {"sizes": sizes, "request": request or {}}
    keeper = Job("w0!0", 0.0, 2, 30.0, "30", {"request": {"nodes": 2}})
    job = Job("w0!1", 1.0, 2, 200.0, "total", extra)
    speed = MACHINE.hosts[0].speed
    return Workload("w0", [keeper, job], {"30": Delay(30.0), "total": HomogeneousTotal(work=80 * speed)})


def start_of(workload: Workload) -> tuple[float, str]:
    """When the job of several sizes starts, and on which hosts."""
    schedule = schedule_of(SCHEDULERS.create("easy-moldable", {}), workload, MACHINE).set_index("job_id")
    return float(schedule.at["1", "starting_time"]), str(schedule.at["1", "allocated_resources"])


def test_without_a_request_of_its_own_a_size_has_as_many_tasks_of_the_job() -> None:
    assert start_of(moldable({"2": 40, "6": 14}, {"tasks": 2})) == (1, "1-3 5-7")
    assert start_of(moldable({"2": 40, "8": 15}, {"tasks": 2})) == (1, "1-2")


def test_memory_bounds_a_size() -> None:
    by_task = {"per_task": {"memory": "4 kB"}}
    assert start_of(moldable({"2": 40, "4": 20}, by_task)) == (1, "1-2 5-6")
    assert start_of(moldable({"2": 40, "6": 14}, by_task)) == (1, "1-2")


def test_a_size_may_have_a_request_of_its_own() -> None:
    alone = {"run_time": 10, "request": {"nodes": 1, "exclusive": True}}
    assert start_of(moldable({"2": 60, "4": alone})) == (30, "0-3")
    assert start_of(moldable({"2": 30, "4": alone})) == (1, "1-2")


def test_the_engine_is_the_one_in_python() -> None:
    process = DecisionProcess(SCHEDULERS.create("easy-moldable", {}))
    workload = moldable({"2": 60})
    workload.profiles = {"30": Delay(30.0), "total": Delay(80.0)}
    reason = why_not_native(Setup(MACHINE, [workload]), process, Outputs(None))
    assert reason in (
        "jobs of several sizes on a machine of nodes",
        "the native engine is not installed, or turned off",
    )


@pytest.mark.parametrize("given", [{"run_time": -1}, {"request": {}}, {"run_time": 1, "nodes": 2}, "long"])
def test_sizes_with_faults_are_one_line(given: object) -> None:
    with pytest.raises(PolicyError, match="InputError: job w0!1: sizes: "):
        start_of(moldable({"2": given}))


def test_a_request_that_does_not_suit_its_size_is_one_line() -> None:
    with pytest.raises(PolicyError, match="2 tasks of 4 cores do not make the 6 hosts"):
        start_of(moldable({"6": {"run_time": 9, "request": {"tasks": 2, "cores": 4}}}))


def test_a_policy_that_starts_a_job_without_a_place_is_told_the_rule() -> None:
    class Rash(Scheduler):
        name = "rash"

        def schedule(self, cluster: Cluster) -> None:
            for job in list(cluster.queue):
                cluster.start(job)

    request = {"per_task": {"memory": "8 kB"}}
    jobs = [Job(f"w0!{number}", 0.0, 1, 30.0, "30", {"request": request}) for number in range(3)]
    setup = Setup(MACHINE, [Workload("w0", jobs, {"30": Delay(30.0)})])
    process, other = DecisionProcess(Rash()), DecisionProcess(Rash())
    for simulation in (new_simulation(setup, process), PythonSimulation(Batsim(setup), other)):
        with pytest.raises(PolicyError, match="nodes of hosts 1 do not have free what the job asks for"):
            simulation.run()
