"""Reservations: what ``scontrol show reservation`` prints, and what a script that sets up a cluster says.

Such a script has lines of ``scontrol create reservation`` and ``sacctmgr add``. It is read, not executed.
Lines that do something else are noted.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.accounting import ASSOCIATION, QOS, Accounting, read_values
from batsched_py.slurm.policy.settings import ROOT, Reservation, ReservationFlag, is_unused
from batsched_py.slurm.reading import Clock, Findings, count, names, read_text, time_limit, tres

_PAIR = re.compile(r"([A-Za-z]+)=(\S*)")
_NOTHING = ("(null)", "", "N/A", "n/a")
_FLAGS = {flag.replace("_", ""): flag for flag in get_args(ReservationFlag)} | {"staticalloc": "static"}
_UNMODELLED = ("features", "groups", "licenses", "burstbuffer", "coreids", "skip")
_WITHOUT_EFFECT = ("state", "watts", "nodename", "corecnt", "duration", "delegate", "comment")


def read_reservations(path: Path, clock: Clock, findings: Findings) -> list[Reservation]:
    """The reservations that ``scontrol show reservation`` printed, in lines or one a line."""
    text = read_text(path, findings)
    found: list[Reservation] = []
    for where, settings in _shown(path, text, findings):
        found += _reservation(where, settings, clock, findings)
    return found


def created_reservation(
    where: str, words: Sequence[str], clock: Clock, now: float, findings: Findings
) -> Iterator[Reservation]:
    """The reservation that ``scontrol create`` creates with these words at a moment."""
    pairs = [word.partition("=") for word in words if "=" in word]
    settings = {name.lower(): value for name, _, value in pairs}
    if "reservation" in settings:
        settings["reservationname"] = settings.pop("reservation")
    yield from _reservation(where, settings, clock, findings, now)


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
    for name, text in given.items():
        match name:
            case "nodes":
                expand(text)
                values["nodes"] = text
            case "nodecnt" | "nodecount":
                values["node_count"] = count(text.split(",")[0])
            case "partitionname" | "partition":
                values["partition"] = text
            case "tres":
                values["tres"] = tres(text)
            case "users" | "accounts" | "qos":
                values[name] = names(text)
            case "maxstartdelay":
                values["max_start_delay"] = time_limit(text)
            case "flags":
                values["flags"] = _flags(where, text, findings)
            case "reservationname" | "starttime" | "endtime":
                pass
            case _ if name in _UNMODELLED:
                findings.left_out(where, f"{name} of a reservation is not modelled")
            case _ if name not in _WITHOUT_EFFECT:
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
    flags = []
    for word in names(text):
        flag = _FLAGS.get(word.partition("=")[0].lower().replace("_", ""))
        if flag is None:
            findings.left_out(where, f"the flag {shown_name(word)} of a reservation is not modelled")
        else:
            flags.append(flag)
    return tuple(flags)


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
        words: list[str] = []
        with findings.noting(where):
            words = shlex.split(line)
        if not words:
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
