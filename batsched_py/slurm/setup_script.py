"""A script that sets up a cluster: lines of ``scontrol create reservation`` and ``sacctmgr add``.

The script is read, not executed. Lines that do something else are noted.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.settings.associations import ROOT
from batsched_py.schedulers.slurm.settings.reservations import Reservation
from batsched_py.slurm.accounting.fields import ASSOCIATION, QOS
from batsched_py.slurm.accounting.listing import Accounting, read_values
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.moments import Clock
from batsched_py.slurm.reservations import created_reservation
from batsched_py.slurm.texts import read_text
from batsched_py.slurm.values import names

#: A recorder runs the script of a scenario up to a minute before it counts time: so many seconds in the mean.
BEFORE = 30.0


def read_setup(path: Path, clock: Clock, findings: Findings) -> tuple[list[Reservation], Accounting]:
    """The reservations, accounts, users and QOS that the lines of a script make."""
    reservations: list[Reservation] = []
    accounting = Accounting()
    for number, line in enumerate(read_text(path, findings).splitlines(), start=1):
        where = f"{path}, line {number}"
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            words = shlex.split(line)
        except ValueError as error:
            findings.mistake(where, f"{error}")
            continue
        if words[:2] == ["scontrol", "create"] and words[2:] and words[2][:3].lower() == "res":
            reservations += created_reservation(where, words[2:], clock, -BEFORE, findings)
        elif words[0] != "sacctmgr" or not _add(where, words[1:], accounting, findings):
            findings.left_out(where, f"{shown(line.strip())} is not executed")
    return reservations, accounting


def _add(where: str, words: Sequence[str], accounting: Accounting, findings: Findings) -> bool:
    """What ``sacctmgr add`` adds; whether the line is understood."""
    words = [word for word in words if not word.startswith("-")]
    if len(words) < 3 or words[0].lower() not in ("add", "create"):
        return False
    given = dict(word.split("=", 1) for word in words[3:] if "=" in word)
    match words[1].lower():
        case "qos":
            values = read_values(given, QOS, where, findings)
            for name in names(words[2]):
                accounting.add_qos({"name": name, **values}, where, findings)
        case "account":
            values = read_values(given, ASSOCIATION, where, findings)
            for name in names(words[2]):
                accounting.add_association({"parent": ROOT, **values, "account": name}, where, findings)
        case "user":
            accounts = given.pop("account", given.pop("accounts", given.get("defaultaccount", "")))
            values = read_values(given, ASSOCIATION, where, findings)
            if not accounts:
                findings.mistake(where, "names no account")
            for name in names(words[2]):
                known = any(user == name for _, user, _ in accounting.associations)
                for place, account in enumerate(names(accounts)):
                    default = {"default_account": not known and not place}
                    association = {**default, **values, "user": name, "account": account}
                    accounting.add_association(association, where, findings)
        case "cluster":
            findings.of_no_effect(where, "the name of the cluster")
        case _:
            return False
    return True
