"""How a campaign looks on a terminal: its tables, its progress, or a live view of its runs."""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from rich.box import SIMPLE
from rich.console import Group
from rich.layout import Layout
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from batsched_py.analysis.runs.tables import ResultTable, markdown
from batsched_py.api import lazy
from batsched_py.api.console import TextConsole
from batsched_py.api.terminal import duration, say, shown, somebody_looks
from batsched_py.campaign.run import WORK, Run, RunResult, State
from batsched_py.campaign.store import Campaign, Executor
from batsched_py.errors import InputError
from batsched_py.watch.live import Screen
from batsched_py.watch.telling import clock


def with_progress(results: Iterable[RunResult], total: int, err: bool = False) -> Iterator[RunResult]:
    """What is done, with a bar on a terminal and a line for each run elsewhere, on stderr with ``err``."""
    number = 0
    with shown("runs", lambda: (number, total)):
        for number, result in enumerate(results, start=1):
            if not somebody_looks():
                told = f"{result.seconds:.1f} s" if result.error is None else "failed"
                say(f"[{number}/{total}] {result.name}: {told}", err=err)
            yield result


def with_live_view(
    results: Iterable[RunResult], campaign: Campaign, runs: Sequence[Run], executor: Executor
) -> Iterator[RunResult]:
    """What is done, while the terminal shows how far all is."""
    if not isinstance(executor, lazy.executors.Processes):
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
    console = TextConsole()
    for table in tables:
        view = Table(title=table.log, caption=table.note, box=SIMPLE)
        for axis in table.axes:
            view.add_column(axis, no_wrap=True)
        for heading in table.headings:
            view.add_column(heading, justify="right")
        for choices, cells in table.rows:
            view.add_row(*choices, *(Text(cell.text, "bold" if cell.best else "") for cell in cells))
        console.print(view)


SECONDS_BETWEEN_FRAMES = 0.2

#: Where a run that is not finished writes its jobs.
_UNFINISHED = "*_jobs.csv.part"

#: How much of the end of that file has a whole line for sure.
_LINE = 4096

_WAITING, _RUNNING, _DONE, _FAILED = ("·", "dim"), ("▶", "yellow"), ("█", "green"), ("x", "red")


class Running(NamedTuple):
    """A run that is being done."""

    name: str
    seconds: float
    """How long it has been."""
    simulated: float
    """When the last job ended that it has written down."""


class CampaignView:
    """Shows a campaign while it runs: it is given each result, and looks for the runs that are under way."""

    def __init__(self, screen: Screen, title: str, runs: Sequence[str], work: Path) -> None:
        self._screen = screen
        self._title = title
        self._runs = runs
        self._work = work
        """Where each run that is being done has a folder ``RUN.*``."""
        self._over: dict[str, RunResult] = {}
        self._began = time.monotonic()
        self._next_frame = 0.0

    def shown(self, results: Iterable[RunResult]) -> Iterator[RunResult]:
        """What is done, and shown."""
        self.look()
        for result in results:
            self._over[result.name] = result
            self.look()
            yield result

    def look(self) -> None:
        """Show how far all runs are, unless that was shown just now; obey keys."""
        self._screen.key()
        if time.monotonic() >= self._next_frame:
            self._screen.show(self._picture(self._screen.size[1]))
            self._next_frame = time.monotonic() + SECONDS_BETWEEN_FRAMES

    def _picture(self, height: int) -> Layout:
        running = [each for each in running_in(self._work) if each.name not in self._over]
        body = Layout()
        body.split_row(
            Layout(Panel(_running_table(running), title="running")),
            Layout(Panel(self._recent(height), title="recent")),
        )
        layout = Layout()
        layout.split_column(
            Layout(Panel(self._head()), size=3),
            Layout(Panel(self._strip({each.name for each in running}), title="runs"), size=6),
            body,
            Layout(Text("q quit; what is done stays done", style="dim"), size=1),
        )
        return layout

    def _head(self) -> Text:
        done, total = len(self._over), len(self._runs)
        failed = sum(each.state is State.FAILED for each in self._over.values())
        passed = time.monotonic() - self._began
        left = f"{duration(passed * (total - done) / done)} left" if done else ""
        counts = f"{done} of {total} runs", f"{failed} failed" if failed else ""
        told = [self._title, *counts, duration(passed), left]
        return Text("   ".join(filter(None, told)), no_wrap=True, overflow="ellipsis")

    def _strip(self, running: set[str]) -> Group:
        strip = Text(overflow="fold")
        for name in self._runs:
            if name in self._over:
                mark = _DONE if self._over[name].error is None else _FAILED
            else:
                mark = _RUNNING if name in running else _WAITING
            strip.append(*mark)
        return Group(strip)

    def _recent(self, height: int) -> Text:
        lines = [
            f"{each.name}: {f'{each.seconds:.1f} s' if each.error is None else each.error}"
            for each in islice(reversed(self._over.values()), height)
        ]
        return Text("\n".join(lines), no_wrap=True, overflow="ellipsis")


def _running_table(running: Sequence[Running]) -> Table:
    table = Table(box=None, expand=True)
    table.add_column("run", no_wrap=True, overflow="ellipsis")
    table.add_column("simulated", justify="right", no_wrap=True)
    table.add_column("for", justify="right", no_wrap=True)
    for each in running:
        table.add_row(each.name, clock(each.simulated), duration(each.seconds))
    return table


def running_in(work: Path) -> list[Running]:
    """The runs that have a folder to work in, and how far they are."""
    found = []
    for folder in sorted(work.glob("*.*")):
        try:
            began = folder.stat().st_ctime
            simulated = max((_last_end(file) for file in folder.glob(_UNFINISHED)), default=0.0)
        except OSError:  # it is over by now
            continue
        found.append(Running(folder.name.rpartition(".")[0], max(0.0, time.time() - began), simulated))
    return found


def _last_end(jobs_file: Path) -> float:
    """When the last job ended of those that were written so far."""
    with jobs_file.open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - _LINE))
        lines = file.read().decode(errors="replace").splitlines()[1:]
    for row in csv.reader(reversed(lines)):
        with suppress(ValueError):
            if len(row) == 17 and row[10]:
                return float(row[10])
    return 0.0
