"""Explanations of waits: each claim against a plain reading of the schedule."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from pathlib import Path
from random import Random

import pytest

import batsched_py as bp
from batsched_py.analysis.conditions import Absence, Absences
from batsched_py.analysis.explain import Evidence, Explainer, Explanation, remarks_beside
from batsched_py.analysis.schedule import read_schedule
from batsched_py.errors import InputError
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers import Cluster
from batsched_py.schedulers.decisions import Remark
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.sleeper import Sleeper
from batsched_py.testing import JobSpec, schedule_of
from tests.scheduling import policy

ROOT = Path(__file__).parents[2]
HOSTS = 64


@dataclass
class Row:
    """A row of jobs.csv, in numbers."""

    id: str
    submission: float
    start: float
    finish: float
    size: int
    limit: float
    hosts: set[int]

    @property
    def expected_end(self) -> float:
        return self.start + self.limit


@dataclass
class Sample:
    """The schedule of the sample under a policy, read twice."""

    rows: dict[str, Row]
    explainer: Explainer
    reserved: list[tuple[float, str, float]]
    """When whose reservation was made for when."""

    def waiting(self, count: int) -> list[Row]:
        waiting = [row for row in self.rows.values() if row.start > row.submission]
        return Random(7).sample(waiting, count)

    def reservations_at(self, time: float) -> dict[str, float]:
        """The reservations that count at a time, of jobs that have not started by then."""
        last = {job: start for made, job, start in self.reserved if made <= time}
        return {job: start for job, start in last.items() if self.rows[job].start > time}


@pytest.fixture(scope="module", params=["easy", "conservative", "filler"])
def sample(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sample:
    prefix = tmp_path_factory.mktemp("sample") / "out"
    bp.simulate(
        ROOT / "workloads" / "sample.swf",
        request.param,
        hosts=HOSTS,
        remarks=True,
        export=prefix,
        progress=False,
    )
    rows = {}
    with Path(f"{prefix}_jobs.csv").open() as file:
        for row in csv.DictReader(file):
            rows[f"w0!{row['job_id']}"] = Row(
                f"w0!{row['job_id']}",
                *(float(row[name]) for name in ("submission_time", "starting_time", "finish_time")),
                int(row["requested_number_of_resources"]),
                float(row["requested_time"]),
                set(HostSet.parse(row["allocated_resources"])),
            )
    with Path(f"{prefix}_remarks.csv").open() as file:
        reserved = [(float(r["time"]), r["job_id"], float(r["start"])) for r in csv.DictReader(file)]
    known = Evidence(HOSTS, remarks_beside(f"{prefix}_jobs.csv"))
    explainer = Explainer(read_schedule(f"{prefix}_jobs.csv"), known)
    return Sample(rows, explainer, reserved)


def came_before(other: Row, row: Row) -> bool:
    return (other.submission, other.id) < (row.submission, row.id)


@pytest.mark.parametrize("nb_jobs", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_waiting_jobs_are_explained_truly(nb_jobs: int, sample: Sample) -> None:
    for row in sample.waiting(nb_jobs):
        facts = sample.explainer.explain(row.id)
        assert (facts.submission, facts.start, facts.size) == (row.submission, row.start, row.size)
        check_queue(sample, row, facts)
        check_hosts(sample, row, facts)
        check_overtakers(sample, row, facts)
        check_reservations(sample, row, facts)


def check_queue(sample: Sample, row: Row, facts: Explanation) -> None:
    assert facts.places[0][0] == row.submission
    for time, place in facts.places:
        ahead = [o for o in sample.rows.values() if came_before(o, row) and o.start > time]
        assert place == len(ahead) + 1


def check_hosts(sample: Sample, row: Row, facts: Explanation) -> None:
    held = {
        (other.id, frozenset(other.hosts & row.hosts), other.start, other.finish)
        for other in sample.rows.values()
        if other.hosts & row.hosts and other.start < row.start and other.finish > row.submission
    }
    told = {(h.id, frozenset(h.hosts), h.since, h.until) for h in facts.holders}
    assert told == held
    for time, free in facts.free:
        busy = sum(o.size for o in sample.rows.values() if o.start <= time < o.finish)
        assert free == HOSTS - busy


def check_overtakers(sample: Sample, row: Row, facts: Explanation) -> None:
    overtook = {
        o.id
        for o in sample.rows.values()
        if o.id != row.id and not came_before(o, row) and o.start < row.start
    }
    assert {each.id for each in facts.overtakers} == overtook
    for each in facts.overtakers:
        other = sample.rows[each.id]
        assert each.start == other.start
        reservations = sample.reservations_at(other.start)
        for job, reserved in reservations.items():
            assert sample.rows[job].start <= reserved, "it delayed a reservation"
        if each.reserved_for is None:
            assert not reservations
            before = [o for o in sample.rows.values() if o.start < other.start < o.finish]
            assert each.free == HOSTS - sum(o.size for o in before)
            assert (each.reason == "did not fit") == (row.size > each.free)
            continue
        protected, reserved = sample.rows[each.reserved_for], reservations[each.reserved_for]
        assert each.reserved_at == reserved
        assert each.reserved_for == row.id or row.id not in reservations
        if each.reason == "ends by the reservation":
            assert other.expected_end <= reserved
        else:
            assert each.reason == "takes extra hosts"
            assert other.expected_end > reserved
            running = [o for o in sample.rows.values() if o.start <= other.start < o.finish]
            assert protected.size + sum(o.size for o in running if o.expected_end > reserved) <= HOSTS


def check_reservations(sample: Sample, row: Row, facts: Explanation) -> None:
    told = [(each.since, each.start) for each in facts.reservations]
    assert told == [(made, start) for made, job, start in sample.reserved if job == row.id]
    for (_, start), (_, next_start) in pairwise(told):
        assert next_start < start, "it moved back"
    assert all(row.start <= start for _, start in told)


@pytest.mark.parametrize("sample", ["easy"], indirect=True)
def test_the_reservations_of_easy_are_the_shadow_times(sample: Sample) -> None:
    for made, job, start in sample.reserved:
        running = sorted(
            (o for o in sample.rows.values() if o.start <= made < o.finish), key=lambda o: o.expected_end
        )
        free = HOSTS - sum(o.size for o in running)
        shadow = made if free >= sample.rows[job].size else inf
        for other in running:
            free += other.size
            if free >= sample.rows[job].size:
                shadow = min(shadow, other.expected_end)
                break
        assert start == shadow


# --- hosts that are away or asleep ---------------------------------------------------------------

GOLDEN = ROOT / "tests" / "data" / "golden"
OUTAGE = GOLDEN / "outage_filler"
POWER = GOLDEN / "power60_sleeper"

#: What a policy saw when it had decided, at each time: how many hosts were free, and who could not be used.
Seen = dict[float, tuple[int, set[int]]]


def note(cluster: Cluster, seen: Seen) -> None:
    away = HostSet.range(len(cluster.machines)) - cluster.available
    seen[round(cluster.now, 6)] = (cluster.nb_free, set(away | cluster.asleep | cluster.switching))


def check_unusable(result: bp.Result, seen: Seen) -> None:
    """All but at times at which only power states changed: of these Batsim writes six digits."""
    instants = {*result.jobs["submission_time"], *result.jobs["starting_time"], *result.jobs["finish_time"]}
    for job in result.jobs.itertuples():
        facts = result.explain(job.job_id).facts
        assert facts.untold == ()
        rounded = {f"{bound:g}" for each in facts.absences for bound in (each.since, each.until)}
        for time, (free, unusable) in seen.items():
            known = time in instants or f"{time:g}" not in rounded
            if known and facts.submission <= time < facts.start:
                told = [each.hosts for each in facts.absences if each.since <= time < each.until]
                assert set().union(*told) == unusable
                assert [count for since, count in facts.free if since <= time][-1] == free
        assert facts.room == 0 or any(count >= facts.size for _, count in facts.free)


def test_hosts_that_are_away_are_as_free_as_the_policy_saw() -> None:
    seen: Seen = {}

    class Noting(Easy):
        """Notes what it sees."""

        def schedule(self, cluster: Cluster) -> None:
            super().schedule(cluster)
            note(cluster, seen)

    result = bp.simulate(
        OUTAGE / "rigid200.json",
        Noting(),
        platform=OUTAGE / "flat16.xml",
        events=OUTAGE / "outage.txt",
        progress=False,
    )
    check_unusable(result, seen)
    assert result.explain("12").facts.absences == [Absence(HostSet.parse("0-3"), "away", 100.0, 600.0)]


@pytest.mark.parametrize("first_pstate", [0, 2], ids=["awake", "asleep"])
def test_hosts_that_sleep_or_switch_are_as_free_as_the_policy_saw(first_pstate: int, tmp_path: Path) -> None:
    seen: Seen = {}
    machine = tmp_path / "power8.xml"
    awake = (POWER / "power8.xml").read_text()
    machine.write_text(awake.replace('pstate="0"', f'pstate="{first_pstate}"'))

    class Noting(Sleeper):
        """Notes what it sees."""

        def schedule(self, cluster: Cluster) -> None:
            super().schedule(cluster)
            note(cluster, seen)

    result = bp.simulate(
        POWER / "power60.json",
        Noting(idle_time=30.0),
        platform=machine,
        energy=True,
        progress=False,
    )
    check_unusable(result, seen)
    told = {each.state for job in result.jobs["job_id"] for each in result.explain(job).facts.absences}
    assert told == {"falling asleep", "asleep", "waking up"}


# --- by hand -------------------------------------------------------------------------------------


def blocked_head() -> list[JobSpec]:
    return [
        JobSpec("a", 0, 3, 10, 10),
        JobSpec("b", 1, 4, 5, 5),
        JobSpec("c", 2, 1, 8, 8),
        JobSpec("wide", 3, 5, 1, 1),
    ]


def test_a_short_story() -> None:
    result = Explainer(schedule_of(policy("easy"), blocked_head(), 4), Evidence(4)).explain("b")
    assert result.places == [(1.0, 1)]
    assert [(h.id, str(h.hosts), h.since, h.until) for h in result.holders] == [
        ("w0!a", "0-2", 0.0, 10.0),
        ("w0!c", "3", 2.0, 10.0),
    ]
    assert result.free == [(1.0, 1), (2.0, 0)]
    assert result.room == 0
    (overtaker,) = result.overtakers
    assert (overtaker.id, overtaker.reason, overtaker.free) == ("w0!c", "did not fit", 1)


def test_who_overtakes_is_told_what_could_be_used() -> None:
    schedule = schedule_of(policy("easy"), blocked_head(), 4)
    away = Absence(HostSet.parse("4-7"), "away", 0.0, inf)
    for absences, free, reason in (
        (Absences(), 5, "was not chosen"),
        (Absences([away], ()), 1, "did not fit"),
    ):
        result = Explainer(schedule, Evidence(8, absences=absences)).explain("b")
        assert [(each.free, each.reason) for each in result.overtakers] == [(free, reason)]
        assert result.room == (9.0 if free == 5 else 0)


def test_with_remarks_it_is_told_why_one_was_allowed_to_overtake() -> None:
    remarks = {"w0!b": [Remark(1.0, "w0!b", "heads the queue", 10.0)]}
    result = Explainer(schedule_of(policy("easy"), blocked_head(), 4), Evidence(4, remarks)).explain("w0!b")
    (overtaker,) = result.overtakers
    assert (overtaker.reason, overtaker.reserved_for, overtaker.reserved_at) == (
        "ends by the reservation",
        "w0!b",
        10.0,
    )


def test_a_rejected_job_has_no_story() -> None:
    assert (
        Explainer(schedule_of(policy("easy"), blocked_head(), 4), Evidence(4)).explain("wide").start is None
    )


def test_a_job_that_is_not_there_is_an_error() -> None:
    with pytest.raises(InputError, match=r"there is no job 'z'.* called like 'w0!"):
        Explainer(schedule_of(policy("easy"), blocked_head(), 4), Evidence(4)).explain("z")
