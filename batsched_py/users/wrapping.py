"""Behaviours around behaviours: ``patience(think-time)`` are users with think times who may lose patience."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

from batsched_py.errors import InputError
from batsched_py.plugins import Registry
from batsched_py.protocol.jobs import Job, JobState
from batsched_py.users.base import Action, Behaviour, Remark, Submission, User, Withdrawal


class Wrapper(Behaviour):
    """A behaviour that changes what the users of another one do.

    A subclass asks :attr:`inner` for users, and hands on others who speak to these.
    """

    around: ClassVar[str] = "think-time"
    """What it is around when nothing is said."""
    outermost: ClassVar[bool] = False
    """Whether nothing can go around it."""
    inner: ClassVar[Behaviour]
    """What it is around; each instance has its own."""


class WrappedUser(User):
    """Hands on what another user does and hears; a subclass changes some of it."""

    def __init__(self, user: User) -> None:
        self.name = user.name
        self.user = user
        self.waiting: dict[str, float] = {}
        """The jobs that were submitted and did not start, and since when they wait."""
        self._submitted: dict[str, Submission] = {}
        """Those that are not over, with what is noted about them."""

    def next_time(self) -> float:
        """When the user acts."""
        return self.user.next_time()

    def submit(self, now: float) -> Sequence[Action]:
        """What the user does, if its time has come."""
        actions = self.user.submit(now) if self.user.next_time() <= now else ()
        for action in actions:
            if isinstance(action, Submission):
                self.waiting[action.job.id] = now
                self._submitted[action.job.id] = action
            elif action.note and (submitted := self._submitted.get(action.job_id)):
                submitted.note = action.note
        return actions

    def withdraw(self, job_id: str, note: str = "") -> Withdrawal:
        """Take back a job, which waits no longer, and add something to its note."""
        self.waiting.pop(job_id, None)
        return Withdrawal(job_id, self._added(job_id, note) if note else "")

    def remark(self, job_id: str, note: str) -> Remark:
        """Add something to the note of a job."""
        return Remark(job_id, self._added(job_id, note))

    def _added(self, job_id: str, note: str) -> str:
        """What is noted about a job, and this."""
        submitted = self._submitted.get(job_id)
        if submitted is None:
            return note
        submitted.note = f"{submitted.note} {note}".strip()
        return submitted.note

    def job_started(self, job: Job, now: float) -> None:
        """It waits no longer."""
        self.waiting.pop(job.id, None)
        self.user.job_started(job, now)

    def job_ended(self, job: Job, state: JobState, now: float) -> None:
        """It waits no longer, whether it had started or not."""
        self.waiting.pop(job.id, None)
        self._submitted.pop(job.id, None)
        self.user.job_ended(job, state, now)


class Behaviours(Registry[Behaviour]):
    """The known behaviours, which may be named one around the other, as in ``outer(inner)``.

    An option is for each of them that has one of its name. With ``NAME.`` in front it is for that one only.
    """

    def find(self, name: str) -> type[Behaviour]:
        """The outermost behaviour."""
        return super().find(_layers(name)[0])

    def options(self, name: str) -> list[str]:
        """The names of the options that one of the behaviours has."""
        found = (option for layer in self.layers(name) for option in super(Behaviours, self).options(layer))
        return list(dict.fromkeys(found))

    def create(self, name: str, options: Mapping[str, str]) -> Behaviour:
        """The outermost behaviour, around all others."""
        layers = self.layers(name)
        if len(layers) == 1:
            return super().create(name, options)
        given = self._shared_out(name, layers, options)
        created = [
            super(Behaviours, self).create(layer, mine) for layer, mine in zip(layers, given, strict=True)
        ]
        for outer, inner in pairwise(created):
            assert isinstance(outer, Wrapper)
            outer.inner = inner  # type: ignore[misc]
        return created[0]

    def layers(self, name: str) -> list[str]:
        """The names from the outermost behaviour to the innermost, which wraps nothing."""
        layers = _layers(name)
        while issubclass(last := super().find(layers[-1]), Wrapper):
            layers.append(last.around)
        for layer in layers[:-1]:
            if not issubclass(super().find(layer), Wrapper):
                raise InputError(f"{self.kind} {name!r}: {layer!r} goes around no other one")
        for outer, inner in pairwise(layers):
            if getattr(super().find(inner), "outermost", False):
                raise InputError(f"{self.kind} {name!r}: write {inner}({outer}(...)), not {outer}({inner})")
        return layers

    def _shared_out(self, name: str, layers: list[str], options: Mapping[str, str]) -> list[dict[str, str]]:
        """For each behaviour, the options that are for it; what is for one only comes first."""
        known = [super(Behaviours, self).options(layer) for layer in layers]
        given: list[dict[str, str]] = [{} for _ in layers]
        for key, value in options.items():
            hits = 0
            for layer, fields, mine in zip(layers, known, given, strict=True):
                if key in fields:
                    mine.setdefault(key, value)
                    hits += 1
                elif key.startswith(f"{layer}.") and (own := key.removeprefix(f"{layer}.")) in fields:
                    mine[own] = value
                    hits += 1
            if not hits:
                all_known = ", ".join(
                    f"{layer}.{field}"
                    for layer, fields in zip(layers, known, strict=True)
                    for field in fields
                )
                raise InputError(
                    f"{self.kind} {name!r} has no option {key!r}; it knows {all_known or 'none'}"
                )
        return given


def _layers(name: str) -> list[str]:
    """The names in ``outer(inner)``, from the outermost to the innermost.

    >>> _layers("resample(patience(think-time))")
    ['resample', 'patience', 'think-time']
    """
    layers = []
    rest = name
    while rest.endswith(")"):
        outer, bracket, inner = rest[:-1].partition("(")
        if not (outer.strip() and bracket and inner.strip()):
            raise InputError(f"user behaviour {name!r}: write outer(inner), like patience(think-time)")
        layers.append(outer.strip())
        rest = inner.strip()
    return [*layers, rest]
