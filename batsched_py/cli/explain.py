"""``batsched-py explain``: why a job waited."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("explain")
@click.argument("prefix", metavar="PREFIX")
@click.argument("jobs", metavar="JOB...", nargs=-1, required=True)
@click.option(
    "--hosts",
    metavar="N",
    type=click.IntRange(1),
    help="The number of hosts.  [default: what PREFIX_schedule.csv says, else those that were used]",
)
def command(prefix: str, jobs: tuple[str, ...], hosts: int | None) -> None:
    """Tell why jobs waited, from the PREFIX_jobs.csv of this or any other Batsim.

    From the schedule alone: a job's place in the queue over time, how many hosts were free, who held those
    that it got, and who overtook it although it was there first. Where the simulation was run with --remarks,
    PREFIX_remarks.csv tells which reservations there were: how that of the job moved, and why those who
    overtook were allowed to. Times count from the job's submission.

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s easy -e out/kth --remarks
      batsched-py explain out/kth 1234
    """
    from batsched_py.analysis.explain import Explainer
    from batsched_py.analysis.remarks import remarks_beside
    from batsched_py.analysis.schedule import read_schedule
    from batsched_py.analysis.summary import read_summary
    from batsched_py.api.explained import Explained

    file = Path(prefix if prefix.endswith("jobs.csv") else f"{prefix}_jobs.csv")
    schedule = read_schedule(file)
    explainer = Explainer(schedule, hosts or read_summary(file).nb_hosts, remarks_beside(file))
    for job in jobs:
        click.echo(Explained(explainer.explain(job)))
