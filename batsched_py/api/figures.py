"""The figures of ``batsched-py plot`` as methods of a result."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from batsched_py.analysis import plots
from batsched_py.analysis.plots.runs import Run, recorded_run, run_of
from batsched_py.analysis.plots.style import render, write_figure
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

    from batsched_py.api.log import FileName, Log
    from batsched_py.api.result import Result

#: Fills an empty figure.
Draw = Callable[["Drawn"], None]


class Figure:
    """A figure that is drawn when it is saved, or shown by a notebook."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def save(self, path: FileName) -> None:
        """Write it as PNG, SVG or PDF, whichever the name ends in."""
        write_figure(str(path), self._draw)

    def _repr_png_(self) -> bytes:
        return render(self._draw, ".png")


class Figures:
    """The figures of one result, alone or compared with others: ``easy.plot.cumulative(fcfs, recorded=log)``.

    A kind is the name of a module of :mod:`batsched_py.analysis.plots` that draws runs. Its other parameters
    are keywords; ``recorded`` is the log that was simulated, for the kinds that show it or need it.
    """

    def __init__(self, result: Result) -> None:
        self._result = result

    def __getattr__(self, kind: str) -> Callable[..., Figure]:
        if kind.startswith("_"):
            raise AttributeError(kind)
        known = kinds()
        if kind not in known:
            raise AttributeError(f"there is no figure {kind!r}; known are {', '.join(known)}")
        return partial(self._figure, known[kind])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *kinds()]

    def _figure(
        self, draw: Callable[..., None], *others: Result, recorded: Log | None = None, **options: Any
    ) -> Figure:
        asked = inspect.signature(draw).parameters
        runs = _runs([self._result, *others])
        if "recorded" in asked:
            options["recorded"] = None if recorded is None else recorded_run(recorded.columns)
        if "log" in asked:
            options["log"] = (recorded or self._result.recorded).columns
        if "reference" in asked:
            options["reference"] = runs.pop(0) if recorded is None else recorded_run(recorded.columns)
            if not runs:
                raise InputError("there is nothing to compare the result with; give another, or recorded=LOG")
        return Figure(partial(draw, runs=runs, **options))


def kinds() -> dict[str, Callable[..., None]]:
    """What draws each kind of figure that shows runs, by its name.

    It is the function ``draw`` of the module of that name; a function ``draw_THIS`` beside it draws another
    kind, called THIS_MODULE.
    """
    found: dict[str, Callable[..., None]] = {}
    for info in pkgutil.iter_modules(plots.__path__):
        module = import_module(f"{plots.__name__}.{info.name}")
        for name, function in vars(module).items():
            if name.split("_")[0] == "draw" and "runs" in inspect.signature(function).parameters:
                found["_".join([*name.split("_")[1:], info.name])] = function
    return found


def _runs(results: Sequence[Result]) -> list[Run]:
    runs: list[Run] = []
    for result in results:
        if result.label in ("recorded", *(run.label for run in runs)):
            raise InputError(f"the label {result.label!r} is taken; give one of the results another .label")
        runs.append(run_of(result.jobs, result.label, result.overview.hosts))
    return runs
