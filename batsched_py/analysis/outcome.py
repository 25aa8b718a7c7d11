"""The results of a simulation, as far as metrics need them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis import goodput, reactions
from batsched_py.analysis.carried import Carried, slowdown_by_contention
from batsched_py.analysis.lateness import job_lateness, noted_submissions, users_of
from batsched_py.analysis.resizes import has_resizes, in_pieces, mean_hosts
from batsched_py.analysis.schedule import INSTANT, full_ids, host_sets, started
from batsched_py.analysis.summary import Summary
from batsched_py.analysis.working_sessions import working_sessions
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet


@dataclass(frozen=True, eq=False)
class Outcome:
    """A schedule with everything that its metrics depend on."""

    schedule: pd.DataFrame
    nb_hosts: int | None = None
    """Size of the machine; if it is not given, it has the hosts up to the highest one that was used."""
    recorded: pd.DataFrame | None = None
    """The recorded submissions, if the schedule is a replay of a log."""
    consumed_joules: float | None = None
    """The energy of all hosts, if it was measured."""
    energy_cost: float | None = None
    """What that energy cost, if its price is known."""
    carbon: float | None = None
    """The grams of CO2 that it caused, if its carbon intensity is known."""
    lost_seconds: pd.Series[float] | None = None
    """What jobs lost by sharing links and hosts, by their full identifiers, if that was recorded."""
    decisions: pd.DataFrame | None = None
    """What each decision took, if that was measured."""

    @classmethod
    def of(
        cls,
        schedule: pd.DataFrame,
        summary: Summary,
        carried: Carried | None = None,
        decisions: pd.DataFrame | None = None,
    ) -> Outcome:
        """The outcome of a simulation, with its users' notes about the log that they replayed."""
        return cls(
            schedule,
            summary.nb_hosts,
            noted_submissions(schedule),
            summary.consumed_joules,
            summary.energy_cost,
            summary.carbon,
            None if carried is None else carried.lost,
            decisions,
        )

    @cached_property
    def slowdown_by_contention(self) -> pd.Series[float]:
        """How many times longer each executed job ran than alone."""
        assert self.lost_seconds is not None
        lost = full_ids(self.executed).map(self.lost_seconds).fillna(0.0)
        return slowdown_by_contention(self.executed["execution_time"], lost)

    @cached_property
    def executed(self) -> pd.DataFrame:
        """The rows of jobs that were not rejected."""
        return started(self.schedule)

    @cached_property
    def makespan(self) -> float:
        """From the first submission to the last end."""
        if self.executed.empty:
            return 0.0
        return float(self.executed["finish_time"].max() - self.schedule["submission_time"].min())

    @cached_property
    def host_seconds(self) -> float:
        """Sum over all jobs of run time times hosts, piece by piece; 0 for a job of no length."""
        ran = self.executed["execution_time"].to_numpy()
        return float(np.where(ran > INSTANT, ran, 0.0) @ mean_hosts(self.executed, self.nb_held))

    @cached_property
    def nb_held(self) -> NDArray[np.int64]:
        """How many hosts each executed job had at its end."""
        return np.array([len(hosts) for hosts in self._hosts], dtype=np.int64)

    @cached_property
    def machine_size(self) -> int:
        """How many hosts there are."""
        if self.nb_hosts is not None:
            return self.nb_hosts
        used = self._hosts if not has_resizes(self.executed) else host_sets(in_pieces(self.executed))
        return max((hosts.mask.bit_length() for hosts in used), default=0)

    @cached_property
    def _hosts(self) -> list[HostSet]:
        return host_sets(self.executed)

    @cached_property
    def lateness(self) -> pd.DataFrame:
        """The lateness of each job, as :func:`~batsched_py.analysis.lateness.job_lateness` has it."""
        return job_lateness(self.schedule, self._recorded)

    @cached_property
    def working_sessions(self) -> pd.DataFrame | None:
        """The sessions that users had, if the users of jobs are known."""
        return working_sessions(self.schedule)

    @cached_property
    def patient_jobs(self) -> pd.DataFrame | None:
        """The jobs by users who may lose patience, if there are such."""
        return reactions.jobs_with_note(self.schedule, "patience")

    @cached_property
    def sober_jobs(self) -> pd.DataFrame | None:
        """The jobs that sober users wanted to submit inside a window, if there are such."""
        return reactions.jobs_with_note(self.schedule, "sober")

    @cached_property
    def failed_executions(self) -> pd.DataFrame | None:
        """What of each execution was useful and what was lost, if failures have ended some."""
        return goodput.executions(self.schedule)

    @cached_property
    def joules_around_windows(self) -> tuple[float, float] | None:
        """The energy of jobs inside and after the windows of sober users, if known."""
        return reactions.joules_around_windows(self.schedule)

    @property
    def _recorded(self) -> pd.DataFrame:
        if self.recorded is None:
            raise InputError("the schedule does not tell its users; give the log with --recorded LOG.swf")
        return self.recorded

    def by_user(self) -> dict[str, Outcome]:
        """The outcome for each user, in the order of their numbers or names."""
        users = users_of(self.schedule, self._recorded)
        outcomes = self.parts(users.to_numpy())
        return {user: outcomes[user] for user in sorted(outcomes, key=lambda user: (len(user), user))}

    def parts(self, labels: pd.Series[str] | NDArray[np.object_]) -> dict[str, Outcome]:
        """The outcome for the jobs of each label; a job without one is in no part."""
        recorded = self.recorded
        parts = {}
        for label, part in self.schedule.groupby(labels):
            known = None
            if recorded is not None:
                known = recorded.loc[part.loc[part["job_id"].isin(recorded.index), "job_id"]]
            parts[str(label)] = replace(self, schedule=part, recorded=known)
        return parts


def queue_length(schedule: pd.DataFrame) -> pd.Series[int]:
    """How many jobs are submitted and not started, from each change on.

    Jobs that start when they are submitted have not waited. Rejected jobs are left out: how long they waited
    is unknown.
    """
    executed = started(schedule)
    times = np.concatenate([executed["submission_time"], executed["starting_time"]])
    steps = pd.Series(np.repeat([1, -1], len(executed)), index=pd.Index(times, name="time"))
    return steps.groupby(level=0).sum().cumsum()
