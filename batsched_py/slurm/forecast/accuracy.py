"""How much of their time limits jobs use, as a log shows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import names_of
from batsched_py.workload.swf.log import Floats

#: A user with fewer jobs in the log is taken to be like all users.
ENOUGH = 30


class Accuracy(Struct, frozen=True):
    """The shares of their time limits that jobs used."""

    all: Floats
    by_user: dict[str, Floats]

    @classmethod
    def of_log(cls, path: Path, zone: str) -> Accuracy:
        """What the jobs of a log of ``sacct`` used."""
        log = read_log(path, "sacct", {"zone": zone})
        known = (log.requested_time > 0) & (log.run_time > 0) & ~log.never_started
        if not known.any():
            raise InputError(f"{path}: no job of this log has a time limit and a run time")
        shares = np.minimum(log.run_time[known] / log.requested_time[known], 1.0)
        users = names_of(log, "user")[known]
        names, counts = np.unique(users, return_counts=True)
        often = [str(name) for name, count in zip(names, counts, strict=True) if name and count >= ENOUGH]
        return cls(shares, {name: shares[users == name] for name in often})

    def run_time(self, user: str, limit: float, ran: float, random: np.random.Generator) -> float:
        """How long a job with a time limit may run that has run for so long; drawn from jobs alike."""
        shares = self.by_user.get(user, self.all)
        possible = shares[shares * limit > ran]
        return limit if not len(possible) else float(random.choice(possible)) * limit
