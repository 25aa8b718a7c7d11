"""Users who keep their hours, and let work flow from one session into another.

N. Zakay and D. Feitelson, "Preserving User Behavior Characteristics in Trace-Based Simulation of Parallel Job
Scheduling", MASCOTS 2014.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.protocol.jobs import TICK
from batsched_py.users.batches import InBatches, Presence, Record
from batsched_py.workload.model import Workload


@dataclass
class Fluid(InBatches):
    """Recorded sessions are the user's hours: work flows into the one that is open, or waits for the next.

    A session is open from its first to its last recorded submission; with `session_end=finish` until all its
    jobs had finished, as users may also be there while they wait. Think times are kept inside sessions;
    between sessions there is none, as the user was away. So the first batch of a session goes as soon as
    those it waits for are over, if the user is there then: early, into a session that is still open, or
    late. A batch whose time comes between two sessions waits for the second. After the last session the user
    is always there, so that all is submitted.
    """

    name = "fluid"
    keeps_breaks = False

    session_end: Annotated[
        Literal["submission", "finish"],
        Meta(description="When a recorded session was over: at its last submission, or its last finish."),
    ] = "submission"

    def presences(self, workload: Workload) -> Callable[[Record], Presence]:
        """During the recorded sessions."""
        return _sessions_to_submission if self.session_end == "submission" else _sessions_to_finish


def _sessions_to_submission(record: Record) -> Presence:
    """Sessions until the last submission."""
    return _windows(record, [session.jobs[-1].submission_time for session in record.sessions])


def _sessions_to_finish(record: Record) -> Presence:
    """Sessions until the last finish, which may be after others have begun."""
    return _windows(record, list(accumulate((session.finish for session in record.sessions), max)))


def _windows(record: Record, ends: list[float]) -> Presence:
    """The sessions as windows. What opened a session of its own goes into another only before its end."""
    starts = [session.start for session in record.sessions]

    def presence(time: float, opened: int | None) -> float:
        if opened is None:
            window = bisect_left(ends, time - TICK)
        elif abs(time - starts[opened]) <= TICK:
            return time
        else:
            window = bisect_right(ends, time)
        return time if window == len(ends) else max(time, starts[window])

    return presence
