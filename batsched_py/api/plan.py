"""A plan built in Python, in the words of a plan file, and what comes out of its runs."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from batsched_py.analysis.runs.aggregate import Baseline
from batsched_py.api import lazy
from batsched_py.api.figures import CampaignFigures
from batsched_py.api.log import FileName, Log
from batsched_py.api.terminal import shown, somebody_looks, waiting
from batsched_py.campaign import plan_file, store
from batsched_py.campaign.executors import executor_of
from batsched_py.campaign.plan import BUILT_IN, PlanText, PlanWords
from batsched_py.campaign.prepare import prepared
from batsched_py.campaign.review import Check, review, worst_first
from batsched_py.campaign.review.controlling import make_controls
from batsched_py.campaign.review.facts import of_campaign
from batsched_py.campaign.run import RunResult, State
from batsched_py.campaign.verify import verify as do_again
from batsched_py.errors import InputError, RunsFailed
from batsched_py.output_files import write_file

if TYPE_CHECKING:
    import pandas as pd


#: An entry of a plan: what the file writes between braces.
Entry = Mapping[str, Any]

#: Entries by name, or the names alone where all else goes without saying.
Entries = Mapping[str, Entry] | Sequence[str]


class Campaign(store.Campaign):
    """The results of a plan, in a folder; ``Campaign.open(folder)`` opens one that was there before."""

    @property
    def plot(self) -> CampaignFigures:
        """The figures of `batsched-py plot` that show a whole campaign, as methods."""
        return CampaignFigures(self)

    def aggregate(
        self, by: Sequence[str] = (), baseline: str = "", metrics: Sequence[str] = ()
    ) -> pd.DataFrame:
        """Means over parts and seeds with 95 % confidence intervals, and differences to a baseline in pairs.

        The words are the options of `batsched-py campaign table`, and the table is the one that it writes.
        """
        return self.aggregated(by, Baseline.parse(baseline), metrics).frame()

    def review(
        self,
        *,
        thorough: bool = False,
        log_folders: Sequence[FileName] = (),
        workers: int | None = None,
        trust: bool = False,
        progress: bool | None = None,
    ) -> list[Check]:
        """What a reviewer would object to, the worst first, by the options of `batsched-py review`."""
        checks = review(of_campaign(self))
        if not thorough:
            return checks
        wanted = somebody_looks() if progress is None else progress
        executor = executor_of("processes", None, workers)
        folders = [Path(folder) for folder in log_folders]
        return worst_first(
            [
                *checks,
                *lazy.review_thorough.thorough(
                    self, executor, folders, trust, lambda results, total: _watched(results, total, wanted)
                ),
            ]
        )

    def __repr__(self) -> str:
        states = [result.state for result in self.results()]
        return f"<Campaign {self.wanted.name}: {states.count(State.DONE)} of {len(states)} runs done>"


class Plan:
    """A table of simulations: logs, machines, schedulers, allocators and users, which are crossed.

    The words are those of a plan file (docs/campaigns.md); its tables are mappings. Files are looked for in
    the current directory. A log may also be the name of a file, or a :class:`~batsched_py.Log` that was read
    from one or generated, with all that was done to it since.
    """

    def __init__(
        self,
        *,
        logs: Mapping[str, Log | FileName | Entry],
        schedulers: Entries,
        platforms: Mapping[str, Entry] | None = None,
        allocators: Entries | None = None,
        users: Entries | None = None,
        parts: str | None = None,
        measure: str | None = None,
        units: str | None = None,
        loads: Sequence[float] | None = None,
        load_by: str | None = None,
        control: bool | None = None,
        seeds: Sequence[int] | None = None,
        repetitions: int | None = None,
        exclude: Sequence[Entry] | None = None,
        metrics: Sequence[str] | None = None,
        figures: Sequence[str] | None = None,
        baseline: str | None = None,
        name: str = "plan",
        title: str | None = None,
    ) -> None:
        words = {
            "name": name,
            "title": title,
            "metrics": metrics,
            "figures": figures,
            "baseline": baseline,
            "seeds": seeds,
            "repetitions": repetitions,
            "parts": parts,
            "measure": measure,
            "units": units,
            "loads": loads,
            "load_by": load_by,
            "control": control,
            "logs": {key: _log(key, log) for key, log in logs.items()},
            "platforms": platforms,
            "schedulers": _entries(schedulers),
            "allocators": None if allocators is None else _entries(allocators),
            "users": None if users is None else _entries(users),
            "exclude": exclude,
        }
        self._begin(PlanWords({key: word for key, word in words.items() if word is not None}, name))

    @classmethod
    def read(cls, file: FileName, log_folders: Sequence[FileName] = (), trust: bool = False) -> Self:
        """The plan in a file; logs that are not beside it are looked for in ``log_folders``."""
        plan = cls.__new__(cls)
        plan._begin(PlanText.read(Path(file)), [Path(folder) for folder in log_folders], trust)
        return plan

    def _begin(self, text: PlanText, log_folders: Sequence[Path] = (), trust: bool = False) -> None:
        self._text, self._log_folders, self._trust = text, log_folders, trust
        self.name = self._checked(None).name
        """What its results are called."""

    def _checked(self, folder: Path | None) -> plan_file.Plan:
        """The plan without mistakes; logs of recipes are made in the folder of its results."""
        return plan_file.plan_of(self._text, self._log_folders, self._trust, folder)

    @property
    def runs(self) -> list[str]:
        """The names of its runs, as far as they are known before all its logs are here."""
        return [run.name for run in self._checked(None).runs]

    def save(self, file: FileName) -> None:
        """Write it as a plan file, which looks for files beside itself."""
        write_file(file, self._text.text)

    def run(
        self,
        directory: FileName | None = None,
        *,
        executor: str = "processes",
        address: str | None = None,
        workers: int | None = None,
        simulator: str = BUILT_IN,
        time_limit: float | None = None,
        only: Sequence[str] = (),
        verify: int | None = None,
        yes: bool = False,
        progress: bool | None = None,
    ) -> Campaign:
        """Do the runs that are not done yet, and give all results.

        The words are the options of `batsched-py campaign run`. Without a ``directory`` the results are gone
        with the campaign that is given back. If runs fail, the others are done all the same, and then
        :class:`~batsched_py.errors.RunsFailed` is raised; so it is if ``verify`` finds other bytes.
        """
        wanted = somebody_looks() if progress is None else progress
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-") if directory is None else directory)
        plan = prepared(
            lambda: self._checked(folder),
            lambda log: yes,
            lambda: waiting("making logs") if wanted else nullcontext(lambda done, total: None),
        )
        planned = store.planned_campaign(plan, folder, simulator, time_limit)
        campaign = Campaign(planned.folder, planned.wanted, planned.plan_text)
        if directory is None:
            weakref.finalize(campaign, shutil.rmtree, folder, ignore_errors=True)
        runs = store.runs_to_do(plan, campaign, only)
        results = store.conduct(campaign, runs, executor_of(executor, address, workers))
        failed = [each for each in _watched(results, len(runs), wanted) if each.state is State.FAILED]
        if failed:
            first = f"{failed[0].name}: {failed[0].error}"
            raise RunsFailed(f"{len(failed)} of {len(runs)} runs failed, the first of them {first}")
        if verify is not None:
            do_again(campaign, verify)
        if not only:
            make_controls(campaign, executor_of(executor, address, workers), self._log_folders, self._trust)
        return campaign

    def __repr__(self) -> str:
        return f"<Plan {self.name}: {len(self.runs)} runs>"


def _watched(results: Iterable[RunResult], total: int, wanted: bool) -> Iterator[RunResult]:
    """What is done, with progress if that is wanted."""
    so_far = 0
    with shown("runs", lambda: (so_far, total)) if wanted else nullcontext():
        for result in results:
            so_far += 1
            yield result


def _log(name: str, log: Log | FileName | Entry) -> Entry:
    if isinstance(log, Mapping):
        return log
    if not isinstance(log, Log):
        return {"file": os.fspath(log)}
    if log.recipe is None:
        raise InputError(
            f"plan: logs.{name}: nobody knows how to make this log again; save it and give the file"
        )
    return log.recipe


def _entries(entries: Entries) -> Mapping[str, Entry]:
    return entries if isinstance(entries, Mapping) else {name: {} for name in entries}
