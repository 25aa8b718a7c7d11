"""The file that ``sacctmgr dump`` writes::

Cluster - 'toy':Fairshare=1:QOS='normal'
Parent - 'root'
Account - 'physics':Description='Physics':Fairshare=10
Parent - 'physics'
User - 'ada':DefaultAccount='physics':Fairshare=5:MaxJobs=4
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.settings.associations import ROOT
from batsched_py.slurm.accounting.fields import ASSOCIATION, WITHOUT_EFFECT, field_name
from batsched_py.slurm.accounting.listing import Accounting, read_values
from batsched_py.slurm.findings import Findings

#: What a line begins with.
TITLE = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*")
_VALUE = r"(?:'[^']*'|\"[^\"]*\"|[^'\":]*)"
_NAME = re.compile(_VALUE)
_SPECIFICATION = re.compile(r":([A-Za-z ]+)=((?:'[^']*'|\"[^\"]*\"|[^'\"])*?)(?=:[A-Za-z ]+=|$)")


def read_dump(lines: Iterable[tuple[str, str]], findings: Findings) -> Accounting:
    """The associations in the lines of a dump, each with its place."""
    accounting = Accounting()
    parent = ROOT
    for where, line in lines:
        title = TITLE.match(line)
        if title is None:
            findings.mistake(where, f"{shown(line)} does not begin with Cluster, Parent, Account or User")
            continue
        name = _NAME.match(line, title.end())
        rest = line[name.end() :] if name else ""
        specifications = _specifications(rest)
        if name is None or not name[0].strip("'\" ") or specifications is None:
            findings.mistake(
                where, f"{shown(line)} is cut short, or not of the form {title[1]} - NAME:KEY=VALUE"
            )
            continue
        called = name[0].strip("'\" ")
        values = read_values(specifications, ASSOCIATION, where, findings)
        match title[1]:
            case "Cluster":
                accounting.add_association({"account": ROOT, **values}, where, findings)
            case "Parent":
                parent = called
                if parent != ROOT and (parent, "", "") not in accounting.associations:
                    findings.mistake(where, f"there is no account {shown(parent)} above this line")
            case "Account":
                accounting.add_association({"account": called, "parent": parent, **values}, where, findings)
            case _:
                default = _unquoted(specifications.get("DefaultAccount", "")) == parent
                accounting.add_association(
                    {"account": parent, "user": called, "default_account": default, **values}, where, findings
                )
    return accounting


def _specifications(text: str) -> dict[str, str] | None:
    """The keys and values behind a name; nothing if the text is something else."""
    found: dict[str, str] = {}
    place = 0
    last = ""
    while match := _SPECIFICATION.match(text, place):
        name = match[1].strip()
        if last and field_name(name) not in ASSOCIATION and field_name(name) not in WITHOUT_EFFECT:
            found[last] += match[0]  # a type in a resource, as in gres/gpu:tesla=2
        else:
            last = name
            found[name] = _unquoted(match[2])
        place = match.end()
    return found if place == len(text) else None


def _unquoted(text: str) -> str:
    return text.strip().strip("'\"")
