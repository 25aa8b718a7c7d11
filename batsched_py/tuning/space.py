"""What is searched: settings with their ranges, their places in an entry, and what is to become better.

A place is a name in braces, such as ``{weight}``, in any text of the candidate: an option of a scheduler, a
formula, a line of ``slurm.conf``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Literal

from msgspec import Struct

from batsched_py.analysis.metrics import METRICS
from batsched_py.analysis.outcome import Outcome, groups_of
from batsched_py.analysis.runs.columns import column_of
from batsched_py.errors import InputError

#: The groups of jobs that are known of every simulation.
GROUPINGS: tuple[Literal["class", "user"], ...] = ("class", "user")


class Objective(Struct, frozen=True):
    """A metric, and the group of jobs it is of."""

    text: str
    """As the plan writes it."""
    metric: str
    unit: str
    sign: float
    """1 if less is better, otherwise -1."""
    positive: bool
    """Whether its values are above 0, so that ratios tell more than differences."""
    grouping: str = ""
    group: str = ""

    @classmethod
    def parse(cls, text: str) -> Objective:
        """What a plan says: ``METRIC``, or ``METRIC of class=NAME`` or ``user=NAME``.

        >>> Objective.parse("mean_waiting_time of class=short, wide").group
        'short, wide'
        """
        metric, _, which = (word.strip() for word in text.partition(" of "))
        grouping, _, group = which.partition("=")
        if metric not in {each.name for each in METRICS}:
            raise InputError(f"there is no metric {metric!r}; `batsched-py metrics --explain` lists them")
        if which and (grouping not in GROUPINGS or not group):
            raise InputError(f"{which!r} is no group of jobs; write class=NAME or user=NAME")
        column = column_of(metric, {})
        if column.better == "neither":
            raise InputError(f"neither more nor less of {metric} is better")
        sign = -1.0 if column.better == "higher" else 1.0
        return cls(text, metric, column.unit, sign, column.possible.least >= 0, grouping, group)

    def value(self, outcome: Outcome) -> float:
        """What it comes to."""
        found: Outcome | None = outcome
        if self.grouping == "class":
            found = groups_of(outcome, "class").get(self.group)
        elif self.grouping == "user":
            found = None if outcome.recorded is None else groups_of(outcome, "user").get(self.group)
        metric = next(each for each in METRICS if each.name == self.metric)
        if found is None:
            return nan
        if metric.needs is not None and getattr(found, metric.needs) is None:
            raise InputError(f"{self.metric} is not known of such a simulation")
        return float(metric.compute(found))


#: The value that each setting has in a trial.
Settings = dict[str, float | int | str]

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")

#: So many digits of a number stand in settings; more of them say nothing.
DIGITS = 4


class Dimension(
    Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename={"begin": "from", "end": "to"}
):
    """The values of a setting: numbers of a range, whole ones if both ends are, or some that are named."""

    begin: int | float | None = None
    end: int | float | None = None
    log: bool = False
    """Whether small numbers are tried as often as large ones."""
    choices: list[str | int | float | bool] | None = None

    def check(self) -> None:
        """Raise an error if there is nothing to search."""
        if self.choices is not None:
            if self.begin is not None or self.end is not None or self.log or len(self.choices) < 2:
                raise InputError("needs two `choices` or more, and then nothing else")
        elif self.begin is None or self.end is None or self.begin >= self.end:
            raise InputError("needs `from` and a larger `to`, or `choices`")
        elif self.log and self.begin <= 0:
            raise InputError("with `log`, `from` must be above 0")

    @property
    def is_whole(self) -> bool:
        """Whether its numbers are whole."""
        return isinstance(self.begin, int) and isinstance(self.end, int)

    @property
    def first(self) -> float | int | str:
        """One of its values, to check what they are put into."""
        return str_of(self.choices[0]) if self.choices else self.begin or 0

    def distribution(self) -> Any:
        """The same for Optuna."""
        from optuna import distributions

        if self.choices is not None:
            return distributions.CategoricalDistribution([str_of(each) for each in self.choices])
        assert self.begin is not None and self.end is not None
        if self.is_whole:
            return distributions.IntDistribution(int(self.begin), int(self.end), log=self.log)
        return distributions.FloatDistribution(float(self.begin), float(self.end), log=self.log)


def str_of(value: object) -> str:
    """A value as options write it.

    >>> str_of(0.123456), str_of(True), str_of(600)
    ('0.1235', 'true', '600')
    """
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)


def filled(content: Any, settings: Mapping[str, float | int | str]) -> Any:
    """A part of a plan with values in the places of all texts in it.

    >>> filled({"order": "-size**{a} * wait"}, {"a": 1.5})
    {'order': '-size**1.5 * wait'}
    """
    match content:
        case str():
            return _PLACE.sub(lambda place: _value(place[1], settings), content)
        case Mapping():
            return {key: filled(value, settings) for key, value in content.items()}
        case list():
            return [filled(value, settings) for value in content]
    return content


def filled_with_values(content: Any, settings: Mapping[str, float | int | str]) -> Any:
    """The same, and a text that is a place and nothing else becomes the number that is its value.

    >>> filled_with_values({"hosts": "{h}", "file": "{f}.xml"}, {"h": 64, "f": "small"})
    {'hosts': 64, 'file': 'small.xml'}
    """
    match content:
        case str() if _PLACE.fullmatch(content):
            text = filled(content, settings)
            return next((kind(text) for kind in (int, float) if _is(kind, text)), text)
        case Mapping():
            return {key: filled_with_values(value, settings) for key, value in content.items()}
    return filled(content, settings)


def _is(kind: type[int] | type[float], text: str) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _value(name: str, settings: Mapping[str, float | int | str]) -> str:
    if name not in settings:
        raise InputError(f"there is no setting {{{name}}} in [search], which has {', '.join(settings)}")
    return str_of(settings[name])


def places_in(content: Any) -> set[str]:
    """The names that stand in braces in any text of a part of a plan."""
    match content:
        case str():
            return set(_PLACE.findall(content))
        case Mapping():
            return places_in(list(content.values()))
        case list():
            return set().union(*map(places_in, content))
    return set()


def check_places(search: Mapping[str, Dimension], contents: Sequence[Any]) -> None:
    """Raise an error if a setting stands nowhere: to search it would change nothing."""
    for name in search:
        if name not in places_in(list(contents)):
            raise InputError(f"{{{name}}} stands nowhere in the candidate, so it would change nothing")
