"""What the inputs and the files of a simulation tell about hosts that were away or asleep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from batsched_py.analysis.absences import (
    Absence,
    Absences,
    State,
    failures_and_closures_beside,
    outages,
    read_absences,
    sleeps,
)
from batsched_py.analysis.outcome import Summary
from batsched_py.analysis.schedule import beside, open_table
from batsched_py.campaign.run import MANIFEST_FILE, Manifest
from batsched_py.simulator.agenda import read_events


def absences_in(
    schedule: pd.DataFrame, events: Sequence[str], changes: Iterable[str] | None, others: Iterable[str] | None
) -> Absences:
    """Those of a simulation of which all is known.

    That is its event files, what changed of its power states, and its other failures and closures.
    """
    asleep = [] if changes is None else sleeps(changes, "pstate_changes.csv", schedule)
    away = [] if others is None else read_absences(others, "absences.csv")
    return Absences([*outages_in(events), *away, *asleep], untold=())


def absences_beside(
    jobs_file: Path, schedule: pd.DataFrame, summary: Summary, events: Sequence[str]
) -> Absences:
    """Those of the simulation that left a ``PREFIX_jobs.csv``, as far as something tells.

    When hosts were away is known from the event files, which are given, or named in the manifest of a
    campaign's run. Failures and closures are in ``PREFIX_absences.csv``. Who slept is known from
    ``PREFIX_pstate_changes.csv``, and nobody did if no power state was ever changed.
    """
    told: list[Absence] = []
    untold: list[State] = []
    files = events or _events_in_manifest(jobs_file.parent)
    if files is None:
        untold.append("away")
    else:
        told += outages_in(files)
    told += failures_and_closures_beside(jobs_file)
    changes = beside(jobs_file, "pstate_changes")
    if changes.is_file():
        with open_table(changes) as file:
            told += sleeps(file, str(changes), schedule)
    elif summary.nb_switches != 0:
        untold.append("asleep")
    return Absences(told, untold)


def outages_in(files: Iterable[str]) -> list[Absence]:
    """When hosts were away, as event files tell."""
    events = [event for file in files for event in read_events(file, forward_unknown=True)]
    return list(outages(events))


def _events_in_manifest(folder: Path) -> Sequence[str] | None:
    """The event files of a campaign's run, if they are still what they were."""
    if not (folder / MANIFEST_FILE).is_file():
        return None
    manifest = Manifest.read(folder)
    files = manifest.experiment.scenario.events
    return files if manifest.still_has(files) else None
