"""Profiles as Batsim 4 spells them: whatever is read is spelled again in the same bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.protocol.batsim4.jobs import profile_from_json, profile_to_json
from batsched_py.protocol.profiles import (
    Composed,
    DataStaging,
    Delay,
    FileSystemAccess,
    Homogeneous,
    HomogeneousTotal,
    MpiTrace,
    Parallel,
    Profile,
    Receive,
    Send,
    Unintelligible,
    UsageTrace,
)

#: A profile of each kind, and how it is spelled.
SPELLINGS: list[tuple[Profile, dict[str, Any]]] = [
    (Delay(3), {"type": "delay", "delay": 3}),
    (Parallel((1, 2.5), (0, 0, 0, 1)), {"type": "parallel", "cpu": [1, 2.5], "com": [0, 0, 0, 1]}),
    (Homogeneous(1e9), {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}),
    (HomogeneousTotal(5, 7), {"type": "parallel_homogeneous_total", "cpu": 5, "com": 7}),
    (Composed(("a", "b"), 2), {"type": "composed", "repeat": 2, "seq": ["a", "b"]}),
    (Send({"need": 1.5}, 2), {"type": "send", "msg": {"need": 1.5}, "sleeptime": 2}),
    (
        Receive("go", "a", "b", "c", 0.5),
        {"type": "recv", "regex": "go", "success": "a", "failure": "b", "timeout": "c", "polltime": 0.5},
    ),
    (
        FileSystemAccess(1, 2.5, "disk"),
        {
            "type": "parallel_homogeneous_pfs",
            "bytes_to_read": 1,
            "bytes_to_write": 2.5,
            "storage": "disk",
        },
    ),
    (
        DataStaging(4, "here", "there"),
        {"type": "data_staging", "nb_bytes": 4, "from": "here", "to": "there"},
    ),
    (MpiTrace("a.trace"), {"type": "smpi", "trace": "a.trace"}),
    (UsageTrace("a.trace"), {"type": "usage_trace", "trace": "a.trace"}),
]
IDS = [profile.kind for profile, _ in SPELLINGS]


@pytest.mark.parametrize(("profile", "fields"), SPELLINGS, ids=IDS)
def test_a_profile_is_spelled_in_full(profile: Profile, fields: dict[str, Any]) -> None:
    assert json.dumps(profile_to_json(profile)) == json.dumps(fields)


@pytest.mark.parametrize(("profile", "fields"), SPELLINGS, ids=IDS)
def test_a_profile_is_understood(profile: Profile, fields: dict[str, Any]) -> None:
    assert profile_from_json(fields) == profile


def test_what_it_returns_and_what_is_unknown_belongs_to_a_profile() -> None:
    fields = {"type": "delay", "delay": 3, "ret": 2, "colour": "red"}
    assert profile_from_json(fields) == Delay(3, return_code=2, extra={"colour": "red"})


def test_every_kind_is_tested() -> None:
    def concrete(cls: type[Profile]) -> set[type[Profile]]:
        return set().union(*map(concrete, cls.__subclasses__()), {cls} if "kind" in vars(cls) else set())

    assert concrete(Profile) == {type(profile) for profile, _ in SPELLINGS} | {Unintelligible}


@given(
    st.sampled_from([fields for _, fields in SPELLINGS]),
    st.dictionaries(st.sampled_from(["ret", "host", "colour", "repeat"]), st.integers(0, 3)),
    st.sets(st.sampled_from(["repeat", "com", "sleeptime", "regex", "storage", "timeout", "bytes_to_read"])),
    st.randoms(use_true_random=False),
)
def test_a_profile_is_spelled_as_it_was_read(
    fields: dict[str, Any], more: Any, less: Any, random: Any
) -> None:
    """Whatever the order of the fields, and whichever of those that may be left out or added are."""
    items = [item for item in (fields | more).items() if item[0] not in less]
    random.shuffle(items)
    text = json.dumps(dict(items))
    assert json.dumps(profile_to_json(profile_from_json(json.loads(text)))) == text


WORDS = st.sampled_from(
    ["type", "delay", "cpu", "com", "seq", "ret", "msg", "regex", "polltime", "trace", "host"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.sampled_from(IDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(WORDS, VALUES))
def test_reading_never_fails_and_loses_nothing(fields: dict[str, Any]) -> None:
    assert json.dumps(profile_to_json(profile_from_json(fields))) == json.dumps(fields)


@pytest.mark.parametrize(
    ("fields", "fault"),
    [
        ({}, "has the type None; known are delay, parallel, "),
        ({"type": "flight"}, "has the type 'flight'; known are delay, parallel, "),
        ({"type": "delay"}, "needs a number as `delay`, not None"),
        ({"type": "delay", "delay": True}, "needs a number as `delay`, not True"),
        ({"type": "delay", "delay": 10**400}, "needs a number as `delay`, not 1000000000"),
        ({"type": "delay", "delay": 10**5000}, "needs a number as `delay`, not something endless"),
        ({"type": "delay", "delay": 1, "ret": -1}, "needs an integer of 0 or more as `ret`, not -1"),
        ({"type": "parallel", "cpu": [1], "com": 0}, "needs a list of numbers as `com`, not 0"),
        ({"type": "parallel", "cpu": ["1"], "com": [0]}, "needs a number as `cpu`, not '1'"),
        ({"type": "composed", "seq": []}, "needs a list of profile names as `seq`"),
        ({"type": "composed", "seq": ["a"], "repeat": 0}, "needs an integer of 1 or more as `repeat`, not 0"),
        ({"type": "send", "msg": "hello"}, "needs an object as `msg`, not 'hello'"),
        ({"type": "recv", "regex": "("}, "has a `regex` that cannot be read: "),
        ({"type": "parallel_homogeneous_pfs"}, "needs `bytes_to_read` or `bytes_to_write`"),
        ({"type": "data_staging", "nb_bytes": 1, "to": "x"}, "needs a text as `from`, not None"),
        ({"type": "smpi"}, "needs a text as `trace`, not None"),
    ],
)
def test_what_cannot_be_understood_is_kept_with_the_reason(fields: dict[str, Any], fault: str) -> None:
    profile = profile_from_json(fields)
    assert isinstance(profile, Unintelligible)
    assert profile.fault.startswith(fault)
    assert profile_to_json(profile) == fields


def test_a_profile_that_is_unknown_here_still_returns_what_it_says() -> None:
    assert profile_from_json({"type": "flight", "ret": 3}).return_code == 3
