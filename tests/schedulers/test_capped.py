"""A cap on power under any policy."""

from __future__ import annotations

import csv
from itertools import pairwise
from pathlib import Path

import pytest

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator.rules import over_power_cap, read_switches
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import PolicyError
from batsched_py.experiment import Machine
from batsched_py.experiment.build import read_machine
from batsched_py.outside.curve import Curve, Known
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.schedulers.capped import Capped
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import workload_of
from tests.drive import workload
from tests.power import WATTS, machine, node_jobs, nodes_machine, power60, random_jobs, run, sized, starts


def cap(watts: float) -> Curve:
    """One that does not change."""
    return Curve([0.0], [watts])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("inner", ["fcfs", "easy", "conservative"])
def test_a_cap_for_so_many_busy_hosts_is_a_machine_of_so_many(inner: str, seed: int, tmp_path: Path) -> None:
    """On equal hosts, a cap says how many may be busy: the schedule is that of a smaller machine."""
    jobs = random_jobs(seed, 60, 5)
    (tmp_path / "small").mkdir(), (tmp_path / "large").mkdir()
    run(Setup(machine(5), [jobs]), inner, tmp_path / "small")
    run(Setup(machine(9), [jobs]), f"capped({inner})", tmp_path / "large", watts="1400")
    assert starts(tmp_path / "large") == starts(tmp_path / "small")


@pytest.mark.parametrize(
    "policy", ["capped", "capped(conservative)", "capped(sleeping)", "capped(deferring)"]
)
def test_the_cap_is_never_exceeded(policy: str, tmp_path: Path) -> None:
    options = {"after": "30"} if "sleeping" in policy else {}
    setup = power60()
    known = Known(price=Curve([0.0, 5000.0], [2.0, 1.0]))
    results = run(setup, policy, tmp_path, known, watts="1300", **options)
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    switches = read_switches(tmp_path / "out_pstate_changes.csv")
    hosts = setup.platform.as_protocol()[0]
    assert results.nb_success == sum(job.size <= 5 for job in setup.workloads[0].jobs) > 0
    assert list(over_power_cap(schedule, hosts, cap(1300), switches)) == []
    assert list(over_power_cap(schedule, hosts, cap(1200), switches)) != []
    with (tmp_path / "out_consumed_energy.csv").open() as file:
        drawn = [(float(row["time"]), float(row["energy"])) for row in csv.DictReader(file)]
    powers = [
        (joules - before) / (time - since)
        for (since, before), (time, joules) in pairwise(drawn)
        if time - since > 0.1
    ]
    assert max(powers) < 1300


@pytest.mark.parametrize(
    "policy", ["capped", "capped(conservative)", "capped(sleeping)", "capped(sleeping(conservative))"]
)
def test_the_cap_is_kept_on_nodes(policy: str, tmp_path: Path) -> None:
    options = {"after": "30"} if "sleeping" in policy else {}
    made = nodes_machine(tmp_path)
    results = run(Setup(made, [node_jobs()], energy=True), policy, tmp_path, watts="1000", **options)
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    switches = read_switches(tmp_path / "out_pstate_changes.csv")
    assert (results.nb_success, results.nb_rejected) == (9, 1)
    assert list(over_power_cap(schedule, made.as_protocol()[0], cap(1000), switches)) == []


@pytest.mark.parametrize("seed", range(3))
def test_plans_on_nodes_count_on_a_cap(seed: int, tmp_path: Path) -> None:
    """The schedule is that of a node of so many cores as may be busy, and the validator finds no fault."""
    jobs = random_jobs(seed, 40, 5)
    for cores, policy, options in ((5, "conservative", {}), (9, "capped(conservative)", {"watts": "1400"})):
        folder = tmp_path / str(cores)
        folder.mkdir()
        node = f'[[nodes]]\ncount = 1\ncores = {cores}\nmemory = "9 GB"\n'
        power = f"idle_watts = {100 * cores}\nfull_watts = {200 * cores}\n"
        (folder / "machine.toml").write_text(node + power)
        made = read_machine(Machine(file=str(folder / "machine.toml")), ())
        run(Setup(made, [jobs]), policy, folder, **options)
    assert starts(tmp_path / "9") == starts(tmp_path / "5")
    schedule = read_schedule(tmp_path / "9" / "out_jobs.csv")
    assert list(over_power_cap(schedule, made.as_protocol()[0], cap(1400))) == []


#: By turns for 9, 5 and 7 busy hosts of nine.
DAILY = Curve([0.0, 100.0, 160.0], [1800.0, 1400.0, 1600.0], period=220.0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("inner", ["fcfs", "easy", "conservative", "easy-sjbf", "filler"])
def test_a_cap_that_changes_is_never_exceeded(inner: str, seed: int, tmp_path: Path) -> None:
    jobs = random_jobs(seed, 60, 7)
    results = run(Setup(machine(9), [jobs]), f"capped({inner})", tmp_path, Known(power_cap=DAILY))
    schedule, hosts = read_schedule(tmp_path / "out_jobs.csv"), machine(9).as_protocol()[0]
    assert results.nb_success == 60
    assert list(over_power_cap(schedule, hosts, DAILY)) == []
    assert list(over_power_cap(schedule, hosts, cap(1600))) != []


@pytest.mark.parametrize("seed", range(3))
def test_the_first_in_line_starts_as_soon_as_the_cap_allows_it(seed: int, tmp_path: Path) -> None:
    jobs = random_jobs(seed, 40, 7)
    run(Setup(machine(9), [jobs]), "capped(fcfs)", tmp_path, Known(power_cap=DAILY))
    schedule = read_schedule(tmp_path / "out_jobs.csv").sort_values("job_id")
    ran = list(
        zip(
            schedule["starting_time"],
            schedule["finish_time"],
            schedule["requested_number_of_resources"],
            strict=True,
        )
    )
    first = 0.0
    for job, (start, _, size) in zip(jobs.jobs, ran, strict=True):
        first = max(first, job.submission_time)
        for time in range(int(first), int(start)):
            busy = sum(nb for since, until, nb in ran if since <= time < until)
            assert 900 + 100 * (busy + size) > DAILY.least(time, time + job.walltime)
        first = start


def test_a_reservation_waits_for_a_higher_cap(tmp_path: Path) -> None:
    low_first = Known(power_cap=Curve([0.0, 500.0], [600.0, 800.0]))
    jobs = workload_of([sized("wide", 0, 4, 100), sized("long", 1, 1, 600), sized("short", 2, 2, 400)])
    run(Setup(machine(4), [jobs]), "capped(easy)", tmp_path, low_first)
    assert starts(tmp_path) == {"wide": 500, "long": 600, "short": 2}


def test_a_cap_may_rise_in_the_first_second(tmp_path: Path) -> None:
    early = Known(power_cap=Curve([0.0, 1.0], [600.0, 800.0]))
    jobs = workload_of([sized("runs", 0, 2, 100), sized("wide", 0, 4, 100), sized("short", 0, 1, 50)])
    run(Setup(machine(4), [jobs]), "capped(filler)", tmp_path, early)
    assert starts(tmp_path) == {"runs": 0, "wide": 100, "short": 1}


def test_nodes_wake_under_a_cap_that_changes(tmp_path: Path) -> None:
    made = nodes_machine(tmp_path)
    caps = Curve([0.0, 300.0, 900.0], [1000.0, 1500.0, 900.0], period=1300.0)
    setup = Setup(made, [node_jobs()], energy=True)
    results = run(setup, "capped(sleeping)", tmp_path, Known(power_cap=caps), after="30")
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    switches = read_switches(tmp_path / "out_pstate_changes.csv")
    assert (results.nb_success, results.nb_rejected) == (9, 1)
    assert switches is not None and len(switches) > 10
    assert list(over_power_cap(schedule, made.as_protocol()[0], caps, switches)) == []


def test_the_validator_finds_jobs_that_run_when_the_cap_falls(tmp_path: Path) -> None:
    jobs = workload_of([sized("a", 0, 2, 100)])
    run(Setup(machine(4), [jobs]), "easy", tmp_path)
    schedule, hosts = read_schedule(tmp_path / "out_jobs.csv"), machine(4).as_protocol()[0]
    (violation,) = over_power_cap(schedule, hosts, Curve([0.0, 50.0], [700.0, 500.0]))
    assert str(violation) == "power at 50.000000: the cap changes and 600 W are drawn, the cap is 500 W"
    assert violation.jobs == ()


def test_the_validator_finds_a_job_that_exceeds_the_cap(tmp_path: Path) -> None:
    jobs = workload_of([sized("a", 0, 2, 100), sized("b", 50, 1, 100), sized("c", 120, 1, 10)])
    run(Setup(machine(4), [jobs]), "easy", tmp_path)
    schedule, hosts = read_schedule(tmp_path / "out_jobs.csv"), machine(4).as_protocol()[0]
    assert list(over_power_cap(schedule, hosts, cap(700))) == []
    (violation,) = over_power_cap(schedule, hosts, cap(699))
    assert str(violation) == "power at 50.000000: job w0!b starts and 700 W are drawn, the cap is 699 W"
    assert violation.jobs == ("w0!b",)


def test_it_says_who_waits_for_power() -> None:
    jobs = workload_of([sized("a", 0, 2, 100), sized("b", 50, 2, 100), sized("c", 60, 2, 100)])
    process = DecisionProcess(SCHEDULERS.create("capped(fcfs)", {"watts": "600"}))
    said: list[tuple[float, str]] = []
    process.heed(lambda remark: said.append((remark.time, f"{remark.job_id} {remark.text}")))
    simulate(Batsim(Setup(machine(4), [jobs])), process)
    assert said == [
        (50, "w0!b waits for power; hosts are free for it"),
        (100, "w0!c waits for power; hosts are free for it"),
    ]


def test_a_job_that_could_never_run_under_the_cap_is_rejected(tmp_path: Path) -> None:
    jobs = workload_of([sized("large", 0, 4, 100), sized("small", 0, 3, 100)])
    results = run(Setup(machine(4), [jobs]), "capped", tmp_path, watts="700")
    assert (results.nb_rejected, results.nb_success) == (1, 1)


def test_hosts_of_different_power_are_counted_as_the_worst_that_could_be_chosen(tmp_path: Path) -> None:
    made = machine(4)
    for host in made.hosts[2:]:
        host.properties["wattage_per_state"] = WATTS.replace(":200", ":150")
    jobs = workload_of([sized("a", 0, 2, 100), sized("b", 0, 2, 100)])
    run(Setup(made, [jobs]), "capped", tmp_path, watts="700")
    assert starts(tmp_path) == {"a": 0, "b": 0}
    run(Setup(made, [jobs]), "capped", tmp_path, watts="699")
    assert starts(tmp_path) == {"a": 0, "b": 100}


def test_a_policy_that_starts_jobs_without_asking_is_stopped_by_the_cap() -> None:
    class Careless(Scheduler):
        """Starts everything."""

        name = "careless"

        def schedule(self, cluster: Cluster) -> None:
            for job in list(cluster.queue):
                cluster.start(job)

    capped = Capped(watts=600.0)
    capped.inner = Careless()  # type: ignore[misc]
    jobs = workload_of([sized("a", 0, 2, 100), sized("b", 1, 1, 100)])
    with pytest.raises(PolicyError, match="ExecuteJob w0!b: the cap of 600 W is exceeded"):
        run(Setup(machine(4), [jobs]), capped)


@pytest.mark.parametrize(
    ("policy", "hosts", "watts", "message"),
    [
        ("capped", machine(4), "399", "all hosts draw 400 W when they are idle, more than the cap of 399 W"),
        ("capped", Platform.homogeneous(4), "399", "no host says that it draws more power with a job"),
        ("sleeping(capped)", machine(4), "800", r"write capped\(sleeping\(...\)\)"),
    ],
)
def test_a_cap_that_cannot_be_kept_is_refused(policy: str, hosts: Platform, watts: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        run(Setup(hosts, [workload({"id": "a"})]), policy, watts=watts)
