"""The stepper: what commands show, and where it stops."""

from __future__ import annotations

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.errors import InputError
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.testing import JobSpec, workload_of
from batsched_py.watch.scenes import watch
from batsched_py.watch.stepper import Stepper
from tests.scheduling import policy

JOBS = [
    JobSpec("a", 0, 3, 10, 10),
    JobSpec("b", 1, 4, 5, 5),
    JobSpec("c", 2, 1, 8, 8),
    JobSpec("d", 3600, 1, 50, 60),
]


def said(*commands: str, first: str = "", name: str = "easy") -> list[str]:
    """What a stepper says to some commands, after which it goes on to the end."""
    lines: list[str] = []
    typed = iter([*commands, "continue"])
    batsim = Batsim(Setup(Platform.homogeneous(4), [workload_of(JOBS)]))
    watch(Stepper(lambda: next(typed), lines.append, first), batsim, DecisionProcess(policy(name)))
    return lines


def stops(*commands: str, first: str = "") -> list[str]:
    return [line for line in said(*commands, first=first) if line.startswith("at ")]


def test_a_stop_tells_what_happened_what_was_decided_and_why_that_was_all() -> None:
    assert said(first="until 1") == [
        "at 1 (0 d 00:00:01)",
        "  happened   w0!b submitted (4 hosts, 5 s)",
        "  decided    nothing",
        "  because    w0!b needs 4 hosts, 3 more than are free; expected by 10; it is first in the queue",
        "             the policy on w0!b: heads the queue, 0 hosts are extra when it starts, to start by 10",
        "  now        1 waiting, 1 running, 1 of 4 hosts free",
    ]


def test_a_job_that_fits_and_was_left_is_told() -> None:
    lines = said(first="until 2", name="fcfs")
    assert any("w0!c (1 host, 8 s) fits, and was not chosen" in line for line in lines)


@pytest.mark.parametrize(
    ("command", "time"),
    [
        ("", 1),
        ("n", 1),
        ("until 5", 10),
        ("until 1h", 3600),
        ("job c", 2),
        ("job w0!d", 3600),
        ("when ended == 2", 10),
        ("when queue and free", 1),
        ("when now > 100 and not queue", 3600),
    ],
)
def test_it_goes_on_until_it_is_told_to_stop(command: str, time: int) -> None:
    assert stops("", command)[2].startswith(f"at {time} ")


def test_it_shows_queue_running_jobs_and_hosts() -> None:
    lines = said("queue", "running", "hosts", "why b", "why a", "why z", first="job b")
    shown = "\n".join(lines)
    assert "   1  w0!b" in shown
    assert "w0!a                3 hosts  on 0-2  since 1 s, at most 9 s more" in shown
    assert "free           1  3" in shown
    assert "busy           3  0-2" in shown
    assert "w0!b needs 4 hosts, 3 more than are free; expected by 10; it is number 1 in the queue" in shown
    assert "w0!a runs since 0 on 0-2" in shown
    assert "job z neither waits nor runs now" in shown


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("until noon", "'noon' is no time"),
        ("when", "say more: when CONDITION"),
        ("when queue >", "is no condition"),
        ("when __import__('os')", "there is no '__import__'"),
        ("when now.real", "there is no 'real'"),
        ("jump", "there is no command 'jump'"),
    ],
)
def test_a_mistake_is_told_and_asked_again(command: str, words: str) -> None:
    assert any(words in line for line in said(command))


def test_a_mistake_on_the_command_line_is_an_error() -> None:
    with pytest.raises(InputError, match="begin with until TIME, job JOB or when CONDITION"):
        said(first="queue")


def test_who_quits_stops_the_simulation() -> None:
    with pytest.raises(KeyboardInterrupt):
        said("quit")
