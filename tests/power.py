"""Simulations of machines that say what power they draw."""

from __future__ import annotations

import csv
from math import inf
from pathlib import Path
from random import Random

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.experiment import Machine
from batsched_py.experiment.build import read_machine
from batsched_py.outside.curve import NOTHING_KNOWN, Known
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.simulator.outputs import Outputs, Results
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.drive import platform, workload

ROOT = Path(__file__).parents[1]
POWER60 = ROOT / "tests" / "data" / "golden" / "power60_sleeper"
#: What the hosts of :func:`machine` draw.
WATTS = "100:120:200, 50:60:100, 10:10:10, 110:110:110, 130:130:130"
#: Policies to be inside of others.
INNER = ["fcfs", "easy", "conservative", "sjf", "filler", "easy-sjbf"]


def machine(hosts: int) -> Platform:
    """Hosts that say what they draw."""
    made = platform(hosts)
    for host in made.hosts:
        host.properties["wattage_per_state"] = WATTS
    return made


def run(
    setup: Setup,
    scheduler: str | Scheduler,
    out: Path | None = None,
    known: Known = NOTHING_KNOWN,
    **options: str,
) -> Results:
    """Run a simulation; files go to a folder, if one is given."""
    policy = SCHEDULERS.create(scheduler, options) if isinstance(scheduler, str) else scheduler
    outputs = Outputs(None if out is None else str(out / "out"))
    process = DecisionProcess(policy, outlook=None if known is NOTHING_KNOWN else lambda hosts: known)
    return simulate(Batsim(setup, outputs), process)


def starts(folder: Path) -> dict[str, float]:
    """When each job started; infinite for those that did not."""
    with (folder / "out_jobs.csv").open() as file:
        return {row["job_id"]: float(row["starting_time"] or inf) for row in csv.DictReader(file)}


def power60() -> Setup:
    """60 jobs on 8 hosts that can sleep."""
    return Setup(
        read_platform(POWER60 / "power8.xml"), [read_workload(POWER60 / "power60.json", "w0")], energy=True
    )


def sized(name: str, submission: float, size: int, run_time: float) -> JobSpec:
    """A job that runs for as long as it says."""
    return JobSpec(name, submission, size, run_time, run_time)


def random_jobs(seed: int, count: int, most: int) -> Workload:
    """So many jobs of 1 to so many hosts."""
    random = Random(seed)
    return workload_of(
        [
            JobSpec(
                f"{number:02}",
                float(number // 4 * 15),
                random.randint(1, most),
                float(run_time := random.randint(5, 60)),
                float(run_time + random.choice([0, 0, 20])),
            )
            for number in range(count)
        ]
    )


#: 6 nodes of 4 cores that draw 600 W in all when they are idle, and 1800 W when they are busy.
TOML = """
[[nodes]]
count = 6
name = "n"
cores = 4
memory = "8 GB"
idle_watts = 100
full_watts = 300
sleep_watts = 8
switch_on_seconds = 40
switch_off_seconds = 10
switch_on_watts = 200
"""


def nodes_machine(folder: Path) -> Platform:
    """Nodes that can sleep."""
    (folder / "machine.toml").write_text(TOML)
    return read_machine(Machine(file=str(folder / "machine.toml")), ())


def node_jobs() -> Workload:
    """10 jobs for these nodes, one of which asks for memory and one for all cores."""
    memory = {"per_core": {"memory": "4 GB"}}
    return workload(
        *({"id": f"a{number}", "subtime": 200 * number, "res": 2, "walltime": 60} for number in range(8)),
        {"id": "memory", "subtime": 500, "res": 8, "walltime": 60, "request": memory},
        {"id": "all", "subtime": 700, "res": 24, "walltime": 60},
    )
