"""Talking to the built-in Batsim by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from batsched_py.engines.python import Batsim
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.platform import Platform, PlatformHost, PowerState, Role, SleepState
from batsched_py.workload.model import Workload

Happening = TypeVar("Happening", bound=ev.Event)

GIGA = 1e9


def workload(*jobs: dict[str, Any], profiles: dict[str, dict[str, Any]] | None = None) -> Workload:
    """A workload ``w0``; jobs lacking a field are submitted at 0, ask for one host and sleep for 10 s."""
    default = {"subtime": 0, "res": 1, "profile": "sleep"}
    return Workload(
        name="w0",
        jobs=[BATSIM4.read_job(default | job, "w0") for job in jobs],
        profiles={
            name: BATSIM4.read_profile(profile)
            for name, profile in ({"sleep": {"type": "delay", "delay": 10}} | (profiles or {})).items()
        },
    )


def computing(flops: float) -> dict[str, Any]:
    """So many flops on each host."""
    return {"type": "parallel_homogeneous", "cpu": flops, "com": 0}


def platform(hosts: int = 4, storages: int = 0, cores: int = 1) -> Platform:
    """Hosts of 1 Gf that draw 100 W idle, 120 W at the least and 200 W at full load.

    State 1 is half as fast and draws half as much; in state 2 they sleep with 10 W, it takes 10 s and 110 W
    to fall asleep (state 3) and 20 s and 130 W to wake up (state 4).
    """
    states = [
        PowerState(GIGA, 100.0, 120.0, 200.0),
        PowerState(GIGA / 2, 50.0, 60.0, 100.0),
        PowerState(1.0, 10.0, 10.0, 10.0),
        PowerState(0.1, 110.0, 110.0, 110.0),
        PowerState(0.05, 130.0, 130.0, 130.0),
    ]

    def host(number: int, role: Role) -> PlatformHost:
        return PlatformHost(
            number,
            f"host{number}",
            states,
            sleep_states={2: SleepState(2, switch_off=3, switch_on=4)},
            properties={"role": "", "wattage_per_state": "as above", "sleep_pstates": "2:3:4"},
            role=role,
            cores=cores,
        )

    return Platform(
        [host(number, Role.COMPUTE_NODE) for number in range(hosts)],
        [host(hosts + number, Role.STORAGE) for number in range(storages)],
    )


def execute(job: str, hosts: str, mapping: list[int] | None = None) -> ev.ExecuteJob:
    """Execute job ``job`` of ``w0``."""
    return ev.ExecuteJob(f"w0!{job}", HostSet.parse(hosts), mapping)


class Drive:
    """A conversation with a Batsim, in which decisions without a time are taken at once."""

    def __init__(self, batsim: Batsim) -> None:
        self._batsim = batsim
        self.heard: list[ev.Event] = []
        """All that was told so far, in order."""
        self._request: ev.Message | None = batsim.begin()
        self._listen()

    @property
    def now(self) -> float:
        """When the last request was made."""
        assert self._request is not None
        return self._request.now

    @property
    def over(self) -> bool:
        """Whether the simulation has ended."""
        return self._request is None

    def reply(self, *decisions: ev.Event, now: float | None = None) -> Sequence[ev.Event]:
        """Decide something, and hear what is told next."""
        self._request = self._batsim.advance(ev.Message(self.now if now is None else now, list(decisions)))
        return self._listen()

    def until(self, kind: type[Happening], *decisions: ev.Event) -> Happening:
        """Decide something, then nothing until something of this kind is told."""
        events = self.reply(*decisions)
        while True:
            for event in events:
                if isinstance(event, kind):
                    return event
            events = self.reply()

    def finish(self) -> list[ev.Event]:
        """Decide nothing until the end; all that was told."""
        while not self.over:
            self.reply()
        return self.heard

    def _listen(self) -> Sequence[ev.Event]:
        if self._request is None:
            return ()
        self.heard += self._request.events
        return self._request.events

    def all(self, kind: type[Happening]) -> list[Happening]:
        """All events of a kind that were told."""
        return [event for event in self.heard if isinstance(event, kind)]
