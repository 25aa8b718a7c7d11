"""A scene in words: what happened, what was decided, and why that was all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from math import inf

from batsched_py.api.quantities import duration, hosts_text
from batsched_py.ledger.ledger import Effect, Ledger, RegisteredJob, RejectedJob, describe
from batsched_py.ledger.resizes import ResizedJob
from batsched_py.ledger.running import RunningJob
from batsched_py.protocol import events as ev
from batsched_py.protocol.jobs import Job
from batsched_py.watch.nodes import lacks, node_lines
from batsched_py.watch.scenes import Scene
from batsched_py.watch.states import host_states, outside_text, sizes_text, waiting_text

#: So many jobs of a list are told one by one.
MOST = 10


def clock(time: float) -> str:
    """A time of the simulation, for people.

    >>> clock(93784.5)
    '1 d 02:03:04'
    """
    days, seconds = divmod(int(time), 86400)
    hours, seconds = divmod(seconds, 3600)
    return f"{days} d {hours:02}:{seconds // 60:02}:{seconds % 60:02}"


def happening(event: ev.Event) -> str:
    """What happened."""
    match event:
        case ev.JobSubmitted(job=job):
            return f"{job.id} submitted ({asked(job)})"
        case ev.JobCompleted(job_id=job_id, state=state, hosts=hosts):
            how = "ended" if state == "COMPLETED_SUCCESSFULLY" else state.removeprefix("COMPLETED_").lower()
            return f"{job_id} {how.replace('_', ' ')}, hosts {hosts} are free"
        case ev.HostsUnavailable(hosts=hosts):
            return f"hosts {hosts} are away"
        case ev.HostsAvailable(hosts=hosts):
            return f"hosts {hosts} are back"
        case ev.RequestedCall():
            return "a call that was asked for"
        case _:
            return _words(type(event).__name__)


def decision(effect: Effect) -> str:
    """What was decided."""
    match effect:
        case RunningJob(job=job, hosts=hosts):
            return f"start {job.id} on {hosts}"
        case ev.ExecuteJob(job_id=job_id, hosts=hosts):
            return f"start {job_id} on {hosts}"
        case RejectedJob(job=job):
            return f"reject {job.id}"
        case ResizedJob(job=job, before=before, hosts=hosts):
            return f"let {job.id} go on with {hosts} in place of {before}"
        case RegisteredJob(job=job):
            return f"a user submits {job.id} ({asked(job)})"
        case ev.CallMeLater(at=at):
            return f"be called at {at:.10g}"
        case _:
            return describe(effect)


def asked(job: Job) -> str:
    """What a job asks for."""
    limit = "no walltime" if job.walltime == inf else duration(job.walltime)
    return f"{hosts_text(job.size)}{sizes_text(job)}, {limit}"


def told(scene: Scene) -> Iterator[str]:
    """A scene in a few lines."""
    yield f"at {scene.now:.10g} ({clock(scene.now)})"
    yield from _list("happened", [happening(event) for event in scene.happened])
    yield from _list("decided", [decision(effect) for effect in scene.decided] or ["nothing"])
    yield from _list("because", list(_why_no_more(scene)))
    ledger = scene.ledger
    free = f"{len(host_states(ledger, scene.now)['free'])} of {ledger.nb_hosts} hosts free"
    yield f"  now        {waiting_text(ledger)}, {len(ledger.running)} running, {free}"
    if outside := outside_text(scene.outside, scene.now):
        yield f"  outside    {outside}"


def _why_no_more(scene: Scene) -> Iterator[str]:
    """Why the policy did not start more."""
    ledger = scene.ledger
    if not ledger.queue:
        yield "nobody else waits"
        return
    head = ledger.queue.head
    yield f"{waits(head, ledger, scene.now)}; it is first in the queue"
    expected = _expected(head, ledger, scene.now)
    left = [job for job in islice(ledger.queue, 1, None) if ledger.fits(job)]
    for job in left[:3]:
        end = scene.now + job.walltime
        late = f", but may run until {end:.10g}, when {head.id} could run" if end > expected else ""
        yield f"{job.id} ({asked(job)}) fits{late}, and was not chosen"
    if len(left) > 3:
        yield f"{len(left) - 3} more fit, and were not chosen"
    for remark in scene.remarks:
        start = "" if remark.start is None else f", to start by {remark.start:.10g}"
        yield f"the policy on {remark.job_id}: {remark.text}{start}"


def waits(job: Job, ledger: Ledger, now: float) -> str:
    """Why a job waits: how many hosts it lacks, and when they will be there by what is expected."""
    lacking = job.size - ledger.free.count
    needs = f"{job.id} needs {hosts_text(job.size)}"
    on_nodes = "" if ledger.nodes is None else lacks(job, ledger.nodes)
    if lacking <= 0 and not on_nodes:
        return f"{needs}, which are free"
    expected = _expected(job, ledger, now)
    when = (
        f"{expected:.10g}"
        if now < expected < inf
        else "any moment"
        if expected <= now
        else "nobody knows when"
    )
    short = f"and waits for {on_nodes}" if on_nodes else f"{lacking} more than are free"
    return f"{needs}, {short}; expected by {when}"


def _expected(job: Job, ledger: Ledger, now: float) -> float:
    """When enough hosts will be free for a job, if running jobs end as expected."""
    if ledger.nodes is not None:
        return ledger.reservation(job, now).shadow_time
    free = ledger.free.count
    if free >= job.size:
        return 0.0
    for running in ledger.running:
        free += len(running.hosts - ledger.unavailable)
        if free >= job.size:
            return running.expected_end
    return inf


def queue_lines(ledger: Ledger, now: float) -> list[str]:
    """The jobs that wait, in the order of the queue."""
    lines = [
        f"{place:>4}  {job.id:<14} {asked(job):>22}  waits {duration(now - job.submission_time)}"
        for place, job in enumerate(islice(ledger.queue, MOST), 1)
    ]
    lines = _with_rest(lines, len(ledger.queue), "nobody waits")
    kept = [f"      {job.id:<14} {why}" for job, why in kept_back(ledger)]
    return lines + (_with_rest(kept[:MOST], len(kept), "") if kept else [])


def kept_back(ledger: Ledger) -> Iterator[tuple[Job, str]]:
    """The jobs that are submitted and not in the queue, and why."""
    if ledger.holds is not None:
        for held in ledger.holds.held.values():
            yield held.job, f"is held: {ledger.holds.why(held)}"
    for job, _ in ledger.deferred.values():
        yield job, "is deferred, since it costs less later"


def running_lines(ledger: Ledger, now: float) -> list[str]:
    """The jobs that run, by their expected ends."""
    lines = [
        f"      {running.job.id:<14} {hosts_text(len(running.hosts)):>12}  on {running.hosts}  "
        f"since {duration(now - running.start)}, "
        + (
            "any end"
            if running.expected_end == inf
            else f"at most {duration(running.expected_end - now)} more"
        )
        for running in islice(ledger.running, MOST)
    ]
    return _with_rest(lines, len(ledger.running), "nothing runs")


def host_lines(ledger: Ledger, now: float) -> list[str]:
    """Which hosts are free, busy, away, closed, asleep."""
    states = host_states(ledger, now).items()
    lines = [f"      {state:<9} {len(hosts):>6}  {hosts}" for state, hosts in states if hosts]
    if ledger.nodes is None or ledger.nodes.machine.are_hosts:
        return lines
    told = [f"      {line}" for line in node_lines(ledger.nodes, MOST)]
    return [*lines, *_with_rest(told, len(ledger.nodes.machine.nodes), "")]


def _with_rest(lines: list[str], count: int, none: str) -> list[str]:
    if not count:
        return [f"      {none}"]
    return lines if count <= len(lines) else [*lines, f"      and {count - len(lines)} more"]


def _list(label: str, lines: Sequence[str]) -> Iterator[str]:
    shown = list(lines[:MOST]) + ([f"and {len(lines) - MOST} more"] if len(lines) > MOST else [])
    for number, line in enumerate(shown):
        yield f"  {'' if number else label:<9}  {line}"


def _words(name: str) -> str:
    """The name of an event as words.

    >>> _words("NoMoreStaticJobs")
    'no more static jobs'
    """
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()
