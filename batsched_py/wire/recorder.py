"""Recording a conversation while it happens, from between the two sides."""

from __future__ import annotations

from batsched_py.errors import PeerVanished, ProtocolError
from batsched_py.protocol.dialect import Codec, Dialect
from batsched_py.protocol.dialects import refusal, spoken_in
from batsched_py.protocol.events import SimulationEnds
from batsched_py.protocol.stop import stop
from batsched_py.wire.conversation import ConversationFile
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd


def record(
    front: AnsweringEnd, back: AskingEnd, file: ConversationFile, dialect: Dialect | None = None
) -> int:
    """Pass each request of the simulator in front to the decision process behind, and each reply back.

    Messages are passed on unchanged and unchecked. Each is in the file before it is passed on, so that the
    file ends with the message that stopped the conversation. If the decision process is silent, the simulator
    is stopped with that reason; otherwise it would wait for ever. Returns the number of exchanges when the
    reply to the end of the simulation has been passed on. Without a dialect, the first request decides.
    """
    codec: Codec | None = None
    exchanges = 0
    ended = False
    while not ended:
        request = front.receive()
        file.write("batsim", request)
        if codec is None:
            codec = (dialect or spoken_in(request)).codec()
            front.hold(refusal)
        try:
            reply = back.ask(request)
        except (ProtocolError, PeerVanished) as error:
            front.send(codec.encode_reply(stop(0.0, str(error))))
            raise
        file.write("scheduler", reply)
        front.send(reply)
        exchanges += 1
        ended = _ends(request, codec)
    return exchanges


def _ends(request: bytes, codec: Codec) -> bool:
    if codec.answer(request) is not None:
        return False
    try:
        return any(isinstance(event, SimulationEnds) for event in codec.decode_request(request).events)
    except ProtocolError:
        return False
