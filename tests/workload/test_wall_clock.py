"""The wall clock where the machine stood."""

from __future__ import annotations

import numpy as np
import pytest

from batsched_py.workload.swf.log import DAY, HOUR, local_time, wall_clock
from tests.logs import log_of


def test_it_counts_from_the_monday_before_the_start() -> None:
    log = log_of({"UnixStartTime": "1704240000", "TimeZoneString": "UTC"}, submit=[0])  # Wednesday, 0:00
    assert wall_clock(log, np.array([0.0, 60])).tolist() == [2 * DAY, 2 * DAY + 60]


def test_summer_time_moves_it() -> None:
    header = {"UnixStartTime": "1711753200", "TimeZoneString": "Europe/Paris"}  # Saturday, 2024-03-30, 0:00
    clock = wall_clock(log_of(header, submit=[0]), np.array([0, DAY, DAY + 3 * HOUR]))
    assert (np.diff(clock) / HOUR).tolist() == [24, 4]


def test_a_difference_stands_in_for_a_zone() -> None:
    log = log_of({"UnixStartTime": "0", "TimeZone": "-3600"}, submit=[0])
    assert local_time(log, np.array([HOUR])).astype(str).tolist() == ["1970-01-01T00:00:00"]


@pytest.mark.parametrize("header", [{}, {"UnixStartTime": "long ago"}])
def test_a_log_of_unknown_start_begins_on_a_monday(header: dict[str, str]) -> None:
    assert wall_clock(log_of(header, submit=[0]), np.array([5.0])).tolist() == [5]
