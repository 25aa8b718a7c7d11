"""``batsched-py run``: a whole simulation in one process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import msgspec
from msgspec import Struct
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from rich.table import Table

from batsched_py.cli.figures import duration
from batsched_py.cli.options import (
    choose_behaviour,
    choose_platform,
    communication_option,
    delay_option,
    energy_option,
    events_options,
    platform_options,
    read_workloads,
    scheduler_options,
    sharing_option,
    user_options,
    workload_options,
)
from batsched_py.errors import InputError
from batsched_py.experiment import new_batsim, new_process
from batsched_py.protocol.jobs import HostState
from batsched_py.simulation import simulate
from batsched_py.simulator.engine import Batsim
from batsched_py.simulator.external_events import read_events
from batsched_py.simulator.outputs import Results
from batsched_py.simulator.platform import Platform
from batsched_py.workload.model import Workload
from batsched_py.workload.swf import WalltimeRule

MESSAGES_BETWEEN_UPDATES = 1000
SECONDS_BEFORE_BAR = 1.0


@click.command("run", short_help="Simulate a workload, in one process.")
@workload_options(required=True)
@platform_options
@scheduler_options(required=True)
@user_options
@click.option(
    "-e", "--export", "prefix", metavar="PREFIX", default="out", show_default=True, help="Where results go."
)
@communication_option
@energy_option
@events_options
@sharing_option
@delay_option
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
def command(
    workload_files: Sequence[Path],
    walltime_factor: float,
    walltime_rule: WalltimeRule,
    platform_file: Path | None,
    hosts: int | None,
    speed: float | None,
    scheduler: str,
    scheduler_settings: dict[str, str],
    users: str | None,
    sessions: str | None,
    user_settings: dict[str, str],
    prefix: str,
    ignore_communication: bool,
    energy: bool,
    event_files: Sequence[Path],
    forward_unknown_events: bool,
    enable_compute_sharing: bool,
    scheduling_delay: float,
    as_json: bool,
) -> None:
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
    began = time.perf_counter()
    behaviour = choose_behaviour(users, sessions, user_settings)
    workloads = read_workloads(workload_files, walltime_factor, walltime_rule)
    platform = choose_platform(platform_file, hosts, speed) or _machine_of(workloads)
    process = new_process(scheduler, scheduler_settings, behaviour, workloads, scheduling_delay)
    batsim = new_batsim(
        platform,
        workloads,
        behaviour,
        prefix,
        ignore_communication,
        energy,
        [read_events(file, forward_unknown_events) for file in event_files],
        enable_compute_sharing,
    )
    with _progress(batsim.outputs.results, sum(len(workload.jobs) for workload in workloads)) as on_message:
        simulate(batsim, process, on_message)
    report = Report.of(batsim, scheduler, users, energy, time.perf_counter() - began)
    if as_json:
        click.echo(msgspec.json.encode(report))
    else:
        Console().print(report.table())


def _machine_of(workloads: Sequence[Workload]) -> Platform:
    sizes = [workload.nb_hosts for workload in workloads if workload.nb_hosts is not None]
    if not sizes:
        raise InputError(
            "the workload does not say how large its machine was; give --hosts N or -p PLATFORM.xml"
        )
    return Platform.homogeneous(max(sizes))


@contextmanager
def _progress(results: Results, nb_jobs: int) -> Iterator[Callable[[], None] | None]:
    """Something to call after each message, which shows a bar once the simulation has become long."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (BarColumn(), MofNCompleteColumn(), "jobs,", TimeRemainingColumn(), "left")
    bar = Progress(*columns, console=console, transient=True)
    task = bar.add_task("", total=nb_jobs)
    began = time.monotonic()
    messages = 0

    def on_message() -> None:
        nonlocal messages
        messages += 1
        if messages % MESSAGES_BETWEEN_UPDATES == 0 and time.monotonic() - began > SECONDS_BEFORE_BAR:
            bar.start()
            bar.update(task, completed=results.nb_jobs)

    try:
        yield on_message
    finally:
        bar.stop()


class Report(Struct, frozen=True):
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
    utilization: float
    """The share of hosts and time, from 0 to the makespan, in which jobs ran."""
    consumed_joules: float | None
    """What the hosts drew, if that was accounted for."""
    files: list[str]
    wall_seconds: float

    @classmethod
    def of(
        cls, batsim: Batsim, scheduler: str, users: str | None, energy: bool, wall_seconds: float
    ) -> Report:
        """The report on a finished simulation."""
        results, machines = batsim.outputs.results, batsim.machines
        return cls(
            scheduler=scheduler,
            users=users,
            hosts=machines.count,
            jobs=results.nb_jobs,
            rejected=results.nb_rejected,
            killed=results.nb_finished - results.nb_success,
            makespan=results.makespan,
            mean_waiting_time=results.mean(results.sum_waiting),
            max_waiting_time=results.max_waiting,
            mean_slowdown=results.mean(results.sum_slowdown),
            utilization=_share(machines.seconds()[HostState.COMPUTING], machines.count * results.makespan),
            consumed_joules=results.consumed_joules if energy else None,
            files=batsim.outputs.files,
            wall_seconds=round(wall_seconds, 3),
        )

    def _energy_row(self) -> list[tuple[str, str]]:
        return [] if self.consumed_joules is None else [("energy", f"{self.consumed_joules / 3.6e6:.2f} kWh")]

    def table(self) -> Table:
        """The report for people."""
        table = Table(box=box.SIMPLE, show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for label, value in (
            ("scheduler", self.scheduler),
            ("users", self.users or "-"),
            ("hosts", f"{self.hosts:,}"),
            ("jobs", f"{self.jobs:,}"),
            ("  rejected", f"{self.rejected:,}"),
            ("  killed or failed", f"{self.killed:,}"),
            ("makespan", duration(self.makespan)),
            ("mean wait", duration(self.mean_waiting_time)),
            ("max wait", duration(self.max_waiting_time)),
            ("mean slowdown", f"{self.mean_slowdown:.2f}"),
            ("utilization", f"{self.utilization:.1%}"),
            *self._energy_row(),
            ("files", "\n".join(self.files)),
            ("took", f"{self.wall_seconds:.2f} s"),
        ):
            table.add_row(label, value)
        return table


def _share(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")
