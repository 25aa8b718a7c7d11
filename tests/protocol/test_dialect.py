"""A dialect is one value: another one needs nothing but itself, even if it remembers and has an opening."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import msgspec
import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.server import Server
from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4.codec import Batsim4Codec
from batsched_py.protocol.dialects import BATSIM4, BATSIM5, DIALECTS
from batsched_py.protocol.events import Message, Settings
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.simulator.setup import Setup
from batsched_py.wire.conversation import (
    ConversationFile,
    read_conversation,
    record,
    replay_to_batsim,
    replay_to_decision,
)
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd
from batsched_py.workload.batsim_json import read_batsim_json, write_batsim_json
from tests.drive import platform, workload
from tests.processes import PATIENCE

ANYWHERE = "tcp://127.0.0.1:*"


class CountingCodec(Batsim4Codec):
    """Greets, and numbers the messages that each side has sent since."""

    def __init__(self) -> None:
        self.sent = self.read = 0

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> None:
        if ask(b"hello") != b"welcome":
            raise ProtocolError("not welcome")

    def answer(self, said: bytes, needs: Settings = Settings()) -> bytes | None:
        return b"welcome" if said == b"hello" else None

    def encode_request(self, message: Message) -> bytes:
        return self._number(super().encode_request(message))

    def encode_reply(self, message: Message) -> bytes:
        return self._number(super().encode_reply(message))

    def decode_request(self, text: bytes | str) -> Message:
        return super().decode_request(self._strip(text))

    def decode_reply(self, text: bytes | str) -> Message:
        return super().decode_reply(self._strip(text))

    def _number(self, text: bytes) -> bytes:
        self.sent += 1
        return b'{"number":%d,%s' % (self.sent, text[1:])

    def _strip(self, text: bytes | str) -> bytes | str:
        self.read += 1
        if msgspec.json.decode(text)["number"] != self.read:
            raise ProtocolError("a message is missing")
        return text


COUNTING = msgspec.structs.replace(BATSIM4, name="counting", codec=CountingCodec)


def batsim() -> Batsim:
    return Batsim(Setup(platform(), [workload(*({"id": str(n), "subtime": n} for n in range(20)))]))


def process() -> DecisionProcess:
    return DecisionProcess(SCHEDULERS.create("fcfs", {}))


def converse(front: AskingEnd, back: AnsweringEnd) -> None:
    """Hold a whole conversation in the counting dialect."""
    service = Thread(target=Server(back, process, dialect=COUNTING).serve)
    service.start()
    simulator = batsim()
    simulate(simulator, RemoteProcess(front, COUNTING))
    service.join(PATIENCE)
    assert simulator.outputs.results.nb_jobs == 20


def test_the_dialects_are_listed_by_name() -> None:
    assert DIALECTS == {"batsim4": BATSIM4, "batsim5": BATSIM5}


def test_a_conversation_in_another_dialect(tmp_path: Path) -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as back, AskingEnd(back.endpoint, PATIENCE) as front:
        converse(front, back)


def test_it_can_be_recorded_and_held_again(tmp_path: Path) -> None:
    path = tmp_path / "talk.jsonl"
    with (
        AnsweringEnd(ANYWHERE, PATIENCE) as back,
        AskingEnd(back.endpoint, PATIENCE) as passed_on,
        AnsweringEnd(ANYWHERE, PATIENCE) as between,
        AskingEnd(between.endpoint, PATIENCE) as front,
        ConversationFile(path) as file,
    ):
        recorder = Thread(target=record, args=(between, passed_on, file, COUNTING))
        recorder.start()
        converse(front, back)
        recorder.join(PATIENCE)
    conversation = read_conversation(path)
    assert conversation[0].request == b"hello"
    agreement = replay_to_batsim(conversation, batsim(), COUNTING)
    assert (agreement.difference, agreement.equal) == (None, 43)
    codec, decides = CountingCodec(), process()

    def answer(said: bytes) -> bytes:
        return codec.answer(said) or codec.encode_reply(decides.react(codec.decode_request(said)))

    agreement = replay_to_decision(conversation, answer, COUNTING)
    assert (agreement.difference, agreement.equal) == (None, 20)


def test_a_server_serves_each_conversation_afresh() -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as back:
        for _ in range(2):
            with AskingEnd(back.endpoint, PATIENCE) as front:
                converse(front, back)


def test_workload_files_are_spelled_in_a_dialect(tmp_path: Path) -> None:
    loud = msgspec.structs.replace(
        BATSIM4,
        spell_profile=lambda profile: {"PROFILE": BATSIM4.spell_profile(profile)},
        read_profile=lambda fields: BATSIM4.read_profile(fields["PROFILE"]),
    )
    path, written = tmp_path / "loud.json", workload({"id": "a"})
    write_batsim_json(path, written, loud)
    assert '"sleep":{"PROFILE":{"type":"delay"' in path.read_text()
    assert read_batsim_json(path, "w0", loud).profiles == written.profiles


def test_what_a_dialect_lacks_is_named() -> None:
    with pytest.raises(ProtocolError, match="JobSubmitted cannot be said in this dialect"):
        BATSIM4.codec().encode_reply(batsim_says_submitted())


def batsim_says_submitted() -> Message:
    simulator = batsim()
    simulator.begin()
    request = simulator.advance(Message(0.0, []))
    assert request is not None
    return request
