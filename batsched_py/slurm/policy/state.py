"""What the twin knows of the machine and its jobs at a moment, with the reservations that keep nodes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import inf

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.jobs import Job
from batsched_py.slurm.policy.future import Future
from batsched_py.slurm.policy.job import PartitionRecord, RunningRecord, WaitingRecord, rank_of
from batsched_py.slurm.policy.limits import Limits
from batsched_py.slurm.policy.nodes import Machine, Share, Usage
from batsched_py.slurm.policy.plan import Kernel
from batsched_py.slurm.policy.preemption import Preemption
from batsched_py.slurm.policy.settings import Configuration, Reservation

MOST_MOVES = 10
"""So often a start is put off to the end of a reservation of all nodes, before Slurm gives up."""


class Reserved:
    """A reservation with its nodes."""

    __slots__ = ("end", "nodes", "settings", "start")

    def __init__(self, settings: Reservation, nodes: int) -> None:
        self.settings = settings
        self.nodes = nodes
        self.start, self.end = settings.start, settings.end

    def is_for(self, record: WaitingRecord) -> bool:
        """Whether a job may use it."""
        settings, user = self.settings, record.job.user or ""
        if f"-{user}" in settings.users or (
            record.fields.account and f"-{record.fields.account}" in settings.accounts
        ):
            return False
        return user in settings.users or record.fields.account in settings.accounts


class Reservations:
    """All reservations of a machine."""

    def __init__(self, settings: Sequence[Reservation], machine: Machine) -> None:
        self._machine = machine
        self.all = [Reserved(each, _nodes(each, machine)) for each in settings]

    def __bool__(self) -> bool:
        return bool(self.all)

    def allowed(
        self, record: WaitingRecord, start: int, length: int, now: int, moves: bool
    ) -> tuple[int, int, bool] | None:
        """Which nodes a job may use for so long from a time on, when, and whether it is kept off some.

        If it may not start then at all, the start ``moves`` to the end of the reservation, or there is none.
        """
        if not self.all:
            return self._machine.all, start, False
        if record.fields.reservation:
            return self._within(record, start, length)
        for _ in range(MOST_MOVES + 1):
            nodes, overlaps, moved = self._machine.all, False, None
            for reserved in self.all:
                if (
                    reserved.settings.created > now
                    or reserved.start >= start + length
                    or reserved.end <= start
                ):
                    continue
                part = record.partition.nodes
                if "maint" in reserved.settings.flags and part & ~reserved.nodes == 0:
                    moved = reserved.end
                    break
                nodes &= ~reserved.nodes
                overlaps = overlaps or bool(part & reserved.nodes)
            if moved is None:
                return nodes, start, overlaps
            if not moves:
                return None
            start = int(moved)
        return None

    def _within(self, record: WaitingRecord, start: int, length: int) -> tuple[int, int, bool] | None:
        """The nodes of the reservation that a job names."""
        for reserved in self.all:
            if reserved.settings.name != record.fields.reservation:
                continue
            if not reserved.is_for(record) or not reserved.start <= start <= reserved.end:
                return None
            nodes, overlaps = reserved.nodes, False
            for other in self.all:
                if other is reserved or "maint" in reserved.settings.flags:
                    continue
                if "overlap" in reserved.settings.flags and "maint" not in other.settings.flags:
                    continue
                if other.start < start + length and other.end > start and nodes & other.nodes:
                    nodes &= ~other.nodes
                    overlaps = True
            return nodes, start, overlaps
        return None

    def next_end(self, time: int, resolution: int, origin: int = 0) -> int:
        """When the next reservation ends, rounded up to the grid; 0 if none does.

        Time 0 is so far from the beginning of a step of the grid.
        """
        ends = [reserved.end for reserved in self.all if time <= reserved.end]
        return -int(-(min(ends) + origin) // resolution) * resolution - origin if ends else 0


def _nodes(settings: Reservation, machine: Machine) -> int:
    if settings.nodes.upper() == "ALL":
        return machine.all
    return machine.named(expand(settings.nodes))


class State:
    """The queue, the running jobs, and what is free; both loops read it, and starts change it."""

    def __init__(
        self,
        configuration: Configuration,
        machine: Machine,
        partitions: Sequence[PartitionRecord],
        reservations: Reservations,
        limits: Limits,
        licences: Mapping[str, int],
        preemption: Preemption,
        kernel: Kernel,
    ) -> None:
        self.configuration = configuration
        self.machine = machine
        self.partitions = partitions
        self.reservations = reservations
        self.limits = limits
        self.preemption = preemption
        self.licences = dict(licences)
        """Those that are free."""
        self.kernel = kernel
        self.selector = self.kernel.selector(machine, configuration.selection.memory)
        self.up = machine.up
        """The nodes that jobs may get now."""
        self.usage = self.kernel.usage(machine)
        self.empty = self.kernel.usage(machine)
        """The machine without jobs, which nobody changes."""
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

    def next_moment(self, now: float) -> float:
        """When the next job may start that may not start now, or is given up."""
        moments = [moment for each in self._special for moment in (each.eligible, each.latest_start + 1)]
        return min([moment for moment in moments if moment > now], default=inf)

    def given_up(self, now: int) -> Collection[Job]:
        """The jobs that cannot end before their deadlines any more."""
        return {each.job.id: each.job for each in self._special if each.latest_start < now}.values()

    def sort(self) -> None:
        """Put the queue in order again, after priorities have changed."""
        before = self.waiting
        self.waiting = sorted(before, key=rank_of)
        if self.waiting != before or self.configuration.scheduling.bf_min_prio_reserve:
            self.epoch += 1

    def has_licences(self, record: WaitingRecord) -> bool:
        """Whether the licences are free that a job asks for."""
        return all(self.licences.get(name, 0) >= count for name, count in record.asked.licences)

    def set_up(self, nodes: int) -> None:
        """These nodes are up from now on, as far as they can be."""
        self.epoch += 1
        self.up = nodes & self.machine.up

    # --- the machine -----------------------------------------------------------------------------

    def preemptable(self, record: WaitingRecord, now: int) -> list[RunningRecord]:
        """The running jobs that may have to make way for a job."""
        return self.preemption.candidates(record, self.running, now)

    def future_without(self, gone: Sequence[RunningRecord]) -> Future:
        """What will be free and when, if some running jobs were gone."""
        usage = self.usage.copy()
        for running in gone:
            usage.give(running.share)
        return self._future_of(usage, [each for each in self.running if each not in gone])

    def _future_of(self, usage: Usage, running: Sequence[RunningRecord]) -> Future:
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
        running = RunningRecord(record, share, now)
        place = bisect_left(self.running, _end(running), key=_end)
        self.running.insert(place, running)
        self.future.started(place, running)
        self.limits.started(running)
        for name, count in record.asked.licences:
            self.licences[name] -= count
        return running

    def shorten(self, running: RunningRecord, end: int) -> None:
        """A running job has to end earlier than by its time limit."""
        if end >= running.end:
            return
        place = bisect_left(self.running, _end(running), key=_end)
        del self.running[place]
        self.future.ended(place)
        running.end = end
        place = bisect_left(self.running, _end(running), key=_end)
        self.running.insert(place, running)
        self.future.started(place, running)
        self.epoch += 1

    def set_completing(self, ended: Iterable[RunningRecord]) -> None:
        """The nodes of these jobs are being cleaned up, and no others."""
        self.epoch += 1
        self.completing = 0
        for running in ended:
            self.completing |= running.share.nodes

    def ended(self, running: RunningRecord) -> None:
        """A job has left its share; no other one starts on its nodes until they are clean."""
        place = bisect_left(self.running, _end(running), key=_end)
        del self.running[place]
        self.limits.ended(running)
        for name, count in running.waiting.asked.licences:
            self.licences[name] += count
        self.future.ended(place)
        self.epoch += 1
        self.usage.give(running.share)
        self.completing |= running.share.nodes


def _end(running: RunningRecord) -> tuple[int, int]:
    """Of jobs that end at the same time, the one comes first that was submitted first."""
    return running.end, running.waiting.number
