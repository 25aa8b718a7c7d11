"""A plugin of pytest that tells which tests reach which of the probes, and runs tests in a given order.

A probe calls ``reached`` if that is among the built-in names, as it is in the process of the tests and in
those that are forked from it.
"""

from __future__ import annotations

import builtins
import json
import os
import time
from collections.abc import Generator
from pathlib import Path

import msgspec
import pytest

#: The file into which the tests write what they reach, and the one with the order in which they are to run.
WRITTEN, ORDER = "MUTANTS_WRITTEN", "MUTANTS_ORDER"


class Test(msgspec.Struct):
    """One test that has passed."""

    name: str
    seconds: float
    reached: set[int]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run those that are asked for, in their order."""
    if path := os.environ.get(ORDER):
        order = {name: place for place, name in enumerate(json.loads(Path(path).read_bytes()))}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in order])
        items[:] = sorted(
            (item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid]
        )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Write which faults a test has reached."""
    reached: set[int] = set()
    builtins.__dict__["reached"] = reached.add
    began = time.monotonic()
    try:
        return (yield)
    finally:
        if path := os.environ.get(WRITTEN):
            with Path(path).open("ab") as file:
                seconds = time.monotonic() - began
                file.write(msgspec.json.encode(Test(item.nodeid, seconds, reached)) + b"\n")
