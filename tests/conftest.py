"""What every test may use: the shared reference data, and reproducible hypothesis runs."""

from __future__ import annotations

import gc
import logging
import os
import shutil
import signal
import tempfile
from collections.abc import Generator, Iterator
from functools import partialmethod
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import settings

import batsched_py.engines.native  # noqa: F401  (the library is ready before a test takes it away)
from tests import forks

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"

#: Every change is tested with the same examples: a few, and more of them with the slow tests; each night,
#: with many others.
settings.register_profile("project", deadline=None, derandomize=True, max_examples=20)
settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=200)
settings.register_profile("nightly", deadline=None, derandomize=False, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "project"))

#: Before click 8.2, what is written to stderr is kept apart only where that is asked for.
if "mix_stderr" in signature(CliRunner).parameters:
    CliRunner.__init__ = partialmethod(CliRunner.__init__, mix_stderr=False)  # type: ignore

#: Where this is set, each process that a test starts would compile the whole package again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

#: Files are kept in memory where there is much of it: to replace a small one on a disk takes milliseconds.
IN_MEMORY, MUCH = Path("/dev/shm"), 8 << 30
if "TMPDIR" not in os.environ and os.access(IN_MEMORY, os.W_OK) and shutil.disk_usage(IN_MEMORY).free > MUCH:
    os.environ["TMPDIR"] = tempfile.tempdir = str(IN_MEMORY)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end; looking for garbage in it takes seconds."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    """No process is left behind."""
    forks.end()


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """Logs and recordings that are kept beside the checkout, not in it."""
    if not SHARED.is_dir():
        pytest.skip("needs the logs and recordings of ../shared, which is absent")
    return SHARED


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """What a command that runs inside a test changes of this process is undone."""
    loggers = [
        logging.getLogger(name) for name in (None, "batsched_py", "batsched_py.simulator.decision_side")
    ]
    levels = [logger.level for logger in loggers]
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
