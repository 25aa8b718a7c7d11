"""Which profiles the built-in Batsim can run."""

from __future__ import annotations

from math import inf, isfinite
from typing import Any

from msgspec import structs

from batsched_py.errors import RuleBroken
from batsched_py.protocol.jobs import is_natural, to_tick
from batsched_py.protocol.profiles import (
    Composed,
    DataStaging,
    Delay,
    FileSystemAccess,
    Homogeneous,
    Parallel,
    Profile,
    Receive,
    Send,
    Trace,
    Unintelligible,
)
from batsched_py.protocol.shown import shown

_NO_NETWORK = (
    "but the machine has no network; give its hosts one (--bandwidth), use a platform file with links, or "
    "leave the bytes out with --ignore-communication"
)


def is_plain(profile: Profile) -> bool:
    """Whether a profile is like most of them: so much work and nothing else, which can always be run."""
    return (
        type(profile) is Homogeneous
        and type(profile.work) is float
        and 0.0 <= profile.work < inf
        and type(profile.return_code) is int
        and profile.return_code == profile.bytes_sent == 0
    )


def refusal(profile: Profile, may_send: bool) -> str | None:
    """Why a profile cannot be run, if that is so: a sentence about it that lacks its subject.

    What sends bytes needs a network, unless sending takes no time.
    """
    fault = _fault(profile)
    if fault is None and profile.sends_bytes and not may_send:
        return f"(type {profile.kind}) sends bytes, {_NO_NETWORK}"
    return fault


def check_io_job(may_send: bool) -> None:
    """An IO job, which sends bytes, is to run beside a job."""
    if not may_send:
        raise RuleBroken(f"an additional IO job sends bytes, {_NO_NETWORK}")


def _fault(profile: Profile) -> str | None:
    """What cannot be simulated in any case."""
    if not is_natural(profile.return_code):
        return f"needs an integer of 0 or more as `ret`, not {shown(profile.return_code)}"
    match profile:
        case Homogeneous(work=work, bytes_sent=amount):
            return _negative("cpu", work) or _negative("com", amount)
        case Delay(seconds=seconds):
            return _not_positive("delay", seconds)
        case Parallel():
            return _misshapen(profile)
        case Composed(repeat=repeat):
            if not is_natural(repeat) or not repeat:
                return f"needs an integer of 1 or more as `repeat`, not {shown(repeat)}"
        case Send(seconds=seconds):
            return _not_positive("sleeptime", seconds)
        case Receive(poll_seconds=seconds):
            return _not_positive("polltime", seconds)
        case FileSystemAccess(bytes_read=read, bytes_written=written):
            return _negative("bytes_to_read", read) or _negative("bytes_to_write", written)
        case DataStaging(bytes_moved=amount):
            return _negative("nb_bytes", amount)
        case Trace():
            return (
                f"replays a trace (type {profile.kind}), which needs SimGrid; use a real Batsim for it, or "
                "describe the job as a sequence of parallel profiles"
            )
        case Unintelligible(fault=fault):
            return fault
    return None


def _negative(name: str, value: Any) -> str | None:
    if _is_finite(value) and value >= 0:
        return None
    return f"needs a number that is not negative as `{name}`, not {shown(value)}"


def _not_positive(name: str, seconds: Any) -> str | None:
    if not _is_finite(seconds):
        return f"needs a finite number as `{name}`, not {shown(seconds)}"
    return None if seconds > 0 else f"needs a `{name}` above 0"


def _is_finite(value: Any) -> bool:
    """Whether this is a number that a double can hold; who makes profiles in Python may put in anything."""
    try:
        return isfinite(value)
    except (TypeError, OverflowError):
        return False


def _misshapen(profile: Parallel) -> str | None:
    hosts, pairs = len(profile.work), len(profile.bytes_sent)
    if not hosts:
        return "needs one number at least as `cpu`"
    if pairs != hosts**2:
        return f"needs {hosts**2} numbers as `com`, it has {pairs}"
    faults = (
        _negative(name, value)
        for name, values in (("cpu", profile.work), ("com", profile.bytes_sent))
        for value in values
    )
    return next(filter(None, faults), None)


def as_registered(profile: Profile) -> Profile:
    """What Batsim makes of a profile that it is sent: it writes it down with six decimals first."""
    rounded = {}
    for name in profile.__struct_fields__:
        value = getattr(profile, name)
        if value and (ticks := _to_ticks(value)) != value:
            rounded[name] = ticks
    return structs.replace(profile, **rounded) if rounded else profile


def _to_ticks(value: Any) -> Any:
    if isinstance(value, float):
        return to_tick(value)
    match value:
        case tuple() | list():
            return type(value)(map(_to_ticks, value))
        case dict():
            return {key: _to_ticks(item) for key, item in value.items()}
    return value
