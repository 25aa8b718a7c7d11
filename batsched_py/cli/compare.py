"""``batsched-py compare``: how like a log the models are that learn from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from batsched_py.api.progress import waiting
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.workload.description.likeness import Likeness, Traits

#: The seed of the first log of each model: one that the trials of fitting do not know.
FIRST_SEED: Final = 200


@click.command("compare")
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path))
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="How many logs of each model are generated and compared.",
)
@click.option(
    "-o", "--output", metavar="PAGE.html", type=click.Path(path_type=Path), help="Write a page with figures."
)
def command(source: Path, models: Sequence[str], seeds: int, output: Path | None) -> None:
    """Fit MODELs to a LOG, generate as many jobs as it has, and print how like it they are.

    Without MODELs these are realistic, minh-wolters (the published model) and naive (Poisson arrivals,
    uniform run times and sizes). A cell has the mean over all seeds and the largest distance to the log; a
    cross says that some seed is farther away than is tolerated. KS is the Kolmogorov-Smirnov distance. "Run
    times, 10 jobs apart" is the autocorrelation of the logarithms of run times, at this lag. The seeds are
    200, 201 and so on, because fitting tries the first ones.

    \b
    Examples:
      batsched-py compare HPC2N.swf.gz
      batsched-py compare LLNL-Thunder.swf.gz realistic slots --seeds 10
      batsched-py compare HPC2N.swf.gz realistic -o hpc2n.html
    """
    from batsched_py.cli.console import console_for_tables
    from batsched_py.workload.description.distributions import characterised
    from batsched_py.workload.description.likeness import likeness, traits
    from batsched_py.workload.models import MODELS, LearningModel
    from batsched_py.workload.sources import read_log

    log = read_log(source)
    jobs = len(characterised(log))
    original = traits(log)
    found: dict[str, list[Likeness]] = {}
    shown = {"log": log}
    for name in models or ("realistic", "minh-wolters", "naive"):
        model = MODELS.create(name, {})
        if not isinstance(model, LearningModel):
            raise InputError(f"the model {name} learns from no log; there is nothing to compare")
        with waiting(f"{name}: learning") as moved:
            model.fit(log, moved)
        with waiting(f"{name}: generating") as moved:
            found[name] = []
            for number in range(seeds):
                copy = model.generate(jobs, FIRST_SEED + number)
                shown.setdefault(name, copy)
                found[name].append(likeness(original, traits(copy)))
                moved(number + 1, seeds)
    title = f"{source.name}: {jobs:,} jobs, {seeds} {'seed' if seeds == 1 else 'seeds'}"
    heads, rows = ["", "log", *found, "tolerance"], _rows(original, found)
    if output is not None:
        from batsched_py.analysis.likeness_page import write_likeness_page

        write_likeness_page(output, title, heads, rows, shown)
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE)
    for head in heads:
        table.add_column(head, justify="right" if head else "left", no_wrap=not head)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console_for_tables().print(table)
    if output is not None:
        click.echo(output)


def _rows(original: Traits, found: dict[str, list[Likeness]]) -> list[list[str]]:
    """The cells of the table: each check, the log's value, those of the models, and what is tolerated."""
    from batsched_py.workload.description.likeness import DISTANCES, TOLERANCES, failures

    failed = {name: failures(original, copies) for name, copies in found.items()}
    rows = []
    for row in (*TOLERANCES, *DISTANCES):
        log = original.quantities.get(row, 0.0)
        cells = []
        for name, copies in found.items():
            values = [(copy.quantities | copy.distances)[row] for copy in copies]
            farthest = max(abs(value - log) for value in values)
            mark = "✗" if failed[name][row] else "✓"
            cells.append(f"{_number(sum(values) / len(values))} ({_number(farthest)}) {mark}")
        if row in DISTANCES:
            rows.append([f"KS, {row}", "0", *cells, f"{DISTANCES[row]:.2f}"])
        else:
            rows.append([row, _number(log), *cells, str(TOLERANCES[row])])
    return rows


def _number(value: float) -> str:
    return f"{value:.3f}" if not abs(value) >= 100 else f"{value:,.0f}"
