"""What jobs do once they run: Batsim's profiles, and how long they take without a network."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from msgspec import Struct

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Profile

#: Of a computation and a walltime that end as close as this to each other, SimGrid lets the computation win.
TIMING_PRECISION = 1e-9


class Task(Struct, frozen=True):
    """A profile that is not made of others."""

    name: str
    return_code: int

    def seconds(self, speeds: Sequence[float]) -> float:
        """How long it takes on hosts of these speeds (flop/s)."""
        raise NotImplementedError

    def fits(self, seconds: float, remaining: float) -> bool:
        """Whether it ends by itself when its walltime leaves ``remaining`` seconds."""
        return seconds <= remaining + TIMING_PRECISION

    @property
    def killed_code(self) -> int:
        """The return code of a job that is killed while it does this."""
        return -2


class Delay(Task, frozen=True):
    """Sleeps; must end strictly before the walltime."""

    delay: float

    def seconds(self, speeds: Sequence[float]) -> float:
        return self.delay

    def fits(self, seconds: float, remaining: float) -> bool:
        return seconds < remaining

    @property
    def killed_code(self) -> int:
        return -1


class Homogeneous(Task, frozen=True):
    """The same work on every host; the slowest host sets the pace."""

    flops: float

    def seconds(self, speeds: Sequence[float]) -> float:
        return self.flops / min(speeds)


class HomogeneousTotal(Task, frozen=True):
    """Work that is shared out evenly among the hosts, however many they are."""

    flops: float

    def seconds(self, speeds: Sequence[float]) -> float:
        return self.flops / len(speeds) / min(speeds)


class Parallel(Task, frozen=True):
    """Work that is given host by host."""

    flops: tuple[float, ...]

    def seconds(self, speeds: Sequence[float]) -> float:
        return max(flops / speed for flops, speed in zip(self.flops, speeds, strict=True))


class Composed(Struct, frozen=True):
    """A sequence of other profiles, repeated; it stops at the first that fails."""

    name: str
    sequence: tuple[str, ...]
    repeat: int

    @property
    def length(self) -> int:
        """How many steps it has in all."""
        return len(self.sequence) * self.repeat

    def step_name(self, index: int) -> str:
        """Name of the profile of a step."""
        return self.sequence[index % len(self.sequence)]


def read_profile(name: str, profile: Profile, ignore_communication: bool = False) -> Task | Composed:
    """Understand a profile, or say why it cannot be simulated."""
    reader = _Reader(name, profile, ignore_communication)
    kind = profile.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise reader.error(f"has the type {kind!r}; known are {', '.join(_KINDS)}")
    return _KINDS[kind](reader)


class _Reader:
    """Takes the fields of one profile, with errors that name it."""

    def __init__(self, name: str, profile: Profile, ignore_communication: bool) -> None:
        self.name = name
        self._profile = profile
        self._ignore_communication = ignore_communication

    def error(self, text: str) -> InputError:
        return InputError(f"profile {self.name!r} {text}")

    def number(self, field: str, default: float | None = None) -> float:
        value = self._profile.get(field, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise self.error(f"needs a number that is not negative as `{field}`, not {value!r}")
        return float(value)

    def numbers(self, field: str) -> tuple[float, ...]:
        value = self._profile.get(field)
        if not isinstance(value, list) or not all(
            isinstance(item, (int, float)) and not isinstance(item, bool) and item >= 0 for item in value
        ):
            raise self.error(f"needs a list of numbers that are not negative as `{field}`")
        return tuple(float(item) for item in value)

    def names(self, field: str) -> tuple[str, ...]:
        value = self._profile.get(field)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise self.error(f"needs a list of profile names as `{field}`")
        return tuple(value)

    def integer(self, field: str, default: int, least: int) -> int:
        value = self._profile.get(field, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.error(f"needs an integer of {least} or more as `{field}`, not {value!r}")
        return value

    def return_code(self) -> int:
        return self.integer("ret", 0, 0)

    def refuse_bytes(self, amounts: Sequence[float]) -> None:
        if any(amounts) and not self._ignore_communication:
            raise self.error(
                "sends bytes, and the built-in Batsim has no network model; "
                "use --ignore-communication to leave them out, or a real Batsim"
            )

    def needs_network(self) -> InputError:
        return self.error(
            f"has the type {self._profile['type']!r}, which needs SimGrid's models; use a real Batsim for it"
        )


def _delay(reader: _Reader) -> Task:
    delay = reader.number("delay")
    if not delay > 0:
        raise reader.error("needs a `delay` above 0")
    return Delay(reader.name, reader.return_code(), delay)


def _homogeneous(reader: _Reader) -> Task:
    reader.refuse_bytes([reader.number("com", 0)])
    return Homogeneous(reader.name, reader.return_code(), reader.number("cpu"))


def _homogeneous_total(reader: _Reader) -> Task:
    reader.refuse_bytes([reader.number("com", 0)])
    return HomogeneousTotal(reader.name, reader.return_code(), reader.number("cpu"))


def _parallel(reader: _Reader) -> Task:
    flops, amounts = reader.numbers("cpu"), reader.numbers("com")
    if len(amounts) != len(flops) ** 2:
        raise reader.error(f"needs {len(flops) ** 2} numbers as `com`, it has {len(amounts)}")
    reader.refuse_bytes(amounts)
    return Parallel(reader.name, reader.return_code(), flops)


def _composed(reader: _Reader) -> Composed:
    return Composed(reader.name, reader.names("seq"), reader.integer("repeat", 1, 1))


def _refuse(reader: _Reader) -> Task:
    raise reader.needs_network()


_KINDS: dict[str, Callable[[_Reader], Task | Composed]] = {
    "delay": _delay,
    "parallel": _parallel,
    "parallel_homogeneous": _homogeneous,
    "parallel_homogeneous_total": _homogeneous_total,
    "composed": _composed,
    "parallel_homogeneous_pfs": _refuse,
    "data_staging": _refuse,
    "smpi": _refuse,
    "usage_trace": _refuse,
}
