"""``batsched-py explain``: why a job waited, and why it ran longer than alone."""

from __future__ import annotations

from pathlib import Path

import click

from batsched_py.api.terminal import say
from batsched_py.cli.options import struct_options
from batsched_py.experiment import Machine, Workloads


@click.command("explain")
@click.argument("prefix", metavar="PREFIX")
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.option(
    "--hosts",
    metavar="N",
    type=click.IntRange(1),
    help="The number of hosts.  [default: what PREFIX_schedule.csv says, else those that were used]",
)
@click.option(
    "--events",
    "--external-events",
    "events",
    metavar="FILE",
    multiple=True,
    help="The events from outside that the simulation was given, which tell what hosts were away when; may "
    "be repeated.  [default: what the manifest of a campaign's run names]",
)
@click.option(
    "-p",
    "--platform",
    "platform_file",
    metavar="FILE",
    type=click.Path(),
    help="The machine of nodes it was made on; with -w, it is told which resource a job waited for.",
)
@struct_options("workloads", Workloads)
def command(
    prefix: str,
    jobs: tuple[str, ...],
    hosts: int | None,
    events: tuple[str, ...],
    platform_file: str | None,
    workloads: Workloads,
) -> None:
    """Tell why jobs waited, from the PREFIX_jobs.csv of this or any other Batsim.

    From the schedule alone: a job's place in the queue over time, how many hosts were free, who held those
    that it got, and who overtook it although it was there first. Where the simulation was run with --remarks,
    PREFIX_remarks.csv tells which reservations there were: how that of the job moved, and why those who
    overtook were allowed to. Hosts that were asleep or switching are known from PREFIX_pstate_changes.csv,
    those that failed or were closed from PREFIX_absences.csv, and those that were away from --events; where
    nothing tells, they count as free, and it is said that they do. A job that waited for others was not in
    the queue until it was eligible, as PREFIX_held.csv tells. Times count from the job's submission.

    Where it was run with --links, it is told how much longer than alone the job ran, and what it shared with
    whom.

    On a machine of nodes (-p) it is told what a job waited for: cores, memory, GPUs, licences, or empty
    nodes, and for how long. What jobs asked for is in the workload (-w).

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s easy -e out/kth --remarks
      batsched-py explain out/kth 1234
      batsched-py explain out/outage 1234 --events outage.txt
      batsched-py explain out/gpu 1234 -w jobs.json -p cluster.toml
    """
    from batsched_py.analysis.absences import held_beside
    from batsched_py.analysis.carried import carried_beside
    from batsched_py.analysis.explain import Evidence, Explainer, remarks_beside
    from batsched_py.analysis.nodes import requests_of
    from batsched_py.analysis.outcome import read_summary
    from batsched_py.analysis.schedule import read_schedule
    from batsched_py.api.absences import absences_beside
    from batsched_py.api.explained import Explained
    from batsched_py.experiment.build import read_machine, read_workloads

    read = read_workloads(workloads)
    machine = None if platform_file is None else read_machine(Machine(file=platform_file), read).as_nodes()
    file = Path(prefix if prefix.endswith("jobs.csv") else f"{prefix}_jobs.csv")
    schedule, summary = read_schedule(file), read_summary(file)
    known = Evidence(
        hosts=hosts or summary.nb_hosts,
        remarks=remarks_beside(file),
        absences=absences_beside(file, schedule, summary, events),
        carried=carried_beside(file),
        machine=machine,
        requests={} if machine is None else requests_of(read, schedule),
        held=held_beside(file),
    )
    explainer = Explainer(schedule, known)
    for job in jobs:
        say(str(Explained(explainer.explain(job))))
