"""Names that are taken for good."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from batsched_py.ledger.registry import Names

#: Few letters, so that names often agree; among the digits are some that are none to a computer.
ALIKE = st.text("w!019²٣", max_size=6)


@given(st.lists(ALIKE), st.lists(ALIKE))
def test_it_is_a_set(taken: list[str], others: list[str]) -> None:
    names, known = Names(), set[str]()
    for name in taken:
        assert names.take(name) == (name not in known), name
        known.add(name)
    for name in taken + others:
        assert (name in names) == (name in known), name
