"""``batsched-py compare``: how like a log the models are that learn from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.api.progress import waiting
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from batsched_py.workload.description.likeness import Likeness, Traits


@click.command("compare")
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path))
@click.argument("models", metavar="[MODEL]...", nargs=-1)
@click.option(
    "--seeds",
    metavar="N",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Logs of each model.",
)
def command(source: Path, models: Sequence[str], seeds: int) -> None:
    """Fit MODELs to a LOG, generate as many jobs as it has, and print how like it they are.

    Without MODELs these are realistic, minh-wolters (the published model) and naive (Poisson arrivals,
    uniform run times and sizes). A cell has the mean over all seeds and the largest distance to the log; a
    cross says that some seed is farther away than is tolerated. KS is the Kolmogorov-Smirnov distance.

    \b
    Examples:
      batsched-py compare HPC2N.swf.gz
      batsched-py compare LLNL-Thunder.swf.gz realistic slots --seeds 10
    """
    from batsched_py.cli.console import console_for_tables
    from batsched_py.workload.description.likeness import likeness, traits
    from batsched_py.workload.description.selection import characterised
    from batsched_py.workload.models import MODELS, LearningModel
    from batsched_py.workload.sources import read_log

    log = read_log(source)
    jobs = len(characterised(log))
    original = traits(log)
    found: dict[str, list[Likeness]] = {}
    for name in models or ("realistic", "minh-wolters", "naive"):
        model = MODELS.create(name, {})
        if not isinstance(model, LearningModel):
            raise InputError(f"the model {name} learns from no log; there is nothing to compare")
        with waiting(f"{name}: learning") as moved:
            model.fit(log, moved)
        with waiting(f"{name}: generating") as moved:
            found[name] = []
            for seed in range(seeds):
                found[name].append(likeness(original, traits(model.generate(jobs, seed))))
                moved(seed + 1, seeds)
    console_for_tables().print(_table(f"{source.name}: {jobs:,} jobs, {seeds} seeds", original, found))


def _table(title: str, original: Traits, found: dict[str, list[Likeness]]) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from batsched_py.workload.description.likeness import DISTANCES, TOLERANCES, failures

    table = Table(title=title, box=box.SIMPLE)
    table.add_column("", no_wrap=True)
    table.add_column("log", justify="right")
    for name in found:
        table.add_column(name, justify="right")
    table.add_column("tolerance", justify="right", style="dim")
    failed = {name: failures(original, copies) for name, copies in found.items()}
    for row, tolerance in (TOLERANCES | DISTANCES).items():
        log = original.quantities.get(row, 0.0)
        cells = []
        for name, copies in found.items():
            values = [(copy.quantities | copy.distances)[row] for copy in copies]
            farthest = max(abs(value - log) for value in values)
            mark = "[red]✗[/]" if failed[name][row] else "[green]✓[/]"
            cells.append(Text.from_markup(f"{sum(values) / len(values):.3f} ({farthest:.3f}) {mark}"))
        heads = (f"KS, {row}", "0") if row in DISTANCES else (row, f"{log:.3f}")
        table.add_row(*heads, *cells, f"{tolerance:.2f}")
    return table
