"""How a decision process that cannot continue makes a simulator stop, and print why.

The protocol has no event for this, and a Batsim waits for a reply without a limit. But every Batsim aborts
when it receives an event of an unknown type, and prints that type. So the reason is sent as such a type. A
Batsim 5 prints only the first word of it.
"""

from __future__ import annotations

from batsched_py.protocol.events import Message, Unknown
from batsched_py.protocol.shown import harmless

#: What the type of such an event begins with.
STOP_MARK = "THE_DECISION_PROCESS_FAILED:"

#: How many characters of a reason are sent.
LONGEST = 500


def stop(now: float, reason: str) -> Message:
    """The reply that stops a simulator.

    >>> stop(5.0, "the policy\\nfailed").events[0].type
    'THE_DECISION_PROCESS_FAILED: the policy failed'
    """
    return Message(now, [Unknown(f"{STOP_MARK} {harmless(reason)[:LONGEST]}", {}, time=now)])


def as_one_word(kind: str) -> str:
    """The type of such an event for a Batsim that prints only its first word.

    Spaces that do not break a line look alike; :func:`reason_to_stop` reads them as spaces.
    """
    return kind.replace(" ", "\N{NO-BREAK SPACE}") if kind.startswith(STOP_MARK) else kind


def reason_to_stop(reply: Message) -> str | None:
    """Why a simulator is to stop, if it is."""
    for event in reply.events:
        if isinstance(event, Unknown) and event.type.startswith(STOP_MARK):
            return harmless(event.type.removeprefix(STOP_MARK))
    return None
