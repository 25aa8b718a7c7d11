"""The Paje trace of a schedule, as Batsim 4 writes it."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest

import batsched_py as bp
from batsched_py.analysis.schedule import read_schedule
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Homogeneous
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.simulator.agenda import read_events
from batsched_py.simulator.paje import PajeTrace
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.model import Workload
from tests.simulator.test_procedures import ENGINES, Killer, run
from tests.test_engines import HOSTS, Erratic, random_workload

ROOT = Path(__file__).parents[2]

#: What follows the definitions of lines, for one job of ten seconds on the second of two hosts.
EXPECTED = """\
# Container types creation
1 0 root_ct "Machines"
1 root_ct machine_ct "Machine"
1 0 scheduler_ct "Scheduler"
1 scheduler_ct killer_ct "Killer"

# Event types creation
7 killer_ct kk "Job kill"
7 machine_ct km "Job kill"

# Variable types creation
9 scheduler_ct vu_vt "Utilization" "0.0 0.5 0.0"

# Containers creation
2 0.000000 root_ct root "Machines" 0
2 0.000000 machine_ct m0 "a" root
2 0.000000 machine_ct m1 "b" root
2 0.000000 scheduler_ct sc "Scheduler" 0
2 0.000000 killer_ct k "Killer" sc

# States creation
4 machine_state machine_ct "Machine state"

# Creation of the different values the machine state can be
5 w machine_state "Waiting" "0.0 0.0 0.0"
5 l machine_state "Launching" "0.3 0.3 0.3"

# Begin of events
6 0.000000 machine_state m0 w
6 0.000000 machine_state m1 w
5 jw0!7 machine_state "w0!7" "1.000000 0.000000 0.000000"
6 1.500000 machine_state m1 jw0!7
8 11.500000 kk k "w0!7"
8 11.500000 km m1 "w0!7"
6 11.500000 machine_state m1 w

# End of events, containers destruction
3 12.000000 m0 machine_ct
3 12.000000 m1 machine_ct
3 12.000000 root root_ct
"""


def test_a_trace_has_the_lines_of_batsim() -> None:
    written: list[str] = []

    def new_file(beginning: str) -> object:
        written.append(beginning)
        return written.append

    trace = PajeTrace(["a", "b"], new_file)  # type: ignore[arg-type]
    trace.job_begins("w0!7", HostSet.of([1]), 1.5)
    trace.job_ends("w0!7", HostSet.of([1]), 11.5, is_killed=True)
    trace.complete(12.0)
    definitions, mark, rest = "".join(written).partition("# Container types creation\n")
    assert mark + rest == EXPECTED
    numbers = re.findall(r"^%EventDef Paje(\w+) (\d+)$", definitions, re.MULTILINE)
    assert dict(numbers)["SetState"] == "6" and [int(number) for _, number in numbers] == [*range(1, 11)]


def shown(trace: str) -> set[tuple[str, str, float, float]]:
    """What a viewer draws: job, host, begin and end; what takes almost no time is not seen."""
    state: dict[str, tuple[str, float]] = {}
    drawn = set()
    for time, host, value in re.findall(r"^6 (\S+) machine_state m(\d+) (\S+)$", trace, re.MULTILINE):
        before, since = state.get(host, ("w", 0.0))
        if before.startswith("j") and float(time) - since > 1e-4:
            drawn.add((before[1:], host, since, float(time)))
        state[host] = value, float(time)
    assert {value for value, _ in state.values()} <= {"w"}
    return drawn


@pytest.mark.parametrize("engine", ENGINES)
def test_a_viewer_draws_the_schedule(engine: str, tmp_path: Path) -> None:
    random = Random(5)
    setup = Setup(Platform.homogeneous(HOSTS), [random_workload(random)])
    trace = run(engine, setup, Erratic(5), tmp_path / "out")["schedule.trace"].decode()
    schedule = read_schedule(tmp_path / "out_jobs.csv")
    schedule = schedule[schedule["execution_time"] > 1e-4]
    assert len(schedule) > 10
    wanted = {
        (f"{row.workload_name}!{row.job_id}", str(host), row.starting_time, row.finish_time)
        for row in schedule.itertuples()
        for host in HostSet.parse(row.allocated_resources)
    }
    assert shown(trace) == wanted


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("profile", "is_shown"), [(Homogeneous(10e9), True), (Delay(10.0), False)])
def test_a_kill_is_shown_unless_the_job_slept(
    engine: str, profile: Homogeneous | Delay, is_shown: bool, tmp_path: Path
) -> None:
    jobs = [Job("w0!1", 0.0, 2, 20.0, "p")]
    setup = Setup(Platform.homogeneous(2), [Workload("w0", jobs, {"p": profile})])
    trace = run(engine, setup, Killer(4.0), tmp_path / "out")["schedule.trace"].decode()
    kills = ['8 4.000000 kk k "w0!1"', '8 4.000000 km m0 "w0!1"', '8 4.000000 km m1 "w0!1"']
    assert [line for line in trace.splitlines() if line.startswith("8 ")] == (kills if is_shown else [])


class Together(Scheduler):
    """Puts all jobs on the first host."""

    name = "together"

    def schedule(self, cluster: Cluster) -> None:
        for job in list(cluster.queue):
            cluster.decide(ev.ExecuteJob(job.id, HostSet.of([0])))


def test_on_a_shared_host_the_job_that_came_first_is_shown(tmp_path: Path) -> None:
    seconds = {"1": 20.0, "2": 10.0, "3": 30.0}
    jobs = [Job(f"w0!{name}", 0.0, 1, 90.0, name) for name in seconds]
    profiles = {name: Delay(each) for name, each in seconds.items()}
    sharing = ev.Settings(compute_sharing=True)
    setup = Setup(Platform.homogeneous(1), [Workload("w0", jobs, profiles)], sharing)
    trace = run("python", setup, Together(), tmp_path / "out")["schedule.trace"].decode()
    assert shown(trace) == {("w0!1", "0", 0.0, 20.0), ("w0!3", "0", 20.0, 30.0)}


def test_a_host_that_became_unavailable_does_not_wait(tmp_path: Path) -> None:
    (tmp_path / "events").write_text('{"type": "machine_unavailable", "resources": "0", "timestamp": 5}\n')
    jobs = [Job("w0!1", 0.0, 2, 20.0, "p")]
    setup = Setup(
        Platform.homogeneous(2),
        [Workload("w0", jobs, {"p": Delay(10.0)})],
        events=[read_events(tmp_path / "events", False)],
    )
    trace = run("python", setup, SCHEDULERS.create("fcfs", {}), tmp_path / "out")["schedule.trace"].decode()
    assert "6 10.000000 machine_state m1 w" in trace and "6 10.000000 machine_state m0 w" not in trace


def test_python_keeps_it_beside_the_other_files(tmp_path: Path) -> None:
    log = bp.read_log(ROOT / "workloads" / "sample.swf").first(50)
    result = bp.simulate(log, "easy", enable_schedule_tracing=True, progress=False)
    files = [Path(file).name for file in result.save(tmp_path / "out")]
    assert sorted(files) == ["out_jobs.csv", "out_schedule.csv", "out_schedule.trace"]
    assert (tmp_path / "out_schedule.trace").read_text().startswith("%EventDef Paje")
    assert (tmp_path / "out_schedule.csv").read_text().startswith("batsim_version,")
