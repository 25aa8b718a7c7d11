"""How a campaign looks on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from batsched_py.analysis.runs.tables import ResultTable, markdown
from batsched_py.api.progress import shown, somebody_looks
from batsched_py.api.terminal import say
from batsched_py.campaign.conduct import Executor
from batsched_py.campaign.run import WORK, Run, RunResult
from batsched_py.campaign.store import Campaign
from batsched_py.errors import InputError


def with_progress(results: Iterable[RunResult], total: int) -> Iterator[RunResult]:
    """What is done, with a bar on a terminal and a line for each run elsewhere."""
    number = 0
    with shown("runs", lambda: (number, total)):
        for number, result in enumerate(results, start=1):
            if not somebody_looks():
                told = f"{result.seconds:.1f} s" if result.error is None else "failed"
                say(f"[{number}/{total}] {result.name}: {told}")
            yield result


def with_live_view(
    results: Iterable[RunResult], campaign: Campaign, runs: Sequence[Run], executor: Executor
) -> Iterator[RunResult]:
    """What is done, while the terminal shows how far all is."""
    from batsched_py.campaign.processes import Processes
    from batsched_py.cli.campaign_live import CampaignView
    from batsched_py.watch.screen import Screen

    if not isinstance(executor, Processes):
        raise InputError("--live is for runs that are executed here, by --executor processes")
    with Screen() as screen:
        names = [run.name for run in runs]
        view = CampaignView(screen, campaign.wanted.name, names, campaign.folder / WORK)
        executor.meanwhile = view.look
        yield from view.shown(results)


def print_tables(tables: Sequence[ResultTable]) -> None:
    """Print the results, on a terminal to fit its width."""
    if not sys.stdout.isatty():
        say(markdown(tables), nl=False)
        return
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from batsched_py.api.console import TextConsole

    console = TextConsole()
    for table in tables:
        view = Table(title=table.log, caption=table.note, box=box.SIMPLE)
        for axis in table.axes:
            view.add_column(axis, no_wrap=True)
        for heading in table.headings:
            view.add_column(heading, justify="right")
        for choices, cells in table.rows:
            view.add_row(*choices, *(Text(cell.text, "bold" if cell.best else "") for cell in cells))
        console.print(view)
