"""Host sets against procset, an independent implementation of the same strings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from procset import ProcSet

from batsched_py.protocol.hosts import HostSet

HOSTS = st.sets(st.integers(0, 200) | st.integers(0, 5000), max_size=60)


@given(HOSTS)
def test_strings_are_those_of_procset(hosts: set[int]) -> None:
    assert str(HostSet.of(hosts)) == str(ProcSet(*hosts))
    assert HostSet.parse(str(ProcSet(*hosts))) == HostSet.of(hosts)


@given(HOSTS, HOSTS)
def test_operations_are_those_of_procset(left: set[int], right: set[int]) -> None:
    ours, theirs = (HostSet.of(left), HostSet.of(right)), (ProcSet(*left), ProcSet(*right))
    assert str(ours[0] | ours[1]) == str(theirs[0] | theirs[1])
    assert str(ours[0] & ours[1]) == str(theirs[0] & theirs[1])
    assert str(ours[0] - ours[1]) == str(theirs[0] - theirs[1])
    assert (ours[0] <= ours[1]) == theirs[0].issubset(theirs[1])
    assert (ours[0] == ours[1]) == (theirs[0] == theirs[1])
    assert (ours[0] != ours[1]) == (theirs[0] != theirs[1])


@given(HOSTS, st.integers(0, 5000))
def test_it_is_a_set_in_order(hosts: set[int], host: int) -> None:
    ours = HostSet.of(hosts)
    assert list(ours) == sorted(hosts)
    assert len(ours) == len(hosts)
    assert bool(ours) == bool(hosts)
    assert (host in ours) == (host in hosts)


@given(HOSTS, st.integers(0, 70))
def test_the_lowest_are_the_first_in_order(hosts: set[int], count: int) -> None:
    assert list(HostSet.of(hosts).lowest(count)) == sorted(hosts)[:count]


@given(HOSTS)
def test_runs_are_the_intervals_of_procset(hosts: set[int]) -> None:
    assert list(HostSet.of(hosts).runs()) == [
        (interval.inf, interval.sup) for interval in ProcSet(*hosts).intervals()
    ]


@given(HOSTS)
def test_equal_sets_are_one_key(hosts: set[int]) -> None:
    assert hash(HostSet.of(hosts)) == hash(HostSet.parse(str(HostSet.of(hosts))))


def test_the_first_hosts() -> None:
    assert str(HostSet.range(4)) == "0-3"
    assert str(HostSet.range(0)) == str(HostSet()) == ""


def test_pieces_may_come_in_any_order_and_overlap() -> None:
    assert str(HostSet.parse(" 7  3-5 0-1 4-6 1")) == "0-1 3-7"


@pytest.mark.parametrize("text", ["a", "-1", "1-", "1--2", "1-2-3", "0,1", "1.5", "٣", "+1", "0x1"])
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a host or an interval of hosts"):
        HostSet.parse(text)


def test_an_interval_must_go_forward() -> None:
    with pytest.raises(ValueError, match="interval '5-3' ends before it begins"):
        HostSet.parse("0 5-3")


def test_a_host_number_cannot_fill_the_memory() -> None:
    with pytest.raises(ValueError, match="names a host beyond"):
        HostSet.parse("0-99999999999999")
