"""What the twin knows of the machine and its jobs at a moment, with reservations and preemption.

Jobs that make way for others are cancelled or put back into the queue. They can be put back where users hand
them in. Elsewhere no job makes way whose mode is ``requeue``.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf

from msgspec import Struct

from batsched_py.ledger.free_nodes import Licences
from batsched_py.protocol.jobs import Job
from batsched_py.slurm.policy.future import Future
from batsched_py.slurm.policy.het_jobs import HetJobs
from batsched_py.slurm.policy.job import PartitionRecord, RunningRecord, WaitingRecord, rank_of
from batsched_py.slurm.policy.limits import Accounts, Limits
from batsched_py.slurm.policy.nodes import Machine, Share, Usage
from batsched_py.slurm.policy.plan import Kernel
from batsched_py.slurm.policy.selection import Selector
from batsched_py.slurm.policy.settings import Configuration, Partition, Qos, Reservation


class Preemption:
    """Says who makes way for whom."""

    def __init__(
        self, configuration: Configuration, accounts: Accounts, selector: Selector, can_requeue: bool
    ) -> None:
        self._settings = configuration.preemption
        self._scheduling = configuration.scheduling
        self._accounts = accounts
        self._selector = selector
        self._made_way: dict[str, int] = {}
        """When jobs last had to make way for a job."""
        self._modes = {"cancel", "requeue"} if can_requeue else {"cancel"}
        by_partition = self._settings.type == "partition_prio"
        self._tellers: Sequence[Partition | Qos] = (
            configuration.partitions if by_partition else configuration.qos
        )
        """What tells how jobs make way: partitions or QOS."""
        self._exempt_times: dict[str, dict[str, float]] = {}
        self._exempts = self._settings.type != "none" and any(map(self._exempt_time, self._tellers))

    def candidates(
        self, record: WaitingRecord, running: Sequence[RunningRecord], now: int
    ) -> list[RunningRecord]:
        """The running jobs that may have to make way for a job, in the order in which they are tried."""
        exempt_times, nodes = self._yielding(record), record.partition.nodes
        if not exempt_times:
            return []
        found = []
        for each in running:
            exempt = exempt_times.get(self._called(each.waiting))
            if exempt is not None and now - each.start >= exempt and each.share.nodes & nodes:
                found.append(each)
        return sorted(found, key=self._importance)

    def next_moment(
        self, waiting: Iterable[WaitingRecord], running: Sequence[RunningRecord], now: float
    ) -> float:
        """When the next running job may have to make way for one that waits, and is exempt from that now."""
        if not self._exempts:
            return inf
        yielding = {self._called(each): self._yielding(each) for each in waiting}
        moments = (
            each.start + times.get(self._called(each.waiting), -inf)
            for times in yielding.values()
            for each in running
        )
        return min((moment for moment in moments if moment > now), default=inf)

    def may_make_way_for(self, record: WaitingRecord) -> bool:
        """Whether jobs of some partition or QOS make way for a job."""
        return bool(self._yielding(record))

    def _called(self, record: WaitingRecord) -> str:
        """The name of what tells how a job makes way; nothing if there is none."""
        if record.makes_way_as is None:
            told = self._told_by(record)
            record.makes_way_as = "" if told is None else told.name
        return record.makes_way_as

    def victims(
        self, record: WaitingRecord, nodes: int, usage: Usage, candidates: list[RunningRecord], now: int
    ) -> list[RunningRecord]:
        """The jobs that make way now so that a job fits on some nodes; none if that does not help.

        They are taken away one after another until the job fits. Then those come first that have more of the
        nodes that were found, so that fewer jobs have to go, and it is tried again; that is done
        ``preempt_reorder_count`` times and once more. A job that has just made others go waits for them.
        """
        order, tries = list(candidates), 0
        while True:
            found = self._until_it_fits(record, nodes, usage, order)
            if found is None:
                return []
            taken, share = found
            tries += 1
            if tries > self._settings.reorder_count + 1 or tries >= len(candidates):
                break
            last = taken[-1]
            if self._settings.strict_order:
                order.remove(last)
                order.insert(0, last)
                continue
            counts = {id(each): (each.share.nodes & share.nodes).bit_count() for each in taken[:-1]}
            order.sort(key=lambda each: -inf if each is last else -counts.get(id(each), 0))
        patience = self._scheduling.kill_wait + self._scheduling.message_timeout
        if now < self._made_way.get(record.job.id, -inf) + patience:
            return []
        self._made_way[record.job.id] = now
        return [each for each in taken if each.share.nodes & share.nodes]

    def _until_it_fits(
        self, record: WaitingRecord, nodes: int, usage: Usage, order: Sequence[RunningRecord]
    ) -> tuple[list[RunningRecord], Share] | None:
        """Which jobs have to be taken away until a job fits, and what it would get then."""
        future, taken = usage.copy(), list[RunningRecord]()
        for each in order:
            if each.share.nodes & nodes:
                future.give(each.share)
                taken.append(each)
                share = self._selector.select(record.asked, nodes, future)
                if share is not None:
                    return taken, share
        return None

    def _told_by(self, record: WaitingRecord) -> Partition | Qos | None:
        """What tells how a job makes way: its partition, or its QOS if it has any."""
        by_partition = self._settings.type == "partition_prio"
        return record.partition.settings if by_partition else self._accounts.qos_of(record)

    def _yielding(self, record: WaitingRecord) -> dict[str, float]:
        """The partitions or QOS whose jobs make way for a job, and for how long they are exempt."""
        name = self._called(record)
        if name not in self._exempt_times:
            told = self._told_by(record)
            self._exempt_times[name] = {
                other.name: self._exempt_time(other)
                for other in ([] if told is None else self._tellers)
                if _is_lower(other, told) and (other.preempt_mode or self._settings.mode) in self._modes
            }
        return self._exempt_times[name]

    def _exempt_time(self, of_other: Partition | Qos) -> float:
        own = of_other.preempt_exempt_time if isinstance(of_other, Qos) else None
        return self._settings.exempt_time if own is None else own

    def _mode(self, record: WaitingRecord) -> str:
        """How a job makes way."""
        told = self._told_by(record)
        return (told.preempt_mode if told is not None else None) or self._settings.mode

    def grace_time(self, record: WaitingRecord) -> int:
        """How long a job goes on running that has to make way, in seconds."""
        told = self._told_by(record)
        return 0 if told is None else int(told.grace_time)

    def requeues(self, record: WaitingRecord) -> bool:
        """Whether a job that makes way is put back into the queue; it is cancelled if it may not be."""
        allowed = record.fields.requeue
        return self._mode(record) == "requeue" and (
            self._scheduling.job_requeue if allowed is None else allowed
        )

    def _importance(self, running: RunningRecord) -> tuple[int, int, int]:
        """The least important jobs make way first, then those with the fewest nodes; or else the youngest."""
        record = running.waiting
        if self._settings.youngest_first:
            return -running.start, 0, record.number
        qos = self._accounts.qos_of(record) if self._settings.type == "qos" else None
        importance = record.partition.settings.priority_tier if qos is None else qos.priority
        return importance, running.share.nodes.bit_count(), record.number


def _is_lower(of_other: Partition | Qos, of_record: Partition | Qos | None) -> bool:
    """Whether jobs of a partition or QOS make way for those of another."""
    if isinstance(of_other, Partition) and isinstance(of_record, Partition):
        return of_other.priority_tier < of_record.priority_tier
    return isinstance(of_record, Qos) and of_other.name in of_record.preempt


MOST_MOVES = 10
"""So often a start is put off to the end of a reservation of all nodes, before Slurm gives up."""


ATTRACTS = 14 * 86400.0
"""So long after its submission at most does a job find its way into a reservation that begins."""


class Reserved(Struct, frozen=True):
    """A reservation with its nodes."""

    settings: Reservation
    nodes: int

    def is_for(self, record: WaitingRecord) -> bool:
        """Whether a job may use it."""
        settings, user, account = self.settings, record.job.user or "", record.fields.account
        if f"-{user}" in settings.users or (account and f"-{account}" in settings.accounts):
            return False
        return user in settings.users or account in settings.accounts

    def overlaps(self, start: int, length: int) -> bool:
        """Whether it is at some time of a span."""
        return self.settings.start < start + length and self.settings.end > start


class Reservations:
    """All reservations of a machine."""

    def __init__(self, settings: Sequence[Reservation], machine: Machine) -> None:
        self._machine = machine
        self.all = [Reserved(each, machine.written(each.nodes)) for each in settings]
        starts, ends = [each.start for each in settings], [each.end for each in settings if each.end < inf]
        moments = [*(each.created for each in settings), *starts, *ends, *(floor(end) + 1 for end in ends)]
        self._moments = sorted({ceil(each) for each in moments})
        """When any is made, begins and ends, and the second after its end."""
        self._starts, self._ends = sorted(starts), sorted(ends)
        self.last_moment = max(self._moments, default=-inf)

    def __bool__(self) -> bool:
        return bool(self.all)

    def matter(self, record: WaitingRecord, now: int) -> bool:
        """Whether any is known and not over, or a job names one."""
        return bool(record.fields.reservation) or any(
            each.settings.created <= now < each.settings.end for each in self.all
        )

    def allowed(
        self, record: WaitingRecord, start: int, length: int, now: int, moves: bool
    ) -> tuple[int, int, bool] | None:
        """Which nodes a job may use for so long from a time on, when, and whether it is kept off some.

        If it may not start then at all, the start ``moves`` to the end of the reservation, or there is none.
        """
        if not self.all or record.fields.runs:
            return self._machine.all, start, False
        if record.fields.reservation:
            return self._within(record, start, length)
        part = record.partition.nodes
        for _ in range(MOST_MOVES + 1):
            nodes = self._machine.all
            for reserved in self.all:
                if reserved.settings.created > now or not reserved.overlaps(start, length):
                    continue
                if "maint" in reserved.settings.flags and part & ~reserved.nodes == 0:
                    if not moves or reserved.settings.end == inf:
                        return None
                    start = int(reserved.settings.end)
                    break
                nodes &= ~reserved.nodes
            else:
                return nodes, start, bool(part & ~nodes)
        return None

    def _within(self, record: WaitingRecord, start: int, length: int) -> tuple[int, int, bool] | None:
        """The nodes of the reservation that a job names; with the flag ``FLEX``, it has others, too."""
        named = [each for each in self.all if each.settings.name == record.fields.reservation]
        if not named or not named[0].is_for(record):
            return None
        nodes, settings = named[0].nodes, named[0].settings
        if "flex" in settings.flags:
            nodes = self._machine.all
        elif not settings.start <= start <= settings.end:
            return None
        before = nodes
        for other in self.all:
            if other is named[0] or "maint" in settings.flags:
                continue
            if "overlap" in settings.flags and "maint" not in other.settings.flags:
                continue
            if other.overlaps(start, length):
                nodes &= ~other.nodes
        return nodes, start, nodes != before

    def magnetic(self, record: WaitingRecord) -> list[str]:
        """The reservations in which a job may run that names none."""
        if record.fields.reservation:
            return []
        magnetic = (each for each in self.all if "magnetic" in each.settings.flags and each.is_for(record))
        soon = record.eligible, record.eligible + ATTRACTS
        return [
            each.settings.name
            for each in magnetic
            if each.settings.end > soon[0] and each.settings.start < soon[1]
        ]

    def last_end(self, record: WaitingRecord) -> float:
        """When the reservation of a job ends, which it may not outlast."""
        named = [each.settings for each in self.all if each.settings.name == record.fields.reservation]
        return min((each.end for each in named if "flex" not in each.flags), default=inf)

    def next_end(self, time: int, resolution: int, origin: int = 0) -> int:
        """When the next reservation ends, rounded up to the grid; 0 if none does.

        Time 0 is so far from the beginning of a step of the grid.
        """
        place = bisect_left(self._ends, time)
        if place == len(self._ends):
            return 0
        return -int(-(self._ends[place] + origin) // resolution) * resolution - origin

    def next_moment(
        self, now: float, lengths: Iterable[int], window: int, resolution: int, origin: int
    ) -> float:
        """When they may keep off other jobs of these lengths than they do now, if nothing else happens.

        That is also when a job would meet one that it does not meet yet, and when a plan that begins then
        reaches beyond the end of one.
        """
        later = self._moments[bisect_right(self._moments, now) :][:1]
        for length in lengths:
            place = bisect_left(self._starts, length + floor(now))
            later += [floor(start) + 1 - length for start in self._starts[place : place + 1]]
        reach = max(resolution, 2) - window
        for end in self._ends[bisect_left(self._ends, now - reach - resolution) :]:
            if (moment := self.next_end(ceil(end), resolution, origin) + reach) > now:
                later.append(moment)
                break
        return min(later, default=inf)


@dataclass(eq=False)
class State:
    """The queue, the running jobs, and what is free; both loops read it, and starts change it."""

    configuration: Configuration
    machine: Machine
    partitions: Sequence[PartitionRecord]
    reservations: Reservations
    limits: Limits
    licences: Licences
    """Those that are free."""
    preemption: Preemption
    kernel: Kernel
    selector: Selector
    empty: Usage
    """The machine without jobs, which nobody changes."""

    def __post_init__(self) -> None:
        self.up = self.machine.up
        """The nodes that jobs may get now."""
        self.usage = self.empty.copy()
        self.completing = 0
        """Nodes of jobs that have ended and are being cleaned up."""
        self.running: list[RunningRecord] = []
        """In the order of their ends."""
        self.future = self._future_of(self.usage, self.running)
        """What will be free and when."""
        self.waiting: list[WaitingRecord] = []
        """In the order in which the loops look at them; a job in two partitions is there twice."""
        self._special: list[WaitingRecord] = []
        """Those that may have to wait even if there are nodes for them."""
        self.news: list[WaitingRecord] = []
        """Those that the backfill loop has not seen."""
        self.het = HetJobs()
        self.epoch = 0
        """How often something else has changed than that jobs joined the queue."""
        self._nb_added = 0

    # --- the queue -------------------------------------------------------------------------------

    def add(self, records: Iterable[WaitingRecord]) -> None:
        """A job waits from now on, in each of its partitions."""
        for record in records:
            self._nb_added += 1
            insort(self.waiting, record, key=rank_of)
            self.news.append(record)
            if record.is_special:
                self._special.append(record)

    def remove(self, job_id: str) -> None:
        """A job waits no longer."""
        self.epoch += 1
        self.waiting = [record for record in self.waiting if record.job.id != job_id]
        self._special = [record for record in self._special if record.job.id != job_id]

    @property
    def changes(self) -> tuple[int, int]:
        """Other numbers after each change."""
        return self.epoch, self._nb_added

    @property
    def waits_for_nodes_only(self) -> bool:
        """Whether the queue has only jobs that wait for nothing but nodes."""
        return not (self._special or self.limits.are_set)

    def waits_for_reservations(self, now: int) -> bool:
        """Whether time matters for reservations: not when all are over, and no job that waits names one."""
        return bool(self.reservations) and (
            any(each.settings.end > now for each in self.reservations.all)
            or any(record.fields.reservation for record in self.waiting)
        )

    def next_of_reservations(self, now: float) -> float:
        """When reservations may let jobs start that wait now, or keep other nodes for somebody."""
        if now >= self.reservations.last_moment:
            return inf
        lengths = {60 * limit for each in self.waiting for limit in (each.limit, each.least_limit)}
        settings = self.configuration.scheduling
        resolution = max(int(settings.bf_resolution), 1)
        return self.reservations.next_moment(
            now, lengths, int(settings.bf_window), resolution, self.configuration.origin
        )

    @property
    def has_het_jobs(self) -> bool:
        """Whether parts of heterogeneous jobs wait."""
        return any(record.fields.het for record in self._special)

    def next_moment(self, now: float) -> float:
        """When the next job may start that may not start now, or is given up, or others make way for it."""
        moments = [
            moment
            for each in self._special
            for moment in (each.eligible, each.latest_start + 1, each.patient_until)
        ]
        moments.append(self.preemption.next_moment(self.waiting, self.running, now))
        return min([moment for moment in moments if moment > now], default=inf)

    def relax(self, now: float) -> None:
        """Let those do without nodes behind few switches that have waited for them long enough."""
        for each in self._special:
            if each.relaxed is not None and each.patient_until <= now:
                self.epoch += 1
                each.asked, each.relaxed = each.relaxed, None

    def why_waiting(self, record: WaitingRecord) -> str:
        """What keeps a job from starting even if there are nodes for it, as Slurm calls it; else nothing."""
        if why := self.limits.why(record):
            return why
        if not self.licences.suffice(record.asked):
            return "Licenses"
        return "Reservation" if record.fields.reservation else ""

    def given_up(self, now: int) -> Collection[Job]:
        """The jobs that cannot end before their deadlines any more."""
        if not self._special:
            return ()
        return {each.job.id: each.job for each in self._special if each.latest_start < now}.values()

    def sort(self) -> None:
        """Put the queue in order again, after priorities have changed."""
        before = self.waiting
        self.waiting = sorted(before, key=rank_of)
        if self.waiting != before or self.configuration.scheduling.bf_min_prio_reserve:
            self.epoch += 1

    def set_up(self, nodes: int) -> None:
        """These nodes are up from now on, as far as they can be."""
        self.epoch += 1
        self.up = nodes & self.machine.up

    # --- the machine -----------------------------------------------------------------------------

    def future_without(self, gone: Sequence[RunningRecord]) -> Future:
        """What will be free and when, if some running jobs were gone."""
        usage = self.usage.copy()
        for running in gone:
            usage.give(running.share)
        return self._future_of(usage, [each for each in self.running if each not in gone])

    def _future_of(self, usage: Usage, running: list[RunningRecord]) -> Future:
        settings = self.configuration.scheduling
        return self.kernel.future(
            usage,
            running,
            self.selector,
            int(settings.bf_window_linear),
            self.configuration.selection.type == "linear",
            int(settings.kill_wait),
            self.configuration.origin,
        )

    def start(self, record: WaitingRecord, share: Share, now: int) -> RunningRecord:
        """A job leaves the queue and has its share of the nodes."""
        place = bisect_left(self.waiting, rank_of(record), key=rank_of)
        if self.waiting[place] is record and record.nb_partitions == 1:
            del self.waiting[place]
            self._special = [each for each in self._special if each is not record]
        else:
            self.remove(record.job.id)
        self.epoch += 1
        self.usage.take(share)
        running = RunningRecord(record, share, now, now + record.limit * 60)
        self._enter(running)
        self.limits.change(running, 1, now)
        self.licences.take(record.asked)
        return running

    def begin_anew(self, running: RunningRecord, now: int) -> None:
        """A job has had its share for a while, and starts only now, with all of its time limit."""
        self._leave(running)
        running.start, running.end = now, now + running.waiting.limit * 60
        self._enter(running)
        self.epoch += 1

    def shorten(self, running: RunningRecord, end: int) -> None:
        """A running job has to end earlier than by its time limit."""
        if end < running.end:
            self._leave(running)
            running.end = end
            self._enter(running)
            self.epoch += 1

    def _enter(self, running: RunningRecord) -> None:
        """Put a job among the running ones."""
        place = bisect_left(self.running, _end(running), key=_end)
        self.running.insert(place, running)
        self.future.started(place, running)

    def _leave(self, running: RunningRecord) -> None:
        """Take a job from among the running ones."""
        place = bisect_left(self.running, _end(running), key=_end)
        del self.running[place]
        self.future.ended(place)

    def set_completing(self, ended: Iterable[RunningRecord]) -> None:
        """The nodes of these jobs are being cleaned up, and no others."""
        self.epoch += 1
        self.completing = 0
        for running in ended:
            self.completing |= running.share.nodes

    def ended(self, running: RunningRecord, now: int) -> None:
        """A job has left its share; no other one starts on its nodes until they are clean."""
        self._leave(running)
        self.limits.change(running, -1, now)
        self.licences.give(running.waiting.asked)
        self.epoch += 1
        self.usage.give(running.share)
        self.completing |= running.share.nodes


def _end(running: RunningRecord) -> tuple[int, int]:
    """Of jobs that end at the same time, the one comes first that was submitted first."""
    return running.end, running.waiting.number
