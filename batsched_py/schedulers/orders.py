"""Orders of waiting jobs: each gives every job a score, and the lowest score goes first.

They work on whole columns (see :class:`~batsched_py.ledger.queue.Waiting`), so that ten thousand waiting
jobs are compared at once. Equal scores keep submission order. An order that has no name here is a formula
(see :mod:`~batsched_py.schedulers.formulas`).
"""

import re
from collections.abc import Callable
from typing import Literal, TypeVar, get_args

from batsched_py.errors import InputError, did_you_mean
from batsched_py.ledger.queue import Floats, Waiting
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
    return Formula(text, cluster.count_use(HALF_LIFE) if needs_usage else None)


def check_order(text: str) -> set[str]:
    """Refuse what is neither the name of an order nor a formula; the quantities that a formula names."""
    names = get_args(OrderName)
    if text in names:
        return set()
    try:
        return Formula(text, lambda waiting, now: waiting.submission).names
    except InputError:
        if re.fullmatch("[a-z]+[0-9]*(-[a-z]+)*", text) is None:
            raise
    near = did_you_mean(text, names)
    raise InputError(f"there is no order {text!r}{near}; choose among {', '.join(names)}, or write a formula")


def fixed(order: _Order) -> _Order:
    """Say of an order that the score of a waiting job changes only with its estimate: it is computed once."""
    order.__dict__["fixed"] = True
    return order


#: The earliest submission first.
submission = Formula("submit")

#: The shortest estimate first.
shortest = Formula("walltime")

#: The longest estimate first.
longest = Formula("-walltime")

#: The fewest host-seconds first.
smallest_area = Formula("size * walltime")

#: The most host-seconds first.
largest_area = Formula("-(size * walltime)")

#: The job that waiting has stretched most first, by the factor (wait + estimate) / estimate.
expansion_factor = Formula("-(1 + wait / walltime)")


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
    """

    in_library = (("use", 0.0),)

    def __init__(self, cluster: Cluster) -> None:
        self.usage = cluster.count_use(HALF_LIFE)

    def __call__(self, waiting: Waiting, now: float) -> Floats:
        """The use of each job's user up to now."""
        return self.usage.weighted(waiting, now)


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
