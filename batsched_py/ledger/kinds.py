"""What a policy hands over is checked here, in the same words whichever engine runs the simulation."""

from __future__ import annotations

from math import inf, isnan
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

from batsched_py.protocol.hosts import MOST_HOSTS
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.shown import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Live:
    """Shows a simulation that goes on, so that there is no second one of it."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        refuse_copy(type(self).__name__)


def refuse_copy(kind: str) -> NoReturn:
    """Somebody copies or pickles what cannot be copied."""
    raise TypeError(f"a {kind} cannot be copied or pickled: it shows a simulation that goes on")


def expected(kind: str, value: object) -> TypeError:
    """Something of another kind was expected."""
    return TypeError(f"{kind} is expected, not {shown(value) if value is None else type(value).__name__}")


def check_job(value: object) -> None:
    """A job is handed over."""
    if not isinstance(value, Job):
        raise expected("a Job", value)


def check_name(value: object) -> None:
    """The name of a job is handed over."""
    if not isinstance(value, str):
        raise expected("the id of a job", value)


def check_function(value: object) -> None:
    """Something to be called is handed over."""
    if not callable(value):
        raise expected("a function", value)


def number(value: Any) -> float:
    """A time or a duration, whatever numbers the policy counts with."""
    seconds = float(value)
    if isnan(seconds):
        raise ValueError("a number is expected, not nan")
    return seconds


def positive(value: Any) -> float:
    """A duration that is longer than nothing, and that ends."""
    seconds = number(value)
    if not 0 < seconds < inf:
        raise ValueError(f"a duration above 0 is expected, not {seconds:g}")
    return seconds


def count(value: Any) -> int:
    """So many hosts or jobs."""
    whole = index(value)
    if not -MOST_HOSTS <= whole <= MOST_HOSTS:
        raise ValueError(f"{shown(whole)} is too large a number")
    return whole


def lowest(scores: Any, nb_jobs: int) -> int:
    """The place of the lowest score that an order gives so many jobs."""
    column = _checked_scores(scores, nb_jobs)
    place = int(column.argmin())
    _check_score(column[place])
    return place


def ranking(scores: Any, nb_jobs: int) -> NDArray[np.int64]:
    """The places of the scores that an order gives so many jobs, the lowest first; equal ones as they are."""
    column = _checked_scores(scores, nb_jobs)
    places: NDArray[np.int64] = column.argsort(kind="stable")
    if nb_jobs:
        _check_score(column[places[-1]])
    return places


def float_scores(scores: Any, nb_jobs: int) -> NDArray[np.float64]:
    """The scores that an order gives so many jobs, one after the other in memory."""
    import numpy as np

    column = np.ascontiguousarray(_checked_scores(scores, nb_jobs), dtype=np.float64)
    if nb_jobs:
        _check_score(column.max())
    return column


def _checked_scores(scores: Any, nb_jobs: int) -> NDArray[np.float64]:
    if getattr(scores, "shape", None) != (nb_jobs,):
        import numpy as np

        scores = np.asarray(scores)
    if scores.shape != (nb_jobs,) or scores.dtype.kind not in "biuf":
        found = f"{scores.dtype} of shape {scores.shape}"
        raise ValueError(f"an order gives one number for each of {nb_jobs} jobs, not {found}")
    column: NDArray[np.float64] = scores
    return column


def _check_score(extreme: float) -> None:
    """If any score is nan, numpy takes it for the lowest, and puts it last in an order."""
    if extreme != extreme:
        raise ValueError("an order gives each job a number, not nan")
