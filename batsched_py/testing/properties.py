"""What every policy should do, whatever it is for; and which of it a policy does not.

Each property is tried on many generated workloads. A fault is shown with the smallest workload that brings
it out. Different faults of one property are told apart, so that one call finds several bugs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from batsched_py.analysis.schedule import read_schedule
from batsched_py.analysis.validator import Facts, validate
from batsched_py.analysis.validator import Policy as Promise
from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import BatschedError, Deadlock
from batsched_py.outside.closures import Closure
from batsched_py.protocol.events import HostsAvailable, HostsUnavailable, Message
from batsched_py.schedulers import Scheduler
from batsched_py.simulator.platform import Platform
from batsched_py.testing import runs
from batsched_py.testing.cases import CASES, Case, faults_in
from batsched_py.testing.runs import JobSpec, Policy, new, rows_of, schedule_of, workload_of

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


@dataclass(frozen=True)
class Example:
    """What a policy is tried on."""

    hosts: int | Platform
    """How many there are, or a machine of nodes."""
    first: Sequence[JobSpec]
    outages: Sequence[HostsAvailable | HostsUnavailable] = ()
    rejects: int = 4
    """Every so-manieth job is rejected, where somebody meddles."""
    kills: int = 3
    """Every so-manieth job that runs is killed."""
    followers: Sequence[JobSpec] = ()
    """A crowd that keeps coming."""
    closures: Sequence[Closure] = ()
    fails: bool = False
    """Whether jobs are killed and submitted again when their hosts go."""

    @property
    def jobs(self) -> Sequence[JobSpec]:
        """All that are submitted."""
        return [*self.first, *self.followers]

    @property
    def nb_hosts(self) -> int:
        """How many hosts there are in all."""
        return self.hosts if isinstance(self.hosts, int) else len(self.hosts.hosts)

    def __str__(self) -> str:
        machine = None if isinstance(self.hosts, int) else self.hosts.as_nodes()
        lines = [f"{self.hosts} hosts"] if isinstance(self.hosts, int) else []
        for node in () if machine is None else machine.nodes:
            about = [*(f"{name} {count}" for name, count in node.resources.items()), *sorted(node.features)]
            lines.append(f"node {node.name}: {', '.join([f'{node.cores} cores', *about, *node.partitions])}")
        lines += map(str, self.first)
        lines += [f"at {outage.time:g} {type(outage).__name__} {outage.hosts}" for outage in self.outages]
        for closure in self.closures:
            users = f", but to users {' '.join(sorted(closure.users))}" if closure.users else ""
            lines.append(f"from {closure.start:g} to {closure.end:g} hosts {closure.hosts} are closed{users}")
        if self.followers:
            lines.append(f"{self.followers[0]} and {len(self.followers) - 1} more like it")
        return "\n".join(lines)


@dataclass(frozen=True)
class Finding:
    """A property that a policy does not have."""

    property: str
    fault: str
    """What happened instead."""
    example: Example | Case
    """The smallest workload found on which it happens."""

    def __str__(self) -> str:
        example = "\n".join(f"    {line}" for line in str(self.example).splitlines())
        return f"{self.property}: {self.fault}\n{example}"


class PropertyBroken(AssertionError):
    """A policy does not have all properties that it should have."""

    def __init__(self, found: Sequence[Finding]) -> None:
        self.findings = found
        super().__init__("\n".join(map(str, found)))


#: Every generic property, and what it means.
PROPERTIES = {
    "keeps the rules": "It decides nothing that Batsim would die of, does not fail, and is valid.",
    "forgets no job": "Every job is started or rejected in the end.",
    "starves no job": "A job starts although others keep coming, more than the machine can take.",
    "decides the same again": "The same workload gets the same schedule, also in the same process.",
    "decides the same by messages": "For a simulator elsewhere it decides as for one in its own process.",
    "wakes up in time": "It forgets no job, and decides the same by messages, at times between microseconds.",
    "survives meddling": "It goes on when jobs are rejected and killed, which it did not do itself.",
    "passes the cases": "It does well in the cases of batsched-py check: ties, kills, dynamic jobs, ...",
    "survives outages": "It starts nothing on hosts that are away, and goes on when they are back.",
    "works on nodes": "With nodes=True: jobs that ask for memory or kinds of nodes start where they fit.",
    "respects closures": "With outside=True: it starts no job that could run into a closure.",
    "survives failures": "With outside=True: it goes on when jobs are killed with their hosts and come back.",
    "lets jobs wait for others": "With outside=True: it goes on when jobs join the queue later.",
    "starts jobs of several sizes": "With outside=True: it starts moldable and malleable jobs.",
}

#: Those that a plain workload shows.
_PLAIN = {"keeps the rules", "forgets no job", "decides the same again", "decides the same by messages"}


def check(
    policy: Policy,
    *,
    promise: Promise | None = None,
    waived: Collection[str] = (),
    hosts: int = 4,
    examples: int = 25,
    nodes: bool = False,
    outside: bool = False,
) -> None:
    """Hold a policy against all :data:`PROPERTIES`; :class:`PropertyBroken` says which it does not have.

    The policy is a name as on the command line, ``path/to/file.py:ClassName`` included, or whatever makes a
    fresh one, such as its class. With a ``promise``, it must also keep that of FCFS, of EASY (nothing delays
    the head of the queue) or of conservative backfilling. What a policy does on purpose is ``waived`` by the
    property's name: shortest job first, for one, starves jobs. So many examples of each kind are tried. With
    ``nodes`` it is tried on machines of nodes, too, where jobs ask for more than hosts; with ``outside``
    where hosts are closed or fail, and where jobs wait for others or have several sizes.
    """
    found = findings(
        policy, promise=promise, waived=waived, hosts=hosts, examples=examples, nodes=nodes, outside=outside
    )
    if found:
        raise PropertyBroken(found)


def findings(
    policy: Policy,
    *,
    promise: Promise | None = None,
    waived: Collection[str] = (),
    hosts: int = 4,
    examples: int = 25,
    nodes: bool = False,
    outside: bool = False,
) -> list[Finding]:
    """What :func:`check` would complain of; each kind of fault once, where it is seen first."""
    from hypothesis import strategies as st

    from batsched_py.testing import strategies as drawn

    if unknown := set(waived) - set(PROPERTIES):
        raise ValueError(f"there is no property {min(unknown)!r}; there are {', '.join(PROPERTIES)}")
    machine, jobs, often = st.just(hosts), drawn.workloads(hosts), st.integers(1, 5)
    few = drawn.workloads(hosts, max_jobs=4).map(drawn.exact)
    trials: list[tuple[set[str], Trial, SearchStrategy[Example]]] = [
        (_PLAIN, partial(_plain, promise=promise), st.builds(Example, machine, jobs)),
        ({"wakes up in time"}, _uneven, st.builds(Example, machine, jobs.map(drawn.uneven))),
        ({"starves no job"}, _crowded, st.builds(Example, machine, few, followers=st.just(_crowd(hosts)))),
        _tried(
            "survives meddling", st.builds(Example, machine, jobs, rejects=often, kills=often), meddles=True
        ),
        _tried("survives outages", st.builds(Example, machine, jobs, drawn.outages(hosts))),
    ]
    if nodes:
        on_nodes = drawn.machines().flatmap(
            lambda platform: st.builds(Example, st.just(platform), drawn.node_workloads(len(platform.hosts)))
        )
        trials.append(_tried("works on nodes", on_nodes, promise=promise))
    if outside:
        failing = st.builds(Example, machine, jobs, drawn.outages(hosts), fails=st.just(True))
        trials += [
            _tried("respects closures", st.builds(Example, machine, jobs, closures=drawn.closures(hosts))),
            _tried("survives failures", failing),
            _tried(
                "lets jobs wait for others", st.builds(Example, machine, drawn.dependent_workloads(hosts))
            ),
            _tried("starts jobs of several sizes", st.builds(Example, machine, drawn.sized_workloads(hosts))),
        ]
    found: dict[str, Finding] = {}
    for properties, trial, tried_on in trials:
        if properties <= set(waived) and not (properties is _PLAIN and promise):
            continue

        def faults(example: Example, trial: Trial = trial) -> Iterator[Finding]:
            for name, fault in trial(policy, example):
                if name not in waived:
                    yield Finding(name, fault, example)

        for kind, finding in _search(faults, tried_on, examples).items():
            if kind not in found:
                found[kind] = _smallest(finding, faults)
    if "passes the cases" not in waived:
        for finding in _in_cases(policy, promise):
            found.setdefault(_kind(finding.fault), finding)
    return list(found.values())


# --- what is tried -------------------------------------------------------------------------------

#: What is found on an example.
Faults: TypeAlias = Callable[[Example], Iterator[Finding]]

#: The properties that a policy does not have, judging by an example, each with what happened instead.
Trial: TypeAlias = Callable[[Policy, Example], Iterator[tuple[str, str]]]


def _plain(policy: Policy, example: Example, promise: Promise | None) -> Iterator[tuple[str, str]]:
    try:
        with runs.jobs_csv(new(policy), example.jobs, example.hosts) as file:
            schedule, once = read_schedule(file), runs.rows_in(file)
    except Deadlock as deadlock:
        yield "forgets no job", str(deadlock)
        return
    except BatschedError as error:
        yield "keeps the rules", str(error)
        return
    for violation in validate(schedule, example.nb_hosts, [workload_of(example.jobs)], promise):
        of_promise = promise is not None and violation.rule.startswith(promise)
        yield f"keeps the promise of {promise}" if of_promise else "keeps the rules", str(violation)
    for name, other, when in (
        ("decides the same again", new(policy), "the second time"),
        ("decides the same by messages", _ByMessages(new(policy)), "by messages"),
    ):
        try:
            again = rows_of(other, example.jobs, example.hosts)
        except BatschedError as error:
            yield name, f"{when} {error}"
            continue
        for before, after in zip(once, again, strict=True):
            if before != after:
                yield name, f"{_row(before)}, {when} {_row(after)}"
                break


def _uneven(policy: Policy, example: Example) -> Iterator[tuple[str, str]]:
    """A call comes at the first microsecond that is not before the time that was asked for."""
    for name, fault in _plain(policy, example, None):
        if name in {"forgets no job", "decides the same by messages"}:
            yield "wakes up in time", fault


def _in_cases(policy: Policy, promise: Promise | None) -> Iterator[Finding]:
    for case in CASES:
        try:
            faults = faults_in(_ByMessages(new(policy)), case, promise=promise)
        except BatschedError as error:
            faults = [str(error)]
        for fault in faults:
            yield Finding("passes the cases", fault, case)


def _crowded(policy: Policy, example: Example) -> Iterator[tuple[str, str]]:
    try:
        rows = rows_of(new(policy), example.jobs, example.hosts)
    except BatschedError:
        return  # which has been seen on a plain workload
    begins = {row["job_id"]: float(row["starting_time"] or "nan") for row in rows}
    for spec in example.first:
        if begins[spec.id] >= example.followers[-1].submission:
            overtaken = sum(begins[other.id] < begins[spec.id] for other in example.followers)
            yield "starves no job", f"job {spec.id} waits while {overtaken} jobs start that came after it"


def _tried(
    name: str, examples: SearchStrategy[Example], promise: Promise | None = None, meddles: bool = False
) -> tuple[set[str], Trial, SearchStrategy[Example]]:
    """That a policy keeps the rules on these examples, also where somebody meddles, is one property."""

    def trial(policy: Policy, example: Example) -> Iterator[tuple[str, str]]:
        tried, hosts = new(policy), example.hosts
        if meddles:
            tried = runs.Meddler(tried, example.rejects, example.kills)
        facts = Facts(nodes=tried.nodes, closures=example.closures)
        if not isinstance(hosts, int):
            facts = replace(facts, machine=hosts.as_protocol()[0])
        try:
            schedule = schedule_of(
                tried, example.jobs, hosts, example.outages, example.closures, example.fails
            )
        except BatschedError as error:
            yield name, str(error)
            return
        for violation in validate(schedule, example.nb_hosts, [workload_of(example.jobs)], promise, facts):
            yield name, str(violation)

    return {name}, trial, examples


def _crowd(hosts: int, followers: int = 80) -> list[JobSpec]:
    """Jobs that keep coming, a quarter more than the machine can take.

    Each takes half of the hosts, so that one that needs all of them starts only if it is let.
    """
    width, users = (hosts + 1) // 2, ("0", "1", "2")
    return [
        JobSpec(f"f{number:02}", 1.0 + 4 * number, width, 10.0, 10.0, users[number % 3])
        for number in range(followers)
    ]


class _ByMessages:
    """A decision process that a simulator of this process talks to as to one elsewhere."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._process = DecisionProcess(scheduler)

    def react(self, request: Message) -> Message:
        """Answer one request of the simulator."""
        return self._process.react(request)


def _row(row: Mapping[str, str]) -> str:
    if not row["starting_time"]:
        return f"job {row['job_id']} is rejected"
    return f"job {row['job_id']} starts at {row['starting_time']} on {row['allocated_resources']}"


# --- how it is searched --------------------------------------------------------------------------


def _search(faults: Faults, tried_on: SearchStrategy[Example], nb_examples: int) -> dict[str, Finding]:
    """The first fault of each kind that so many examples show."""
    from hypothesis import HealthCheck, Phase, given, settings

    found: dict[str, Finding] = {}

    @settings(
        max_examples=nb_examples,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(tried_on)
    def look(example: Example) -> None:
        for finding in faults(example):
            found.setdefault(_kind(finding.fault), finding)

    look()
    return found


def _smallest(finding: Finding, faults: Faults) -> Finding:
    """The same fault with an example from which no job can be left out."""
    assert isinstance(finding.example, Example)
    for spec in finding.example.first:
        fewer = replace(finding.example, first=[other for other in finding.example.first if other != spec])
        again = (one for one in faults(fewer) if _kind(one.fault) == _kind(finding.fault))
        finding = next(again, finding)
    return finding


_PARTICULARS = re.compile(r"^scheduler '[^']*'|w0!\S+|\d[\d.]*(?:[- ]\d[\d.]*)*|\binf\b")


def _kind(fault: str) -> str:
    """A fault without what differs from example to example: jobs, hosts and times.

    >>> _kind("scheduler 'mine' broke a rule at time 3.5: ExecuteJob w0!7: hosts 0-3 7 are unavailable")
    '_ broke a rule at time _: ExecuteJob _ hosts _ are unavailable'
    """
    return _PARTICULARS.sub("_", fault)
