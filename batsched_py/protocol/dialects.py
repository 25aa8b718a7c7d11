"""The list of dialects. A new one is a module here and a value below.

Codecs are imported when somebody talks: workload files need none.
"""

from batsched_py.errors import ProtocolError
from batsched_py.protocol.batsim4 import jobs as jobs4
from batsched_py.protocol.batsim5 import jobs as jobs5
from batsched_py.protocol.dialect import Codec, Dialect
from batsched_py.protocol.events import Event, SimulationBegins


def _codec4() -> Codec:
    from batsched_py.protocol.batsim4.codec import Batsim4Codec

    return Batsim4Codec()


def _codec5() -> Codec:
    from batsched_py.protocol.batsim5.codec import Batsim5Codec

    return Batsim5Codec()


BATSIM4 = Dialect(
    name="batsim4",
    codec=_codec4,
    read_job=jobs4.job_from_json,
    spell_job=jobs4.job_to_json,
    read_profile=jobs4.profile_from_json,
    spell_profile=jobs4.profile_to_json,
    profile_types=jobs4.PROFILE_TYPES,
)
BATSIM5 = Dialect(
    name="batsim5",
    codec=_codec5,
    read_job=jobs5.job_from_file,
    spell_job=jobs5.job_to_file,
    read_profile=jobs5.profile_from_file,
    spell_profile=jobs5.profile_to_file,
    profile_types=jobs5.PROFILE_TYPES,
    on_one_host=jobs5.on_one_host,
)
DIALECTS = {dialect.name: dialect for dialect in (BATSIM4, BATSIM5)}

#: Their names.
VERSIONS = {"4": BATSIM4, "5": BATSIM5}


def spoken_in(first_words: bytes) -> Dialect:
    """The dialect of a conversation that begins with this message.

    It is the one that knows the message as a handshake. Batsim 4 has none: its first message is a request.
    """
    answered = (dialect for dialect in DIALECTS.values() if dialect.codec().answer(first_words) is not None)
    return next(answered, BATSIM4)


def opens(said: bytes) -> bool:
    """Whether a message begins a conversation, in any dialect."""
    codec = spoken_in(said).codec()
    return codec.answer(said) is not None or tells(said, SimulationBegins, codec)


def tells(said: bytes, kind: type[Event], codec: Codec) -> bool:
    """Whether a message is a request with an event of a kind."""
    try:
        return kind in map(type, codec.decode_request(said).events)
    except ProtocolError:
        return False


def refusal(said: bytes) -> bytes:
    """What stops a simulator that has said this while another one is served."""
    return spoken_in(said).codec().refuse(said, 0.0, "another simulation is running here")


__all__ = ["BATSIM4", "BATSIM5", "DIALECTS", "VERSIONS", "opens", "refusal", "spoken_in", "tells"]
