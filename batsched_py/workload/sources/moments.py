"""When jobs of a table were submitted, started and ended: numbers, dates of any resolution, dates as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.workload.sources.accounting import in_zone, nb_twice, unix_times
from batsched_py.workload.sources.mapping import Mapped, are_dates, numbers

if TYPE_CHECKING:
    import pandas as pd

#: What a column of dates is called among those of other kinds.
DATES: Final = "dates"

#: No moment is later, in seconds since 1970; later ones are in another unit.
LATEST: Final = 1e11

#: A log that begins so late counts its seconds from 1970: no log is 15 years long.
SURELY_UNIX: Final = 15 * 365 * 86400.0

_DAY: Final = 86400.0

#: Numbers of 32 bits have no seconds beyond this one.
_EXACT: Final = 2.0**24

#: No date has more characters; it takes minutes to find out what a million of them mean.
_LONGEST_DATE: Final = 100

#: Dates that begin with the day or with the month; the last number has the first digits of the year.
_NUMBERED_DATE: Final = r"^(\d{1,2})[/.-](\d{1,2})[/.-](\d{2}\d*)"

#: A time of day that belongs to no day.
_CLOCK: Final = r"^\d{1,2}:\d{2}"

#: Dates that say in which zone they are.
_ZONED_DATE: Final = r":\d\d(?:[.,]\d+)?\s*(?:Z|UTC|GMT|[+-]\d\d:?(?:\d\d)?)$"


class AmbiguousDates(InputError):
    """Dates whose day and month cannot be told apart, in the rows that were looked at."""


class Moments:
    """One column of moments, in seconds; those since 1970 are known as such."""

    def __init__(self, name: str, column: pd.Series, mapped: Mapped, zone: str, path: Path) -> None:
        self._name, self._column, self._mapped = name, column, mapped
        self._zone, self._path = zone, path
        self.order = ""
        """Whether dates that begin with numbers begin with the day, if it matters."""
        self.nb_twice = 0
        """How many are in the hour that comes twice when summer time ends."""
        self.is_dated = self._is_dated()
        self.seconds = self._dates() if self.is_dated else self._numbers()

    @property
    def are_since_1970(self) -> bool | None:
        """Whether they are Unix times; None if there are none at all."""
        known = self.seconds[np.isfinite(self.seconds) & (self.seconds != 0)]
        if not len(known):
            return None
        return self.is_dated or bool(np.median(known) >= SURELY_UNIX)

    def _is_dated(self) -> bool:
        import pandas as pd

        column = self._column
        if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
            return True
        if pd.api.types.is_numeric_dtype(column):
            return False
        return bool(np.isnan(numbers(column, self._mapped)).all())

    def _numbers(self) -> NDArray[np.float64]:
        found = numbers(self._column, self._mapped)
        dtype: Any = self._column.dtype
        if dtype.kind == "f" and dtype.itemsize < 8 and np.nanmax(np.abs(found), initial=0) > _EXACT:
            raise InputError(
                f"{self._path}: {self._name}: numbers of {8 * dtype.itemsize} bits cannot tell seconds; "
                "write them with 64 bits"
            )
        if not self._mapped.unit and are_dates(found):
            seconds = f"columns={self._name}:{self._column.name}/s"
            raise InputError(
                f"{self._path}: {self._name}: numbers like {np.nanmin(found):.0f} look like dates; "
                f"write them as YYYY-MM-DD, or say {seconds} if they are seconds"
            )
        return found

    def _dates(self) -> NDArray[np.float64]:
        import pandas as pd

        column = self._column
        if isinstance(column.dtype, pd.PeriodDtype):
            column = column.dt.to_timestamp()
        if pd.api.types.is_datetime64_any_dtype(column):
            moments = pd.DatetimeIndex(column)
            return unix_times(self._in_zone(moments) if moments.tz is None else moments)
        return self._written_dates(column.astype(object).where(~column.isna(), "").astype(str))

    def _written_dates(self, texts: pd.Series) -> NDArray[np.float64]:
        """Dates as text, each with a zone of its own or in that of the table."""
        import pandas as pd

        texts = texts.where(texts.str.len() <= _LONGEST_DATE, "").str.strip()
        if (clocks := texts[texts.str.contains(_CLOCK)]).any():
            raise InputError(
                f"{self._path}: {self._name}: times like {clocks.iloc[0]!r} belong to no day; "
                "write dates as YYYY-MM-DD HH:MM:SS, or numbers of seconds"
            )
        is_day_first = self._is_day_first(texts)
        found = np.full(len(texts), np.nan)
        zoned = texts.str.contains(_ZONED_DATE).to_numpy()
        for rows in filter(np.any, (zoned, ~zoned)):
            moments = pd.DatetimeIndex(
                pd.to_datetime(
                    texts[rows], errors="coerce", format="mixed", dayfirst=is_day_first, utc=rows is zoned
                )
            )
            found[rows] = unix_times(moments if rows is zoned else self._in_zone(moments))
        return found

    def _in_zone(self, moments: pd.DatetimeIndex) -> pd.DatetimeIndex:
        """Moments that do not tell their zone, in that of the table."""
        self.nb_twice += nb_twice(moments, self._zone)
        return in_zone(moments, self._zone)

    def _is_day_first(self, texts: pd.Series) -> bool:
        """Whether dates that begin with a number of one or two digits begin with the day."""
        parts = texts.str.extract(_NUMBERED_DATE)
        is_numbered = parts[0].notna()
        if not is_numbered.any():
            return False
        is_day, is_month = (parts[[0, 1]].astype(float) > 12).any()
        has_short_year = bool((parts[2].str.len() == 2).any())
        example = f"{self._path}: {self._name}: dates like {texts[is_numbered].iloc[0]!r} may be"
        if is_day == is_month:
            raise AmbiguousDates(f"{example} day/month or month/day; write them as YYYY-MM-DD")
        if is_day and has_short_year:
            raise InputError(f"{example} day/month/year or year/month/day; write them as YYYY-MM-DD")
        self.order = "day first" if is_day else "month first"
        return bool(is_day)


def check_origins(moments: Mapping[str, Moments], path: Path) -> None:
    """Refuse columns of which some count from 1970 and others from the beginning of the log."""
    since = {name: each.are_since_1970 for name, each in moments.items()}
    if {True, False} <= set(since.values()):
        unix, others = (next(name for name in since if since[name] is each) for each in (True, False))
        raise InputError(
            f"{path}: {unix} is a date or counts seconds since 1970, and {others} does not: "
            "moments of a log count from the same time; check their columns and units"
        )


def without_zeros(moments: Mapping[str, Moments]) -> dict[str, NDArray[np.float64]]:
    """The seconds of each column; in a log of our time, no job starts or ends on the first day of 1970."""
    submit = moments["submit"].seconds
    is_of_our_time = bool(np.nanmedian(submit) >= SURELY_UNIX) if np.isfinite(submit).any() else False
    return {"submit": submit} | {
        name: np.where(each.seconds < _DAY, np.nan, each.seconds) if is_of_our_time else each.seconds
        for name, each in moments.items()
        if name != "submit"
    }
