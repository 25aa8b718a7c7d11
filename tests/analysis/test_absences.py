"""Hosts that could not be used, as events and changes of power states tell."""

from __future__ import annotations

from math import inf

import pytest

from batsched_py.analysis.conditions import outages, sleeps
from batsched_py.errors import InputError
from batsched_py.protocol.events import Event, HostsAvailable, HostsUnavailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.testing import JobSpec, schedule_of
from tests.scheduling import policy

HEADER = "time,machine_id,new_pstate"


def asleep(*lines: str, submissions: tuple[float, ...] = ()) -> list[tuple[str, str, float, float]]:
    jobs = [JobSpec(str(number), time, 1, 1, 1) for number, time in enumerate(submissions)]
    found = sleeps([HEADER, *lines], "changes.csv", schedule_of(policy("fcfs"), jobs, 8))
    return [(str(each.hosts), each.state, each.since, each.until) for each in found]


def test_hosts_come_back_in_other_groups_than_they_went() -> None:
    events: list[Event] = [
        HostsUnavailable(HostSet.parse("0-3"), time=10.0),
        HostsAvailable(HostSet.parse("1-2 5"), time=30.0),
        HostsUnavailable(HostSet.parse("5"), time=20.0),
    ]
    found = {(str(each.hosts), each.since, each.until) for each in outages(events)}
    assert found == {("1-2", 10.0, 30.0), ("5", 20.0, 30.0), ("0 3", 10.0, inf)}


def test_hosts_fall_asleep_sleep_and_wake_up() -> None:
    found = asleep("0,0-7,0", "60,1-2,-2", "70,1-2,2", "500,1,-1", "520,1,0")
    assert found == [
        ("1-2", "falling asleep", 60.0, 70.0),
        ("1", "asleep", 70.0, 500.0),
        ("1", "waking up", 500.0, 520.0),
        ("2", "asleep", 70.0, inf),
    ]


def test_hosts_that_begin_asleep_sleep_until_they_are_woken() -> None:
    found = asleep("0,0-1,0", "0,2-7,2", "100,2-3,-1", "120,2-3,0")
    assert found == [
        ("2-3", "asleep", 0.0, 100.0),
        ("2-3", "waking up", 100.0, 120.0),
        ("4-7", "asleep", 0.0, inf),
    ]


def test_a_change_of_speed_keeps_nobody_from_working() -> None:
    assert asleep("0,0-7,0", "60,1-2,-1", "60,1-2,1") == []


def test_rounded_times_are_those_of_the_schedule() -> None:
    found = asleep("0,0-7,0", "1.2e+06,1-2,-2", "1.20001e+06,1-2,2", submissions=(1_200_003.0, 1_300_000.0))
    assert found == [("1-2", "falling asleep", 1_200_003.0, 1_200_010.0), ("1-2", "asleep", 1_200_010.0, inf)]


@pytest.mark.parametrize("line", ["soon,1,0", "1,x,0", "1,1,off", "1", "nan,1,0", "1,1"])
def test_a_line_that_cannot_be_read_is_named(line: str) -> None:
    with pytest.raises(InputError, match=r"changes.csv:3: this is no change of a power state"):
        asleep("0,0-7,0", line)
