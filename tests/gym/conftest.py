"""The log that agents see in tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.gym import workload_of
from batsched_py.workload.model import Workload


@pytest.fixture(scope="session")
def log(root: Path) -> bp.Log:
    """The first days of the sample."""
    return bp.read_log(root / "workloads" / "sample.swf").first(250)


@pytest.fixture(scope="session")
def workload(log: bp.Log) -> Workload:
    return workload_of(log)
