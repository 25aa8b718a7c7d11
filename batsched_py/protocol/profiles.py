"""What jobs do when they run: Batsim's profiles, independent of their names in messages and files.

Each dialect reads and writes them. A profile keeps everything it was read from: numbers as they were given,
unknown fields, and if necessary the order of the fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, ClassVar

from msgspec import Struct

#: If a computation and a walltime end as close as this to each other, the computation wins, as in SimGrid.
TIMING_PRECISION = 1e-9


class Profile(Struct, frozen=True, kw_only=True, gc=False):
    """What a job does, or a part of it."""

    kind: ClassVar[str]
    """The name of this type in Batsim's documentation."""
    killed_code: ClassVar[int] = -1
    """The return code of a job that is killed while it does this."""

    return_code: int = 0
    """Its return code when it runs to its end."""
    extra: dict[str, Any] | None = None
    """Fields that the dialect does not know; they are kept, not interpreted."""
    spelling: tuple[str, ...] = ()
    """The fields that were given, in order, if the dialect would write them differently."""

    @property
    def sends_bytes(self) -> bool:
        """Whether it uses the network."""
        return False

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of the other profiles that may follow."""
        return ()

    def is_moldable(self, profiles: Mapping[str, Profile]) -> bool:
        """Whether its work, including that of these profiles, can be divided among any number of hosts."""
        return False

    def fits(self, seconds: float, remaining: float) -> bool:
        """Whether it ends by itself, strictly before the ``remaining`` seconds of its walltime."""
        return seconds < remaining


class Delay(Profile, frozen=True):
    """Sleeps."""

    kind = "delay"

    seconds: float


class Send(Profile, frozen=True):
    """Sends a message to the decision process, then sleeps for a moment."""

    kind = "send"

    message: dict[str, Any]
    seconds: float = 1e-7


class Receive(Profile, frozen=True):
    """Waits for a message of the decision process, and continues with a profile that depends on it.

    With a profile for the ``timeout`` it does not wait: that one follows at once if there is no message.
    An empty name means that there is nothing to do.
    """

    kind = "recv"

    regex: str = ".*"
    success: str = ""
    failure: str = ""
    timeout: str = ""
    poll_seconds: float = 0.005
    """How often it looks for messages."""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.success, self.failure, self.timeout)))

    @property
    def length(self) -> int:
        """How many profiles follow."""
        return 1

    def follow_up(self, message: str) -> str:
        """Name of the profile that follows a message."""
        return self.success if re.fullmatch(self.regex, message) else self.failure


class Activity(Profile, frozen=True):
    """Computes or sends bytes: what SimGrid calls a parallel task."""

    killed_code = -2

    def fits(self, seconds: float, remaining: float) -> bool:
        return seconds <= remaining + TIMING_PRECISION


class Transfer(Activity, frozen=True):
    """Moves bytes from or to storage."""

    needs_mapping: ClassVar[bool]
    """Whether the storage hosts must be named even if there is only one."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the storage hosts that it uses."""
        raise NotImplementedError


class FileSystemAccess(Transfer, frozen=True):
    """Every host reads from one storage and writes to it."""

    kind = "parallel_homogeneous_pfs"
    needs_mapping = False

    bytes_read: float = 0
    bytes_written: float = 0
    storage: str = "pfs"

    @property
    def sends_bytes(self) -> bool:
        return bool(self.bytes_read or self.bytes_written)

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.storage,)


class DataStaging(Transfer, frozen=True):
    """Moves bytes from one storage to another."""

    kind = "data_staging"
    needs_mapping = True

    bytes_moved: float
    source: str
    target: str

    @property
    def sends_bytes(self) -> bool:
        return bool(self.bytes_moved)

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.source, self.target)


class Speeds(Struct, frozen=True, gc=False):
    """How fast the cores of executors are, in flop/s, one executor after another."""

    slowest: float
    stretches: Sequence[tuple[int, float]] | None = None
    """Lengths and speeds of runs of equal executors; nothing if all are as fast as the slowest."""

    def __iter__(self) -> Iterator[float]:
        if self.stretches is None:
            return repeat(self.slowest)
        return (speed for count, speed in self.stretches for _ in range(count))


class Computation(Activity, frozen=True):
    """Executes flops on every host at once."""

    def flops(self, executors: int) -> Sequence[float]:
        """The work of each executor, for this number of executors."""
        raise NotImplementedError

    def seconds(self, executors: int, speeds: Speeds) -> float:
        """How long it takes if this number of executors have cores of these speeds for themselves."""
        raise NotImplementedError


class Homogeneous(Computation, frozen=True):
    """The same work on every host; the slowest host sets the pace."""

    kind = "parallel_homogeneous"

    work: float
    bytes_sent: float = 0
    """From each host to each other."""

    @property
    def sends_bytes(self) -> bool:
        return bool(self.bytes_sent)

    def flops(self, executors: int) -> Sequence[float]:
        return [self.work] * executors

    def seconds(self, executors: int, speeds: Speeds) -> float:
        return self.work / speeds.slowest


class HomogeneousTotal(Homogeneous, frozen=True):
    """Work, and bytes to send, that are divided evenly among the hosts."""

    kind = "parallel_homogeneous_total"

    def is_moldable(self, profiles: Mapping[str, Profile]) -> bool:
        return True

    def flops(self, executors: int) -> Sequence[float]:
        return [float(self.work) / executors] * executors

    def seconds(self, executors: int, speeds: Speeds) -> float:
        return float(self.work) / executors / speeds.slowest


class Parallel(Computation, frozen=True):
    """Work that is given host by host, and bytes to send by pairs of hosts."""

    kind = "parallel"

    work: tuple[float, ...]
    bytes_sent: tuple[float, ...]
    """From the first host to each, then from the second, and so on."""

    @property
    def sends_bytes(self) -> bool:
        return any(self.bytes_sent)

    def flops(self, executors: int) -> Sequence[float]:
        return self.work

    def seconds(self, executors: int, speeds: Speeds) -> float:
        return max(flops / speed for flops, speed in zip(self.work, speeds, strict=False))


class Composed(Profile, frozen=True):
    """A sequence of other profiles, repeated; it stops at the first that fails."""

    kind = "composed"

    sequence: tuple[str, ...]
    """Names of the profiles, in order."""
    repeat: int = 1

    @property
    def parts(self) -> tuple[str, ...]:
        return self.sequence

    @property
    def length(self) -> int:
        """How many steps it has in total."""
        return len(self.sequence) * self.repeat

    def step_name(self, index: int) -> str:
        """Name of the profile of a step."""
        return self.sequence[index % len(self.sequence)]

    def is_moldable(self, profiles: Mapping[str, Profile]) -> bool:
        return all(isinstance(profiles.get(part), HomogeneousTotal) for part in self.sequence)


class Trace(Profile, frozen=True):
    """Replays the recording of a program; only SimGrid can do that."""

    file: str
    """The path of the recording, relative to the workload file."""


class MpiTrace(Trace, frozen=True):
    """Replays the calls of an MPI program."""

    kind = "smpi"


class UsageTrace(Trace, frozen=True):
    """Replays how much of its hosts a program used."""

    kind = "usage_trace"


class Unintelligible(Profile, frozen=True):
    """A profile that the dialect cannot read: of an unknown type, or with a fault in its fields."""

    kind = "unintelligible"

    fields: dict[str, Any]
    """All its fields."""
    fault: str
    """What is wrong, as the end of a sentence about the profile."""
