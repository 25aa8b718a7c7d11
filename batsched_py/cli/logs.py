"""``batsched-py convert``, ``change``, ``describe`` and ``sessions``: logs, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.api.terminal import duration, say, shown, waiting
from batsched_py.cli.options import FOLDER, PATH, json_option, option, pairs_option, print_json, tell
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.workload.description import Description
    from batsched_py.workload.description.jobs import Distribution
    from batsched_py.workload.model import Workload
    from batsched_py.workload.session_graph import SessionGraph, SessionStatistics
    from batsched_py.workload.sessions import SessionRule
    from batsched_py.workload.sources.batsim import Batsim
    from batsched_py.workload.swf.log import SwfLog


_CANCELLED = "job that was cancelled while it waited"


@click.command("convert")
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@option("--from KIND", "What IN is, if its name does not tell.", name="source_kind")
@option("--to KIND", "What OUT shall be, if its name does not tell.", name="target_kind")
@pairs_option("-i, --input-option", "input_options", "An option of the kind of IN, like zone=Europe/Paris.")
@option(
    "--cancelled",
    "What becomes of jobs that were cancelled while they waited. Workloads of Batsim and logs of PBS "
    "have no place for them, so there they are left out in any case.",
    type=click.Choice(["keep", "leave-out"]),
    default="keep",
)
@option(
    "--anonymise SEED",
    "Give users, groups, executables, queues and partitions new numbers and forget their names.",
    name="seed",
    type=click.IntRange(min=0),
)
def convert_command(
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
    from batsched_py.workload.changes.altering import Anonymise
    from batsched_py.workload.sources import read_log, source_of, write_log
    from batsched_py.workload.sources.batsim import Batsim

    given, wanted = source_of(source, source_kind, input_options), source_of(target, target_kind)
    if seed is None and isinstance(given, Batsim) and isinstance(wanted, Batsim):
        return _translate(source, target, wanted)
    with waiting(f"converting {source.name}") as moved:
        moved(0, 2)
        log = read_log(source, source_kind, input_options)
        kept = {_CANCELLED: int(log.never_started.sum())}
        if cancelled == "leave-out" or not wanted.keeps_cancelled:
            log, kept = _without_cancelled(source, log, kept), {}
        changed = log if seed is None else Anonymise(seed).apply(log)
        moved(1, 2)
        lost = write_log(target, changed, target_kind)
    say(f"{target}: {len(changed):,} jobs")
    told = {"left out": log.left_out, "kept": kept, "guessed": log.guessed, "lost": lost}
    for verb, counts in told.items():
        for kind in filter(counts.get, counts):
            say(f"  {verb}: {counts[kind]:,} x {kind}")


def _translate(source: Path, target: Path, kind: Batsim) -> None:
    """Write a workload of Batsim in the words of another version of it."""
    from batsched_py.workload.batsim_json import translate_batsim_json

    with waiting(f"converting {source.name}") as moved:
        moved(0, 1)
        jobs = translate_batsim_json(source, target, kind.dialect)
    say(f"{target}: {jobs:,} jobs")


def _without_cancelled(source: Path, log: SwfLog, cancelled: dict[str, int]) -> SwfLog:
    """A log without the jobs that were cancelled while they waited, which are counted."""
    if log.never_started.all():
        raise InputError(f"{source}: every job was cancelled while it waited")
    return replace(log.select(~log.never_started), left_out=log.left_out | cancelled)


@click.command("change")
@click.argument("source", metavar="LOG", type=PATH)
@click.argument("target", metavar="OUT", type=PATH)
@click.argument("words", metavar="CHANGE [OPTION=VALUE]...", nargs=-1)
@option(
    "--parts EVERY",
    "Cut the result into parts of a week, a month or a span like 28d, and write OUT with -1, -2, ... "
    "before its ending.",
)
def change_command(source: Path, target: Path, words: Sequence[str], parts: str | None) -> None:
    """Change a LOG step by step and write it to OUT; each step is a line in the header of OUT.

    A step is the name of a change and its options; `batsched-py changes` lists them.

    \b
    Examples:
      batsched-py change HPC2N.swf.gz jan.swf period start=2003-01-01 end=2003-02-01
      batsched-py change LOG.swf busier.swf flurries load factor=1.2 by=arrivals
      batsched-py change LOG.swf users.swf users drop=2 first jobs=10000 estimates rule=exact
      batsched-py change LOG.swf week.swf --parts week
    """
    from batsched_py.workload.changes import HISTORY, change_log, parse_changes
    from batsched_py.workload.changes.selecting import split
    from batsched_py.workload.sources import read_log, write_log

    steps = parse_changes(words)
    log = change_log(read_log(source), steps)
    for line in log.header.get(HISTORY, "").split("\n"):
        say(f"  {line}" if line else "  nothing changed")
    if parts is None:
        write_log(target, log)
        say(f"{target}: {len(log):,} jobs")
        return
    ending = "".join(target.suffixes) if target.name.lower().endswith(".swf.gz") else target.suffix
    for number, part in enumerate(split(log, parts), start=1):
        file = target.with_name(f"{target.name.removesuffix(ending)}-{number}{ending}")
        write_log(file, part)
        say(f"{file}: {len(part):,} jobs")


@click.command("describe")
@click.argument("source", metavar="LOG", type=PATH)
@option("--from KIND", "What LOG is, if its name does not tell.", name="kind")
@pairs_option("-i, --input-option", "options", "An option of the kind of LOG, like zone=Europe/Paris.")
@json_option
@option("-o, --output PAGE.html", "Write a page with figures.", type=PATH)
def describe_command(
    source: Path, kind: str | None, options: dict[str, str], as_json: bool, output: Path | None
) -> None:
    """Describe a LOG of any kind: its load, users, cycles, distributions, bags of tasks, burstiness, memory.

    Bad and suspicious records are counted by kind. docs/workloads.md has the definition of every figure.

    \b
    Examples:
      batsched-py describe HPC2N.swf.gz
      batsched-py describe HPC2N.swf.gz -o hpc2n.html
      batsched-py describe jobs.csv -i columns=submit:SubmittedAt,run_time:Seconds
      batsched-py describe HPC2N.swf.gz --json | jq .burstiness
    """
    from batsched_py.analysis.log_page import write_log_page
    from batsched_py.workload.description import describe
    from batsched_py.workload.sources import read_log

    with waiting(f"Describing {source.name}"):
        description = describe(read_log(source, kind, options))
    tell(description, as_json, output, write_log_page, _print_description)


def _print_description(known: Description) -> None:
    for title, rows in _sections(known).items():
        say(f"\n{title}")
        for label, value in rows:
            say(f"  {label:<44}{value:>20}")


def _sections(known: Description) -> dict[str, list[tuple[str, str]]]:
    load, users, spread = known.load, known.users, known.distributions
    return {
        known.name: [
            ("jobs", f"{load.jobs:,}"),
            ("users", f"{load.users:,}"),
            ("processors", f"{load.machine:,}" if load.machine else "unknown"),
            ("from first to last submission", duration(load.duration)),
            ("load", _share(load.load)),
            ("utilization", _share(load.utilization)),
            ("users who submit half of the jobs", f"{users.half_of_jobs:,}"),
            ("sessions (an hour of silence between)", f"{users.sessions:,}"),
            ("mean jobs of a session", f"{users.jobs_per_session.mean:.2f}"),
            ("submitted in working hours", _share(known.cycles.working_hours)),
            ("submitted at weekends", _share(known.cycles.weekend)),
        ],
        "Bad and suspicious records": [*_records(known)] or [("none", "")],
        "Flurries and dominating users": [*_outstanding(known)] or [("none", "")],
        f"The {known.characterised:,} jobs that completed": [
            *_distribution("run time", spread.run_time),
            *_distribution("time between submissions", spread.interarrival),
            ("median size", f"{spread.size.median:g}"),
            ("mean size", f"{spread.size.mean:.2f}"),
            ("serial", _share(spread.serial)),
            ("of parallel jobs, on a power of two", _share(spread.powers_of_two)),
            (
                "mean of run time over requested time",
                _number(spread.accuracy.mean if spread.accuracy else None),
            ),
            ("correlation of run time and size", _number(known.correlation.pearson)),
            ("rank correlation", _number(known.correlation.spearman)),
            ("spatial burstiness (entropy)", _number(known.burstiness.spatial)),
            *(
                (f"temporal burstiness (entropy), {scale}", _number(value))
                for scale, value in known.burstiness.temporal.items()
            ),
            *_memory(known),
            ("agree with the user's previous job", _share(known.locality.repetition)),
        ],
        f"Bags of tasks (delta {known.bags.delta:g} s)": [*_bags(known)],
    }


def _distribution(name: str, known: Distribution | None) -> Iterator[tuple[str, str]]:
    if known is not None:
        yield f"median {name}", duration(known.median)
        yield f"mean {name}", duration(known.mean)


def _records(known: Description) -> Iterator[tuple[str, str]]:
    quality = known.quality
    for kind, counts in (("left out", quality.left_out), ("guessed", quality.guessed)):
        yield from ((f"{kind}: {what}", f"{count:,}") for what, count in counts.items())
    yield from ((what, f"{count:,}") for what, count in quality.suspicious.items())
    yield from ((f"unknown {what}", f"{count:,}") for what, count in quality.unknown.items())


def _outstanding(known: Description) -> Iterator[tuple[str, str]]:
    for flurry in known.flurries.flurries:
        yield (
            f"user {flurry.user} in weeks {flurry.first_week}-{flurry.last_week}",
            f"{flurry.jobs:,} jobs ({flurry.share_of_jobs:.0%})",
        )
    for user in known.flurries.dominating:
        yield f"user {user.user} in all of the log", f"{user.jobs:,} jobs ({user.share_of_jobs:.0%})"


def _memory(known: Description) -> Iterator[tuple[str, str]]:
    if known.memory is not None:
        yield "Hurst parameter of arrivals, median", _number(known.memory.median)
        yield "  aggregated variance", _number(known.memory.aggregated_variance)
        yield "  detrended fluctuation", _number(known.memory.detrended_fluctuation)
        yield "  local Whittle", _number(known.memory.local_whittle)
        yield "  wavelets", _number(known.memory.wavelet)


def _bags(known: Description) -> Iterator[tuple[str, str]]:
    for name, bags in (("contiguous", known.bags.contiguous), ("per key", known.bags.per_key)):
        yield f"share of jobs, {name}", f"{bags.share_of_jobs:.1%}"
        yield f"bags of two or more, {name}", f"{bags.bags:,}"
        yield f"exponent of Zipf sizes, {name}", f"{bags.zipf_exponent:.2f}"
    for each in known.bags.contiguous.variability:
        if each.variability is not None:
            yield (
                f"deviation within bags of {each.run_time_from:g} to {each.run_time_to:g} s",
                f"{each.variability:,.0f} s",
            )


def _share(value: float | None, unknown: str = "unknown") -> str:
    return unknown if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


SHOWN_USERS = 4
MAX_EDGES = 200_000_000


@click.command("sessions")
@click.argument("log", type=PATH)
@option(
    "--delimit RULE:MINUTES|CODE",
    "What opens a new session: arrival:T, a job T minutes or more after the previous submission; "
    "last:T, more than T minutes after the previous job had finished; "
    "max:T, more than T minutes after all earlier jobs of the session had finished; or a class of your own, "
    "path/to/file.py:ClassName.",
    default="arrival:60",
)
@option(
    "-o, --output DIR",
    "Write user-N.json and user-N.graphml for every user into this directory.",
    type=FOLDER,
)
@option("--all-edges", "Keep the edges that others imply as well.")
@option("--json", "Print the statistics of every user as JSON.", name="as_json")
def sessions_command(log: Path, delimit: str, output: Path | None, all_edges: bool, as_json: bool) -> None:
    """Cut the jobs of each user in an SWF LOG into sessions and link the sessions into graphs.

    A session is a period of continuous work. It depends on each session whose jobs had all finished before
    it began; what passed in between is the user's think time. These graphs are what `--users think-time`
    replays. They are reduced: an edge that others imply is left out.

    \b
    Examples:
      batsched-py sessions KTH-SP2.swf.gz
      batsched-py sessions KTH-SP2.swf.gz --delimit max:20 -o kth-max20
      batsched-py sessions KTH-SP2.swf.gz --delimit arrival:0 --json
    """
    from batsched_py.workload.session_graph import SessionGraph, session_statistics
    from batsched_py.workload.sessions import cut_workload, session_rule
    from batsched_py.workload.swf.reader import read_swf
    from batsched_py.workload.swf.workload import swf_to_workload

    delimiter = session_rule(delimit)
    workload = swf_to_workload(read_swf(log))
    sessions = cut_workload(workload, delimiter)
    graphs = {user: SessionGraph(sessions[user], reduced=not all_edges) for user in sessions}
    nb_edges = sum(graph.nb_edges for graph in graphs.values())
    if nb_edges > MAX_EDGES:
        raise InputError(
            f"{log}: {nb_edges:,} edges are too many to list; choose longer sessions or leave out --all-edges"
        )
    whole = session_statistics(graphs.values())
    by_user = {user: session_statistics([graph]) for user, graph in graphs.items()}
    if output is not None:
        _write(output, graphs, workload, delimiter)
    if as_json:
        report = {
            "log": str(log),
            "delimiter": str(delimiter),
            "reduced": not all_edges,
            "all": whole,
            "users": by_user,
        }
        print_json(report)
    else:
        _print_sessions(f"{whole.users} users of {log.name}, sessions by {delimiter}", whole, by_user)


def _write(
    directory: Path, graphs: dict[str, SessionGraph], workload: Workload, delimiter: SessionRule
) -> None:
    from batsched_py.workload.session_graph import write_session_graphml, write_session_json

    written = 0
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with shown("graphs", lambda: (written, len(graphs))):
            for user, graph in graphs.items():
                write_session_json(directory / f"user-{user}.json", user, graph, workload, delimiter)
                write_session_graphml(directory / f"user-{user}.graphml", user, graph)
                written += 1
    except OSError as error:
        raise InputError(f"{error.filename or directory}: cannot be written: {error.strerror}") from None


def _print_sessions(title: str, whole: SessionStatistics, by_user: dict[str, SessionStatistics]) -> None:
    """Print the figures of all users, and of the busiest of them."""
    from batsched_py.api.console import print_table

    busiest = sorted(by_user, key=lambda user: -by_user[user].jobs)[:SHOWN_USERS]
    columns = [_cells(whole)] + [_cells(by_user[user]) for user in busiest]
    rows = [[label, *(column[label] for column in columns)] for label in columns[0]]
    print_table(["", "all users", *(f"user {user}" for user in busiest)], rows, title)


def _cells(figures: SessionStatistics) -> dict[str, str]:
    """A line of the table for each figure."""
    low, middle, high = (
        map(_duration, figures.think_time_quartiles) if figures.think_time_quartiles else ("-", "-", "-")
    )
    return {
        "jobs": f"{figures.jobs:,}",
        "sessions": f"{figures.sessions:,}",
        "mean jobs/session": f"{figures.mean_jobs_per_session:.2f}",
        "max jobs/session": f"{figures.max_jobs_per_session:,}",
        "roots": f"{figures.roots:,}",
        "edges": f"{figures.edges:,}",
        "longest path": f"{figures.longest_path:,}",
        "arity": f"{figures.arity:,}",
        "think time, 25%": low,
        "think time, 50%": middle,
        "think time, 75%": high,
        "think time < 1 h": _share(figures.think_times_below_1h, "-"),
        "think time < 10 h": _share(figures.think_times_below_10h, "-"),
    }


def _duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"
