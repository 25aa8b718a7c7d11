"""Jobs that send messages to the decision process and wait for its answers."""

from __future__ import annotations

from typing import Any

import pytest

from batsched_py.engines.python import Batsim
from batsched_py.errors import Deadlock, InputError
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import JobState
from batsched_py.simulator.setup import Setup
from tests.drive import Drive, execute, platform, workload

PROFILES: dict[str, dict[str, Any]] = {
    "short": {"type": "delay", "delay": 1},
    "long": {"type": "delay", "delay": 100},
    "none": {"type": "delay", "delay": 10},
    "fails": {"type": "delay", "delay": 1, "ret": 3},
    "ask": {"type": "send", "msg": {"need": 2}, "sleeptime": 4},
    "hear": {"type": "recv", "regex": "go.*", "success": "short", "failure": "long", "polltime": 0.5},
    "try": {"type": "recv", "success": "short", "failure": "long", "timeout": "none"},
    "listen": {"type": "recv", "ret": 7},
    "talk": {"type": "composed", "seq": ["ask", "hear", "short"]},
}


def running(profile: str, walltime: float = -1) -> Drive:
    """A job of this profile that runs since 0."""
    jobs = workload({"id": "a", "profile": profile, "walltime": walltime}, profiles=PROFILES)
    drive = Drive(Batsim(Setup(platform(1), [jobs])))
    drive.reply()
    drive.reply(execute("a", "0"), ev.CallMeLater(2.25))
    return drive


def end(drive: Drive) -> ev.JobCompleted:
    """How the job ends if nothing more is decided."""
    drive.finish()
    (completed,) = drive.all(ev.JobCompleted)
    return completed


def test_a_message_is_told_when_it_is_sent() -> None:
    drive = running("ask")
    assert end(drive).time == 4.0
    (said,) = drive.all(ev.JobSaid)
    assert (said.time, said.job_id, said.message) == (0.0, "w0!a", {"need": 2})


def test_a_message_is_found_when_the_job_looks_next() -> None:
    drive = running("hear")
    drive.until(ev.RequestedCall)
    drive.reply(ev.TellJob("w0!a", "go on"))
    assert end(drive).time == 2.5 + 1


def test_a_message_that_does_not_match_leads_elsewhere() -> None:
    drive = running("hear")
    drive.until(ev.RequestedCall)
    drive.reply(ev.TellJob("w0!a", "stop"))
    assert end(drive).time == 2.5 + 100


def test_a_pattern_must_match_the_whole_message() -> None:
    drive = running("hear")
    drive.until(ev.RequestedCall)
    drive.reply(ev.TellJob("w0!a", "let us go"))
    assert end(drive).time == 2.5 + 100


def test_a_message_that_came_before_is_found_at_once() -> None:
    jobs = workload({"id": "a", "profile": "hear"}, profiles=PROFILES)
    drive = Drive(Batsim(Setup(platform(1), [jobs])))
    drive.reply()
    drive.reply(ev.TellJob("w0!a", "go"), execute("a", "0"))
    assert end(drive).time == 1.0


def test_a_job_with_a_timeout_does_not_wait() -> None:
    assert end(running("try")).time == 10.0


def test_the_return_code_of_waiting_counts_after_what_follows() -> None:
    drive = running("listen")
    drive.until(ev.RequestedCall)
    drive.reply(ev.TellJob("w0!a", "anything"))
    completed = end(drive)
    assert (completed.state, completed.return_code) == (JobState.FAILED, 7)


def test_waiting_ends_with_the_walltime() -> None:
    completed = end(running("hear", walltime=20))
    assert (completed.time, completed.state) == (20.0, JobState.WALLTIME_REACHED)


def test_a_message_that_comes_just_before_the_walltime_is_not_found() -> None:
    drive = running("hear", walltime=2.5)
    drive.until(ev.RequestedCall)
    drive.reply(ev.TellJob("w0!a", "go"))
    assert end(drive).state == JobState.WALLTIME_REACHED


def test_waiting_for_ever_is_a_deadlock() -> None:
    drive = running("hear")
    with pytest.raises(Deadlock, match="job w0!a waits for a message that it was never sent"):
        drive.finish()


def test_a_job_that_waits_can_be_killed() -> None:
    drive = running("talk")
    drive.until(ev.RequestedCall, ev.CallMeLater(6.0))
    drive.until(ev.RequestedCall)
    drive.reply(ev.KillJobs(["w0!a"]))
    completed = end(drive)
    assert (completed.time, completed.state, completed.return_code) == (6.0, JobState.KILLED, -1)
    progress = drive.all(ev.JobsKilled)[0].progress["w0!a"]
    assert (progress.profile, progress.task_index) == ("talk", 1)
    assert progress.task is not None and progress.task.profile == "hear"


def test_a_conversation_can_be_part_of_a_composed_profile() -> None:
    drive = running("talk")
    drive.until(ev.RequestedCall)
    drive.reply(ev.TellJob("w0!a", "go"))
    assert end(drive).time == 4 + 1 + 1


def test_the_return_code_of_a_composed_profile_counts_at_its_end() -> None:
    profiles = {"c": {"type": "composed", "seq": ["s"], "ret": 5}, "s": {"type": "delay", "delay": 1}}
    profiles["outer"] = {"type": "composed", "seq": ["c", "s"]}
    jobs = workload({"id": "a", "profile": "outer"}, profiles=profiles)
    drive = Drive(Batsim(Setup(platform(1), [jobs])))
    drive.reply()
    drive.reply(execute("a", "0"))
    completed = end(drive)
    assert (completed.time, completed.state, completed.return_code) == (1.0, JobState.FAILED, 5)


def test_what_may_follow_a_message_must_exist() -> None:
    with pytest.raises(InputError, match="profile 'r' uses 'nothing', which does not exist"):
        Batsim(Setup(platform(), [workload(profiles={"r": {"type": "recv", "success": "nothing"}})]))


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ({"type": "send", "msg": "text"}, "needs an object as `msg`"),
        ({"type": "send", "msg": {}, "sleeptime": 0}, "needs a `sleeptime` above 0"),
        ({"type": "recv", "polltime": 0}, "needs a `polltime` above 0"),
        ({"type": "recv", "regex": "("}, "has a `regex` that cannot be read"),
        ({"type": "recv", "success": 1}, "needs a text as `success`"),
    ],
)
def test_a_profile_of_messages_that_cannot_be_understood_is_refused(
    profile: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Batsim(Setup(platform(), [workload(profiles={"p": profile})]))
