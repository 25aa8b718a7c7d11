"""A scene in words: what happened, what was decided, and why that was all."""

from collections.abc import Iterator, Sequence
from itertools import islice
from math import inf

from batsched_py.api.terminal import duration, hosts_text
from batsched_py.ledger.effects import Effect, RegisteredJob, RejectedJob, describe
from batsched_py.ledger.free_nodes import FreeNodes
from batsched_py.ledger.ledger import Ledger
from batsched_py.ledger.nodes import CORES, PLACES, in_words, lacking, where
from batsched_py.ledger.running import ResizedJob, RunningJob
from batsched_py.ledger.waiting import Deferred, Held
from batsched_py.outside.curve import Known
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import Request
from batsched_py.protocol.sizes import malleable_of, shapes_of
from batsched_py.watch.scenes import Scene


def host_states(ledger: Ledger, now: float) -> dict[str, HostSet]:
    """The hosts in each state; one that is free may be closed now, or reserved for some users."""
    free, closed, reserved = ledger.free.hosts(), HostSet(), HostSet()
    nodes = nodes_of(ledger)
    for closure in () if nodes is None else nodes.closures.all:
        if closure.start <= now < closure.end and closure.users:
            reserved = reserved | closure.hosts & free
        elif closure.start <= now < closure.end:
            closed = closed | closure.hosts & free
    return {
        "free": free - closed - reserved,
        "busy": ledger.busy(),
        "away": ledger.states.unavailable,
        "closed": closed,
        "reserved": reserved - closed,
        "asleep": ledger.states.asleep - ledger.states.switching,
        "switching": ledger.states.switching,
    }


def nodes_of(ledger: Ledger) -> FreeNodes | None:
    """What is free of the nodes, if the machine has any."""
    return ledger.free if isinstance(ledger.free, FreeNodes) else None


def waiting_text(ledger: Ledger) -> str:
    """How many jobs wait: in the queue, for other jobs, and for cheap hours."""
    words = [f"{len(ledger.queue):,} waiting"]
    for kind, word in ((Held, "held"), (Deferred, "deferred")):
        if count := len(list(ledger.waiting.all(kind))):
            words.append(f"{count:,} {word}")
    return ", ".join(words)


def sizes_text(job: Job) -> str:
    """Which other sizes a job can have; nothing if it is rigid.

    >>> sizes_text(Job("w0!1", 0.0, 4, 900.0, "p", {"malleable": {"min": 2, "max": 16}}))
    ' (2-16)'
    """
    if (malleable := malleable_of(job)) is not None:
        return f" ({malleable.least}-{malleable.most})"
    sizes = "|".join(str(shape.job.size) for shape in shapes_of(job))
    return sizes and f" ({sizes})"


def outside_text(outside: Known, now: float) -> str:
    """What comes from outside, as it is now; nothing if nothing is known."""
    curves = (
        ("price {:g}", outside.price),
        ("carbon {:g} g/kWh", outside.carbon),
        ("{:g} °C", outside.temperature),
        ("at most {:,g} W", outside.power_cap),
    )
    return "   ".join(words.format(curve.at(now)) for words, curve in curves if curve is not None)


def nodes_text(nodes: FreeNodes) -> str:
    """How much of each resource beside cores is free, and how many nodes have no job at all."""
    machine, free = nodes.machine, nodes.amounts
    empty = int((free[:, PLACES] == machine.has[:, PLACES]).sum())
    words = [f"{empty:,} of {len(machine.nodes):,} nodes empty"]
    for column, name in enumerate(machine.resources[PLACES + 1 :], PLACES + 1):
        share = free[:, column].sum() / max(1, machine.has[:, column].sum())
        words.append(f"{share:.0%} of {name} free")
    for name, count in machine.licences.items():
        words.append(f"{nodes.licences.free[name]:,} of {count:,} {name} free")
    return "   ".join(words)


def asked_text(request: Request) -> str:
    """What a job asks for beside its hosts, as short as possible.

    >>> asked_text(Request(4, per_node=(("memory", 2097152),), features="a100", exclusive=True))
    '2G/node a100 alone'
    """
    words = []
    for amounts, of in ((request.per_task, "task"), (request.per_node, "node")):
        for name, count in amounts:
            words.append(f"{count / 1024**2:.3g}G/{of}" if name == "memory" else f"{count} {name}/{of}")
    words += [f"{count} {name}" for name, count in request.licences]
    words += [request.features or "", "|".join(request.partitions), "alone" if request.exclusive else ""]
    return " ".join(filter(None, words))


def lacks(job: Job, nodes: FreeNodes) -> str:
    """What a job waits for beside a number of hosts, in words; nothing if there is a place for it."""
    demand, free = nodes.demand(job), nodes.amounts
    short = lacking(nodes.machine, demand, free, nodes.licences.free)
    if not short and not nodes.fits(job):
        return f"nodes that stay open to it{where(demand.request).removeprefix(' on nodes')}"
    return "" if not short or nodes.machine.are_hosts else in_words(short, where(demand.request))


def node_lines(nodes: FreeNodes, most: int) -> Iterator[str]:
    """What is free on each of the first nodes."""
    machine = nodes.machine
    for number, node in enumerate(machine.nodes[:most]):
        free = nodes.amounts[number]
        told = [f"{int(free[CORES])} of {node.cores} cores"]
        for name, count in node.resources.items():
            left = int(free[machine.column[name]])
            if name == "memory":
                told.append(f"{left / 1024**2:.3g} of {count / 1024**2:.3g} GB")
            else:
                told.append(f"{left} of {count} {name}")
        yield f"node {node.name}: {', '.join(told)} free"


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
    expected = ledger.reservation(head, scene.now).shadow_time
    left = [job for job in islice(ledger.queue, 1, None) if ledger.free.fits(job)]
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
    nodes = nodes_of(ledger)
    on_nodes = "" if nodes is None else lacks(job, nodes)
    if lacking <= 0 and not on_nodes:
        return f"{needs}, which are free"
    expected = ledger.reservation(job, now).shadow_time
    when = "nobody knows when" if expected == inf else f"{expected:.10g}"
    if expected <= now:
        when = "any moment"
    short = f"and waits for {on_nodes}" if on_nodes else f"{lacking} more than are free"
    return f"{needs}, {short}; expected by {when}"


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
    for held in ledger.holds.held:
        yield held.job, f"is held: {ledger.holds.why(held)}"
    for deferred in ledger.waiting.all(Deferred):
        yield deferred.job, "is deferred, since it costs less later"


def running_lines(ledger: Ledger, now: float) -> list[str]:
    """The jobs that run, by their expected ends."""
    lines = []
    for running in islice(ledger.running, MOST):
        left = running.expected_end - now
        limit = "any end" if left == inf else f"at most {duration(left)} more"
        where = f"{hosts_text(len(running.hosts)):>12}  on {running.hosts}"
        since = f"since {duration(now - running.start)}"
        lines.append(f"      {running.job.id:<14} {where}  {since}, {limit}")
    return _with_rest(lines, len(ledger.running), "nothing runs")


def host_lines(ledger: Ledger, now: float) -> list[str]:
    """Which hosts are free, busy, away, closed, asleep."""
    states = host_states(ledger, now).items()
    lines = [f"      {state:<9} {len(hosts):>6}  {hosts}" for state, hosts in states if hosts]
    nodes = nodes_of(ledger)
    if nodes is None or nodes.machine.are_hosts:
        return lines
    told = [f"      {line}" for line in node_lines(nodes, MOST)]
    return [*lines, *_with_rest(told, len(nodes.machine.nodes), "")]


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
