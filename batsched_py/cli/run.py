"""``batsched-py run``: a whole simulation in one process."""

from __future__ import annotations

import gc
import time
from itertools import chain, repeat
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec import Struct

from batsched_py.cli.figures import duration, energy, two_columns
from batsched_py.cli.options import experiment_options
from batsched_py.cli.progress import shown
from batsched_py.experiment import Experiment
from batsched_py.protocol.jobs import HostState

if TYPE_CHECKING:
    from batsched_py.simulator.engine import Batsim

#: So many objects are made before garbage is searched for; a simulation leaves hardly any that has to be.
MANY = 50_000


@click.command("run")
@experiment_options
@click.option(
    "-e", "--export", "prefix", metavar="PREFIX", default="out", show_default=True, help="Where results go."
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
def command(experiment: Experiment, prefix: str, as_json: bool) -> None:
    """Simulate workloads on a machine under a scheduler, and write PREFIX_jobs.csv and PREFIX_schedule.csv.

    The files are those that Batsim writes. Without --hosts or -p the machine is as large as the workload
    says that its own was. Jobs are submitted at their recorded times, unless --users who react submit them.
    With --energy there are also PREFIX_consumed_energy.csv, PREFIX_pstate_changes.csv and
    PREFIX_machine_states.csv.

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s easy
      batsched-py run -w KTH-SP2.swf.gz --hosts 80 --speed 1.5 -s fcfs -e results/kth80
      batsched-py run -w KTH-SP2.swf.gz --hosts 50 -s easy --users think-time --sessions arrival:60
      batsched-py run -w workload.json -p platform.xml -s my_policy.py:MyPolicy -o depth=10 --json
      batsched-py run -w workload.json -p platform.xml -s pybatsim:path/to/mySched.py
      batsched-py run -w workload.json -p power.xml --energy -s sleeper -o idle_time=600
    """
    from batsched_py.experiment.sides import read_workloads, sides
    from batsched_py.simulation import simulate

    began = time.perf_counter()
    workloads = read_workloads(experiment.scenario.workloads)
    batsim, process = sides(experiment, workloads, prefix)
    nb_jobs = sum(len(workload.jobs) for workload in workloads)
    results = batsim.outputs.results
    gc.freeze()  # what was read lives until the end, no search for garbage need look at it
    gc.set_threshold(MANY)
    with shown("jobs", lambda: (results.nb_jobs, nb_jobs)):
        simulate(batsim, process)
    overview = Overview.of(experiment, batsim, time.perf_counter() - began)
    click.echo(msgspec.json.encode(overview) if as_json else two_columns(overview.rows()))


class Overview(Struct, frozen=True):
    """What came out of a simulation; times in seconds, means as in ``schedule.csv``."""

    scheduler: str
    users: str | None
    hosts: int
    jobs: int
    rejected: int
    killed: int
    makespan: float
    mean_waiting_time: float
    max_waiting_time: float
    mean_slowdown: float
    mean_bounded_slowdown: float
    """Jobs that ran for less than ten seconds count as if they ran so long."""
    walltime: str
    """By which rule the walltimes of logs were made."""
    utilization: float
    """The share of hosts and time, from 0 to the makespan, in which jobs ran."""
    consumed_joules: float | None
    """What the hosts drew, if that was accounted for."""
    files: list[str]
    wall_seconds: float

    @classmethod
    def of(cls, experiment: Experiment, batsim: Batsim, wall_seconds: float) -> Overview:
        """The overview of a finished simulation."""
        results, machines = batsim.outputs.results, batsim.machines
        users = experiment.actors.users
        return cls(
            scheduler=experiment.actors.scheduler.name,
            users=None if users is None else users.name,
            hosts=machines.count,
            jobs=results.nb_jobs,
            rejected=results.nb_rejected,
            killed=results.nb_finished - results.nb_success,
            makespan=results.makespan,
            mean_waiting_time=results.mean(results.sum_waiting),
            max_waiting_time=results.max_waiting,
            mean_slowdown=results.mean(results.sum_slowdown),
            mean_bounded_slowdown=results.mean(results.sum_bounded_slowdown),
            walltime=experiment.scenario.workloads.walltime_rule,
            utilization=_share(machines.seconds()[HostState.COMPUTING], machines.count * results.makespan),
            consumed_joules=results.consumed_joules if experiment.scenario.energy else None,
            files=batsim.outputs.files,
            wall_seconds=round(wall_seconds, 3),
        )

    def rows(self) -> list[tuple[str, str]]:
        """What people read."""
        joules = self.consumed_joules
        return [
            ("scheduler", self.scheduler),
            ("users", self.users or "-"),
            ("hosts", f"{self.hosts:,}"),
            ("jobs", f"{self.jobs:,}"),
            ("  rejected", f"{self.rejected:,}"),
            ("  killed or failed", f"{self.killed:,}"),
            ("makespan", duration(self.makespan)),
            ("mean wait", duration(self.mean_waiting_time)),
            ("max wait", duration(self.max_waiting_time)),
            ("mean bounded slowdown (10 s)", f"{self.mean_bounded_slowdown:.2f}"),
            ("walltime", self.walltime),
            ("utilization", f"{self.utilization:.1%}"),
            *([] if joules is None else [("energy", energy(joules))]),
            *zip(chain(["files"], repeat("")), self.files, strict=False),
            ("took", f"{self.wall_seconds:.2f} s"),
        ]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
