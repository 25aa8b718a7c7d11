"""Reservations: present ones, past ones, and those that a script makes that sets up a cluster.

Present ones are what ``scontrol show reservation`` prints. Of past ones, ``sacctmgr show reservation`` has a
table, and the controller's log has a line for each that was made or changed; neither tells all. A script has
lines of ``scontrol create reservation`` and ``sacctmgr add``. It is read, not executed. Lines that do
something else are noted.
"""

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec.structs import replace

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.accounting import ASSOCIATION, QOS, Accounting, read_values
from batsched_py.slurm.policy.settings import (
    HEEDED_RESERVATION_FLAGS,
    ROOT,
    Reservation,
    ReservationFlag,
    is_unused,
)
from batsched_py.slurm.reading import Clock, Findings, count, names, read_text, time_limit, tres

_PAIR = re.compile(r"([A-Za-z]+)=(\S*)")
_NOTHING = ("(null)", "", "N/A", "n/a")
_FLAGS: dict[str, str] = {flag.replace("_", ""): flag for flag in get_args(ReservationFlag)} | {
    "staticalloc": "static",
    "noholdjobsafterend": "no_hold_jobs_after",
}
#: Flags that change nothing for nodes that are named.
FLAGS_WITHOUT_EFFECT = frozenset("allnodes userdelete".split())
_UNMODELLED = ("features", "groups", "licenses", "burstbuffer", "coreids", "skip")
_WITHOUT_EFFECT = frozenset(
    "reservationname starttime endtime state watts nodename corecnt duration delegate comment".split()
)

#: The field that a setting becomes, and how it is read.
_READERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "nodes": ("nodes", str),
    **dict.fromkeys(("nodecnt", "nodecount"), ("node_count", lambda text: count(text.split(",")[0]))),
    **dict.fromkeys(("partitionname", "partition"), ("partition", str)),
    "tres": ("tres", tres),
    **{name: (name, names) for name in ("users", "accounts", "qos")},
    "maxstartdelay": ("max_start_delay", time_limit),
}


def read_reservations(path: Path, clock: Clock, findings: Findings) -> list[Reservation]:
    """The reservations of a listing, a table or a log."""
    text = read_text(path, findings)
    if any(map(_LOGGED.match, text.splitlines())):
        return list(_logged(path, text, clock, findings))
    is_table = "|" in text.partition("\n")[0]
    listed = _tabled(path, text, findings) if is_table else _shown(path, text, findings)
    found = [each for where, given in listed for each in _reservation(where, given, clock, findings)]
    return _told_apart([replace(each, flags=_single(each.flags)) for each in found]) if is_table else found


def reservation_of(where: str, text: str, clock: Clock, findings: Findings) -> Reservation | None:
    """The reservation of a line as ``scontrol create`` takes it, unless it is wrong."""
    given = {name.lower(): value for name, value in _PAIR.findall(text)}
    return next(_reservation(where, given, clock, findings), None)


#: After how many seconds a reservation with one of these flags is there again.
PERIODS = {"hourly": 3600.0, "daily": 86400.0, "weekly": 604800.0}

#: So long a reservation comes again where nothing tells of what time there is to know, in seconds.
AHEAD = 14 * 86400.0


def _single(flags: tuple[ReservationFlag, ...]) -> tuple[ReservationFlag, ...]:
    """The flags of a reservation that does not come again, such as each of those in a table."""
    return tuple(flag for flag in flags if flag not in PERIODS)


def written_out(reservation: Reservation, span: tuple[float, float] | None) -> list[Reservation]:
    """A reservation that comes again as single ones, each known when the one before it is over.

    A listing tells when it comes next. A log has a ``span`` of time, in which it had been there before, too.
    """
    period = next((PERIODS[flag] for flag in reservation.flags if flag in PERIODS), None)
    if period is None:
        return [reservation]
    begin, end = span or (reservation.start, reservation.start + AHEAD)
    length = reservation.end - reservation.start
    first = reservation.start + period * ceil((begin - length - reservation.start) / period)
    starts = [first + period * number for number in range(max(ceil((end - first) / period), 1))]
    return [
        replace(
            reservation,
            name=reservation.name + (f"{AGAIN}{number}" if number > 1 else ""),
            start=start,
            end=start + length,
            created=start - period + length if number > 1 else reservation.created,
            flags=_single(reservation.flags),
        )
        for number, start in enumerate(starts, start=1)
    ]


#: A line of the controller's log, and one on a reservation that was made or changed.
_LOGGED = re.compile(r"\[[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+\] ")
_MADE = re.compile(r"\[([^\]]+)\] (?:sched: )?(?:Created|Updated) (reservation=.*)")

#: Titles of columns, and what ``scontrol`` calls the same.
_TITLES = {
    "name": "reservationname", "timestart": "starttime", "timeend": "endtime", "nodename": "nodes",
    "nodenames": "nodes", "flags": "flags", "tres": "tres",
}  # fmt: skip


def _tabled(path: Path, text: str, findings: Findings) -> Iterator[tuple[str, dict[str, str]]]:
    """The settings of each reservation in a table of ``sacctmgr -P show reservation``."""
    head, *lines = text.splitlines()
    titles = [_TITLES.get(title.strip().lower(), "") for title in head.split("|")]
    if missing := [
        name for name in ("reservationname", "starttime", "endtime", "nodes") if name not in titles
    ]:
        findings.mistake(
            f"{path}, line 1",
            f"tells no {missing[0]}; give what `sacctmgr -P show reservation "
            "format=Name,Start,End,NodeNames,Flags` prints",
        )
        return
    for number, line in enumerate(lines, start=2):
        cells = line.split("|")
        if len(cells) != len(titles):
            findings.mistake(f"{path}, line {number}", f"has {len(cells)} fields instead of {len(titles)}")
        else:
            yield f"{path}, line {number}", dict(zip(titles, cells, strict=True)) | {"": "", "tres": ""}


def _told_apart(reservations: Sequence[Reservation]) -> list[Reservation]:
    """Reservations of one name, one after the other: each is known when the one before it has begun."""
    last: dict[str, Reservation] = {}
    found: list[Reservation] = []
    for each in sorted(reservations, key=lambda each: each.start):
        if (former := last.get(each.name)) is not None:
            number = sum(other.name.partition(AGAIN)[0] == each.name for other in found) + 1
            each = replace(each, name=f"{each.name}{AGAIN}{number}", created=former.start)
        last[each.name.partition(AGAIN)[0]] = each
        found.append(each)
    return found


AGAIN = "#"
"""Between the name of a reservation and its number, if there are several of the name."""


def _logged(path: Path, text: str, clock: Clock, findings: Findings) -> Iterator[Reservation]:
    """The reservations that the log of a controller tells of; the last line of a name counts."""
    found: dict[str, Reservation] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _MADE.match(line):
            where = f"{path}, line {number}"
            given = {name.lower(): value for name, value in _PAIR.findall(match[2])}
            given["reservationname"] = given.pop("reservation")
            kept = {_IN_LOG[name]: value for name, value in given.items() if name in _IN_LOG}
            with findings.noting(where):
                now = clock.moment(match[1])
                for each in _reservation(where, kept, clock, findings, now):
                    former = found.get(each.name, each)
                    found[each.name] = replace(each, created=former.created)
    if found:
        findings.left_out(str(path), "tells no flags of reservations; they are taken to have none")
    yield from found.values()


#: What of a line of the log counts.
_IN_LOG = {
    "start": "starttime",
    "end": "endtime",
    **{name: name for name in ("reservationname", "users", "accounts", "nodes")},
}


def _shown(path: Path, text: str, findings: Findings) -> Iterator[tuple[str, dict[str, str]]]:
    """The settings of each reservation, with the line where it begins."""
    where, settings = "", dict[str, str]()
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{path}, line {number}"
        pairs = _PAIR.findall(line)
        if not pairs:
            if line.strip() and not line.startswith("No reservations"):
                findings.mistake(place, f"{shown(line.strip())} is not of the form Name=Value")
            continue
        for name, value in pairs:
            if name.lower() == "reservationname":
                if settings:
                    yield where, settings
                where, settings = place, {}
            elif not settings:
                findings.mistake(place, f"{name} stands before any ReservationName")
                return
            settings[name.lower()] = value
    if settings:
        yield where, settings


def _reservation(
    where: str, settings: Mapping[str, str], clock: Clock, findings: Findings, now: float = 0.0
) -> Iterator[Reservation]:
    """The reservation of some settings, unless they are wrong."""
    given = {name: value for name, value in settings.items() if value not in _NOTHING}
    called = f"reservation {shown_name(given.get('reservationname', ''))}"
    with findings.noting(where, f"{called}: "):
        start, end = _span(given, clock, now)
        has_nodes = "nodes" in given or any(given.get(name, "0") != "0" for name in ("nodecnt", "nodecount"))
        if given.get("licenses") and not has_nodes:
            findings.left_out(where, f"{called} of licences alone is not modelled")
            return
        values = {"start": start, "end": end, "created": now, **_values(where, given, findings)}
        yield msgspec.convert(values, Reservation)


def _span(given: Mapping[str, str], clock: Clock, now: float) -> tuple[float, float]:
    """When a reservation begins and ends."""
    if "starttime" not in given:
        raise ValueError("has no StartTime, as in a file that is cut short")
    start = clock.moment(given["starttime"], now)
    if "endtime" in given:
        end = clock.moment(given["endtime"], now)
    elif "duration" in given:
        end = start + time_limit(given["duration"])
    else:
        raise ValueError("has neither EndTime nor Duration, as in a file that is cut short")
    if end <= start:
        raise ValueError("ends before it begins")
    return start, end


def _values(where: str, given: Mapping[str, str], findings: Findings) -> dict[str, Any]:
    values: dict[str, Any] = {"name": given.get("reservationname", "reservation")}
    expand(given.get("nodes", ""))
    for name, text in given.items():
        if name in _READERS:
            field, read = _READERS[name]
            values[field] = read(text)
        elif name == "flags":
            values["flags"] = _flags(where, text, findings)
        elif name in _UNMODELLED:
            findings.left_out(where, f"{name} of a reservation is not modelled")
        elif name not in _WITHOUT_EFFECT:
            findings.left_out(where, f"{shown_name(name)} of a reservation is not known")
    if values.get("nodes"):
        values.pop("node_count", None)
    for field in values:
        if is_unused("reservations", field):
            findings.left_out(where, f"{field} of a reservation is not modelled")
    if not (values.get("nodes") or values.get("node_count")):
        raise ValueError("has neither Nodes nor NodeCnt")
    return values


def _flags(where: str, text: str, findings: Findings) -> tuple[str, ...]:
    known = [flag_named(word) for word in names(text)]
    for word, flag in zip(names(text), known, strict=True):
        if flag in FLAGS_WITHOUT_EFFECT:
            findings.of_no_effect(where, f"the flag {shown_name(word)} of a reservation")
        elif flag not in HEEDED_RESERVATION_FLAGS:
            findings.left_out(where, f"the flag {shown_name(word)} of a reservation is not modelled")
    return tuple(flag for flag in known if flag in get_args(ReservationFlag))


def flag_named(word: str) -> str:
    """A flag as Slurm writes it, as a flag of ours; one that we do not have without underscores.

    >>> flag_named("SPEC_NODES"), flag_named("ALL_NODES")
    ('spec_nodes', 'allnodes')
    """
    plain = word.partition("=")[0].lower().replace("_", "")
    return _FLAGS.get(plain, plain)


#: A recorder runs the script of a scenario up to a minute before it counts time: so many seconds in the mean.
BEFORE = 30.0


def read_setup(path: Path, clock: Clock, findings: Findings) -> tuple[list[Reservation], Accounting]:
    """The reservations, accounts, users and QOS that the lines of a script make.

    A recorder counts time from a whole minute on. A log begins with the first job that came after that.
    """
    now = -BEFORE - (0.0 if clock.start is None else clock.start % 60)
    reservations: list[Reservation] = []
    accounting = Accounting()
    for number, line in enumerate(read_text(path, findings).splitlines(), start=1):
        where, words = f"{path}, line {number}", list[str]()
        with findings.noting(where):
            words = [] if line.lstrip().startswith("#") else shlex.split(line)
        if not words:
            continue
        if words[:2] == ["scontrol", "create"] and words[2:] and words[2][:3].lower() == "res":
            pairs = [word.partition("=") for word in words[2:] if "=" in word]
            given = {name.lower(): value for name, _, value in pairs}
            if "reservation" in given:
                given["reservationname"] = given.pop("reservation")
            reservations += _reservation(where, given, clock, findings, now)
        elif words[0] != "sacctmgr" or not _account(where, words[1:], accounting, findings):
            findings.left_out(where, f"{shown(line.strip())} is not executed")
    return reservations, accounting


def _account(where: str, words: Sequence[str], accounting: Accounting, findings: Findings) -> bool:
    """What ``sacctmgr add`` or ``modify`` makes of accounts; whether the line is understood."""
    words = [word for word in words if not word.startswith("-")]
    if len(words) < 3 or words[0].lower() not in ("add", "create", "modify") or "=" in words[2]:
        return False
    given = dict(word.split("=", 1) for word in words[3:] if "=" in word)
    is_new = words[0].lower() != "modify"
    match words[1].lower():
        case "qos":
            values = read_values(given, QOS, where, findings)
            for name in names(words[2]):
                accounting.add_qos({"name": name, **values}, where, findings)
        case "account":
            values = read_values(given, ASSOCIATION, where, findings)
            for name in names(words[2]):
                above = {"parent": ROOT} if is_new else {}
                accounting.add_association({**above, **values, "account": name}, where, findings)
        case "user":
            return _users(where, names(words[2]), given, is_new, accounting, findings)
        case "cluster":
            findings.of_no_effect(where, "the name of the cluster")
        case _:
            return False
    return True


def _users(
    where: str,
    users: Sequence[str],
    given: dict[str, str],
    is_new: bool,
    accounting: Accounting,
    findings: Findings,
) -> bool:
    """Users of accounts that are new, or of which more is told; whether the line is understood."""
    accounts = given.pop("account", given.pop("accounts", given.get("defaultaccount", "")))
    values = read_values(given, ASSOCIATION, where, findings)
    if not accounts and not is_new:
        return False
    if not accounts:
        findings.mistake(where, "names no account")
    for name in users:
        known = any(user == name for _, user, _ in accounting.associations)
        for place, account in enumerate(names(accounts)):
            default = {"default_account": not known and not place} if is_new else {}
            association = {**default, **values, "user": name, "account": account}
            accounting.add_association(association, where, findings)
    return True
