"""``batsched-py convert``: logs from one kind of file to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from batsched_py.api.progress import waiting
from batsched_py.api.terminal import say
from batsched_py.cli.pairs import pairs_option
from batsched_py.errors import InputError

_CANCELLED = "job that was cancelled while it waited"


@click.command("convert")
@click.argument("source", metavar="IN", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--from", "source_kind", metavar="KIND", help="What IN is, if its name does not tell.")
@click.option("--to", "target_kind", metavar="KIND", help="What OUT shall be, if its name does not tell.")
@pairs_option("-i", "--input-option", "input_options", "An option of the kind of IN, like zone=Europe/Paris.")
@click.option(
    "--cancelled",
    type=click.Choice(["keep", "leave-out"]),
    default="keep",
    show_default=True,
    help="What becomes of jobs that were cancelled while they waited. Workloads of Batsim and logs of PBS "
    "have no place for them, so there they are left out in any case.",
)
@click.option(
    "--anonymise",
    "seed",
    metavar="SEED",
    type=click.IntRange(min=0),
    help="Give users, groups, executables, queues and partitions new numbers and forget their names.",
)
def command(
    source: Path,
    target: Path,
    source_kind: str | None,
    target_kind: str | None,
    input_options: dict[str, str],
    cancelled: str,
    seed: int | None,
) -> None:
    """Convert the log IN to OUT. What was left out, guessed or lost is counted by kind.

    Jobs that were cancelled while they waited are kept and counted; a simulation leaves them out, or lets
    them leave the queue when they were cancelled (`batsched-py run --cancelled withdraw`).

    \b
    Kinds of logs, and how their names end:
      swf      .swf, .swf.gz   the Standard Workload Format
      batsim   .json           a workload of Batsim 4, or when it is read of 5
      batsim5  .batsim5.json   a workload of Batsim 5
      sacct    .sacct, .psv    Slurm: sacct --parsable2 --allusers --duplicates --format=...
      pbs      .pbs, .acct     accounting logs of PBS and Torque
      csv      .csv            a table with named columns, like submit, run_time, user
      parquet  .parquet        the same

    \b
    Options of kinds (-i): zone=ZONE (sacct, pbs, csv, parquet) for times that do not tell theirs;
    columns=submit:SubmitTime,user:Owner (csv, parquet) for columns of other names.

    \b
    Examples:
      batsched-py convert jobs.sacct jobs.swf.gz -i zone=Europe/Paris --anonymise 7
      batsched-py convert 20230501 jobs.swf --from pbs
      batsched-py convert jobs.csv jobs.json -i columns=submit:SubmittedAt,run_time:Seconds
      batsched-py convert workload.json workload.batsim5.json

    \b
    From a workload of Batsim to another, profiles and all other fields are kept; what the other version
    of Batsim has no words for is refused by name.
    """
    from batsched_py.workload.batsim_json import translate_batsim_json
    from batsched_py.workload.changes.anonymise import Anonymise
    from batsched_py.workload.sources import read_log, source_of, write_log
    from batsched_py.workload.sources.batsim import Batsim

    kinds = source_of(source, source_kind, input_options), source_of(target, target_kind)
    if seed is None and isinstance(kinds[0], Batsim) and isinstance(kinds[1], Batsim):
        with waiting(f"converting {source.name}") as moved:
            moved(0, 1)
            jobs = translate_batsim_json(source, target, kinds[1].dialect)
        say(f"{target}: {jobs:,} jobs")
        return
    with waiting(f"converting {source.name}") as moved:
        moved(0, 2)
        log = read_log(source, source_kind, input_options)
        never_started = log.never_started
        kept = {_CANCELLED: int(never_started.sum())}
        if cancelled == "leave-out" or not kinds[1].keeps_cancelled:
            if never_started.all():
                raise InputError(f"{source}: every job was cancelled while it waited")
            log = replace(log.select(~never_started), left_out=log.left_out | kept)
            kept = {}
        changed = log if seed is None else Anonymise(seed).apply(log)
        moved(1, 2)
        lost = write_log(target, changed, target_kind)
    say(f"{target}: {len(changed):,} jobs")
    told = {"left out": log.left_out, "kept": kept, "guessed": log.guessed, "lost": lost}
    for verb, counts in told.items():
        for kind, count in counts.items():
            if count:
                say(f"  {verb}: {count:,} x {kind}")
