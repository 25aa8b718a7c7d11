"""The decision process behind a ZeroMQ socket, for a simulator in a process of its own.

Batsim waits for each reply without a limit. So whatever goes wrong here, a request that was received is
answered, by what makes the simulator stop and say why, before the error travels on to the caller.
"""

from __future__ import annotations

import csv
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.output_files import writing_text
from batsched_py.protocol.dialect import Codec, Dialect
from batsched_py.protocol.dialects import BATSIM4, VERSIONS, opens, refusal, spoken_in
from batsched_py.protocol.events import Message, SetJobMetadata, Settings, SimulationBegins

if TYPE_CHECKING:
    from batsched_py.wire.sockets import AnsweringEnd

_log = logging.getLogger(__name__)


class Answers(Protocol):
    """Answers the requests of one simulation: a decision process, or one that is watched."""

    @property
    def needs(self) -> Settings:
        """What a simulator must allow."""

    @property
    def finished(self) -> bool:
        """Whether the simulation has ended."""

    def react(self, request: Message) -> Message:
        """Answer one request."""


class Server:
    """Serves simulations one after another, each with a fresh process from ``new_process``.

    The faults of a peer are :class:`ProtocolError` (it talks nonsense) and :class:`PeerVanished` (it is
    silent for too long): they end the service, or with ``keep_alive`` only the simulation. Faults on our
    side always end it. Where no dialect is given, each simulator is answered in the one that it begins in.
    """

    def __init__(
        self,
        end: AnsweringEnd,
        new_process: Callable[[], Answers],
        keep_alive: bool = False,
        dialect: Dialect | None = None,
    ) -> None:
        self._end = end
        self._new_process = new_process
        self._keep_alive = keep_alive
        self._dialect = dialect
        self._codec: Codec = BATSIM4.codec()
        self._now = 0.0
        self._opening: bytes | None = None
        """What began the conversation, until it is answered."""
        self._too_early: bytes | None = None
        """What began a simulation before the last one had ended."""

    def serve(self) -> None:
        """Serve one simulation, or with ``keep_alive`` one after another until something stops it."""
        while True:
            try:
                self._serve_simulation()
            except (ProtocolError, PeerVanished) as fault:
                if not self._keep_alive:
                    raise
                _log.error("%s; ready for the next simulation", fault)
            if not self._keep_alive:
                return

    def _serve_simulation(self) -> None:
        self._now, self._opening = 0.0, None
        try:
            self._converse(self._new_process())
        except BaseException as error:
            if self._too_early is None and self._end.owes_reply:
                reason = str(error) or f"it was stopped by {type(error).__name__}"
                codec = self._codec if self._opening is None else spoken_in(self._opening).codec()
                self._end.send(codec.refuse(self._opening or b"", self._now, reason))
            raise
        finally:
            self._end.release()

    def _converse(self, process: Answers) -> None:
        request = self._first_request(process.needs)
        codec, end = self._codec, self._end
        while True:
            end.send(codec.encode_reply(process.react(request)))
            self._opening = None
            if process.finished:
                _log.info("the simulation ended at time %g", self._now)
                return
            said = end.receive()
            request = self._decode(codec, said)
            if SimulationBegins in map(type, request.events):
                raise self._left_for(said)

    def _decode(self, codec: Codec, said: bytes) -> Message:
        """A request that does not open a conversation."""
        try:
            request = codec.decode_request(said)
        except ProtocolError:
            if opens(said):
                raise self._left_for(said) from None
            raise
        self._now = request.now
        return request

    def _left_for(self, said: bytes) -> ProtocolError:
        """A simulation was left without a word; this message begins the next."""
        self._too_early = said if self._keep_alive else None
        advice = "" if self._keep_alive else "; start both sides again, or serve with --keep-alive"
        return ProtocolError(
            "SIMULATION_BEGINS came in the middle of a simulation: "
            f"the simulator before never said that it ended{advice}"
        )

    def _first_request(self, needs: Settings) -> Message:
        """What opens a simulation. Who keeps alive waits for it without a limit."""
        said, self._too_early = self._too_early, None
        if said is None:
            said = self._end.receive(patiently=self._keep_alive)
        self._opening = said
        self._end.hold(refusal)
        if self._dialect is not None and opens(said) and (caller := spoken_in(said)) is not self._dialect:
            versions = {dialect: version for version, dialect in VERSIONS.items()}
            raise ProtocolError(
                f"a Batsim {versions[caller]} has called, but --protocol {versions[self._dialect]} was "
                "given; leave it out to serve both"
            )
        codec = self._codec = (spoken_in(said) if self._dialect is None else self._dialect).codec()
        answer = codec.answer(said, needs)
        if answer is None:
            request = codec.decode_request(said)
            self._now = request.now
            return request
        while answer is not None:
            self._end.send(answer)
            self._opening = None
            said = self._end.receive()
            answer = codec.answer(said, needs)
        return self._decode(codec, said)


class NoteKeeper:
    """A decision process whose notes are kept, and written to a file when the simulation has ended.

    Batsim 4 writes what a user notes on a job into the column ``metadata`` of its ``jobs.csv``. A Batsim 5
    leaves that column empty. So the decision process can keep the notes, in a CSV file of its own.
    """

    def __init__(self, process: Answers, path: Path) -> None:
        self.needs = process.needs
        self.finished = False
        self._process = process
        self._path = path
        self._notes: dict[str, str] = {}

    def react(self, request: Message) -> Message:
        """Answer one request."""
        reply = self._process.react(request)
        for event in reply.events:
            if isinstance(event, SetJobMetadata):
                self._notes[event.job_id] = event.metadata
        self.finished = self._process.finished
        if self.finished:
            self._write_notes()
        return reply

    def _write_notes(self) -> None:
        try:
            with writing_text(self._path) as file:
                writer = csv.writer(file, lineterminator="\n")
                writer.writerows([("job_id", "metadata"), *self._notes.items()])
        except OSError as error:
            raise InputError(f"cannot write the notes to {self._path}: {error.strerror}") from None
