"""A dictionary that nobody can change."""

from __future__ import annotations

from typing import Any, NoReturn


class ReadOnlyDict(dict[str, Any]):
    """A dictionary that is as it was made, so that many may hold it.

    >>> ReadOnlyDict(user="7")["user"]
    '7'
    """

    __slots__ = ()

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("this dictionary cannot be changed; make a dict of it, and change that")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> ReadOnlyDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadOnlyDict, (dict(self),)
