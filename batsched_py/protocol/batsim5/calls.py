"""Calls at any time, from a Batsim 5 that is asked in whole milliseconds.

A call within a millisecond is asked for in two steps. First comes the call at the beginning of that
millisecond; the decision process asks again, since it is too early. What is left is less than a millisecond.
So the second request itself has the time of the call, and asks for a time that has passed by then: Batsim
reads it when its time has come, and calls at once. Until then it sends nothing.
"""

from __future__ import annotations

from batsched_py.protocol.batsim5.events import milliseconds
from batsched_py.protocol.events import CallMeAtOnce, CallMeLater, Event, Message


def said_exactly(message: Message) -> Message:
    """The same decisions; the first call that is due within this millisecond is at its exact time.

    Others that are due in it, which only a policy could ask for, come when it is over.
    """
    due = [event for event in message.events if isinstance(event, CallMeLater) and _is_due(event)]
    if not due:
        return message
    first = min(due, key=lambda call: call.at)
    events: list[Event] = []
    for event in message.events:
        if event is first:
            continue
        if isinstance(event, CallMeLater) and _is_due(event):
            event = CallMeLater((milliseconds(event.at) + 1) / 1000, time=event.time)
        events.append(event)
    now = max(message.now, first.at)
    return Message(now, [*events, CallMeAtOnce(time=now)])


def _is_due(call: CallMeLater) -> bool:
    """Whether the millisecond of a call has begun when it is asked for."""
    return milliseconds(call.at) <= milliseconds(call.time)
