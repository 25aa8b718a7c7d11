"""``batsched-py calibrate``: how far a simulation may be trusted for a log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.api.progress import waiting
from batsched_py.api.quantities import duration
from batsched_py.cli.options import setting_options, struct_options
from batsched_py.cli.pairs import pairs_option
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.shown import harmless

if TYPE_CHECKING:
    from batsched_py.analysis.calibration import Calibration, Waits
    from batsched_py.workload.model import CancelledRule, WalltimeRule

#: So many users and partitions are printed, the busiest ones; the page and the JSON have all of them.
SHOWN = 12


@click.command("calibrate")
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path))
@setting_options(Actors, "scheduler")
@struct_options("machine", Machine)
@setting_options(Scenario, "events")
@setting_options(Workloads, "walltime")
@setting_options(Workloads, "cancelled")
@click.option("--from", "kind", metavar="KIND", help="What LOG is, if its name does not tell.")
@pairs_option("-i", "--input-option", "options", "An option of the kind of LOG, like zone=Europe/Paris.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.option("--output", metavar="PAGE.html", type=click.Path(path_type=Path), help="Write a page.")
def command(
    source: Path,
    scheduler: Choice | None,
    machine: Machine,
    events: tuple[str, ...],
    walltime: WalltimeRule,
    cancelled: CancelledRule,
    kind: str | None,
    options: dict[str, str],
    as_json: bool,
    output: Path | None,
) -> None:
    """Replay a LOG as it was and show simulated beside recorded waits: the first thing to do with a log.

    By partition, class, user and month, with a verdict: how far may a simulation be trusted for this log?
    Without -s the scheduler is easy; give the one that is most like that of the recorded machine. A wait is
    near another one within ten minutes or a factor of two. docs/calibration.md explains the verdict.

    \b
    Examples:
      batsched-py calibrate KTH-SP2.swf.gz
      batsched-py calibrate KTH-SP2.swf.gz -s conservative --output kth.html
      batsched-py calibrate jobs.sacct -i zone=Europe/Paris --hosts 4096 --events outages.txt
    """
    from batsched_py.api.calibrate import compared
    from batsched_py.api.log import Log
    from batsched_py.api.simulate import simulate_experiment
    from batsched_py.workload.sources import read_log

    with waiting(f"Reading {source.name}"):
        log = read_log(source, kind, options)
    workloads = Workloads(files=(str(source),), walltime=walltime, cancelled=cancelled)
    experiment = Experiment(
        scenario=Scenario(workloads=workloads, machine=machine, events=events),
        actors=Actors(scheduler=scheduler or Choice("easy")),
    )
    found = compared(Log(log), simulate_experiment(experiment, progress=True, logs={0: log}))
    if output is not None:
        found.save(output)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found)))
        return
    for line in _lines(found):
        click.echo(line)
    if output is not None:
        click.echo(f"\n{output}")


def _lines(found: Calibration) -> Iterator[str]:
    yield f"{harmless(found.log)} under {found.scheduler} on {found.hosts:,} hosts"
    if found.waits is not None:
        yield ""
        yield _row("", "jobs", "mean wait", "", "median wait", "", "rank", "near")
        yield _row("", "", "recorded", "simulated", "recorded", "simulated", "corr.", "")
        yield _waits("all jobs", found.waits)
    for grouping, groups in found.groups.items():
        if len(groups) > 1:
            yield ""
            yield f"by {grouping}"
            shown = list(groups) if grouping == "month" else list(groups)[:SHOWN]
            yield from (_waits(name, groups[name]) for name in shown)
            if len(groups) > len(shown):
                yield f"  and {len(groups) - len(shown):,} more, which --json and --output show"
    if found.waits is not None:
        yield ""
        both = found.utilization_recorded, found.utilization_simulated
        yield "utilization: {} recorded, {} simulated".format(*map(_share, both))
        yield (
            f"waited for long only in the log: {found.waits.only_recorded:.1%} of the jobs, only in the "
            f"simulation: {found.waits.only_simulated:.1%}"
        )
    if found.causes:
        yield ""
        yield "What may explain differences, and how many jobs it concerns:"
        yield from (f"  {count:>9,}  {cause}" for cause, count in found.causes.items())
    yield ""
    yield click.wrap_text(f"Verdict: {found.verdict.trust}. {found.verdict.words}", width=90)
    yield from (f"  {reason}" for reason in found.verdict.reasons)


def _waits(name: str, waits: Waits) -> str:
    times = (waits.mean_recorded, waits.mean_simulated, waits.median_recorded, waits.median_simulated)
    correlation = "-" if waits.rank_correlation is None else f"{waits.rank_correlation:.2f}"
    return _row(
        f"  {harmless(name)}", f"{waits.jobs:,}", *map(duration, times), correlation, f"{waits.near:.0%}"
    )


def _row(name: str, jobs: str, *cells: str) -> str:
    *times, correlation, near = cells
    middle = "".join(f"{time:>11}" for time in times)
    return f"{name:<20.20}{jobs:>9}{middle}{correlation:>7}{near:>6}".rstrip()


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"
