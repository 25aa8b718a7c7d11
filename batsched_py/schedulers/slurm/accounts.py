"""To which account and QOS a job belongs, and what it has of which resource."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from batsched_py.schedulers.slurm.asked import KIBIBYTES
from batsched_py.schedulers.slurm.configuration import Configuration
from batsched_py.schedulers.slurm.nodes import Machine, Share, places
from batsched_py.schedulers.slurm.records import RunningRecord, WaitingRecord
from batsched_py.schedulers.slurm.settings.associations import Association
from batsched_py.schedulers.slurm.settings.qos import Qos

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
