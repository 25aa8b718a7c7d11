"""All behaviours, also around each other, with options that suit logs of a minute."""

from __future__ import annotations

from batsched_py.users import USERS, Behaviour, Wrapper

#: Sessions in logs of a minute, and users who are impatient and sober enough for it to matter.
OPTIONS = {
    "sessions": "arrival:0.1",
    "think_minutes": "0.05",
    "for_good": "0.3",
    "withdraw": "true",
    "tolerated": "nothing",
    "windows": "5-15,20-30",
    "later": "0.2",
    "fewer": "0.2",
    "less": "0.2",
    "give_up": "0.2",
    "long_term": "1",
    "nb_users": "3",
    "days": "1",
}

NESTED = (
    "patience(fluid)",
    "patience(rigid)",
    "sober(patience(adjusted))",
    "resample(sober(patience(fluid)))",
)

NAMES = (*USERS.all(), *NESTED)

#: Those whose users are not those of the log, one by one.
POPULATIONS = tuple(name for name in NAMES if name.startswith(("resample", "site-level")))


def behaviour(name: str, **options: str) -> Behaviour:
    """The behaviour called ``name``, with those of :data:`OPTIONS` that it has."""
    return USERS.create(name, options_of(name) | options)


def options_of(name: str) -> dict[str, str]:
    """Those of :data:`OPTIONS` that a behaviour has."""
    return {key: value for key, value in OPTIONS.items() if key in USERS.options(name)}


def has_wrapper(name: str) -> bool:
    """Whether a behaviour goes around another one."""
    return issubclass(USERS.find(name), Wrapper)
