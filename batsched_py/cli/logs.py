"""``batsched-py convert``, ``change``, ``describe`` and ``sessions``: logs, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import duration, say, shown, waiting
from batsched_py.cli.options import (
    FOLDER,
    PATH,
    json_option,
    option,
    output_option,
    pairs_option,
    print_json,
    tell,
)
from batsched_py.errors import InputError

_CANCELLED = "job that was cancelled while it waited"


#: What is converted, for the help of the command.
_CONVERSION = """Convert the log IN to OUT. What was left out, guessed or lost is counted by kind.

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
  gwf      .gwf            the Grid Workloads Archive
  frontier .swf            Frontier's log, which has 21 fields
  philly   .philly.json    Microsoft's trace of Philly

\b
Options of kinds (-i): zone=ZONE (sacct, pbs, csv, parquet) for times that do not tell theirs;
columns=submit:SubmitTime,requested_time:Limit/min (csv, parquet) for columns of other names, with
their units; preset=NAME (csv, parquet) for a published kind of table, if its columns do not tell.

\b
Examples:
  batsched-py convert jobs.parquet --show-mapping -i columns=submit:created,requested_time:limit/min
  batsched-py convert jobs.sacct jobs.swf.gz -i zone=Europe/Paris --anonymise 7
  batsched-py convert 20230501 jobs.swf --from pbs
  batsched-py convert jobs.csv jobs.json -i columns=submit:SubmittedAt,run_time:Seconds
  batsched-py convert workload.json workload.batsim5.json

\b
From a workload of Batsim to another, profiles and all other fields are kept; what the other version
of Batsim has no words for is refused by name.
"""


@click.command("convert", help=_CONVERSION)
@click.argument("source", metavar="IN", type=PATH)
@click.argument("target", metavar="OUT", type=PATH, required=False)
@option("--from KIND", "What IN is, if its name does not tell.", name="source_kind")
@option("--to KIND", "What OUT shall be, if its name does not tell.", name="target_kind")
@pairs_option("-i, --input-option", "input_options", "An option of the kind of IN, like zone=Europe/Paris.")
@option(
    "--show-mapping", "Show how the columns of a table IN would be read, and convert nothing.", is_flag=True
)
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
    target: Path | None,
    source_kind: str | None,
    target_kind: str | None,
    input_options: dict[str, str],
    show_mapping: bool,
    cancelled: str,
    seed: int | None,
) -> None:
    """Convert a log, and count what was left out, guessed or lost."""
    given = lazy.sources.source_of(source, source_kind, input_options)
    if show_mapping:
        return _show_mapping(source, given)
    if target is None:
        raise click.UsageError("Missing argument 'OUT'.")
    wanted = lazy.sources.source_of(target, target_kind)
    batsim = lazy.sources_batsim.Batsim
    if seed is None and isinstance(given, batsim) and isinstance(wanted, batsim):
        return _translate(source, target, wanted.dialect)
    with waiting(f"converting {source.name}") as moved:
        moved(0, 2)
        log = lazy.sources.read_log(source, source_kind, input_options)
        if cancelled == "leave-out" or not wanted.keeps_cancelled:
            log = _without_cancelled(source, log)
        changed = log if seed is None else lazy.altering.Anonymise(seed).apply(log)
        moved(1, 2)
        lost = lazy.sources.write_log(target, changed, target_kind)
    say(f"{target}: {len(changed):,} jobs")
    _tell_of(log, lost)


def _translate(source: Path, target: Path, dialect: lazy.dialect.Dialect) -> None:
    """Convert a workload of Batsim to another one."""
    with waiting(f"converting {source.name}") as moved:
        moved(0, 1)
        jobs = lazy.batsim_json.translate_batsim_json(source, target, dialect)
    say(f"{target}: {jobs:,} jobs")


def _without_cancelled(source: Path, log: lazy.swf_log.SwfLog) -> lazy.swf_log.SwfLog:
    """The log without jobs that never started, which are counted."""
    if log.never_started.all():
        raise InputError(f"{source}: every job was cancelled while it waited")
    left_out = log.left_out | {_CANCELLED: int(log.never_started.sum())}
    return replace(log.select(~log.never_started), left_out=left_out)


def _tell_of(log: lazy.swf_log.SwfLog, lost: Mapping[str, int]) -> None:
    """Say what was read from which column, and count what is not as it was."""
    kept = {_CANCELLED: int(log.never_started.sum())}
    for ours, theirs in log.mapping.items():
        say(f"  read: {ours} from {theirs}")
    told = {"left out": log.left_out, "kept": kept, "guessed": log.guessed, "lost": lost}
    for verb, counts in told.items():
        for kind in filter(counts.get, counts):
            say(f"  {verb}: {counts[kind]:,} x {kind}")


#: So many rows of a table are shown in both forms.
_SHOWN_ROWS = 3


def _show_mapping(source: Path, kind: lazy.sources.Source) -> None:
    """Print what a table's columns are taken for, and its first rows as they are and as a log."""
    if not isinstance(kind, lazy.sources_table.Table):
        raise InputError(
            f"{source}: a log of kind {kind.name} has fixed columns; --show-mapping is for tables"
        )
    rows, log = kind.beginning(lazy.lines.check_is_file(source), _SHOWN_ROWS)
    lazy.console.print_table(["column of the log", "read from"], log.mapping.items())
    unused = [str(name) for name in rows if str(name) in log.more]
    if unused:
        say(f"kept beside the log: {', '.join(unused)}")
    texts = rows.astype(object).where(rows.notna(), "").astype(str)
    lazy.console.print_table(list(map(str, rows)), texts.itertuples(index=False), "As it is in the file")
    known = [name for name in lazy.swf_log.COLUMNS if (getattr(log, name) != -1).any()]
    shown = zip(
        *(map(lazy.conventions.number_text, getattr(log, name).tolist()) for name in known), strict=True
    )
    lazy.console.print_table(known, shown, "As it is read; times in seconds from the first submission")


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
    steps = lazy.changes.parse_changes(words)
    log = lazy.changes.change_log(lazy.sources.read_log(source), steps)
    for line in log.header.get(lazy.changes.HISTORY, "").split("\n"):
        say(f"  {line}" if line else "  nothing changed")
    if parts is None:
        lazy.sources.write_log(target, log)
        say(f"{target}: {len(log):,} jobs")
        return
    ending = "".join(target.suffixes) if target.name.lower().endswith(".swf.gz") else target.suffix
    for number, part in enumerate(lazy.selecting.split(log, parts), start=1):
        file = target.with_name(f"{target.name.removesuffix(ending)}-{number}{ending}")
        lazy.sources.write_log(file, part)
        say(f"{file}: {len(part):,} jobs")


@click.command("describe")
@click.argument("source", metavar="LOG", type=PATH)
@option("--from KIND", "What LOG is, if its name does not tell.", name="kind")
@pairs_option("-i, --input-option", "options", "An option of the kind of LOG, like zone=Europe/Paris.")
@option(
    "--hosts N",
    "The processors of the machine, for load and utilization.  [default: what the header says; else both are "
    "unknown]",
    type=click.IntRange(min=1),
)
@json_option
@output_option("PAGE.html", "Write a page with figures.", type=PATH)
def describe_command(
    source: Path,
    kind: str | None,
    options: dict[str, str],
    hosts: int | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Describe a LOG of any kind: its load, users, cycles, distributions, bags of tasks, burstiness, memory.

    Bad and suspicious records are counted by kind. docs/workloads.md has the definition of every figure.

    \b
    Examples:
      batsched-py describe HPC2N.swf.gz
      batsched-py describe HPC2N.swf.gz --output hpc2n.html
      batsched-py describe jobs.csv -i columns=submit:SubmittedAt,run_time:Seconds --hosts 128
      batsched-py describe HPC2N.swf.gz --json | jq .burstiness
    """
    with waiting(f"Describing {source.name}"):
        description = lazy.description.describe(lazy.sources.read_log(source, kind, options), hosts)
    tell(description, as_json, output, lazy.log_page.write_log_page, _print_description)


def _print_description(known: lazy.description.Description) -> None:
    for title, rows in _sections(known).items():
        say(f"\n{title}")
        for label, value in rows:
            say(f"  {label:<44}{value:>20}")


def _sections(known: lazy.description.Description) -> dict[str, list[tuple[str, str]]]:
    load, users, spread = known.load, known.users, known.distributions
    no_start = "no UnixStartTime"
    return {
        known.name: [
            ("jobs", f"{load.jobs:,}"),
            ("users", _count(load.users)),
            ("processors", _count(load.machine)),
            ("from first to last submission", duration(load.duration)),
            ("load", _share(load.load)),
            ("utilization", _share(load.utilization)),
            ("users who submit half of the jobs", _count(users.half_of_jobs if users else None)),
            ("sessions (an hour of silence between)", _count(users.sessions if users else None)),
            ("mean jobs of a session", f"{users.jobs_per_session.mean:.2f}" if users else "unknown"),
            ("submitted in working hours", _share(known.cycles.working_hours, no_start)),
            ("submitted at weekends", _share(known.cycles.weekend, no_start)),
        ],
        "Bad and suspicious records": [*_records(known)] or [("none", "")],
        "Flurries and dominating users": [*_outstanding(known)] or [("none", "")],
        f"The {known.characterised:,} jobs that {_kind_of(known)}": [
            *_distribution("run time", spread.run_time),
            *_distribution("time between submissions", spread.interarrival),
            ("median size", f"{spread.size.median:g}"),
            ("mean size", f"{spread.size.mean:.2f}"),
            ("serial", _share(spread.serial)),
            ("of parallel jobs, on a power of two", _share(spread.powers_of_two)),
            ("classes of sizes, by popularity", f"{spread.popularity_classes}"),
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


def _kind_of(known: lazy.description.Description) -> str:
    """What the jobs did that are characterised."""
    return "completed" if known.tells_completed else "ran (of none the log says that it completed)"


def _distribution(name: str, known: lazy.description_jobs.Distribution | None) -> Iterator[tuple[str, str]]:
    if known is not None:
        yield f"median {name}", duration(known.median)
        yield f"mean {name}", duration(known.mean)


def _records(known: lazy.description.Description) -> Iterator[tuple[str, str]]:
    quality = known.quality
    for kind, counts in (("left out", quality.left_out), ("guessed", quality.guessed)):
        yield from ((f"{kind}: {what}", f"{count:,}") for what, count in counts.items())
    yield from ((what, f"{count:,}") for what, count in quality.suspicious.items())
    yield from ((f"unknown {what}", f"{count:,}") for what, count in quality.unknown.items())


def _outstanding(known: lazy.description.Description) -> Iterator[tuple[str, str]]:
    for flurry in known.flurries.flurries:
        yield (
            f"user {flurry.user} in weeks {flurry.first_week}-{flurry.last_week}",
            f"{flurry.jobs:,} jobs ({flurry.share_of_jobs:.0%})",
        )
    for user in known.flurries.dominating:
        yield f"user {user.user} in all of the log", f"{user.jobs:,} jobs ({user.share_of_jobs:.0%})"


def _memory(known: lazy.description.Description) -> Iterator[tuple[str, str]]:
    if known.memory is not None:
        yield "Hurst parameter of arrivals, median", _number(known.memory.median)
        yield "  aggregated variance", _number(known.memory.aggregated_variance)
        yield "  detrended fluctuation", _number(known.memory.detrended_fluctuation)
        yield "  local Whittle", _number(known.memory.local_whittle)
        yield "  wavelets", _number(known.memory.wavelet)


def _bags(known: lazy.description.Description) -> Iterator[tuple[str, str]]:
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


def _count(value: int | None) -> str:
    return f"{value:,}" if value else "unknown"


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
    "max:T, more than T minutes after all earlier jobs of the session had finished; a class of your own, "
    "path/to/file.py:ClassName; or session files, one or a folder of them, ours or Batmen's.",
    default="arrival:60",
)
@output_option(
    "DIR|FILE.json",
    "Write user-N.json and user-N.graphml for every user into this directory, or all users into one file.",
    type=FOLDER,
)
@option(
    "--format",
    "What is written into the directory: our files, or user-N.json as Batmen's feedback users read it.",
    name="form",
    type=click.Choice(["json", "batmen"]),
    default="json",
)
@option("--all-edges", "Keep the edges that others imply as well.")
@option("--json", "Print the statistics of every user as JSON.", name="as_json")
def sessions_command(
    log: Path, delimit: str, output: Path | None, form: str, all_edges: bool, as_json: bool
) -> None:
    """Cut the jobs of each user in an SWF LOG into sessions and link the sessions into graphs.

    A session is a period of continuous work. It depends on each session whose jobs had all finished before
    it began; what passed in between is the user's think time. These graphs are what `--users think-time`
    replays. They are reduced: an edge that others imply is left out. The files that are written can be read
    again: with `run --sessions FILE.json` the same log is replayed as with the rule that made the file.

    \b
    Examples:
      batsched-py sessions KTH-SP2.swf.gz
      batsched-py sessions KTH-SP2.swf.gz --delimit max:20 --output kth-max20
      batsched-py sessions KTH-SP2.swf.gz --delimit max:20 --output kth-max20.json
      batsched-py sessions KTH-SP2.swf.gz --delimit max:20 --output batmen --format batmen
      batsched-py sessions KTH-SP2.swf.gz --delimit arrival:0 --json
    """
    delimiter = lazy.sessions.session_rule(delimit)
    workload = lazy.swf_workload.swf_to_workload(lazy.swf_reader.read_swf(log))
    sessions = lazy.sessions.cut_workload(workload, delimiter)
    graphs = {user: sessions[user].graph(reduced=not all_edges) for user in sessions}
    nb_edges = sum(graph.nb_edges for graph in graphs.values())
    if nb_edges > MAX_EDGES:
        raise InputError(
            f"{log}: {nb_edges:,} edges are too many to list; choose longer sessions or leave out --all-edges"
        )
    whole = lazy.session_graph.session_statistics(graphs.values())
    by_user = {user: lazy.session_graph.session_statistics([graph]) for user, graph in graphs.items()}
    if output is not None:
        _write(output, form, graphs, workload, delimiter)
    if as_json:
        about = {"log": str(log), "delimiter": str(delimiter), "reduced": not all_edges}
        print_json({**about, "all": whole, "users": by_user})
    else:
        _print_sessions(f"{whole.users} users of {log.name}, sessions by {delimiter}", whole, by_user)


def _write(
    output: Path,
    form: str,
    graphs: dict[str, lazy.session_graph.SessionGraph],
    workload: lazy.model.Workload,
    delimiter: lazy.sessions.SessionCutter,
) -> None:
    """Write the files of a format into a directory, or one file for all users."""
    files, written = lazy.session_files, 0
    in_one = output.suffix == ".json"
    if in_one and form == "batmen":
        raise InputError(f"{output}: Batmen reads a file for each user; give a directory")
    try:
        if in_one:
            return files.write_all_sessions(output, graphs, workload, delimiter)
        output.mkdir(parents=True, exist_ok=True)
        with shown("graphs", lambda: (written, len(graphs))):
            for user, graph in graphs.items():
                path = output / f"user-{user}.json"
                if form == "batmen":
                    files.write_batmen(path, user, graph, workload, delimiter)
                else:
                    files.write_session_json(path, user, graph, workload, delimiter)
                    files.write_session_graphml(path.with_suffix(".graphml"), user, graph)
                written += 1
    except OSError as error:
        raise InputError(f"{error.filename or output}: cannot be written: {error.strerror}") from None


def _print_sessions(
    title: str,
    whole: lazy.session_graph.SessionStatistics,
    by_user: dict[str, lazy.session_graph.SessionStatistics],
) -> None:
    """Print the figures of all users, and of the busiest of them."""
    busiest = sorted(by_user, key=lambda user: -by_user[user].jobs)[:SHOWN_USERS]
    columns = [_cells(whole)] + [_cells(by_user[user]) for user in busiest]
    rows = [[label, *(column[label] for column in columns)] for label in columns[0]]
    lazy.console.print_table(["", "all users", *(f"user {user}" for user in busiest)], rows, title)


def _cells(figures: lazy.session_graph.SessionStatistics) -> dict[str, str]:
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
