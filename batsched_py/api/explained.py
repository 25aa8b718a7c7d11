"""Why a job waited, in a few lines, and what is known of hosts that were away or asleep meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import TypeVar

import pandas as pd

from batsched_py.analysis import conditions, explain
from batsched_py.analysis.schedule import Tables, read_table
from batsched_py.analysis.validator.nodes import Nodes, requests_of
from batsched_py.api.terminal import duration, hosts_text
from batsched_py.campaign.run import MANIFEST_FILE, Manifest
from batsched_py.ledger.nodes import in_words
from batsched_py.protocol.jobs import Host
from batsched_py.simulator.agenda import read_events
from batsched_py.workload.model import Workload


def explaining(
    schedule: pd.DataFrame,
    tables: Tables,
    hosts: int | None,
    absences: conditions.Absences,
    carried: conditions.Carried | None,
    machine: Sequence[Host],
    workloads: Sequence[Workload],
) -> Callable[[str], Explained]:
    """What explains why a job of a schedule waited, with what is in the tables written beside it."""
    nodes = Nodes.of(machine) if machine else None
    known = explain.Evidence(
        hosts=hosts,
        remarks=read_table(tables, "remarks", explain.read_remarks) or {},
        absences=absences,
        carried=carried,
        machine=nodes,
        requests={} if nodes is None else requests_of(workloads, schedule),
        held=read_table(tables, "held", conditions.read_held) or {},
    )
    explainer = explain.Explainer(schedule, known)
    return lambda job: Explained(explainer.explain(job))


def absences_of(
    schedule: pd.DataFrame, tables: Tables, events: Sequence[str] | None, may_have_slept: bool
) -> conditions.Absences:
    """The hosts of a simulation that were away or asleep, as far as something tells.

    When they were away is known from the event files, if these are known. Failures and closures are in
    ``PREFIX_absences.csv``. Who slept is known from ``PREFIX_pstate_changes.csv``; without it nobody did,
    unless they ``may_have_slept``.
    """
    away = [*outages_in(events or ()), *(read_table(tables, "absences", conditions.read_absences) or ())]
    untold: list[conditions.State] = ["away"] if events is None else []
    asleep = read_table(
        tables, "pstate_changes", lambda file, name: list(conditions.sleeps(file, name, schedule))
    )
    if asleep is None and may_have_slept:
        untold.append("asleep")
    return conditions.Absences([*away, *(asleep or ())], tuple(untold))


def outages_in(files: Iterable[str]) -> list[conditions.Absence]:
    """When hosts were away, as event files tell."""
    events = [event for file in files for event in read_events(file, forward_unknown=True)]
    return list(conditions.outages(events))


def events_in_manifest(folder: Path) -> Sequence[str] | None:
    """The event files of a campaign's run, if they are still what they were."""
    if not (folder / MANIFEST_FILE).is_file():
        return None
    manifest = Manifest.read(folder)
    files = manifest.experiment.scenario.events
    return files if manifest.still_has(files) else None


Value = TypeVar("Value")

#: So many of those that held hosts or overtook are told one by one; the others are counted.
MOST = 5


@dataclass(frozen=True, repr=False)
class Explained:
    """An explanation that shows itself in words; ``facts`` are what they are made of."""

    facts: explain.Explanation

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """A few lines, of which those after the first are indented. Times count from the submission."""
        facts = self.facts
        limit = "without a walltime" if facts.walltime == inf else f"for {duration(facts.walltime)} at most"
        when = explain.moment(facts.submission)
        asked = f"job {facts.id}, {hosts_text(facts.size)} {limit}, submitted at {when}"
        if facts.start is None:
            yield f"{asked}: rejected"
            yield from _labelled(eligible=self._eligible())
        elif facts.waited <= 0:
            yield f"{asked}: started at once on {facts.hosts}"
        else:
            started = f"started at {explain.moment(facts.start)} on {facts.hosts}"
            yield f"{asked}: waited {duration(facts.waited)}, {started}"
            yield from _labelled(eligible=self._eligible())
            if facts.queued > 0:
                yield from _labelled(
                    queue=[self._queue()],
                    free=[self._free()],
                    waited=[f"for {_lack_text(lack, facts.where)}" for lack in facts.lacks or ()],
                    unusable=self._unusable(),
                    held=self._held(),
                    reserved=self._reserved(),
                    overtaken=self._overtaken(),
                )
        yield from _labelled(run=self._run(), resized=self._resized(), remarks=self._remarks())

    def _eligible(self) -> list[str]:
        held = self.facts.held
        if held is None:
            return []
        if held.eligible is None:
            return [f"never: {held.reason}"]
        return [f"{self._after(held.eligible)}, when it joined the queue: {held.reason}"]

    def _queue(self) -> str:
        return ", ".join(
            f"{'first' if place == 1 else f'behind {place - 1}'} {self._after(time)}"
            for time, place in _few(self.facts.places)
        )

    def _free(self) -> str:
        facts = self.facts
        came = f"{facts.free[0][1]} of {facts.nb_hosts} hosts when it came"
        if facts.untold:
            came += f", counting any that were {' or '.join(facts.untold)}"
        if facts.lacks is not None:
            return came
        most = max(count for _, count in facts.free)
        if facts.room <= 0:
            return f"{came}, at most {most} until it started: never enough"
        return f"{came}; enough for {duration(facts.room)} of its wait, so others were to go first"

    def _unusable(self) -> list[str]:
        told = [
            f"{hosts_text(len(each.hosts))} {each.state} ({each.hosts}), from {self._when(each.since)} until "
            f"{'the end' if each.until == inf else self._when(each.until)}"
            for each in reversed(self.facts.absences)
        ]
        return _most(told, "times before")

    def _held(self) -> list[str]:
        told = [
            f"{hosts_text(len(holder.hosts))} by {holder.id}, from {self._when(holder.since)} until "
            f"{self._when(holder.until)}"
            for holder in reversed(self.facts.holders)
        ]
        return _most(told, "jobs before")

    def _resized(self) -> list[str]:
        told = [
            f"{_how(len(each.before), len(each.after))} from {len(each.before)} to "
            f"{hosts_text(len(each.after))} ({each.after}) at {explain.moment(each.time)}"
            for each in reversed(self.facts.resizes)
        ]
        return _most(told, "times before")

    def _reserved(self) -> list[str]:
        reservations = self.facts.reservations
        if not reservations:
            return []
        told = [f"for {self._when(each.start)}, {self._after(each.since)}" for each in _few(reservations)]
        left = len(reservations) - len(told)
        return [", then ".join(told) + (f" (moved {left} times more in between)" if left else "")]

    def _overtaken(self) -> list[str]:
        overtakers = self.facts.overtakers
        if not overtakers:
            return ["by nobody"]
        told = [
            f"by {each.id} ({hosts_text(each.size)}) {self._after(each.start)}: {self._why(each)}"
            for each in overtakers[:MOST]
        ]
        if left := overtakers[MOST:]:
            counts = Counter(each.reason for each in left)
            reasons = ", ".join(f"{count} {reason}" for reason, count in counts.items())
            told.append(f"by {len(left)} more: {reasons}")
        return told

    def _why(self, overtaker: explain.Overtaker) -> str:
        facts = self.facts
        if overtaker.reserved_at is None:
            free = f"{hosts_text(overtaker.free)} free"
            if overtaker.reason == "did not fit" and overtaker.free >= facts.size:
                return f"{free}, but not what {facts.id} asks for"
            if overtaker.reason == "did not fit":
                return f"{free}, too few for {facts.id}"
            return f"{free}, enough for {facts.id} too, which was not chosen"
        whose = (
            "its"
            if overtaker.reserved_for == facts.id
            else f"the only protected job {overtaker.reserved_for}'s"
        )
        if overtaker.reason == "ends by the reservation":
            return (
                f"to end by {self._when(overtaker.expected_end)}, not after {whose} reservation for "
                f"{self._when(overtaker.reserved_at)}"
            )
        return f"on hosts that {whose} reservation for {self._when(overtaker.reserved_at)} leaves over"

    def _run(self) -> list[str]:
        found = self.facts.contention
        if found is None:
            return []
        told = f"it ran {found.times:.1f} times longer than alone: it shared `{found.name}`"
        if found.others:
            jobs = "job" if len(found.others) == 1 else "jobs"
            told += f" with {jobs} {', '.join(found.others[:MOST])}"
        if len(found.others) > MOST:
            told += f" and {len(found.others) - MOST} more"
        return [told]

    def _remarks(self) -> list[str]:
        told = [f"{self._after(remark.time)}: {remark.text}" for remark in self.facts.remarks]
        return _most(told, "more")

    def _after(self, time: float) -> str:
        """How long after the submission."""
        later = time - self.facts.submission
        return "when it came" if later <= 0 else f"after {duration(later)}"

    def _when(self, time: float) -> str:
        if time == inf:
            return "some day"
        later = time - self.facts.submission
        return f"{duration(-later)} before" if later < 0 else duration(later)


def _how(before: int, after: int) -> str:
    """What a job did that went over from so many hosts to so many."""
    return "grew" if after > before else "shrank" if after < before else "moved"


def _lack_text(lack: explain.Lack, where: str) -> str:
    """What a job waited for, and for how long."""
    if not lack.resources:
        return f"others to go first, {duration(lack.seconds)} while there was a place for it"
    return f"{in_words(tuple(lack.resources), where)}, {duration(lack.seconds)}"


def _labelled(**parts: Sequence[str]) -> Iterator[str]:
    """The lines of some parts, of which the first ones are labelled with the names of the parts."""
    for label, lines in parts.items():
        yield from (f"  {'' if number else label:<9}  {line}" for number, line in enumerate(lines))


def _few(values: Sequence[Value]) -> list[Value]:
    """The first, the last and some in between."""
    if len(values) <= MOST:
        return list(values)
    return [values[round(number * (len(values) - 1) / (MOST - 1))] for number in range(MOST)]


def _most(lines: list[str], what: str) -> list[str]:
    return lines if len(lines) <= MOST else [*lines[:MOST], f"and {len(lines) - MOST} {what}"]
