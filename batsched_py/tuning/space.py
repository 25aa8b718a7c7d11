"""What is searched: settings with their ranges, and the places of an entry in which their values stand.

A place is a name in braces, such as ``{weight}``, in any text of the candidate: an option of a scheduler, a
formula, a line of ``slurm.conf``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from batsched_py.errors import InputError

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
