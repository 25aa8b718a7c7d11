"""The figures of ``batsched-py plot`` as methods of a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from batsched_py.analysis.plots.figures import KINDS, draw
from batsched_py.analysis.plots.kind import RunsKind
from batsched_py.analysis.plots.look import Look
from batsched_py.analysis.plots.runs import Run, recorded_run, run_of
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet
    from batsched_py.api.log import Log
    from batsched_py.api.result import Result


class Figures:
    """The figures of one result, alone or compared with others: ``easy.plot.cumulative(fcfs, recorded=log)``.

    Kinds and their options are those of `batsched-py plot`, with ``_`` instead of ``-`` in their names.
    ``recorded`` is the log that was simulated, for the kinds that show it; ``width``, ``font`` and ``ink``
    are what a journal may ask for. A figure is one of matplotlib's, with a method ``save``.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __getattr__(self, kind: str) -> Callable[..., Sheet]:
        if kind.startswith("_"):
            raise AttributeError(kind)
        known = kinds()
        if kind not in known:
            raise AttributeError(f"there is no figure {kind!r}; known are {', '.join(known)}")
        return partial(self._draw, known[kind])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *kinds()]

    def _draw(
        self, kind: type[RunsKind], *others: Result, recorded: Log | None = None, **options: Any
    ) -> Sheet:
        runs: list[Run] = []
        for result in (self._result, *others):
            if result.label in ("recorded", *(run.label for run in runs)):
                raise InputError(
                    f"the label {result.label!r} is taken; give one of the results another .label"
                )
            runs.append(_run(result, kind.needs_logs))
        look = Look(**{each.name: options.pop(each.name) for each in fields(Look) if each.name in options})
        known = None if recorded is None else recorded_run(recorded.columns)
        return draw(kind.name, runs, known, look, **options)


def kinds() -> dict[str, type[RunsKind]]:
    """The kinds of figures that show runs, by the names they have in Python."""
    return {name.replace("-", "_"): kind for name, kind in KINDS.all().items() if issubclass(kind, RunsKind)}


def _run(result: Result, with_log: bool) -> Run:
    run = run_of(result.jobs, result.label, result.overview.hosts)
    if with_log:
        run = replace(run, log=result.recorded.columns)
    if result.overview.consumed_joules is not None:
        drawn = result.energy.drop_duplicates("time", keep="last").set_index("time")["energy"]
        run = replace(run, energy=drawn)
    return run
