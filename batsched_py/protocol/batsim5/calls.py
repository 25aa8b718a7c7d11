"""Calls at any microsecond, from a Batsim 5 that is asked in whole milliseconds.

Such a call is asked for in two steps. First comes a call at the millisecond before; the decision process asks
again, since it is too early. What is left is about a millisecond. So the second request itself has the time
of the call, and asks for a time that has passed by then: Batsim reads it when its time has come, and calls at
once. Until then it sends nothing.
"""

from __future__ import annotations

from batsched_py.protocol.batsim5.events import milliseconds
from batsched_py.protocol.clock import to_tick
from batsched_py.protocol.events import CallMeAtOnce, CallMeLater, Event, Message

#: Batsim cannot wait for less than this, in seconds.
_LEAST_WAIT = 1e-5


def said_exactly(message: Message) -> Message:
    """The same decisions; the first call that cannot be asked for in milliseconds is at its exact time.

    Others of this kind, which only a policy could ask for, come in the next millisecond.
    """
    near = [event for event in message.events if isinstance(event, CallMeLater) and _is_near(event)]
    if not near:
        return message
    first = min(near, key=lambda call: call.at)
    events: list[Event] = []
    for event in message.events:
        if event is first:
            continue
        if isinstance(event, CallMeLater) and _is_near(event):
            event = CallMeLater((round(event.at * 1e6) // 1000 + 1) / 1000, time=event.time)
        events.append(event)
    now = to_tick(max(first.at, first.time + _LEAST_WAIT, message.now))
    return Message(now, [*events, CallMeAtOnce(time=now)])


def _is_near(call: CallMeLater) -> bool:
    """Whether the millisecond from which Batsim could wait for a call has passed."""
    return milliseconds(call.at) * 1000 <= round(call.time * 1e6)
