"""Messages to the master, which takes one after another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from msgspec import Struct

from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.network.demand import Demand
from batsched_py.simulator.network.routing import Network
from batsched_py.simulator.network.tasks import FluidTasks

#: Bytes of a message.
SIZE = 1.0


class Message(Struct, eq=False):
    """A message of one byte."""

    host: int | None
    """Where it comes from; nothing if it comes from the master itself, and so arrives at once."""
    arrive: Callable[[], None]
    """What happens when it has arrived."""
    agenda_number: int = 0


class Courier:
    """Carries messages to the master over the same links that jobs use.

    As in Batsim, the master receives one message at a time. The next one sets out when the one before has
    arrived.
    """

    def __init__(self, network: Network, tasks: FluidTasks, agenda: Agenda) -> None:
        self.busy = False
        """Whether a message is on its way."""
        self._network = network
        self._tasks = tasks
        self._agenda = agenda
        self._waiting: deque[Message] = deque()

    def send(self, message: Message) -> None:
        """Send a message, as soon as those before have arrived."""
        self._waiting.append(message)
        if not self.busy:
            self._go_on()

    def _go_on(self) -> None:
        """Let the next messages arrive, or the next one set out."""
        self.busy = True
        while self._waiting:
            message, demand = self._waiting[0], Demand()
            if message.host is not None:
                demand.send_along(self._network.route_to_master(message.host), SIZE)
                self._tasks.begin(message, demand, self._happen_in)
                return
            self._waiting.popleft()
            message.arrive()
        self.busy = False

    def _happen_in(self, message: Message, seconds: float, then: Callable[[Message], None] | None) -> None:
        message.agenda_number = self._agenda.at(self._agenda.clock + seconds, then or self._arrive, message)

    def _arrive(self, message: Message) -> None:
        if self._tasks.has(message):
            self._tasks.stop(message)
        self._waiting.popleft()
        message.arrive()
        self._go_on()
