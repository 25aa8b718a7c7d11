"""Limits of associations and QOS: jobs that would exceed one wait, and hold nobody else up.

A limit that a QOS sets counts in place of the same limit of the associations; that of a partition's QOS
counts first. Limits on usage over time (``GrpTRESMins`` and ``GrpWall``) are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cache
from typing import Any

from msgspec.structs import replace

from batsched_py.slurm.policy.job import KIBIBYTES, RunningRecord, WaitingRecord
from batsched_py.slurm.policy.nodes import Machine, Share, places
from batsched_py.slurm.policy.settings import Association, Configuration, Qos
from batsched_py.slurm.policy.settings import Limits as LimitSettings

NORMAL = "normal"
"""The QOS of jobs that do not say."""


class Accounts:
    """Associations and QOS by the jobs that belong to them."""

    def __init__(self, configuration: Configuration, machine: Machine, others: Sequence[str]) -> None:
        self._machine = machine
        self._others = [f"gres/{name}" for name in others]
        self._max_tres = "max_tres" in configuration.priority.flags
        self.qos = {each.name: each for each in configuration.qos}
        self._accounts = {each.account: each for each in configuration.associations if not each.user}
        self._users: dict[str, list[Association]] = {}
        for each in configuration.associations:
            if each.user:
                self._users.setdefault(each.user, []).append(each)
        self._have_qos = any(each.default_qos for each in configuration.associations)
        """Whether associations have a QOS for jobs that do not say."""
        self._default_account = cache(self._default_account_of)
        self._associations = cache(self._find_associations)

    def account_of(self, record: WaitingRecord) -> str:
        """The account of a job; that of its user if it does not say."""
        return record.fields.account or self._default_account(record.job.user or "")

    def _default_account_of(self, user: str) -> str:
        of_user = self._users.get(user, ())
        return next((each.account for each in of_user if each.default_account), "") or next(
            (each.account for each in of_user), ""
        )

    def associations_of(self, record: WaitingRecord) -> Sequence[Association]:
        """The association of a job and the accounts above it, from below."""
        return self._associations(self.account_of(record), record.job.user or "", record.partition.name)

    def _find_associations(self, account: str, user: str, partition: str) -> Sequence[Association]:
        found: list[Association] = []
        for name in (partition, ""):
            found = [
                each
                for each in self._users.get(user, ())
                if each.account == account and each.partition == name
            ]
            if found:
                break
        above = self._accounts.get(account)
        while above is not None and above not in found:
            found.append(above)
            above = self._accounts.get(above.parent)
        return found

    def qos_of(self, record: WaitingRecord) -> Qos | None:
        """The QOS of a job: its own, that of its association, or the normal one."""
        name = record.fields.qos
        if not name and self._have_qos:
            defaults = (each.default_qos for each in self.associations_of(record) if each.default_qos)
            name = next(defaults, NORMAL)
        return self.qos.get(name or NORMAL)

    def tres(self, record: WaitingRecord, share: Share) -> dict[str, float]:
        """What a job has of each resource."""
        machine, members = self._machine, list(places(share.nodes))
        found = {"node": float(len(members))}
        if share.exclusive:
            found["cpu"] = float(sum(machine.cpus[node] for node in members))
            found["mem"] = sum(machine.memory[node] for node in members) / KIBIBYTES
            for name, column in zip(self._others, machine.others, strict=True):
                found[name] = float(sum(column[node] for node in members))
        else:
            found["cpu"] = float(sum(cpus for _, cpus, _ in share.parts))
            found["mem"] = sum(memory for _, _, memory in share.parts) / KIBIBYTES
            for column_number, _, amount in share.others:
                name = self._others[column_number]
                found[name] = found.get(name, 0.0) + amount
        weights = record.partition.settings.tres_billing_weights
        if weights:
            parts = [weight * found.get(name, 0.0) for name, weight in weights.items()]
            found["billing"] = float(int(max(parts) if self._max_tres else sum(parts)))
        else:
            found["billing"] = found["cpu"]
        return found

    def billed(self, running: RunningRecord) -> float:
        """How much a job is billed for each second."""
        return self.tres(running.waiting, running.share)["billing"]


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
