"""Orders of waiting jobs: each gives every job a score, and the lowest score goes first.

They work on whole columns (see :class:`~batsched_py.ledger.queue.Waiting`), so that ten thousand waiting
jobs are compared at once. Equal scores keep submission order. An order that has no name here is a formula
(see :mod:`~batsched_py.schedulers.formulas`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import log
from typing import Literal, TypeVar, get_args

from batsched_py.errors import InputError, did_you_mean
from batsched_py.ledger.queue import Floats, Integers, Waiting
from batsched_py.ledger.running import RunningJob
from batsched_py.schedulers.cluster import Cluster, Order
from batsched_py.schedulers.formulas import USAGE, Formula

_Order = TypeVar("_Order", bound=Callable[..., Floats])

OrderName = Literal[
    "submission",
    "shortest",
    "longest",
    "smallest-area",
    "largest-area",
    "expansion-factor",
    "wfp3",
    "unicep",
    "f1",
    "f2",
    "f3",
    "f4",
    "f1-queue",
    "fair-share",
]

#: The time after which use of the machine counts half in :class:`FairShare`: a week.
HALF_LIFE = 7 * 24 * 3600.0


def order(text: str, cluster: Cluster) -> Order:
    """The order of this name, or by this formula, for jobs that wait for a cluster."""
    if text in _ORDERS:
        return _ORDERS[text]
    if text == "fair-share":
        return FairShare(cluster)
    needs_usage = USAGE in check_order(text)
    return Formula(text, FairShare(cluster).decayed if needs_usage else None)


def check_order(text: str) -> set[str]:
    """Refuse what is neither the name of an order nor a formula; the quantities that a formula names."""
    names = get_args(OrderName)
    if text in names:
        return set()
    try:
        return Formula(text, submission).names
    except InputError:
        if re.fullmatch("[a-z]+[0-9]*(-[a-z]+)*", text) is None:
            raise
    near = did_you_mean(text, names)
    raise InputError(f"there is no order {text!r}{near}; choose among {', '.join(names)}, or write a formula")


def fixed(order: _Order) -> _Order:
    """Say of an order that the score of a waiting job changes only with its estimate: it is computed once."""
    order.__dict__["fixed"] = True
    return order


@fixed
def submission(waiting: Waiting, now: float) -> Floats:
    """The earliest submission first."""
    return waiting.submission


@fixed
def shortest(waiting: Waiting, now: float) -> Floats:
    """The shortest estimate first."""
    return waiting.estimate


@fixed
def longest(waiting: Waiting, now: float) -> Floats:
    """The longest estimate first."""
    return -waiting.estimate


@fixed
def smallest_area(waiting: Waiting, now: float) -> Floats:
    """The fewest host-seconds first."""
    return waiting.size * waiting.estimate


@fixed
def largest_area(waiting: Waiting, now: float) -> Floats:
    """The most host-seconds first."""
    return -smallest_area(waiting, now)


def expansion_factor(waiting: Waiting, now: float) -> Floats:
    """The job that waiting has stretched most first, by the factor (wait + estimate) / estimate."""
    return -(1 + (now - waiting.submission) / waiting.estimate)


def wfp3(waiting: Waiting, now: float) -> Floats:
    """Large and old jobs first, in proportion to their length: size * (wait / estimate) ** 3.

    W. Tang, Z. Lan, N. Desai and D. Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P
    systems", IEEE Cluster 2009.
    """
    return -waiting.size * ((now - waiting.submission) / waiting.estimate) ** 3


def unicep(waiting: Waiting, now: float) -> Floats:
    """Small, short and old jobs first: wait / (log2(size) * estimate).

    By Tang et al. like :func:`wfp3`. Their machine has no job of one host, for which the formula divides by
    zero; here it counts like one of two hosts.
    """
    import numpy as np

    return -(now - waiting.submission) / (np.log2(np.maximum(waiting.size, 2)) * waiting.estimate)


def f1(waiting: Waiting, now: float) -> Floats:
    """Small, short and old jobs first: log10(estimate) * size + 870 * log10(submission).

    The best of the functions that were learned from simulations by D. Carastan-Santos and R. de Camargo,
    "Obtaining dynamic scheduling policies with simulation and machine learning", SC 2017. Times below one
    second count as one second. Submissions count from the first one of the workload, so the later it is, the
    more it is like another policy: after a year, a week more or less is nothing. See :func:`f1_of_queue`.
    """
    return _f1(waiting, waiting.submission)


def f2(waiting: Waiting, now: float) -> Floats:
    """The second of those functions (see :func:`f1`): sqrt(estimate) * size + 25600 * log10(submission)."""
    import numpy as np

    return np.sqrt(waiting.estimate) * waiting.size + 25_600 * _age(waiting.submission)


def f3(waiting: Waiting, now: float) -> Floats:
    """The third of those functions (see :func:`f1`): estimate * size + 6860000 * log10(submission)."""
    return waiting.estimate * waiting.size + 6_860_000 * _age(waiting.submission)


def f4(waiting: Waiting, now: float) -> Floats:
    """The fourth of those functions (see :func:`f1`): estimate * sqrt(size) + 530000 * log10(submission)."""
    import numpy as np

    return waiting.estimate * np.sqrt(waiting.size) + 530_000 * _age(waiting.submission)


def f1_of_queue(waiting: Waiting, now: float) -> Floats:
    """The order :func:`f1` with submissions that count from that of the oldest waiting job.

    The function was learned from short sequences of jobs whose first arrives at 0. With this origin it does
    the same wherever a log begins.
    """
    return _f1(waiting, waiting.submission - waiting.submission.min(initial=now))


def _f1(waiting: Waiting, submission: Floats) -> Floats:
    import numpy as np

    length: Floats = np.log10(np.maximum(waiting.estimate, 1))
    return length * waiting.size + 870 * _age(submission)


def _age(submission: Floats) -> Floats:
    import numpy as np

    age: Floats = np.log10(np.maximum(submission, 1))
    return age


class FairShare:
    """Jobs of the user who has used the machine least first.

    Use is counted in host-seconds, and weighs half after each :data:`HALF_LIFE`. J. Kay and P. Lauder, "A
    fair share scheduler", Communications of the ACM 31(1), 1988.

    Instead of making old use weigh less, new use is made to weigh more, by the same factor for everyone: a
    host that is used from one time to another costs the difference of their weights. So the use of a user is
    ``paid + hosts * weight(now)``, where only a start or an end changes ``paid`` and ``hosts``.
    """

    def __init__(self, cluster: Cluster) -> None:
        import numpy as np

        self._cluster = cluster
        self._epoch = 0.0
        self._shares: dict[str | None, int] = {}
        """Where each user stands in the next two columns."""
        self._hosts: Floats = np.zeros(64)
        self._paid: Floats = np.zeros(64)
        self._share_of: Integers = np.zeros(0, np.int64)
        """The same by the queue's numbers of users."""
        for running in cluster.running:
            self._started(running)
        cluster.on_start(self._started)
        cluster.on_end(self._ended)
        cluster.on_resize(self._resized)

    def __call__(self, waiting: Waiting, now: float) -> Floats:
        """The use of each job's user up to now."""
        users, known = waiting.user, self._cluster.queue.users
        if len(known) > len(self._share_of):
            import numpy as np

            self._share_of = np.array([self._share(user) for user in known])
        shares, weight = self._share_of[users], self._weight(now)
        use: Floats = self._paid[shares] + self._hosts[shares] * weight
        return use

    def decayed(self, waiting: Waiting, now: float) -> Floats:
        """The same in host-seconds, those of a week ago counted half."""
        return self(waiting, now) / self._weight(now) * (HALF_LIFE / log(2))

    def _started(self, running: RunningJob) -> None:
        self._change(running, running.nb_hosts, self._weight(running.start))

    def _ended(self, ended: RunningJob) -> None:
        self._change(ended, -ended.nb_hosts, self._weight(self._cluster.now))

    def _resized(self, before: RunningJob, after: RunningJob) -> None:
        self._change(after, after.nb_hosts - before.nb_hosts, self._weight(self._cluster.now))

    def _change(self, running: RunningJob, hosts: int, weight: float) -> None:
        """The user of a job has so many hosts more from a time of this weight on."""
        share = self._share(running.job.user)
        self._hosts[share] += hosts
        self._paid[share] -= hosts * weight

    def _share(self, user: str | None) -> int:
        share = self._shares.setdefault(user, len(self._shares))
        if share == len(self._hosts):
            import numpy as np

            self._hosts, self._paid = (
                np.concatenate((column, np.zeros_like(column))) for column in (self._hosts, self._paid)
            )
        return share

    def _weight(self, time: float) -> float:
        """What a host has cost from the beginning until a time, up to a factor."""
        halvings = (time - self._epoch) / HALF_LIFE
        while halvings > 500:
            self._paid *= 0.5**500
            self._epoch += 500 * HALF_LIFE
            halvings -= 500
        return float(2.0**halvings)


_ORDERS: dict[str, Order] = {
    "submission": submission,
    "shortest": shortest,
    "longest": longest,
    "smallest-area": smallest_area,
    "largest-area": largest_area,
    "expansion-factor": expansion_factor,
    "wfp3": wfp3,
    "unicep": unicep,
    "f1": f1,
    "f2": f2,
    "f3": f3,
    "f4": f4,
    "f1-queue": f1_of_queue,
}
