"""Whatever loops is interrupted when its time is over, in whichever thread it does."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread

import pytest

from batsched_py.campaign import results as module
from batsched_py.campaign.results import OutOfTime, alarm
from tests.processes import PATIENCE


def loop() -> None:
    while True:
        pass


def stubborn() -> None:
    """Takes no notice of the first time."""
    try:
        loop()
    except BaseException:
        loop()


def in_the_main_thread(work: Callable[[], object]) -> None:
    work()


def in_another_thread(work: Callable[[], object]) -> None:
    thread = Thread(target=work, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


THREADS = [in_the_main_thread, in_another_thread]


@pytest.mark.parametrize("somewhere", THREADS)
@pytest.mark.parametrize("work", [loop, stubborn])
def test_what_never_comes_back_is_interrupted(
    somewhere: Callable[[Callable[[], object]], None],
    work: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.05)
    ended = []

    def limited() -> None:
        try:
            with alarm(0.05):
                work()
        except OutOfTime:
            ended.append("interrupted")

    somewhere(limited)
    assert ended == ["interrupted"]


@pytest.mark.parametrize("somewhere", THREADS)
@pytest.mark.parametrize("seconds", [None, 0.2])
def test_what_comes_back_in_time_is_left_alone(
    somewhere: Callable[[Callable[[], object]], None], seconds: float | None
) -> None:
    ended = []

    def limited() -> None:
        with alarm(seconds):
            pass
        time.sleep(0.3)
        ended.append("by itself")

    somewhere(limited)
    assert ended == ["by itself"]


PROFILED = """
import sys
from threading import Thread
from batsched_py.campaign.results import alarm

def limited():
    with alarm(60):
        pass

thread = Thread(target=limited)
thread.start()
thread.join()
sys.setprofile(lambda *arguments: None)
limited()
print("done")
"""


def test_an_alarm_in_a_thread_leaves_nothing_behind() -> None:
    """CPython 3.11 comes to no end when a profiled function begins while it looks for something to raise."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == "done\n", done.stderr
