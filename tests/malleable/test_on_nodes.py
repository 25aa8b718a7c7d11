"""Malleable jobs on machines of nodes, where hosts close, and under a cap on power."""

from __future__ import annotations

import json
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from batsched_py.analysis.schedule import RESIZES, has_resizes, host_sets, pieces_of, read_schedule
from batsched_py.analysis.validator import Facts, validate
from batsched_py.analysis.validator.rules import into_closures, over_power_cap
from batsched_py.errors import PolicyError
from batsched_py.ledger.running import RESIZES_HEADER
from batsched_py.outside.closures import Closure
from batsched_py.outside.curve import Curve, Known
from batsched_py.protocol.events import HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.protocol.sizes import malleable_of
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.schedulers.capped import Capped
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.malleable.node_reference import MalleableEasyOnNodes
from tests.malleable.reference import RefJob
from tests.nodes.test_reference import as_job, as_platform, random_jobs, random_machine
from tests.power import machine, run
from tests.processes import call_here

SEEDS = [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 80))]


def random_case(random: Random, count: int = 30) -> tuple[list[RefJob], dict[str, object], Workload]:
    """Jobs that ask for nodes, of which many are malleable: for the reference, and as a workload."""
    plain, asks, jobs = [], {}, []
    for asked in random_jobs(random, count):
        job = replace(as_job(asked), walltime=float(asked.run_time + random.randint(1, 200)))
        made = RefJob(job.name, asked.submission, job.size, Fraction(asked.run_time), int(job.walltime))
        if random.random() < 0.7:
            made.least, made.most = random.randint(1, job.size), job.size + random.randint(0, 8)
            made.sequential = random.choice((Fraction(0), Fraction(1, 8)))
            bounds = {"min": made.least, "max": made.most, "sequential": float(made.sequential)}
            job = replace(job, extra={**job.extra, "malleable": bounds, "user": random.choice("ab")})
        asked.walltime = made.walltime
        plain.append(made)
        asks[job.name] = asked
        jobs.append(job)
    return plain, asks, Workload("w0", jobs, {job.profile: Delay(float(job.profile)) for job in jobs}, None)


@pytest.mark.parametrize("seed", SEEDS)
def test_malleable_easy_on_nodes_is_what_its_definition_says(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    nodes, licences = random_machine(random)
    while True:
        jobs, asks, load = random_case(random)
        expected = MalleableEasyOnNodes(nodes, licences, jobs, asks)
        if expected.is_clear:
            break
    machine = as_platform(nodes, licences)
    run(Setup(machine, [load]), "malleable-easy", tmp_path)
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    node_of = [number for number, node in enumerate(nodes) for _ in range(node.has["cores"])]
    for row, hosts in zip(schedule.itertuples(), host_sets(schedule), strict=True):
        if row.final_state == "REJECTED":
            assert row.job_id not in expected.had
            continue
        pieces = [(row.starting_time, hosts)]
        if getattr(row, RESIZES, ()):
            pieces = [(piece.start, piece.hosts) for piece in pieces_of(row.starting_time, inf, row.resizes)]
        had = [(time, Counter(node_of[host] for host in each)) for time, each in pieces]
        news = [piece for before, piece in pairwise([(0.0, None), *had]) if piece[1] != before[1]]
        assert news == [
            (pytest.approx(float(time), abs=2e-6), place) for time, place in expected.had[row.job_id]
        ]
        assert row.finish_time == pytest.approx(float(expected.ends[row.job_id]), abs=2e-6)
    assert validate(schedule, len(node_of), [load], facts=Facts(machine=machine.as_protocol()[0])) == []


class Restless(Scheduler):
    """Starts what fits, and resizes jobs at random as far as there is room."""

    name = "restless"

    def __init__(self, random: Random) -> None:
        super().__init__()
        self.random = random

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.queue:
            if cluster.fits(job):
                cluster.start(job)
        resizing = cluster.resizing()
        for running in cluster.running:
            if malleable_of(running.job) is not None:
                for _ in range(self.random.randint(0, 4)):
                    self.random.choice((resizing.grow, resizing.shrink))(running)
        for job, hosts in resizing.changes():
            cluster.resize(job, hosts)
        if cluster.running:
            cluster.call_at(cluster.now + self.random.randint(1, 9))


def random_closures(random: Random, nb_hosts: int) -> tuple[Closure, ...]:
    closures = []
    for _ in range(4):
        start, first = float(random.randint(0, 300)), random.randrange(nb_hosts)
        hosts = HostSet.of(range(first, min(first + random.randint(1, 4), nb_hosts)))
        closures.append(
            Closure(start, start + random.randint(5, 60), hosts, frozenset(random.choice(("", "a"))))
        )
    return tuple(closures)


def whole_nodes(closures: tuple[Closure, ...], platform) -> tuple[Closure, ...]:
    """Closures are of whole nodes."""
    of_nodes = [HostSet.of(range(n.first, n.first + n.cores)) for n in platform.as_nodes().nodes]
    made = []
    for closure in closures:
        hosts = HostSet()
        for node in of_nodes:
            hosts = hosts | node if node & closure.hosts else hosts
        made.append(replace(closure, hosts=hosts))
    return tuple(made)


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_that_grow_and_shrink_at_random_break_no_rule(seed: int, tmp_path: Path) -> None:
    """On nodes, with hosts that close and hosts that go and come back."""
    random = Random(seed)
    nodes, licences = random_machine(random)
    platform = as_platform(nodes, licences)
    _, _, load = random_case(random)
    nb_hosts = len(platform.hosts)
    closures = whole_nodes(random_closures(random, nb_hosts), platform)
    away = HostSet.of([random.randrange(nb_hosts)])
    outage = [HostsUnavailable(away, time=40.0), HostsAvailable(away, time=90.0)]
    for policy in (Restless(random), "malleable-easy"):
        setup = Setup(platform, [load], events=[outage])
        run(setup, policy, tmp_path, Known(closures=closures))
        schedule = read_schedule(tmp_path / "out_jobs.csv")
        assert validate(schedule, nb_hosts, [load], facts=Facts(machine=platform.as_protocol()[0])) == []
        assert list(into_closures(schedule, closures, [load])) == []
        assert len(schedule) == len(load.jobs)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", ["malleable-easy", "capped(malleable-easy)"])
def test_nodes_of_one_core_are_hosts(seed: int, policy: str, tmp_path: Path) -> None:
    _, _, load = random_case(Random(seed))
    jobs = [replace(job, size=min(job.size, 4), extra=_bounded(job)) for job in load.jobs]
    load = Workload("w0", jobs, load.profiles)
    written = []
    nodes = platform_of([NodeKind([f"n{number}" for number in range(8)], 1, {})], {}, "machine")
    for hosts in (Platform.homogeneous(8), nodes):
        run(Setup(hosts, [load]), policy, tmp_path)
        written.append([(tmp_path / f"out_{name}.csv").read_bytes() for name in ("jobs", "resizes")])
    assert written[0] == written[1]


def on_a_node(*jobs: dict, cores: int = 8, count: int = 2, **more) -> Setup:
    """Jobs of 10 seconds with two tasks of two cores, of 1 to 4 tasks, on such nodes."""
    kinds = [NodeKind([f"n{number}" for number in range(count)], cores, {"memory": 8 * 1024**2}, (), (), ())]
    request = {"cores": 2, "per_task": {"memory": "1 GB"}} | more
    default = {"request": request, "malleable": {"min": 2, "max": 8}}
    made = [Job(f"w0!{n}", 0.0, 4, 100.0, "p", default | job) for n, job in enumerate(jobs)]
    return Setup(platform_of(kinds, {}, "machine"), [Workload("w0", made, {"p": Delay(10.0)})])


class Says(Scheduler):
    """Starts all jobs, and then says something about the first."""

    name = "says"

    def __init__(self, *sizes: int | str) -> None:
        super().__init__()
        self.sizes = sizes
        self.had: list[str] = []

    def schedule(self, cluster: Cluster) -> None:
        jobs = list(cluster.queue)
        for job in jobs:
            cluster.start(job)
        for size in self.sizes if jobs else ():
            hosts = HostSet.parse(size) if isinstance(size, str) else size
            self.had.append(str(cluster.resize(jobs[0], hosts).hosts))
            self.had.append(str(cluster.resources["memory"][0] // 1024**2))


def said(setup: Setup, *sizes: int | str) -> list[str]:
    policy = Says(*sizes)
    run(setup, policy)
    return policy.had


def test_a_number_of_hosts_means_whole_tasks_and_their_memory() -> None:
    assert said(on_a_node({}), 8, 2, 6) == ["0-7", "12", "0-1", "15", "0-5", "13"]
    assert said(on_a_node({}, {}), 8) == ["0-3 8-11", "10"]


def test_a_job_keeps_the_least_number_of_its_nodes() -> None:
    assert said(on_a_node({}, nodes=2), 8, 4) == ["0-5 8-9", "12", "0-1 8-9", "14"]
    with pytest.raises(PolicyError, match="resize w0!0: there is no place for 2 hosts, in tasks of 2"):
        said(on_a_node({}, nodes=2), 2)


def test_a_job_alone_on_its_nodes_grows_there_and_frees_nodes_that_it_leaves() -> None:
    alone = on_a_node({}, cores=4, count=3, exclusive=True, nodes=[1, 2], tasks_per_node=2)
    assert said(alone, 8, 2, 6) == ["0-7", "20", "0-1", "23", "0-5", "21"]


@pytest.mark.parametrize(
    ("size", "rule"),
    [
        (3, "there is no place for 3 hosts, in tasks of 2"),
        ("0-2 8", "tasks of 2 cores do not fill their hosts 0-2 8, node by node"),
        ("0-1 4-5", "hosts 4-5 are busy and may not be shared"),
    ],
)
def test_what_breaks_a_rule_is_told(size: int | str, rule: str) -> None:
    with pytest.raises(PolicyError, match=f"resize w0!0: {rule}"):
        said(on_a_node({}, {}), size)


def test_a_job_cannot_grow_without_memory_or_into_other_partitions() -> None:
    with pytest.raises(PolicyError, match="do not have free what the job asks for"):
        said(on_a_node({}, per_task={"memory": "3 GB"}), "0-5")
    with pytest.raises(PolicyError, match="there is no place for 8 hosts, in tasks of 2"):
        said(on_a_node({}, count=1, per_task={"memory": "3 GB"}), 8)


def test_a_job_does_not_grow_into_hosts_that_close(tmp_path: Path) -> None:
    jobs = [Job("w0!1", 0.0, 2, 100.0, "p", {"malleable": {"min": 1, "max": 4}})]
    load = Workload("w0", jobs, {"p": Delay(10.0)})
    known = Known(closures=(Closure(60.0, 70.0, HostSet.parse("3")),))
    run(Setup(machine(4), [load]), "malleable-easy", tmp_path, known)
    assert (tmp_path / "out_resizes.csv").read_text().splitlines()[1:] == ["w0!1,0.000000,0-1,0-2"]
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    assert list(into_closures(schedule, known.closures, [load])) == []
    earlier = (Closure(60.0, 70.0, HostSet.parse("2")),)
    assert [each.rule for each in into_closures(schedule, earlier, [load])] == ["closed"]
    with pytest.raises(PolicyError, match="hosts 3 are closed from 60 to 70, and the job could still run"):
        run(Setup(machine(4), [load]), Says("0-1 3"), tmp_path, known)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_cap_holds_while_jobs_grow_and_shrink(seed: int, tmp_path: Path) -> None:
    """The machine draws 100 W for each host that is idle, and 200 W for one with a job."""
    random = Random(seed)
    _, _, load = random_case(random)
    jobs = [replace(job, size=min(job.size, 4), extra=_bounded(job)) for job in load.jobs]
    load = Workload("w0", jobs, load.profiles)
    cap = Curve([0.0, 50.0, 130.0, 180.0], [1600.0, 1300.0, 1400.0, 1600.0], period=200.0)
    for policy in ("capped(malleable-easy)", "capped(easy)"):
        run(Setup(machine(8), [load]), policy, tmp_path, Known(power_cap=cap))
        schedule = read_schedule(tmp_path / "out_jobs.csv")
        assert list(over_power_cap(schedule, machine(8).as_protocol()[0], cap)) == []
        assert validate(schedule, 8, [load]) == []
        assert has_resizes(schedule) == (policy != "capped(easy)")


def _bounded(job: Job) -> dict:
    """The fields of a job without a request, of four hosts or fewer at first, and up to eight."""
    bounds = job.extra.get("malleable")
    if bounds is None:
        return {}
    return {"malleable": bounds | {"min": min(bounds["min"], 2), "max": max(4, min(bounds["max"], 8))}}


def test_a_policy_that_grows_jobs_over_the_cap_is_stopped() -> None:
    capped = Capped(watts=1100.0)
    capped.inner = Says(4)  # type: ignore[misc]
    jobs = [Job("w0!1", 0.0, 2, 100.0, "p", {"malleable": {"min": 1, "max": 4}})]
    load = Workload("w0", jobs, {"p": Delay(10.0)})
    with pytest.raises(PolicyError, match="resize w0!1: the cap of 1100 W is exceeded"):
        run(Setup(machine(8), [load]), capped)


#: Two nodes of 4 cores and 4 GB. On them malleable-easy lets job a grow to both, and shrink when b comes.
TOML = '[[nodes]]\ncount = 2\nname = "n"\ncores = 4\nmemory = "4 GB"\n'
FILE = {
    "nb_res": 8,
    "jobs": [
        {
            "id": "a",
            "subtime": 0,
            "res": 2,
            "walltime": 500,
            "profile": "p",
            "request": {"cores": 2, "per_task": {"memory": "1 GB"}},
            "malleable": {"min": 2, "max": 6},
        },
        {
            "id": "b",
            "subtime": 10,
            "res": 4,
            "walltime": 100,
            "profile": "p",
            "request": {"nodes": 1, "per_node": {"memory": "3 GB"}},
        },
    ],
    "profiles": {"p": {"type": "delay", "delay": 60}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a simulation by the command."""
    made = tmp_path_factory.mktemp("nodes")
    (made / "machine.toml").write_text(TOML)
    (made / "w.json").write_text(json.dumps(FILE))
    run_it = ["run", "-w", made / "w.json", "-p", made / "machine.toml", "-s", "malleable-easy"]
    assert call_here([*run_it, "-e", made / "out"])[0] == 0
    return made


def validated(folder: Path) -> tuple[int, str]:
    code, out, _ = call_here(
        ["validate", folder / "out_jobs.csv", "-w", folder / "w.json", "-p", folder / "machine.toml"]
    )
    return code, out


def test_the_views_know_resizes_on_nodes(folder: Path) -> None:
    assert (folder / "out_resizes.csv").read_text().splitlines()[1:] == [
        "w0!a,0.000000,0-1,0-5",
        "w0!a,10.000000,0-5,0-3",
    ]
    assert validated(folder) == (0, f"{folder}/out_jobs.csv: 2 jobs, no violation\n")
    code, out, _ = call_here(
        ["explain", folder / "out", "a", "-w", folder / "w.json", "-p", folder / "machine.toml"]
    )
    assert code == 0 and "resized" in out
    gantt = folder / "gantt.svg"
    arguments = [
        "plot",
        "gantt",
        folder / "out_jobs.csv",
        "--platform",
        folder / "machine.toml",
        "--output",
        gantt,
    ]
    assert call_here(arguments)[0] == 0


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        ("0-5", "0-1 4-5", "resources"),
        ("0-5", "0-2", "tasks"),
        ("0-7", "0-3", "malleable"),
        ("0-1 4-5", "0-1 6-7", "resources"),
    ],
)
def test_planted_violations_are_found(
    folder: Path, tmp_path: Path, first: str, second: str, rule: str
) -> None:
    """Job a has these hosts from the beginning and from 10 on."""
    for file in ("machine.toml", "w.json"):
        (tmp_path / file).write_text((folder / file).read_text())
    jobs = (folder / "out_jobs.csv").read_text()
    (tmp_path / "out_jobs.csv").write_text(jobs.replace(",0-3,", f",{second},"))
    lines = (f"w0!a,0.000000,0-1,{first}", f"w0!a,10.000000,{first},{second}")
    (tmp_path / "out_resizes.csv").write_text("\n".join([RESIZES_HEADER.strip(), *lines]) + "\n")
    code, out = validated(tmp_path)
    assert code == 1 and f"{rule}: " in out.splitlines()[-1]
