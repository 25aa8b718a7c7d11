"""What jobs do once they run: Batsim's profiles."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

#: Of a computation and a walltime that end as close as this to each other, SimGrid lets the computation win.
TIMING_PRECISION = 1e-9


class Task(Struct, frozen=True):
    """A profile that is not made of others."""

    name: str
    return_code: int

    def fits(self, seconds: float, remaining: float) -> bool:
        """Whether it ends by itself, when its walltime leaves ``remaining`` seconds: strictly before."""
        return seconds < remaining

    @property
    def killed_code(self) -> int:
        """The return code of a job that is killed while it does this."""
        return -1


class Delay(Task, frozen=True):
    """Sleeps."""

    seconds: float


class Send(Task, frozen=True):
    """Sends a message to the decision process, then sleeps for a moment."""

    message: dict[str, Any]
    seconds: float


class Receive(Task, frozen=True):
    """Waits for a message of the decision process, and goes on with a profile that depends on it.

    With a profile for the ``timeout`` it does not wait: that one follows at once when there is no message.
    A name that is empty stands for nothing to do.
    """

    pattern: re.Pattern[str]
    success: str
    failure: str
    timeout: str
    poll_seconds: float
    """It looks for messages each time so much time has passed."""

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the profiles that may follow."""
        return tuple(filter(None, (self.success, self.failure, self.timeout)))

    @property
    def length(self) -> int:
        """How many of them do."""
        return 1

    def follow_up(self, message: str) -> str:
        """Name of the profile that follows upon a message."""
        return self.success if self.pattern.fullmatch(message) else self.failure


class Transfer(Task, frozen=True):
    """Moves bytes from or to storage; without a network this takes no time."""

    labels: tuple[str, ...]
    """What the storage hosts are called that take part."""
    needs_mapping: bool
    """Whether they must be named even if there is one storage host only."""


class Computation(Task, frozen=True):
    """Executes flops on every host at once."""

    def flops(self, executors: int) -> Sequence[float]:
        """The work of each of so many executors."""
        raise NotImplementedError

    def seconds(self, speeds: Sequence[float]) -> float:
        """How long it takes when the executors have cores of these speeds (flop/s) for themselves."""
        raise NotImplementedError

    def fits(self, seconds: float, remaining: float) -> bool:
        return seconds <= remaining + TIMING_PRECISION

    @property
    def killed_code(self) -> int:
        return -2


class Homogeneous(Computation, frozen=True):
    """The same work on every host; the slowest host sets the pace."""

    work: float

    def flops(self, executors: int) -> Sequence[float]:
        return [self.work] * executors

    def seconds(self, speeds: Sequence[float]) -> float:
        return self.work / min(speeds)


class HomogeneousTotal(Computation, frozen=True):
    """Work that is shared out evenly among the hosts, however many they are."""

    work: float

    def flops(self, executors: int) -> Sequence[float]:
        return [self.work / executors] * executors

    def seconds(self, speeds: Sequence[float]) -> float:
        return self.work / len(speeds) / min(speeds)


class Parallel(Computation, frozen=True):
    """Work that is given host by host."""

    work: tuple[float, ...]

    def flops(self, executors: int) -> Sequence[float]:
        return self.work

    def seconds(self, speeds: Sequence[float]) -> float:
        return max(flops / speed for flops, speed in zip(self.work, speeds, strict=True))


class Composed(Struct, frozen=True):
    """A sequence of other profiles, repeated; it stops at the first that fails."""

    name: str
    return_code: int
    parts: tuple[str, ...]
    """Names of the profiles, in order."""
    repeat: int

    @property
    def length(self) -> int:
        """How many steps it has in all."""
        return len(self.parts) * self.repeat

    def step_name(self, index: int) -> str:
        """Name of the profile of a step."""
        return self.parts[index % len(self.parts)]
