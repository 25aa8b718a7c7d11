"""The users that a log names, one by one; and what becomes of jobs that name none."""

from __future__ import annotations

import logging
from abc import abstractmethod
from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import replace

from batsched_py.users.base import Behaviour, User, Wrapper
from batsched_py.workload.dependencies import among_themselves
from batsched_py.workload.model import Workload, as_jobs

_log = logging.getLogger(__name__)


@dataclass(kw_only=True)
class NamedUsers(Behaviour):
    """A behaviour that needs to know whose a job is."""

    nameless: Annotated[
        Literal["left-out", "rigid"],
        Meta(description="What becomes of jobs whose user the log does not name."),
    ] = "left-out"

    def users(self, workload: Workload) -> list[User]:
        """Those of :meth:`named_users`, and one for all jobs without a user, if these are kept."""
        nameless = _nameless(workload)
        if not nameless or (len(nameless) == len(workload.jobs) and self.nameless != "rigid"):
            return self.named_users(workload)
        without = set(nameless)
        named = [place for place in range(len(workload.jobs)) if place not in without]
        if self.nameless == "rigid":
            from batsched_py.users.rigid import Rigid

            others = Rigid().users(part_of(workload, nameless))
        else:
            others = []
            _log.warning(
                "%s: left out because they name no user: %d of %d jobs (nameless=rigid keeps them)",
                workload.path or workload.name,
                len(nameless),
                len(workload.jobs),
            )
        part = part_of(workload, named)
        if not others:
            part = replace(part, jobs=among_themselves(part.jobs))
        return self.named_users(part) + others if named else others

    @abstractmethod
    def named_users(self, workload: Workload) -> list[User]:
        """New users for one simulation of a workload in which each job has a user."""


def _nameless(workload: Workload) -> list[int]:
    """The places of the jobs whose user the log does not name."""
    nobody = as_jobs(workload.jobs).by_user().get(None)
    return [] if nobody is None else sorted(nobody.tolist())


def part_of(workload: Workload, places: list[int]) -> Workload:
    """The workload with the jobs in these places only."""
    finishes = workload.finishes
    return replace(
        workload,
        jobs=[workload.jobs[place] for place in places],
        finishes=None if finishes is None else [float(finishes[place]) for place in places],
    )


def one_by_one(workload: Workload) -> dict[str, Workload]:
    """The workload of each user, jobs in submission order; short names first, as numbers go."""
    places = {user: places for user, places in as_jobs(workload.jobs).by_user().items() if user is not None}
    return {
        user: part_of(workload, places[user].tolist())
        for user in sorted(places, key=lambda user: (len(user), user))
    }


@dataclass
class EachUser(NamedUsers, Wrapper):
    """A wrapper around each user of a log."""

    def learn(self, workload: Workload) -> None:
        """Learn, and let the users inside learn."""
        self.inner.learn(workload)
