"""A conversation in protocol 5 with any one thing replaced by nonsense: it is refused, or understood."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.errors import BatschedError
from batsched_py.protocol.dialects import BATSIM5
from batsched_py.protocol.events import Message
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.setup import Setup
from tests.drive import platform, workload

nonsense = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("w0!1"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def process() -> DecisionProcess:
    return DecisionProcess(SCHEDULERS.create("easy", {}))


def batsim() -> Batsim:
    return Batsim(Setup(platform(), [workload(*({"id": str(n), "subtime": n} for n in range(4)))]))


@cache
def conversation() -> tuple[list[bytes], list[bytes]]:
    """All requests and all replies of a simulation that goes well."""
    simulates, decides = BATSIM5.codec(), BATSIM5.codec()
    simulator, decider = batsim(), process()
    requests, replies = [], []
    request: Message | None = simulator.begin()
    while request is not None:
        requests.append(simulates.encode_request(request))
        replies.append(decides.encode_reply(decider.react(decides.decode_request(requests[-1]))))
        request = simulator.advance(simulates.decode_reply(replies[-1]))
    return requests, replies


@st.composite
def spoilt(draw: st.DrawFn, texts: list[bytes]) -> list[bytes]:
    """The beginning of a conversation, up to a message in which something is replaced."""
    count = draw(st.integers(1, len(texts)))
    message = json.loads(texts[count - 1].removesuffix(b"\0"))
    place: Any = message
    while True:
        key = draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], dict | list) or draw(st.integers(0, 4)) == 0:
            place[key] = draw(nonsense)
            return [*texts[: count - 1], json.dumps(message).encode()]
        place = place[key]


@settings(max_examples=80)
@given(st.data())
def test_a_decision_process_refuses_nonsense_or_understands_it(data: st.DataObject) -> None:
    codec, decider = BATSIM5.codec(), process()
    try:
        for text in data.draw(spoilt(conversation()[0])):
            codec.encode_reply(decider.react(codec.decode_request(text)))
    except BatschedError as error:
        assert "\n" not in str(error)


@settings(max_examples=80)
@given(st.data())
def test_a_simulator_refuses_nonsense_or_understands_it(data: st.DataObject) -> None:
    codec, simulator = BATSIM5.codec(), batsim()
    simulator.begin()
    try:
        for text in data.draw(spoilt(conversation()[1])):
            if (request := simulator.advance(codec.decode_reply(text))) is not None:
                codec.encode_request(request)
    except BatschedError as error:
        assert "\n" not in str(error)
