"""The figures of ``batsched-py plot`` as methods, of a result and of a campaign."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from batsched_py.analysis.plots.figures import KINDS, Kind, RunsKind, TableKind, draw, name_of
from batsched_py.analysis.plots.runs import Run, energy_by_time, first_hosts, recorded_run, run_of
from batsched_py.analysis.plots.style import Look
from batsched_py.api import lazy
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.analysis.plots.sheet import Sheet


class Figures:
    """Kinds of figures as methods.

    They take the options of their kind and those of a look: ``width``, ``font``, ``ink``. What they give is a
    matplotlib figure, which notebooks show and whose ``save`` writes a file.
    """

    _of: ClassVar[type[Kind]]
    """What the kinds have in common."""
    _other: ClassVar[str]
    """What other kinds show."""

    def __getattr__(self, kind: str) -> Callable[..., Sheet]:
        known = self._kinds()
        if kind not in known:
            raise AttributeError(f"there is no figure {kind!r}; known are {', '.join(known)}")
        return partial(self._draw, known[kind])

    def __call__(self, kind: str | type[Kind], *others: Any, **options: Any) -> Sheet:
        """The figure of a kind that is named, such as ``path/to/file.py:ClassName``, or is a class."""
        found = KINDS.find(kind) if isinstance(kind, str) else kind
        if not issubclass(found, self._of):
            raise InputError(f"figure {name_of(found)!r} does not show this, but {self._other}")
        return self._draw(found, *others, **options)

    def __repr__(self) -> str:
        return f"<Figures: {', '.join(self._kinds())}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._kinds()]

    def _kinds(self) -> dict[str, type[Kind]]:
        return {
            name.replace("-", "_"): kind for name, kind in KINDS.all().items() if issubclass(kind, self._of)
        }

    @abstractmethod
    def _draw(self, kind: Any, *others: Any, **options: Any) -> Sheet:
        """The figure of a kind."""


class ResultFigures(Figures):
    """Figures of a result, alone or beside others: ``easy.plot.cumulative(fcfs, recorded=log)``."""

    _of = RunsKind
    _other = "the table of a campaign"

    def __init__(self, result: lazy.result.Result) -> None:
        self._result = result

    def _draw(
        self,
        kind: type[RunsKind],
        *others: lazy.result.Result,
        recorded: lazy.log.Log | None = None,
        **options: Any,
    ) -> Sheet:
        runs = runs_of([self._result, *others], kind.labels_are_distinct)
        return drawn(kind, runs, None if recorded is None else recorded_run(recorded.columns), options)


class CampaignFigures(Figures):
    """Figures of the table of a campaign."""

    _of = TableKind
    _other = "runs"

    def __init__(self, campaign: lazy.store.Campaign) -> None:
        self._campaign = campaign

    def _draw(self, kind: type[TableKind], *others: Any, **options: Any) -> Sheet:
        return drawn(kind, self._campaign.table(), None, options)


def drawn(kind: type[Kind], data: Any, recorded: Run | None, options: dict[str, Any]) -> Sheet:
    """The figure of a kind: what its data are depends on it, and the options are its own and a look's."""
    look = Look.taken_from(options)
    return draw(KINDS.make(kind, name_of(kind), options), data, recorded, look)


def runs_of(results: Sequence[lazy.result.Result], distinct: bool = True) -> list[Run]:
    """What is drawn of results; no two have one label, unless it need not be ``distinct``."""
    runs: list[Run] = []
    for result in results:
        if distinct and result.label in ("recorded", *(run.label for run in runs)):
            raise InputError(f"the label {result.label!r} is taken; give one of the results another .label")
        run = run_of(result.jobs, result.label, result.overview.hosts)
        energy = energy_by_time(result.energy) if result.experiment.scenario.energy else None
        carried = result.carried if result.experiment.scenario.links else None
        decisions = result.decisions if result.experiment.decisions else None
        nodes = {} if result.machine is None else first_hosts(result.machine)
        log = result.simulated_log
        known = replace(run, log=log, energy=energy, carried=carried, decisions=decisions, nodes=nodes)
        runs.append(known)
    return runs
