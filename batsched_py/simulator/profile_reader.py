"""Understanding profiles as workload files and decision processes write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Profile
from batsched_py.simulator.profiles import (
    Composed,
    Delay,
    Homogeneous,
    HomogeneousTotal,
    Parallel,
    Receive,
    Send,
    Task,
    Transfer,
)


def read_profile(name: str, profile: Profile, ignore_communication: bool = False) -> Task | Composed:
    """Understand a profile, or say why it cannot be simulated.

    There is no network model. What sends bytes is refused, or with ``ignore_communication`` runs as if that
    took no time: then nothing is left of a profile that only moves bytes.
    """
    fields = _Fields(name, profile, ignore_communication)
    kind = profile.get("type")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise fields.error(f"has the type {kind!r}; known are {', '.join(_KINDS)}")
    return _KINDS[kind](fields)


class _Fields:
    """The fields of one profile, taken with errors that name it."""

    def __init__(self, name: str, profile: Profile, ignore_communication: bool) -> None:
        self.name = name
        self._profile = profile
        self._ignore_communication = ignore_communication

    def error(self, text: str) -> InputError:
        return InputError(f"profile {self.name!r} {text}")

    def __contains__(self, field: str) -> bool:
        return field in self._profile

    def number(self, field: str, default: float | None = None) -> float:
        value = self._profile.get(field, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < float("inf"):
            raise self.error(f"needs a number that is not negative as `{field}`, not {value!r}")
        return float(value)

    def positive(self, field: str, default: float | None = None) -> float:
        value = self.number(field, default)
        if not value > 0:
            raise self.error(f"needs a `{field}` above 0")
        return value

    def numbers(self, field: str) -> tuple[float, ...]:
        value = self._profile.get(field)
        if not isinstance(value, list) or not all(
            isinstance(item, (int, float)) and not isinstance(item, bool) and item >= 0 for item in value
        ):
            raise self.error(f"needs a list of numbers that are not negative as `{field}`")
        return tuple(float(item) for item in value)

    def text(self, field: str, default: str | None = None) -> str:
        value = self._profile.get(field, default)
        if not isinstance(value, str):
            raise self.error(f"needs a text as `{field}`, not {value!r}")
        return value

    def names(self, field: str) -> tuple[str, ...]:
        value = self._profile.get(field)
        if not isinstance(value, list) or not value or not all(isinstance(item, str) for item in value):
            raise self.error(f"needs a list of profile names as `{field}`")
        return tuple(value)

    def object(self, field: str) -> dict[str, Any]:
        value = self._profile.get(field)
        if not isinstance(value, dict):
            raise self.error(f"needs an object as `{field}`, not {value!r}")
        return value

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
                f"(type {self._profile['type']}) sends bytes, and the built-in Batsim has no network model; "
                "use --ignore-communication to leave them out, or a real Batsim"
            )


def _delay(fields: _Fields) -> Task:
    return Delay(fields.name, fields.return_code(), fields.positive("delay"))


def _homogeneous(fields: _Fields) -> Task:
    fields.refuse_bytes([fields.number("com", 0)])
    return Homogeneous(fields.name, fields.return_code(), fields.number("cpu"))


def _homogeneous_total(fields: _Fields) -> Task:
    fields.refuse_bytes([fields.number("com", 0)])
    return HomogeneousTotal(fields.name, fields.return_code(), fields.number("cpu"))


def _parallel(fields: _Fields) -> Task:
    flops, amounts = fields.numbers("cpu"), fields.numbers("com")
    if not flops:
        raise fields.error("needs one number at least as `cpu`")
    if len(amounts) != len(flops) ** 2:
        raise fields.error(f"needs {len(flops) ** 2} numbers as `com`, it has {len(amounts)}")
    fields.refuse_bytes(amounts)
    return Parallel(fields.name, fields.return_code(), flops)


def _composed(fields: _Fields) -> Composed:
    return Composed(fields.name, fields.return_code(), fields.names("seq"), fields.integer("repeat", 1, 1))


def _send(fields: _Fields) -> Task:
    return Send(
        fields.name, fields.return_code(), fields.object("msg"), fields.positive("sleeptime", 0.0000001)
    )


def _receive(fields: _Fields) -> Task:
    try:
        pattern = re.compile(fields.text("regex", ".*"))
    except re.error as error:
        raise fields.error(f"has a `regex` that cannot be read: {error}") from None
    return Receive(
        fields.name,
        fields.return_code(),
        pattern,
        success=fields.text("success", ""),
        failure=fields.text("failure", ""),
        timeout=fields.text("timeout", ""),
        poll_seconds=fields.positive("polltime", 0.005),
    )


def _parallel_file_system(fields: _Fields) -> Task:
    if "bytes_to_read" not in fields and "bytes_to_write" not in fields:
        raise fields.error("needs `bytes_to_read` or `bytes_to_write`")
    fields.refuse_bytes([fields.number("bytes_to_read", 0), fields.number("bytes_to_write", 0)])
    label = fields.text("storage" if "storage" in fields else "host", "pfs")
    return Transfer(fields.name, fields.return_code(), (label,), needs_mapping=False)


def _data_staging(fields: _Fields) -> Task:
    fields.refuse_bytes([fields.number("nb_bytes")])
    labels = (fields.text("from"), fields.text("to"))
    return Transfer(fields.name, fields.return_code(), labels, needs_mapping=True)


def _trace(fields: _Fields) -> Task:
    raise fields.error(
        f"replays a trace (type {fields.text('type')}), which needs SimGrid; use a real Batsim for it"
    )


_KINDS: dict[str, Callable[[_Fields], Task | Composed]] = {
    "delay": _delay,
    "parallel": _parallel,
    "parallel_homogeneous": _homogeneous,
    "parallel_homogeneous_total": _homogeneous_total,
    "composed": _composed,
    "send": _send,
    "recv": _receive,
    "parallel_homogeneous_pfs": _parallel_file_system,
    "data_staging": _data_staging,
    "smpi": _trace,
    "usage_trace": _trace,
}
