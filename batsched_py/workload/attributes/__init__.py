"""Attributes that jobs get from any column of a log, for policies and users that look at them.

A column becomes an attribute by its name. For anything else, subclass :class:`JobAttributes` in a file of
your own, named ``path/to/file.py:ClassName`` as schedulers are; ``examples/job_attributes.py`` is one. Other
distributions offer theirs in the entry-point group ``batsched_py.attributes``.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.protocol.shown import shown
from batsched_py.workload.model import CANCELLED_AFTER
from batsched_py.workload.swf.conventions import EXTRA
from batsched_py.workload.swf.log import COLUMNS, SwfLog


class JobAttributes(ABC):
    """Attributes of jobs, made from what a log says about them."""

    @abstractmethod
    def of(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """The attributes of a job, by name: numbers, texts, and what JSON makes of these.

        ``record`` has all columns of the log by their names, those that the format does not have too; -1
        means unknown. What this gives is in ``job.extra``.
        """


#: The known ones.
ATTRIBUTES = Registry[JobAttributes](
    "kind of attributes",
    JobAttributes,  # type: ignore[type-abstract]
    __name__,
    "batsched_py.attributes",
)


#: What ``extra`` says in any case.
_TAKEN = frozenset({*EXTRA, "request", CANCELLED_AFTER})

#: What makes attributes of a record.
Make = Callable[[Mapping[str, Any]], Mapping[str, Any]]


def attributes_of(log: SwfLog, wanted: Sequence[str]) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
    """The attributes that jobs have, each combination once, and for each job the place of its own.

    Each that is ``wanted`` is the name of a column, ``NAME=COLUMN``, or ``path/to/file.py:ClassName``.
    """
    columns = {name: getattr(log, name) for name in COLUMNS} | log.more
    makers = [_maker(each, columns, log.path) for each in wanted]
    places: dict[bytes, int] = {}
    codes = np.empty(len(log), np.int64)
    for row, values in enumerate(zip(*(column.tolist() for column in columns.values()), strict=True)):
        record = dict(zip(columns, values, strict=True))
        made: dict[str, Any] = {}
        for source, make in makers:
            with naming(source):
                made |= _checked(source, make(record))
        try:
            text = msgspec.json.encode(made)
        except (TypeError, ValueError) as error:
            raise InputError(f"{log.path}: job {log.job_number[row]}: attributes: {error}") from None
        codes[row] = places.setdefault(text, len(places))
    return codes, [msgspec.json.decode(text) for text in places]


def _maker(wanted: str, columns: Mapping[str, Any], path: str) -> tuple[str, Make]:
    """What makes the attributes that are wanted, and how to call it in messages."""
    if ".py:" in wanted or wanted in ATTRIBUTES.all():
        return f"attributes {wanted!r}", ATTRIBUTES.create(wanted, {}).of
    name, equals, column = wanted.partition("=")
    column = column if equals else name
    if column not in columns:
        raise InputError(
            f"{path}: there is no column {column!r} for an attribute; there are {', '.join(columns)}, "
            "or give path/to/file.py:ClassName"
        )

    def make(record: Mapping[str, Any]) -> Mapping[str, Any]:
        value = record[column]
        return {name: value} if value is not None and value == value and value not in ("", -1) else {}

    return f"attribute {wanted!r}", make


def _checked(source: str, made: Any) -> Mapping[str, Any]:
    if not isinstance(made, Mapping) or not all(isinstance(name, str) and name for name in made):
        raise InputError(f"{source}: gives {shown(made)}, and not attributes by name")
    for name in made:
        if name in _TAKEN:
            raise InputError(f"{source}: jobs have {name!r} already; give another name, as in NAME=COLUMN")
    return made
