"""Presets: published tables of jobs that are read as they are.

A preset says what a table calls the columns of a log, in which units and words, and in which time zone. It is
found by the columns that the table has, or named with ``-i preset=NAME``. One of your own is a subclass of
:class:`Preset` in a file of its own, named with ``-i preset=file.py:ClassName``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, ClassVar, Final

from batsched_py.plugins import Registry

if TYPE_CHECKING:
    import pandas as pd


class Preset:
    """How the columns of one kind of table are those of a log."""

    name: ClassVar[str]
    columns: ClassVar[str] = ""
    """As the option ``columns``: ``submit:submit_time,requested_time:time_limit/min``."""
    signature: ClassVar[tuple[str, ...]] = ()
    """A table that has all of these columns is of this kind."""
    zone: ClassVar[str] = "UTC"
    """Where dates without a time zone are from."""
    states: ClassVar[Mapping[str, int]] = {}
    """Words about the end of a job that are not known anyway: 1 completed, 0 failed, 5 cancelled."""

    def prepare(self, table: pd.DataFrame) -> pd.DataFrame:
        """Compute columns that a table does not have as such."""
        return table


#: The known presets.
PRESETS: Final = Registry[Preset]("preset", Preset, __name__, "batsched_py.presets")


def preset_for(names: Collection[str]) -> Preset | None:
    """The preset for a table with columns of these names; of several, the one that knows most of them."""
    fitting = [each for each in PRESETS.all().values() if each.signature and {*each.signature} <= {*names}]
    return max(fitting, key=lambda each: len(each.signature))() if fitting else None
