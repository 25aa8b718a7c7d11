"""``batsched-py plot``: figures of schedules, logs and sessions."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from batsched_py.api import lazy
from batsched_py.api.terminal import waiting
from batsched_py.cli.main import Suggesting
from batsched_py.cli.options import NAME, PATH, OutputOption, field_options, read_runs
from batsched_py.errors import InputError
from batsched_py.experiment import Machine


class Kinds(Suggesting):
    """Each kind of figure is a command; it is imported when it is asked for, and not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all kinds."""
        return list(summaries())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command that draws this kind of figure, if there is one."""
        is_known = ".py:" in cmd_name or cmd_name in summaries() or cmd_name in lazy.plot_figures.KINDS.all()
        return _command(lazy.plot_figures.KINDS.find(cmd_name)) if is_known else None

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
      batsched-py plot gantt out_jobs.csv --output gantt.png
      batsched-py plot cumulative EASY=e_jobs.csv FCFS=f_jobs.csv --recorded LOG.swf --output cumulative.pdf
      batsched-py plot graphs LOG.swf --delimit arrival:0 --delimit arrival:60 --output graphs.svg
      batsched-py plot cycles LOG.swf GENERATED.swf --output cycles.svg
      batsched-py plot ecdf e_jobs.csv f_jobs.csv --of slowdown --width column --font serif --output ecdf.pdf
      batsched-py plot examples/own_figure.py:WaitsBySize out_jobs.csv --output waits.svg
    """


def _command(kind: type[lazy.plot_figures.Kind]) -> click.Command:
    """The command that draws a kind of figure."""
    about = inspect.cleandoc(kind.__doc__ or "")
    own, looks = field_options(kind), field_options(lazy.plot_style.Look)
    if not issubclass(kind, lazy.plot_figures.RunsKind):
        arguments: list[click.Parameter] = [
            click.Argument(["place"], type=PATH, metavar="CAMPAIGN|TABLE.csv")
        ]
        callback = partial(_draw_table, kind)
    else:
        arguments = [click.Argument(["texts"], nargs=-1, required=True, metavar="[LABEL=]PREFIX_jobs.csv...")]
        callback = partial(_draw_runs, kind)
        if kind.shows_nodes:
            help = "The machine of nodes of the runs: show which hosts are cores of a node."
            own.append(
                click.Option(["-p", "--platform", "platform_file"], metavar="FILE", type=NAME, help=help)
            )
        if kind.use_of_log:
            help = f"The log that was replayed (.swf, .swf.gz). {kind.use_of_log}"
            own.append(click.Option(["--recorded", "log_file"], metavar="LOG.swf", type=PATH, help=help))
    help = "Where the figure goes: FILE.png, FILE.svg or FILE.pdf."
    output = OutputOption(["--output"], metavar="FILE", type=PATH, required=True, help=help)
    params = [*arguments, *own, *looks, output]
    return click.Command(lazy.plot_figures.name_of(kind), callback=callback, params=params, help=about)


def _draw_runs(
    kind: type[lazy.plot_figures.RunsKind],
    texts: Sequence[str],
    output: Path,
    log_file: Path | None = None,
    platform_file: str | None = None,
    **options: Any,
) -> None:
    with waiting(f"drawing {output.name}") as moved:
        moved(0, len(texts) + 1)
        log = None if log_file is None else lazy.swf_reader.read_swf(log_file)
        runs: list[lazy.plot_runs.Run] = []
        machine = None
        if platform_file is not None:
            machine = lazy.build.read_machine(Machine(file=platform_file), ()).as_nodes()
        nodes = {} if machine is None else lazy.plot_runs.first_hosts(machine)
        for run in read_runs(texts, log, kind.labels_are_distinct):
            runs.append(replace(run, nodes=nodes))
            moved(len(runs), len(texts) + 1)
        _draw(kind, runs, None if log is None else lazy.plot_runs.recorded_run(log), output, options)


def _draw_table(kind: type[lazy.plot_figures.Kind], place: Path, output: Path, **options: Any) -> None:
    """Draw the results in the folder of a campaign, or in a file."""
    if place.suffix != ".csv":
        return _draw(kind, lazy.store.Campaign.open(place).table(), None, output, options)
    import pandas as pd

    try:
        table = pd.read_csv(place)
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: cannot be read: {error}") from None
    _draw(kind, table, None, output, options)


def _draw(
    kind: type[lazy.plot_figures.Kind],
    data: Any,
    recorded: lazy.plot_runs.Run | None,
    output: Path,
    options: dict[str, Any],
) -> None:
    """Draw and write a figure; options that were not given have their defaults."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    lazy.figures.drawn(kind, data, recorded, given).save(output)
