"""Every test of the ledger is one of both ledgers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from batsched_py import core


@pytest.fixture(params=["pure", "compiled"], scope="module", autouse=True)
def used_core(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each core in turn, where it is built."""
    before = core.compiled
    if request.param == "compiled" and not before:
        pytest.skip("the compiled core is not in use")
    core.compiled = request.param == "compiled"
    yield
    core.compiled = before
