"""The decision process behind a ZeroMQ socket, for a simulator in a process of its own.

Batsim waits for each reply without a limit. So whatever goes wrong here, a request that was received is
answered, with an empty reply if need be, before the error travels on to the caller.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

import zmq

from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import InputError, PeerVanished, ProtocolError
from batsched_py.protocol import batsim4
from batsched_py.protocol.codec import Codec
from batsched_py.protocol.events import Message, SimulationBegins

DEFAULT_ENDPOINT = "tcp://127.0.0.1:28000"

#: How long the last reply may take to leave once the socket is closed, in milliseconds.
LINGER = 1000

_log = logging.getLogger(__name__)


class Server:
    """Listens at an endpoint, while used as a context, and serves simulations one after another.

    Each simulation gets a fresh process from ``new_process``. The faults of a peer are
    :class:`ProtocolError` (it talks nonsense) and :class:`PeerVanished` (it is silent for more than
    ``timeout`` seconds): they end the service, or with ``keep_alive`` only the simulation. Faults on
    our side always end it.
    """

    def __init__(
        self,
        new_process: Callable[[], DecisionProcess],
        endpoint: str = DEFAULT_ENDPOINT,
        timeout: float | None = None,
        keep_alive: bool = False,
        codec: Codec = batsim4,
    ) -> None:
        self.endpoint = endpoint
        """Where it listens; once it does, a ``*`` in it has become what was chosen."""
        self._new_process = new_process
        self._timeout = timeout
        self._keep_alive = keep_alive
        self._codec = codec
        self._now = 0.0
        self._too_early: Message | None = None

    def __enter__(self) -> Server:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.linger = LINGER
        try:
            self._socket.bind(self.endpoint)
        except zmq.ZMQError as error:
            self._context.destroy()
            raise InputError(f"cannot listen at {self.endpoint}: {error.strerror}") from None
        self.endpoint = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._context.destroy()

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
        process = self._new_process()
        request = self._first_request()
        while True:
            with self._answering_anyway():
                reply = self._codec.encode_reply(process.react(request))
            self._socket.send(reply)
            if process.finished:
                _log.info("the simulation ended at time %g", self._now)
                return
            request = self._receive(self._timeout)
            if self._keep_alive and _begins(request):
                self._too_early = request
                raise ProtocolError("SIMULATION_BEGINS came in the middle of a simulation")

    def _first_request(self) -> Message:
        """What opens a simulation. Who keeps alive waits for it without a limit."""
        request, self._too_early = self._too_early, None
        if request is None:
            self._now = 0.0
            request = self._receive(None if self._keep_alive else self._timeout)
        return request

    def _receive(self, timeout: float | None) -> Message:
        if not self._socket.poll(None if timeout is None else int(timeout * 1000)):
            raise PeerVanished(
                f"no message came from the simulator for {timeout:g} s (its time was {self._now:g})"
            )
        frames = self._socket.recv_multipart()
        with self._answering_anyway():
            if len(frames) != 1:
                raise ProtocolError(f"a message came in {len(frames)} frames; the protocol sends each in one")
            request = self._codec.decode_request(frames[0])
        self._now = request.now
        return request

    @contextmanager
    def _answering_anyway(self) -> Iterator[None]:
        """Whatever is raised inside, the simulator gets an empty reply first."""
        try:
            yield
        except BaseException:
            self._socket.send(self._codec.encode_reply(Message(self._now, [])))
            raise


def _begins(request: Message) -> bool:
    return any(isinstance(event, SimulationBegins) for event in request.events)
