"""Reading the summary of a simulation, beside its jobs.

It is Batsim 4's ``PREFIX_schedule.csv``, or Batsim 5's ``schedule.json``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import TextIO

import msgspec
from msgspec import Struct

from batsched_py.analysis.beside import beside
from batsched_py.errors import InputError


class Summary(Struct, frozen=True):
    """The values that only the summary has, if it has them."""

    nb_hosts: int | None = None
    consumed_joules: float | None = None
    nb_switches: int | None = None
    """How many times power states were changed."""
    energy_cost: float | None = None
    carbon: float | None = None
    """In grams of CO2."""


def read_summary(jobs_file: str | Path) -> Summary:
    """The summary beside a ``PREFIX_jobs.csv``; nothing if it is missing.

    A simulation that does not account for energy writes 0 joules.
    """
    path = beside(jobs_file, "schedule")
    try:
        if path.is_file():
            with path.open(encoding="utf-8", newline="") as file:
                row = next(csv.DictReader(file), {})
        elif (path := path.with_suffix(".json")).is_file():
            row = _texts(path.read_bytes())
        else:
            return Summary()
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    return _summary(row)


def summary_in(schedule: TextIO | None) -> Summary:
    """The summary in an open ``schedule.csv``; nothing if there is none."""
    return _summary(next(csv.DictReader(schedule), {})) if schedule else Summary()


def _summary(row: Mapping[str, str]) -> Summary:
    return Summary(
        _count(row.get("nb_computing_machines") or ""),
        _joules(row.get("consumed_joules") or ""),
        _count(row.get("nb_grouped_switches") or ""),
        _number(row.get("energy_cost") or ""),
        _number(row.get("carbon_grams") or ""),
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


def _texts(content: bytes) -> dict[str, str]:
    """The members of a JSON object as texts, as in a table."""
    try:
        fields = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return {name: str(value) for name, value in fields.items()} if isinstance(fields, dict) else {}


def _count(text: str) -> int | None:
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else None


def _joules(text: str) -> float | None:
    joules = _number(text)
    return joules if joules is not None and joules > 0 else None
