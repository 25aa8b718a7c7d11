"""How a campaign looks on a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from batsched_py.campaign.run import Done
from batsched_py.campaign.store import Campaign
from batsched_py.campaign.tables import ResultTable, markdown


def _progress(console: Console) -> Progress:
    """A bar on a terminal, nothing elsewhere."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        "runs,",
        TimeElapsedColumn(),
        "so far,",
        TimeRemainingColumn(),
        "left",
        TextColumn("[dim]{task.description}"),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def with_progress(dones: Iterable[Done], total: int) -> Iterator[Done]:
    """What is done, with a bar on a terminal and a line for each run elsewhere."""
    console = Console(stderr=True)
    with _progress(console) as progress:
        bar = progress.add_task("", total=total)
        for number, done in enumerate(dones, start=1):
            progress.update(bar, advance=1, description=done.run)
            if not console.is_terminal:
                fate = f"{done.seconds:.1f} s" if done.failure is None else "failed"
                click.echo(f"[{number}/{total}] {done.run}: {fate}")
            yield done


def write_page(file: Path, campaign: Campaign) -> None:
    """Write the report as a page, with a bar on a terminal."""
    from batsched_py.campaign.html_report import write_html

    with _progress(Console(stderr=True)) as progress:
        bar = progress.add_task("", total=None)
        write_html(file, campaign, lambda done, total: progress.update(bar, completed=done, total=total))


def print_tables(tables: Sequence[ResultTable]) -> None:
    """Print the results, on a terminal to fit its width."""
    console = Console()
    if not console.is_terminal:
        click.echo(markdown(tables), nl=False)
        return
    for table in tables:
        shown = Table(title=table.log, caption=table.note, box=box.SIMPLE)
        for axis in table.axes:
            shown.add_column(axis, no_wrap=True)
        for heading in table.headings:
            shown.add_column(heading, justify="right")
        for choices, cells in table.rows:
            shown.add_row(*choices, *(f"[bold]{cell.text}[/]" if cell.best else cell.text for cell in cells))
        console.print(shown)
