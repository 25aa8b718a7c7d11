"""What a policy hands over is checked here, in the same words whichever engine runs the simulation."""

from __future__ import annotations

from math import isnan
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


def count(value: Any) -> int:
    """So many hosts or jobs."""
    whole = index(value)
    if not -MOST_HOSTS <= whole <= MOST_HOSTS:
        raise ValueError(f"{shown(whole)} is too large a number")
    return whole


def check_scores(scores: Any, nb_jobs: int) -> NDArray[np.float64]:
    """What an order says of some jobs: one number for each."""
    import numpy as np

    column: NDArray[np.float64] = np.asarray(scores)
    if column.shape != (nb_jobs,) or column.dtype.kind not in "biuf":
        found = f"{column.dtype} of shape {column.shape}"
        raise ValueError(f"an order gives one number for each of {nb_jobs} jobs, not {found}")
    if column.dtype.kind == "f" and np.isnan(column).any():
        raise ValueError("an order gives each job a number, not nan")
    return column
