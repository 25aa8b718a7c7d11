"""The user-aware scheduler.

E. Shmueli and D. Feitelson, "On Simulation and Design of Parallel-Systems Schedulers: Are We Doing the Right
Thing?", IEEE TPDS 20(7), 2009 (there: CREASY); D. Feitelson, "Resampling with Feedback: A New Paradigm of
Using Workload Data for Performance Evaluation", JSSPP 2021.
"""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.easy import EasyBackfilling
from batsched_py.schedulers.formulas import Formula

#: A user who thinks for longer than this has ended the session, in seconds.
SESSION_BREAK = 20 * 60.0

DAY = 24 * 3600.0


@dataclass
class UserAware(EasyBackfilling):
    """User-aware EASY: jobs that can still be answered soon go first, so that their users go on working.

    The priority of a job is alpha * responsiveness + (1 - alpha) * age. Its responsiveness falls with the
    response time R that it would have if it started now, as 1 / (1 + R / 20 minutes), after the observation
    that users whose job took long are less likely to submit the next one within 20 minutes. Its age is the
    time it has waited, in days, so that nobody starves. The papers mix the two by alpha, but what is at hand
    of them does not print the formula; this one is ours.
    """

    name = "user-aware"

    alpha: Annotated[
        float, Meta(ge=0, le=1, description="The weight of responsiveness against age; 0 is EASY.")
    ] = 0.5

    def orders(self, cluster: Cluster) -> tuple[Order | None, Order | None]:
        """The highest priority first, in the queue and for backfilling."""
        responsiveness = f"1 / (1 + (wait + walltime) / {SESSION_BREAK})"
        return Formula(f"-({self.alpha} * ({responsiveness}) + {1 - self.alpha} * wait / {DAY})"), None
