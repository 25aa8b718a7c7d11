"""What links, hosts and storages carried, and how much jobs were slowed down by sharing them.

The simulator writes it with ``--links``: ``PREFIX_uses.csv`` and ``PREFIX_rates.csv`` beside the jobs (see
:mod:`batsched_py.simulator.network.tasks`). A task that does the share *rate* of its whole in a second puts
*rate* times its amount on each of its links. Alone it may be done sooner; the difference is the time it lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, Literal, TextIO

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis.schedule import INSTANT, beside, mean_level, open_table
from batsched_py.errors import InputError

Kind = Literal["link", "host", "storage"]

#: A job that ran at most so many times longer than alone was not slowed down, as far as anybody cares.
UNNOTICED: Final = 1.005

_USES: Final = {"task": int, "job_id": str, "kind": str, "name": str, "capacity": float, "amount": float}
_RATES: Final = {"time": float, "task": int, "rate": float, "rate_alone": float, "kind": str, "name": str}


@dataclass(frozen=True)
class Contention:
    """That a job ran longer than alone."""

    times: float
    """Its run time, divided by the one that it would have had alone on the same hosts."""
    kind: Kind
    name: str
    """Of what it lost most time on."""
    others: Sequence[str]
    """The jobs it shared that with while it lost time, the longest first."""


@dataclass(frozen=True, eq=False)
class Carried:
    """The record of a simulation."""

    uses: pd.DataFrame
    """What each task asked of each link, host and storage: the columns of ``uses.csv``."""
    rates: pd.DataFrame
    """How fast tasks were, from each change on: the columns of ``rates.csv``."""

    @cached_property
    def end(self) -> float:
        """When the last task was done."""
        return float(self.rates["time"].max()) if len(self.rates) else 0.0

    @cached_property
    def steps(self) -> pd.DataFrame:
        """From when to when each task had which rate, what held it back, and how many seconds it lost."""
        rates = self.rates.sort_values(["task", "time"], kind="stable")
        steps = rates.rename(columns={"time": "begin"})
        steps["end"] = rates.groupby("task")["time"].shift(-1)
        steps = steps[steps["end"] > steps["begin"]]
        lost = (steps["end"] - steps["begin"]) * (1 - steps["rate"] / steps["rate_alone"])
        jobs = self.uses.drop_duplicates("task").set_index("task")["job_id"]
        return steps.assign(lost=lost.clip(lower=0.0), job_id=steps["task"].map(jobs))

    @cached_property
    def lost(self) -> pd.Series[float]:
        """The seconds that each job lost, by its full identifier."""
        return self.steps.groupby("job_id")["lost"].sum()

    @cached_property
    def totals(self) -> pd.DataFrame:
        """What each link, host and storage carried in all, the most loaded first.

        ``carried`` is in bytes or flops, ``load`` the mean share of the capacity that was in use, and
        ``lost`` the seconds that jobs lost there. A storage has no capacity but that of its links.
        """
        done = self.steps["rate"] * (self.steps["end"] - self.steps["begin"])
        parts = done.groupby(self.steps["task"]).sum()
        uses = self.uses.assign(carried=self.uses["amount"] * self.uses["task"].map(parts).fillna(0.0))
        keys = ["kind", "name"]
        totals = uses.groupby(keys, sort=False).agg(capacity=("capacity", "max"), carried=("carried", "sum"))
        totals["load"] = totals["carried"] / totals["capacity"] / (self.end or 1.0)
        totals["lost"] = self.steps[self.steps["name"] != ""].groupby(keys)["lost"].sum()
        totals["lost"] = totals["lost"].fillna(0.0)
        return totals.sort_values(["load", "carried"], ascending=False, kind="stable").reset_index()

    def most_loaded(self, kind: Kind, most: int) -> pd.DataFrame:
        """The rows of :attr:`totals` of so many links, hosts or storages."""
        return self.totals[self.totals["kind"] == kind].head(most)

    def mean_flow(self, kind: Kind, name: str, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """The mean bytes or flops in a second, between each two successive ``edges`` of time."""
        used = self.uses[(self.uses["kind"] == kind) & (self.uses["name"] == name)]
        amounts = used.groupby("task")["amount"].sum()
        steps = self.steps[self.steps["task"].isin(amounts.index)]
        if steps.empty:
            return np.zeros(len(edges) - 1)
        heights = steps["rate"].to_numpy() * amounts.loc[steps["task"]].to_numpy()
        return mean_level(steps["begin"], steps["end"], heights, edges)

    def contention(self, job_id: str, run_time: float) -> Contention | None:
        """Why a job ran longer than alone, if it did to speak of."""
        slowed = self.steps[(self.steps["job_id"] == job_id) & (self.steps["name"] != "")]
        times = float(slowdown_by_contention(run_time, self.lost.get(job_id, 0.0)))
        if slowed.empty or times <= UNNOTICED:
            return None
        kind, name = slowed.groupby(["kind", "name"], sort=False)["lost"].sum().idxmax()
        slowed = slowed[(slowed["kind"] == kind) & (slowed["name"] == name)]
        return Contention(times, kind, name, self._beside(job_id, kind, name, slowed))

    def _beside(self, job_id: str, kind: Kind, name: str, slowed: pd.DataFrame) -> list[str]:
        """The other jobs that used something during some steps, the longest first."""
        used = (self.uses["kind"] == kind) & (self.uses["name"] == name) & (self.uses["job_id"] != job_id)
        others = self.steps[self.steps["task"].isin(self.uses.loc[used, "task"])]
        begins, ends = others["begin"].to_numpy()[:, None], others["end"].to_numpy()[:, None]
        common = np.minimum(ends, slowed["end"].to_numpy()) - np.maximum(begins, slowed["begin"].to_numpy())
        seconds = pd.Series(common.clip(min=0.0).sum(axis=1)).groupby(others["job_id"].to_numpy()).sum()
        return [
            str(other)
            for other in seconds[seconds > INSTANT].sort_values(ascending=False, kind="stable").index
        ]


def slowdown_by_contention(
    run_time: pd.Series[float] | float, lost: pd.Series[float] | float
) -> pd.Series[float]:
    """How many times longer jobs ran than alone, given the seconds that they lost.

    Both times are rounded in their files, so a job of almost no length may seem to have lost more than all.
    """
    return run_time / np.maximum(run_time - lost, INSTANT)


def read_carried(uses: TextIO, rates: TextIO, names: tuple[str, str] = ("uses.csv", "rates.csv")) -> Carried:
    """The record in two files, which have these names in errors."""
    return Carried(_table(uses, _USES, names[0]), _table(rates, _RATES, names[1]))


def _table(file: TextIO, types: dict[str, type], name: str) -> pd.DataFrame:
    try:
        table = pd.read_csv(file, dtype=types, keep_default_na=False, na_values={"capacity": [""]})
        return table[list(types)]
    except (ValueError, KeyError):
        raise InputError(
            f"{name}: is not what a simulation with --links writes ({','.join(types)})"
        ) from None


def carried_beside(jobs_file: str | Path) -> Carried | None:
    """The record beside a ``PREFIX_jobs.csv``; nothing if it was not asked for."""
    uses, rates = beside(jobs_file, "uses"), beside(jobs_file, "rates")
    if not (uses.is_file() and rates.is_file()):
        return None
    with open_table(uses) as first, open_table(rates) as second:
        return read_carried(first, second, (str(uses), str(rates)))
