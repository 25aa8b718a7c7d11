"""``batsched-py sessions``: what a log says about how its users work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from batsched_py.api.progress import shown
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from batsched_py.workload.model import Workload
    from batsched_py.workload.session_graph import SessionGraph, SessionStatistics
    from batsched_py.workload.sessions import SessionRule

SHOWN_USERS = 4
MAX_EDGES = 200_000_000


@click.command("sessions")
@click.argument("log", type=click.Path(path_type=Path))
@click.option(
    "--delimit",
    metavar="RULE:MINUTES|CODE",
    default="arrival:60",
    show_default=True,
    help="What opens a new session: arrival:T, a job T minutes or more after the previous submission; "
    "last:T, more than T minutes after the previous job had finished; "
    "max:T, more than T minutes after all earlier jobs of the session had finished; or a class of your own, "
    "path/to/file.py:ClassName.",
)
@click.option(
    "-o",
    "--output",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write user-N.json and user-N.graphml for every user into this directory.",
)
@click.option("--all-edges", is_flag=True, help="Keep the edges that others imply as well.")
@click.option("--json", "as_json", is_flag=True, help="Print the statistics of every user as JSON.")
def command(log: Path, delimit: str, output: Path | None, all_edges: bool, as_json: bool) -> None:
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
    from batsched_py.cli.console import console_for_tables
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
        click.echo(msgspec.json.format(msgspec.json.encode(report)))
    else:
        console_for_tables().print(
            _table(f"{whole.users} users of {log.name}, sessions by {delimiter}", whole, by_user)
        )


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


def _table(title: str, whole: SessionStatistics, by_user: dict[str, SessionStatistics]) -> Table:
    from rich import box
    from rich.table import Table

    busiest = sorted(by_user, key=lambda user: -by_user[user].jobs)[:SHOWN_USERS]
    columns = [_cells(whole)] + [_cells(by_user[user]) for user in busiest]
    table = Table(title=title, box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    for name in ("all users", *(f"user {user}" for user in busiest)):
        table.add_column(name, justify="right")
    for label in columns[0]:
        table.add_row(label, *(column[label] for column in columns))
    return table


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
        "think time < 1 h": _share(figures.think_times_below_1h),
        "think time < 10 h": _share(figures.think_times_below_10h),
    }


def _duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _share(part: float | None) -> str:
    return "-" if part is None else f"{part:.1%}"
