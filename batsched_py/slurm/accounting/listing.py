"""What is gathered from listings: associations and QOS, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from batsched_py.protocol.shown import shown_name
from batsched_py.schedulers.slurm.settings.associations import ROOT, Association
from batsched_py.schedulers.slurm.settings.qos import Qos
from batsched_py.schedulers.slurm.settings.unused import is_unused
from batsched_py.slurm.accounting.fields import QOS, WITHOUT_EFFECT, Target, field_name
from batsched_py.slurm.findings import Findings


class Accounting(Struct):
    """All associations and QOS of some listings; what a later one says goes first."""

    associations: dict[tuple[str, str, str], Association] = field(default_factory=dict)
    """By account, user and partition."""
    qos: dict[str, Qos] = field(default_factory=dict)
    of_sshare: bool = False
    """Whether it is a table of ``sshare``, which does not tell partitions."""

    def add_association(self, values: Mapping[str, Any], where: str, findings: Findings) -> None:
        """Add an account or a user of one, or what more is known of it."""
        key = tuple(values.get(name, "") for name in ("account", "user", "partition"))
        known = msgspec.to_builtins(self.associations.get(key, {}))
        try:
            self.associations[key] = msgspec.convert({**known, **values}, Association)
        except ValueError as error:
            findings.mistake(where, str(error))

    def add_qos(self, values: Mapping[str, Any], where: str, findings: Findings) -> None:
        """Add a QOS."""
        try:
            self.qos[values["name"]] = msgspec.convert(values, Qos)
        except ValueError as error:
            findings.mistake(where, str(error))

    def check(self, findings: Findings) -> None:
        """Note accounts and QOS that are named but not there."""
        accounts = {account for account, user, _ in self.associations if not user} | {ROOT}
        for each in self.associations.values():
            who = f"user {shown_name(each.user)}" if each.user else f"account {shown_name(each.account)}"
            above = each.account if each.user else each.parent
            if above not in accounts:
                findings.mistake(who, f"there is no account {shown_name(above)}")
            for name in (*each.qos, *filter(None, [each.default_qos])):
                if self.qos and name.lstrip("+-") not in self.qos:
                    findings.mistake(who, f"there is no QOS {shown_name(name)}")


def read_values(
    given: Mapping[str, str], targets: Mapping[str, Target], where: str, findings: Findings
) -> dict[str, Any]:
    """The fields that some columns or keys become; those without a value are left out."""
    table = "qos" if targets is QOS else "associations"
    values: dict[str, Any] = {}
    for title, text in given.items():
        name = field_name(title)
        if not text.strip():
            continue
        if name not in targets:
            if name not in WITHOUT_EFFECT:
                findings.left_out(where, f"{shown_name(title)} is not modelled")
            continue
        target, read = targets[name]
        try:
            value = read(text.strip())
        except ValueError as error:
            value = findings.refused(where, f"{shown_name(title)}={shown_name(text)}", error)
        if value and is_unused(table, target):
            findings.left_out(where, f"{shown_name(title)} is not modelled")
        if isinstance(value, dict):
            values.setdefault(target, {}).update(value)
        elif value is not None:
            values[target] = value
    return values
