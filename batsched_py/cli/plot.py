"""``batsched-py plot``: figures of schedules, logs and sessions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from batsched_py.api.terminal import waiting
from batsched_py.cli.options import field_options, read_runs
from batsched_py.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.plots.figures import Kind, RunsKind
    from batsched_py.analysis.plots.runs import Run


class Kinds(click.Group):
    """Each kind of figure is a command; it is imported when it is asked for, and not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all kinds."""
        return list(summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command that draws this kind of figure, if there is one."""
        from batsched_py.analysis.plots.figures import KINDS

        is_known = ".py:" in cmd_name or cmd_name in summaries() or cmd_name in KINDS.all()
        return _command(KINDS.find(cmd_name)) if is_known else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of kinds."""
        with formatter.section("Figures"):
            formatter.write_dl(list(summaries().items()))


def summaries() -> dict[str, str]:
    """What each kind ``shows`` by its name, from the text of the classes."""
    kinds = {}
    for source in files("batsched_py.analysis.plots.kinds").iterdir():
        if source.name.endswith(".py"):
            for each in ast.parse(source.read_text(encoding="utf-8")).body:
                match _texts(each):
                    case {"name": name, "shows": shown}:
                        kinds[name] = shown
    return dict(sorted(kinds.items()))


def _texts(definition: ast.stmt) -> dict[str, str]:
    """The attributes of a class whose values are written as texts."""
    found = {}
    for statement in definition.body if isinstance(definition, ast.ClassDef) else ():
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str(text))):
                found[name] = text
    return found


@click.group("plot", cls=Kinds)
def plot_command() -> None:
    """Draw a figure as PNG, SVG or PDF, whichever its name ends in.

    Most kinds compare runs with each other and with the log that they replay. A run is the jobs.csv of a
    simulation, by this or any other Batsim, with or without a name for the figure: LABEL=PREFIX_jobs.csv.
    The size of its machine is read from the PREFIX_schedule.csv beside it. A log (.swf, .swf.gz, or a table
    with a column submit) in the place of a run is shown as it was recorded. `load` and `repetitions` show
    the table of a campaign instead. A figure of your own is path/to/file.py:ClassName.

    \b
    Examples:
      batsched-py plot gantt out_jobs.csv -o gantt.png
      batsched-py plot cumulative EASY=e_jobs.csv FCFS=f_jobs.csv --recorded LOG.swf -o cumulative.pdf
      batsched-py plot graphs LOG.swf --delimit arrival:0 --delimit arrival:60 -o graphs.svg
      batsched-py plot cycles LOG.swf GENERATED.swf -o cycles.svg
      batsched-py plot ecdf e_jobs.csv f_jobs.csv --of slowdown --width column --font serif -o ecdf.pdf
      batsched-py plot examples/own_figure.py:WaitsBySize out_jobs.csv -o waits.svg
    """


def _command(kind: type[Kind]) -> click.Command:
    """The command that draws a kind of figure."""
    from batsched_py.analysis.plots.figures import RunsKind, name_of
    from batsched_py.analysis.plots.style import Look

    about = inspect.cleandoc(kind.__doc__ or "")
    own, looks = field_options(kind), field_options(Look)
    output = click.Option(
        ["-o", "--output"],
        metavar="FILE",
        type=click.Path(path_type=Path),
        required=True,
        help="Where the figure goes: FILE.png, FILE.svg or FILE.pdf.",
    )
    if issubclass(kind, RunsKind):
        arguments = [click.Argument(["texts"], nargs=-1, required=True, metavar="[LABEL=]PREFIX_jobs.csv...")]
        recorded = click.Option(
            ["--recorded", "log_file"],
            metavar="LOG.swf",
            type=click.Path(path_type=Path),
            help=f"The log that was replayed (.swf, .swf.gz). {kind.use_of_log}",
        )
        platform = click.Option(
            ["-p", "--platform", "platform_file"],
            metavar="FILE",
            type=click.Path(),
            help="The machine of nodes of the runs: show which hosts are cores of a node.",
        )
        optional = [*([platform] if kind.shows_nodes else []), *([recorded] if kind.use_of_log else [])]
        params = [*arguments, *own, *optional, *looks, output]
        callback = partial(_draw_runs, kind)
    else:
        arguments = [click.Argument(["place"], type=click.Path(path_type=Path), metavar="CAMPAIGN|TABLE.csv")]
        params = [*arguments, *own, *looks, output]
        callback = partial(_draw_table, kind)
    return click.Command(name_of(kind), callback=callback, params=params, help=about)


def _draw_runs(
    kind: type[RunsKind],
    texts: Sequence[str],
    output: Path,
    log_file: Path | None = None,
    platform_file: str | None = None,
    **options: Any,
) -> None:
    from batsched_py.analysis.plots.runs import recorded_run
    from batsched_py.workload.swf.reader import read_swf

    with waiting(f"drawing {output.name}") as moved:
        moved(0, len(texts) + 1)
        log = None if log_file is None else read_swf(log_file)
        runs: list[Run] = []
        nodes = {} if platform_file is None else _nodes(platform_file)
        for run in read_runs(texts, log, kind.labels_are_distinct):
            runs.append(replace(run, nodes=nodes))
            moved(len(runs), len(texts) + 1)
        _draw(kind, runs, None if log is None else recorded_run(log), output, options)


def _nodes(platform_file: str) -> dict[str, int]:
    """The first host of each node of a machine."""
    from batsched_py.analysis.plots.runs import first_hosts
    from batsched_py.experiment import Machine
    from batsched_py.experiment.build import read_machine

    machine = read_machine(Machine(file=platform_file), ()).as_nodes()
    return {} if machine is None else first_hosts(machine)


def _draw_table(kind: type[Kind], place: Path, output: Path, **options: Any) -> None:
    _draw(kind, _read_table(place), None, output, options)


def _draw(
    kind: type[Kind],
    data: Sequence[Run] | pd.DataFrame,
    recorded: Run | None,
    output: Path,
    options: dict[str, Any],
) -> None:
    """Draw and write a figure; options that were not given have their defaults."""
    from batsched_py.analysis.plots.figures import KINDS, draw, name_of
    from batsched_py.analysis.plots.style import Look

    given = {name: value for name, value in options.items() if value not in (None, ())}
    look = Look.taken_from(given)
    draw(KINDS.make(kind, name_of(kind), given), data, recorded, look).save(output)


def _read_table(place: Path) -> pd.DataFrame:
    """The results in the folder of a campaign, or in a file."""
    import pandas as pd

    from batsched_py.campaign.store import Campaign

    if place.suffix != ".csv":
        return Campaign.open(place).table()
    try:
        return pd.read_csv(place)
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: cannot be read: {error}") from None
