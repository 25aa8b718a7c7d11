"""The few kinds of errors a caller may want to catch.

Everything a user can do wrong ends in a subclass of :class:`BatschedError`, whose text is one line
that says what is wrong, where, and what to do. Anything else that is raised is a bug of ours.
"""

from collections.abc import Iterable


class BatschedError(Exception):
    """Base of all errors that speak to the user."""

    def _render_traceback_(self) -> list[str]:
        """What notebooks show instead of the calls in this package; the line names code of the user."""
        return [f"{type(self).__name__}: {self}"]


class InputError(BatschedError):
    """A file, option or name given by the user cannot be used."""


class NoSuchMetric(InputError, KeyError):
    """A metric was asked for that a result does not have."""

    __str__ = Exception.__str__


class ProtocolError(BatschedError):
    """The peer sent bytes that are not a message of the protocol."""


class RuleBroken(BatschedError):
    """A decision breaks a rule that Batsim enforces by aborting."""


class EventBroken(RuleBroken):
    """What happens from outside breaks a rule, not a decision."""


class PolicyError(BatschedError):
    """A scheduler or user behaviour failed: it raised, or it decided something impossible."""


class Deadlock(BatschedError):
    """Nothing can happen any more, yet jobs are waiting or registration is still open."""


class PeerFailed(BatschedError):
    """The other side of the conversation says that it cannot go on."""


class PeerVanished(BatschedError):
    """The other side of the conversation stopped answering."""


class RunsFailed(BatschedError):
    """Some runs of a campaign failed; the others are done."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The names that one may stand for by mistake, in brackets; nothing if none is like it.

    >>> did_you_mean("eazy", ["easy", "fcfs"])
    " (did you mean 'easy'?)"
    """
    from difflib import get_close_matches

    close = get_close_matches(name, known, n=2)
    return f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
