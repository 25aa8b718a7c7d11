"""The profile of free hosts against a table with a row for every second."""

from __future__ import annotations

from math import inf

from hypothesis import given
from hypothesis import strategies as st

from batsched_py.ledger.profile import AvailabilityProfile
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.testing import Workbench

HOSTS, SECONDS = 10, 40


@given(
    plan=st.lists(st.tuples(st.integers(0, SECONDS), st.integers(1, 15), st.integers(1, 3)), max_size=3 * 5),
    size=st.integers(1, HOSTS),
    duration=st.integers(1, 20),
)
def test_it_says_what_the_table_says(plan: list[tuple[int, int, int]], size: int, duration: int) -> None:
    profile, table = AvailabilityProfile(0, HOSTS), [HOSTS] * (SECONDS * 3)
    for start, length, count in plan:
        if min(table[start : start + length]) >= count:
            profile.take(start, start + length, count)
            for second in range(start, start + length):
                table[second] -= count
    assert [profile.free_at(second) for second in range(len(table))] == table
    earliest = next(s for s in range(len(table)) if min(table[s : s + duration]) >= size)
    assert profile.earliest(size, duration) == earliest


def test_what_is_taken_and_given_back_leaves_no_trace() -> None:
    profile = AvailabilityProfile(0, HOSTS)
    profile.take(5, 10, 3)
    profile.take(7, 20, 2)
    profile.give(7, 20, 2)
    profile.give(5, 10, 3)
    assert repr(profile) == repr(AvailabilityProfile(0, HOSTS))


def test_the_past_is_forgotten() -> None:
    profile = AvailabilityProfile(0, HOSTS)
    profile.take(5, 10, 3)
    profile.advance(7)
    assert profile.earliest(HOSTS, 1) == 10
    assert profile.earliest(HOSTS - 3, 1) == 7


def test_what_never_ends_leaves_no_room_after_it() -> None:
    profile = AvailabilityProfile(0, HOSTS)
    profile.take(0, inf, 4)
    assert profile.earliest(HOSTS - 4, inf) == 0
    assert profile.earliest(HOSTS - 3, 1) == inf


def test_a_policy_sees_when_hosts_become_free() -> None:
    bench = Workbench(4)
    for name, size, walltime in (("1", 1, 10.0), ("2", 2, 30.0)):
        bench.start(Job(f"w0!{name}", 0.0, size, walltime, "p"))
    profile = bench.cluster.profile()
    assert [profile.free_at(time) for time in (0, 10, 30)] == [1, 2, 4]


def test_hosts_that_were_taken_away_do_not_become_free() -> None:
    bench = Workbench(4)
    bench.start(Job("w0!1", 0.0, 2, 10.0, "p"))
    bench.ledger.take_away(HostSet.parse("1-2"))
    assert [bench.cluster.profile().free_at(time) for time in (0, 10)] == [1, 2]


def test_a_job_that_should_have_ended_holds_its_hosts_for_a_moment_more() -> None:
    bench = Workbench(1)
    bench.start(Job("w0!1", 0.0, 1, 10.0, "p"))
    bench.now = 12.0
    assert 12.0 < bench.cluster.profile().earliest(1, 5.0) < 12.1


def test_a_reservation_moves_to_where_its_own_hosts_help() -> None:
    profile = AvailabilityProfile(0, HOSTS)
    profile.take(0, 5, HOSTS)
    profile.take(5, 8, 4)
    profile.take(8, 18, 7)
    profile.take(18, inf, HOSTS)
    assert profile.earlier(6, 10, reserved=8, before=inf) == 5
    assert profile.earlier(7, 10, reserved=8, before=inf) == 8


def test_a_reservation_moves_only_to_where_it_is_looked_for() -> None:
    profile = AvailabilityProfile(0, HOSTS)
    profile.take(0, 5, HOSTS)
    assert profile.earlier(1, 10, reserved=20, before=6) == 5
    assert profile.earlier(1, 10, reserved=20, before=5) == 20
