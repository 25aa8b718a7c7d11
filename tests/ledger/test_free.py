"""The store of free hosts against a plain set."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.ledger.free import FreeHosts
from batsched_py.protocol.hosts import HostSet


@given(hosts=st.integers(1, 60), seed=st.integers(0, 10**6))
def test_it_is_a_set_that_hosts_are_taken_from_and_given_back_to(hosts: int, seed: int) -> None:
    random = Random(seed)
    free, plain = FreeHosts(HostSet.range(hosts)), set(range(hosts))
    held: list[HostSet] = []
    for _ in range(40):
        count = random.randint(1, hosts)
        if count > len(plain):
            given_back = held.pop(random.randrange(len(held)))
            free.give(given_back)
            plain |= set(given_back)
        elif random.random() < 0.5:
            taken = free.take_lowest(count)
            assert list(taken) == sorted(plain)[:count]
            held.append(taken)
            plain -= set(taken)
        else:
            chosen = HostSet.of(random.sample(sorted(plain), count))
            free.take(chosen)
            held.append(chosen)
            plain -= set(chosen)
        assert list(free.hosts()) == sorted(plain)
        assert free.hosts() == HostSet.of(plain), "intervals must not touch"
        assert free.count == len(plain)


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40), min_size=1))
def test_what_is_free_of_some_hosts_is_known(free: set[int], asked: set[int]) -> None:
    store = FreeHosts(HostSet.of(free))
    assert set(store.overlap(HostSet.of(asked))) == free & asked
    assert (HostSet.of(asked) in store) == (asked <= free)


@pytest.mark.parametrize("hosts", [100, 10_000_000])
def test_the_number_of_hosts_does_not_matter(hosts: int) -> None:
    """Ten million hosts are served in the same steps as a hundred: nothing is kept host by host."""
    free = FreeHosts(HostSet.range(hosts))
    first, second = free.take_lowest(hosts // 2), free.take_lowest(hosts // 4)
    free.give(first)
    assert free.take_lowest(hosts // 2) == first
    assert second.runs() == ((hosts // 2, hosts // 2 + hosts // 4 - 1),)
