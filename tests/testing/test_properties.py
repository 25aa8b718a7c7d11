"""The kit finds what is wrong with a policy, and says what."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import SCHEDULERS, Cluster, Scheduler
from batsched_py.testing import PropertyBroken, check, findings
from batsched_py.testing.properties import PROPERTIES


class Buggy(Scheduler):
    """EASY backfilling written in a hurry; each bug can be planted alone."""

    name = "buggy"
    bugs: frozenset[str] = frozenset()

    def schedule(self, cluster: Cluster) -> None:
        queue = [job for job in cluster.queue if not ("forgets" in self.bugs and self.is_odd(job))]
        while queue and cluster.fits(queue[0]) and not self.is_starved(queue[0], queue):
            self.start(cluster, queue.pop(0))
        if not queue:
            return
        head = queue[0]
        shadow, extra = cluster.reservation(head)
        for job in queue[1:]:
            if self.is_starved(head, queue) or "delays" in self.bugs:
                shadow, extra = float("inf"), 0
            if cluster.fits(job) and (cluster.now + job.walltime <= shadow or job.size <= extra):
                if cluster.now + job.walltime > shadow:
                    extra -= job.size
                self.start(cluster, job)

    def is_odd(self, job: Job) -> bool:
        return job.size == 3 and job.user == "2"

    def is_starved(self, job: Job, queue: list[Job]) -> bool:
        return "starves" in self.bugs and job.user == "1" and len(queue) > 1

    def start(self, cluster: Cluster, job: Job) -> None:
        if "away" in self.bugs and cluster.available != cluster.hosts:
            busy = [host for running in cluster.running for host in running.hosts]
            idle = cluster.hosts - type(cluster.hosts).of(busy)
            cluster.start(job, idle.lowest(job.size))
            return
        cluster.start(job)
        if "twice" in self.bugs and job.size == 1 and job.user == "1":
            cluster.start(job)


def with_bugs(*names: str) -> Callable[[], Scheduler]:
    def make() -> Scheduler:
        buggy = Buggy()
        buggy.bugs = frozenset(names)
        return buggy

    return make


class Hesitant(Scheduler):
    """Starts a job a second after its submission, by its own clock, which has milliseconds only."""

    name = "hesitant"

    def schedule(self, cluster: Cluster) -> None:
        clock = int(cluster.now * 1000) / 1000
        for job in cluster.queue:
            if clock < job.submission_time + 1:
                if (begin := job.submission_time + 1) > cluster.now:
                    cluster.call_at(begin)
            elif cluster.fits(job):
                cluster.start(job)


def test_it_finds_a_policy_that_misses_its_own_calls() -> None:
    found = findings(Hesitant, waived=set(PROPERTIES) - {"wakes up in time"})
    assert {(finding.property, "deadlock" in finding.fault) for finding in found} == {
        ("wakes up in time", True)
    }


#: Each bug with the property that it breaks, and the words in which that is told.
BUGS = [
    ("twice", "keeps the rules", r"is running already"),
    ("forgets", "forgets no job", r"deadlock .* jobs wait"),
    ("starves", "starves no job", r"waits while \d+ jobs start that came after it"),
    ("away", "survives outages", r"hosts .* are unavailable"),
    ("delays", "keeps the promise of easy", r"easy-(reservation|backfill) .*(shadow time)"),
]


@pytest.mark.parametrize(("bug", "broken", "words"), BUGS, ids=[bug for bug, _, _ in BUGS])
def test_it_finds_each_bug_and_says_which(bug: str, broken: str, words: str) -> None:
    others = set(PROPERTIES) - {broken}
    promise = "easy" if bug == "delays" else None
    with pytest.raises(PropertyBroken, match=words) as caught:
        check(with_bugs(bug), promise=promise, waived=others, examples=10)
    assert {finding.property for finding in caught.value.findings} == {broken}


def test_one_call_finds_all_of_them() -> None:
    buggy = with_bugs(*(bug for bug, _, _ in BUGS))
    found = {finding.property for finding in findings(buggy, promise="easy", examples=15)}
    assert {broken for _, broken, _ in BUGS} <= found


def test_what_is_waived_is_not_complained_of() -> None:
    assert findings(with_bugs("starves"), waived=["starves no job"], examples=5) == []
    with pytest.raises(ValueError, match="there is no property 'is nice'; there are keeps the rules, "):
        check("fcfs", waived=["is nice"])


def test_it_is_silent_without_a_bug() -> None:
    assert findings(with_bugs(), promise="easy", examples=10) == []


OUTSIDE = [name for name, words in PROPERTIES.items() if words.startswith("With outside=True")]


class OnlyCountsHosts(Scheduler):
    """Looks at the number of free hosts only, and keeps jobs by what it met when they were submitted."""

    name = "only-counts"

    def begin(self, cluster: Cluster) -> None:
        self._met: set[str] = set()

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.queue:
            first = job.id.partition("#")[0]
            if job.size <= cluster.nb_free and (first == job.id or first not in self._met):
                self._met.add(job.id)
                cluster.start(job, cluster.free.lowest(2 if "malleable" in job.extra else job.size))


class AtSubmission(Scheduler):
    """Starts jobs at the moment of their submission only, so that one which joins later is forgotten."""

    name = "at-submission"

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.queue:
            if job.submission_time == cluster.now and cluster.fits(job):
                cluster.start(job)
            elif job.submission_time == cluster.now:
                cluster.reject(job)


def test_it_finds_what_breaks_with_closures_failures_and_sizes() -> None:
    others = [name for name in PROPERTIES if name not in OUTSIDE]
    found = {
        each.property: each for each in findings(OnlyCountsHosts, waived=others, examples=15, outside=True)
    }
    assert "are closed from" in str(found["respects closures"])
    assert "deadlock" in found["survives failures"].fault
    assert "runs on" in found["starts jobs of several sizes"].fault


def test_it_finds_what_breaks_when_jobs_wait_for_others() -> None:
    others = [name for name in PROPERTIES if name != "lets jobs wait for others"]
    found = findings(AtSubmission, waived=others, examples=15, outside=True)
    assert ["deadlock" in each.fault for each in found] == [True]
    assert "'after'" in str(found[0]) or "'array'" in str(found[0])


def test_our_policies_have_these_properties() -> None:
    others = [name for name in PROPERTIES if name not in OUTSIDE]
    for name in ("conservative", "easy-moldable", "malleable-easy"):
        assert findings(name, waived=others, examples=3, outside=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SCHEDULERS.all()))
def test_all_policies_have_these_properties(name: str) -> None:
    waived = [each for each in PROPERTIES if each not in OUTSIDE]
    if name == "slurm":
        waived.append("respects closures")  # it refuses them, and has reservations of its own
    assert findings(name, waived=waived, examples=25, outside=True) == []
