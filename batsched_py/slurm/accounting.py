"""Accounts, users, shares, limits and QOS, from what ``sacctmgr`` and ``sshare`` print.

A file that ``sacctmgr dump`` writes looks like this::

    Cluster - 'toy':Fairshare=1:QOS='normal'
    Parent - 'root'
    Account - 'physics':Description='Physics':Fairshare=10
    Parent - 'physics'
    User - 'ada':DefaultAccount='physics':Fairshare=5:MaxJobs=4
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct, field

from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm import reading
from batsched_py.slurm.conf_settings import preempt_mode
from batsched_py.slurm.policy import settings

#: A field, and how its value is read; one that is read as ``None`` is left out.
Target = tuple[str, Callable[[str], Any]]

_OTHER_NAMES = {"overpartqos": "override_part_qos", "requiresreservation": "require_reservation"}
_FLAGS_UNMODELLED = ("relative",)
_OF_PARENT = str((1 << 31) - 1)


def _shares(text: str) -> int | Literal["parent"]:
    """Raw shares; a dump has a large number for those of the parent."""
    return "parent" if text.lower() == "parent" or text == _OF_PARENT else reading.count(text)


def read_flags(text: str) -> tuple[str, ...]:
    """Flags as Slurm writes them, like ``DenyOnLimit``."""
    known = {flag.replace("_", ""): str(flag) for flag in get_args(settings.QosFlag)} | _OTHER_NAMES

    def flag(word: str) -> str:
        plain = word.lower().replace("_", "")
        if plain not in known and plain not in _FLAGS_UNMODELLED:
            raise reading.NotModelled(f"the flag {shown(word)} is not known")
        if known.get(plain) not in settings.HEEDED_QOS_FLAGS:
            raise reading.NotModelled(f"the flag {shown(word)} is not modelled")
        return known[plain]

    return tuple(reading.each(reading.listed(text), flag))


def _preempt_mode(text: str) -> str | None:
    return None if text.lower() == "cluster" else str(preempt_mode(text))


def _read_by(read: Callable[[str], Any], **fields: str) -> dict[str, Target]:
    """Fields, each with the names that it has in listings."""
    return {name: (field, read) for field, names in fields.items() for name in names.split()}


_tres_minutes = partial(reading.tres, factor=60.0)

_LIMITS: dict[str, Target] = {
    **_read_by(reading.limit, grp_jobs="grpjobs", grp_submit_jobs="grpsubmitjobs grpsubmit"),
    **_read_by(reading.limit, grp_jobs_accrue="grpjobsaccrue", min_prio_thres="minpriothreshold minprio"),
    **_read_by(reading.tres, grp_tres="grptres", max_tres_per_job="maxtresperjob maxtres maxtrespj"),
    **_read_by(reading.tres, max_tres_per_node="maxtrespernode maxtrespn"),
    **_read_by(lambda text: reading.tres(f"cpu={text}"), grp_tres="grpcpus"),
    **_read_by(lambda text: reading.tres(f"node={text}"), grp_tres="grpnodes"),
    **_read_by(_tres_minutes, grp_tres_seconds="grptresmins", grp_tres_run_seconds="grptresrunmins"),
    **_read_by(_tres_minutes, max_tres_seconds_per_job="maxtresminsperjob maxtresmins maxtresminspj"),
    **_read_by(reading.finite_time, grp_wall="grpwall", max_wall="maxwalldurationperjob maxwall maxwallpj"),
    **_read_by(reading.count, priority="priority"),
}

ASSOCIATION: dict[str, Target] = {
    **_LIMITS,
    **_read_by(str.strip, account="account", user="user"),
    **_read_by(str, partition="partition", parent="parent parentname parname"),
    **_read_by(str, default_qos="defaultqos defqos"),
    **_read_by(_shares, shares="fairshare share shares rawshares"),
    **_read_by(reading.number, usage="rawusage"),
    **_read_by(_tres_minutes, usage_tres="grptresraw"),
    **_read_by(reading.names, qos="qos qoslevel"),
    **_read_by(reading.limit, max_jobs="maxjobs", max_submit_jobs="maxsubmitjobs maxsubmit"),
    **_read_by(reading.limit, max_jobs_accrue="maxjobsaccrue"),
}

QOS: dict[str, Target] = {
    **_LIMITS,
    **_read_by(str, name="name"),
    **_read_by(reading.names, preempt="preempt"),
    **_read_by(_preempt_mode, preempt_mode="preemptmode"),
    **_read_by(reading.finite_time, preempt_exempt_time="preemptexempttime"),
    **_read_by(reading.seconds, grace_time="gracetime"),
    **_read_by(read_flags, flags="flags"),
    **_read_by(reading.number, usage_factor="usagefactor", usage_threshold="usagethres usagethreshold"),
    **_read_by(reading.number, limit_factor="limitfactor"),
    **_read_by(reading.tres, max_tres_per_user="maxtrespu maxtresperuser"),
    **_read_by(reading.tres, max_tres_per_account="maxtrespa maxtresperaccount"),
    **_read_by(reading.tres, min_tres_per_job="mintres mintresperjob"),
    **_read_by(reading.limit, max_jobs_per_user="maxjobspu maxjobsperuser"),
    **_read_by(reading.limit, max_submit_jobs_per_user="maxsubmitpu maxsubmitjobspu maxsubmitjobsperuser"),
    **_read_by(reading.limit, max_jobs_accrue_per_user="maxjobsaccruepu maxjobsaccrueperuser"),
    **_read_by(reading.limit, max_jobs_per_account="maxjobspa maxjobsperaccount"),
    **_read_by(
        reading.limit, max_submit_jobs_per_account="maxsubmitpa maxsubmitjobspa maxsubmitjobsperaccount"
    ),
    **_read_by(reading.limit, max_jobs_accrue_per_account="maxjobsaccruepa maxjobsaccrueperaccount"),
}

#: Columns that may shape schedules, and become no field.
UNMODELLED = frozenset(
    "maxtresrunminspa maxtresrunminspu maxtresrunminsperaccount maxtresrunminsperuser".split()
)

#: Columns and keys that are computed from others, or shape no schedule.
WITHOUT_EFFECT = frozenset(
    """cluster id description descr organization org coordinator coordinators adminlevel defaultwckey
    defwckey wckey comment normshares normusage effectvusage effectvusg levelfs lft rgt parentid
    deleted defaultaccount tresrunmins lineage qosraw flags""".split()
)


def field_name(column: str) -> str:
    """A column's title as a key: small letters without blanks, digits and signs."""
    return "".join(letter for letter in column.lower() if letter.isalpha())


class Accounting(Struct):
    """All associations and QOS of some listings; what a later one says goes first."""

    associations: dict[tuple[str, str, str], settings.Association] = field(default_factory=dict)
    """By account, user and partition."""
    qos: dict[str, settings.Qos] = field(default_factory=dict)
    groups: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Who is in which group of users."""
    of_sshare: bool = False
    """Whether it is a table of ``sshare``, which does not tell partitions."""

    def add_association(self, values: Mapping[str, Any], where: str, findings: reading.Findings) -> None:
        """Add an account or a user of one, or what more is known of it."""
        key = tuple(values.get(name, "") for name in ("account", "user", "partition"))
        known = msgspec.to_builtins(self.associations.get(key, {}))
        with findings.noting(where):
            self.associations[key] = msgspec.convert({**known, **values}, settings.Association)

    def add_qos(self, values: Mapping[str, Any], where: str, findings: reading.Findings) -> None:
        """Add a QOS, or what more is known of it."""
        known = msgspec.to_builtins(self.qos.get(values["name"], {}))
        with findings.noting(where):
            self.qos[values["name"]] = msgspec.convert({**known, **values}, settings.Qos)

    def check(self, findings: reading.Findings) -> None:
        """Note accounts and QOS that are named but not there."""
        accounts = {account for account, user, _ in self.associations if not user} | {settings.ROOT}
        for one in self.associations.values():
            who = f"user {shown_name(one.user)}" if one.user else f"account {shown_name(one.account)}"
            above = one.account if one.user else one.parent
            if above not in accounts:
                findings.mistake(who, f"there is no account {shown_name(above)}")
            for name in (*one.qos, *filter(None, [one.default_qos])):
                if self.qos and name.lstrip("+-") not in {*self.qos, settings.NORMAL}:
                    findings.mistake(who, f"there is no QOS {shown_name(name)}")
            _check_usage(who, one, findings)
        for qos in self.qos.values():
            _check_usage(f"QOS {shown_name(qos.name)}", qos, findings)


def _check_usage(who: str, limited: settings.Association | settings.Qos, findings: reading.Findings) -> None:
    """Note limits on usage over time of which nothing tells how much was used before."""
    for limit, used, title in (
        (limited.grp_tres_seconds, limited.usage_tres, "GrpTRESMins"),
        (limited.grp_wall, limited.usage_wall, "GrpWall"),
    ):
        if limit and not used:
            findings.left_out(
                who, f"how much of {title} was used before is not told, and taken to be nothing"
            )


def read_values(
    given: Mapping[str, str], targets: Mapping[str, Target], where: str, findings: reading.Findings
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
        value = findings.read(read, text.strip(), where, f"{shown_name(title)}={shown_name(text)}")
        if value and settings.is_unused(table, target):
            findings.left_out(where, f"{shown_name(title)} is not modelled")
        if isinstance(value, dict):
            values.setdefault(target, {}).update(value)
        elif value is not None:
            values[target] = value
    return values


#: A place and the line there.
Line = tuple[str, str]


#: A line of ``getent group``.
_GROUP = re.compile(r"([^:|]+):[^:|]*:[0-9]+:([^:|]*)")


def read_groups(lines: Sequence[Line], findings: reading.Findings) -> Accounting:
    """Who is in which group, by lines like those of ``/etc/group``."""
    found: dict[str, tuple[str, ...]] = {}
    for where, line in lines:
        if match := _GROUP.fullmatch(line.strip()):
            found[match[1]] = reading.listed(match[2])
        else:
            findings.mistake(where, f"{shown(line)} is not of the form NAME:PASSWORD:NUMBER:USERS")
    return Accounting(groups=found)


def read_table(lines: Sequence[Line], findings: reading.Findings) -> Accounting:
    """What a table says, whose first line has the titles of its columns."""
    where, head = lines[0]
    titles = {field_name(title): title for title in head.rstrip("|").split("|")}
    rows = _rows(head.rstrip("|").split("|"), lines[1:], findings)
    accounting = Accounting(of_sshare="rawshares" in titles)
    if "account" in titles:
        _read_associations(titles["account"], rows, accounting, findings)
    elif "name" in titles:
        for place, row in rows:
            values = read_values(row, QOS, place, findings)
            if "name" in values:
                accounting.add_qos(values, place, findings)
            else:
                findings.mistake(place, "names no QOS")
    else:
        findings.mistake(where, "has neither a column Account nor a column Name, as sacctmgr -P prints them")
    return accounting


def _read_associations(
    account_title: str,
    rows: Iterator[tuple[str, dict[str, str]]],
    accounting: Accounting,
    findings: reading.Findings,
) -> None:
    """Associations; an account that names no parent is below the last one that is less indented."""
    above: list[tuple[int, str]] = []
    tells_parents, first = False, ""
    for where, row in rows:
        first = first or where
        if accounting.of_sshare:  # it has shares and a factor called FairShare
            row.pop("FairShare", None)
        values = read_values(row, ASSOCIATION, where, findings)
        if "account" not in values:
            findings.mistake(where, "names no account")
            continue
        if not values.get("user"):
            text = row[account_title]
            indent = len(text) - len(text.lstrip())
            above = [(depth, name) for depth, name in above if depth < indent]
            tells_parents = tells_parents or indent > 0 or "parent" in values
            if above:
                values.setdefault("parent", above[-1][1])
            above.append((indent, values["account"]))
            if values["account"] == settings.ROOT:
                values.pop("parent", None)
        accounting.add_association(values, where, findings)
    accounts = [key for key in accounting.associations if not key[1] and key[0] != settings.ROOT]
    if len(accounts) > 1 and not tells_parents:
        findings.left_out(
            first, "no parents are told, so all accounts are taken to be below root; add `tree`"
        )


def _rows(
    titles: list[str], lines: Sequence[Line], findings: reading.Findings
) -> Iterator[tuple[str, dict[str, str]]]:
    for where, line in lines:
        cells = line.split("|")
        if len(cells) == len(titles) + 1 and not cells[-1]:
            cells.pop()
        if len(cells) == len(titles):
            yield where, dict(zip(titles, cells, strict=True))
        else:
            findings.mistake(where, f"has {len(cells)} fields instead of {len(titles)}")


#: What a line begins with.
TITLE = re.compile(r"(Cluster|Parent|Account|User)\s*-\s*")
_VALUE = r"(?:'[^']*'|\"[^\"]*\"|[^'\":]*)"
_NAME = re.compile(_VALUE)
_SPECIFICATION = re.compile(r":([A-Za-z ]+)=((?:'[^']*'|\"[^\"]*\"|[^'\"])*?)(?=:[A-Za-z ]+=|$)")


def read_dump(lines: Sequence[Line], findings: reading.Findings) -> Accounting:
    """The associations in the lines of a dump, each with its place."""
    accounting = Accounting()
    parent = settings.ROOT
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
        if title[1] == "Parent":
            parent = called
            if parent != settings.ROOT and (parent, "", "") not in accounting.associations:
                findings.mistake(where, f"there is no account {shown(parent)} above this line")
            continue
        default = specifications.get("DefaultAccount", "") == parent
        told: dict[str, dict[str, Any]] = {
            "Cluster": {"account": settings.ROOT},
            "Account": {"account": called, "parent": parent},
            "User": {"account": parent, "user": called, "default_account": default},
        }
        accounting.add_association(told[title[1]] | values, where, findings)
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
            found[name] = match[2].strip().strip("'\"")
        place = match.end()
    return found if place == len(text) else None


def read_accounting(path: Path, findings: reading.Findings) -> Accounting:
    """A dump of ``sacctmgr``, a table of ``sacctmgr -P`` or ``sshare -P``, or groups by ``getent group``."""
    text = reading.read_text(path, findings)
    lines = [
        (f"{path}, line {number}", line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        findings.mistake(str(path), "has no line of a listing of sacctmgr")
        return Accounting()
    if _GROUP.fullmatch(lines[0][1].strip()):
        return read_groups(lines, findings)
    return (read_dump if TITLE.match(lines[0][1]) else read_table)(lines, findings)


def together(listings: list[Accounting], findings: reading.Findings) -> Accounting:
    """What several listings say, the last one of them first."""
    whole = Accounting()
    for listing in listings:
        whole.qos |= listing.qos
        whole.groups |= listing.groups
        users = {(account, user) for account, user, _ in whole.associations}
        for key, association in listing.associations.items():
            if listing.of_sshare and key not in whole.associations and key[:2] in users:
                findings.left_out(f"user {key[1]}", "has associations by partition; their usage is not told")
                continue
            whole.add_association(msgspec.to_builtins(association), f"user {key[1]}", findings)
    whole.check(findings)
    return whole
