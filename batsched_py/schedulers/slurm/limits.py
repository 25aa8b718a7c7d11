"""Limits of associations and QOS: jobs that would exceed one wait, and hold nobody else up.

A limit that a QOS sets counts in place of the same limit of the associations; that of a partition's QOS
counts first. Limits on usage over time (``GrpTRESMins`` and ``GrpWall``) are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from msgspec.structs import replace

from batsched_py.schedulers.slurm.accounts import Accounts
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.nodes import Share
from batsched_py.schedulers.slurm.records import RunningRecord, WaitingRecord
from batsched_py.schedulers.slurm.settings.limits import Limits as LimitSettings
from batsched_py.schedulers.slurm.settings.qos import Qos

#: Whose jobs are counted together.
Key = tuple[str, ...]

#: Limits, and the three whose jobs are counted for them: all, those of a user, and those of an account.
Holder = tuple[LimitSettings, Key, Key, Key]

UNLIMITED = LimitSettings()


class Verdict(Enum):
    """What limits say of a job."""

    FINE = auto()
    WAITS = auto()


class NoLimits:
    """A machine without limits."""

    are_set = False
    """Whether there are any."""

    def before_selection(self, record: WaitingRecord, now: int) -> Verdict:
        """Whether a job may start as far as it does not matter where."""
        return Verdict.FINE

    def after_selection(self, record: WaitingRecord, share: Share, now: int) -> Verdict:
        """Whether a job may start with its share of the nodes."""
        return Verdict.FINE

    def started(self, running: RunningRecord) -> None:
        """A job counts from now on."""

    def ended(self, running: RunningRecord) -> None:
        """A job counts no longer."""


class Count:
    """The running jobs that are counted together, and what they have."""

    def __init__(self) -> None:
        self.jobs = 0
        self.tres: dict[str, float] = {}

    def change(self, tres: Mapping[str, float], sign: int) -> None:
        """A job more or less."""
        self.jobs += sign
        for name, amount in tres.items():
            self.tres[name] = self.tres.get(name, 0.0) + sign * amount


class Limits(NoLimits):
    """The limits of a configuration, and what counts against them."""

    are_set = True

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._counts: dict[Key, Count] = {}
        self._holders_of: dict[tuple[str | None, ...], Sequence[Holder]] = {}

    def before_selection(self, record: WaitingRecord, now: int) -> Verdict:
        """Limits on numbers of jobs and on time limits."""
        for settings, key, user, account in self._holders(record):
            if settings.max_wall is not None and record.limit * 60 > settings.max_wall:
                return Verdict.WAITS
            if self._is_reached(key, settings.grp_jobs):
                return Verdict.WAITS
            if self._is_reached(user, _get(settings, "max_jobs_per_user")):
                return Verdict.WAITS
            if self._is_reached(account, _get(settings, "max_jobs_per_account")):
                return Verdict.WAITS
            if self._is_reached(key, _get(settings, "max_jobs")):
                return Verdict.WAITS
        return Verdict.FINE

    def after_selection(self, record: WaitingRecord, share: Share, now: int) -> Verdict:
        """Limits on what jobs have."""
        tres = self._accounts.tres(record, share)
        for settings, key, user, account in self._holders(record):
            job_seconds = {name: amount * record.limit * 60 for name, amount in tres.items()}
            per_node = {name: amount / tres["node"] for name, amount in tres.items()}
            if (
                _exceeds(tres, settings.max_tres_per_job)
                or _exceeds(per_node, settings.max_tres_per_node)
                or _exceeds(job_seconds, settings.max_tres_seconds_per_job)
                or self._would_exceed(key, tres, settings.grp_tres)
                or self._would_exceed(user, tres, _get(settings, "max_tres_per_user") or {})
                or self._would_exceed(account, tres, _get(settings, "max_tres_per_account") or {})
            ):
                return Verdict.WAITS
        return Verdict.FINE

    def started(self, running: RunningRecord) -> None:
        """Count a job everywhere."""
        self._change(running, 1)

    def ended(self, running: RunningRecord) -> None:
        """Count it no longer."""
        self._change(running, -1)

    def _change(self, running: RunningRecord, sign: int) -> None:
        tres = self._accounts.tres(running.waiting, running.share)
        keys: set[Key] = set()
        for _, *each in self._holders(running.waiting):
            keys |= set(each)
        for key in keys:
            self._counts.setdefault(key, Count()).change(tres, sign)

    def _holders(self, record: WaitingRecord) -> Sequence[Holder]:
        """Whose limits count for a job, and who is counted; many jobs have the same."""
        key = record.fields.account, record.job.user, record.partition.name, record.fields.qos
        known = self._holders_of.get(key)
        if known is None:
            known = self._holders_of[key] = list(self._find_holders(record))
        return known

    def _find_holders(self, record: WaitingRecord) -> Iterator[Holder]:
        """The same, of associations only the limits that no QOS has."""
        accounts, user = self._accounts, record.job.user or ""
        account = accounts.account_of(record)
        own = accounts.qos_of(record)
        of_partition = accounts.qos.get(record.partition.settings.qos)
        of_qos: list[Qos] = [each for each in (of_partition, own) if each is not None]
        if own is not None and "override_part_qos" in own.flags:
            of_qos.reverse()
        set_by_qos: set[str] = set()
        for qos in {each.name: each for each in of_qos}.values():
            yield _without(qos, set_by_qos), ("qos", qos.name), (
                "user", qos.name, user,
            ), ("account", qos.name, account)  # fmt: skip
            set_by_qos |= _names_set(qos)
        for association in accounts.associations_of(record):
            key = ("association", association.account, association.user, association.partition)
            yield _without(association, set_by_qos), key, key, key

    def _is_reached(self, key: Key, most: int | None) -> bool:
        return most is not None and (self._counts[key].jobs if key in self._counts else 0) >= most

    def _would_exceed(self, key: Key, tres: Mapping[str, float], most: Mapping[str, float]) -> bool:
        if not most:
            return False
        has = self._counts[key].tres if key in self._counts else {}
        return any(has.get(name, 0.0) + tres.get(name, 0.0) > limit for name, limit in most.items())


def limits_of(configuration: Configuration, accounts: Accounts) -> NoLimits:
    """The limits of a configuration that are enforced."""
    return Limits(accounts) if "limits" in configuration.enforce else NoLimits()


def _exceeds(tres: Mapping[str, float], most: Mapping[str, float]) -> bool:
    return any(tres.get(name, 0.0) > limit for name, limit in most.items())


def _get(settings: LimitSettings, name: str) -> Any:
    return getattr(settings, name, None)


def _names_set(settings: LimitSettings) -> set[str]:
    """The names of the limits that are set."""
    return {name for name in LimitSettings.__struct_fields__ if getattr(settings, name)}


def _without(settings: LimitSettings, names: set[str]) -> LimitSettings:
    """Limits without some of them."""
    left_out = {name: getattr(UNLIMITED, name) for name in names}
    return replace(settings, **left_out) if left_out else settings
