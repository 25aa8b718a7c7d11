"""Why a job waits: what holds it, who is before it, and what its priority is made of.

Reasons are called as ``squeue`` calls them. A job that lacks something on the nodes that it may use waits for
``Resources``, even if others are before it; one for which there is room waits for those (``Priority``).
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from batsched_py.slurm.policy.job import WaitingRecord, rank_of
from batsched_py.slurm.policy.nodes import KIBIBYTES, Usage, places
from batsched_py.slurm.policy.priorities import Priorities
from batsched_py.slurm.policy.state import State

#: So many of the jobs that are before a job are named.
NAMED = 5

RESOURCES = "Resources"


class Cause(Struct, frozen=True):
    """Why a job waits at a moment."""

    reason: str
    what: str
    """What it lacks, or which limit or reservation holds it, in words."""
    before: Sequence[str]
    """The jobs in the queue before it that may use its nodes, too."""
    priority: int
    parts: Mapping[str, float]
    """What the priority is made of; nothing if the job was given one."""

    def __str__(self) -> str:
        """In words.

        >>> print(Cause("Resources", "4 of 8 nodes are free", ["7"], 12, {"age": 10.0, "qos": 2.0}))
        waits (Resources): 4 of 8 nodes are free; behind 7; priority 12 (age 10, qos 2)
        """
        more = f" and {len(self.before) - NAMED} more" if len(self.before) > NAMED else ""
        behind = f"; behind {', '.join(self.before[:NAMED])}{more}" if self.before else ""
        parts = ", ".join(f"{name} {part:.6g}" for name, part in self.parts.items())
        what = f": {self.what}" if self.what else ""
        return f"waits ({self.reason}){what}{behind}; priority {self.priority}" + (
            f" ({parts})" * bool(parts)
        )

    @property
    def kind(self) -> tuple[str, str]:
        """What makes it another cause: not what of the nodes is lacking at a moment, nor who is before it."""
        return self.reason, "" if self.reason == RESOURCES else self.what


class Causes:
    """Tells why jobs wait, of a machine whose other resources have these names."""

    def __init__(self, state: State, priorities: Priorities, others: Sequence[str]) -> None:
        self._state, self._priorities, self._others = state, priorities, others

    def of(self, records: Sequence[WaitingRecord], now: int) -> Cause:
        """Why a job waits that is in the queue with these records, in the partition where it comes first."""
        record = min((each for each in records if not each.is_magnetic), key=rank_of)
        reason, what = self._reason(record, now)
        parts = self._priorities.parts(record)
        before = self._before(record, now)
        if reason == "Priority" and not before:
            reason, what = "None", "the next look at the queue starts it"
        return Cause(reason, what, before, record.priority, parts)

    def in_short(self, records: Sequence[WaitingRecord], now: int) -> str:
        """The same in few words, without who is before it."""
        reason, what = self._reason(min(records, key=rank_of), now)
        return f"{reason}: {what}" if what else reason

    def _before(self, record: WaitingRecord, now: int) -> list[str]:
        """The jobs before a job that may start as far as limits go, and use some of its nodes."""
        limits = self._state.limits
        found = (
            each.job.name
            for each in self._state.waiting
            if each.rank < record.rank
            and each.asked.nodes & record.asked.nodes
            and each.eligible <= now
            and not limits.why(each)
        )
        return list(dict.fromkeys(found))

    def _reason(self, record: WaitingRecord, now: int) -> tuple[str, str]:
        state, asked = self._state, record.asked
        if record.eligible > now:
            return "BeginTime", ""
        if why := state.limits.why(record):
            return why, ""
        if not state.licences.suffice(asked):
            lacking = [name for name, count in asked.licences if state.licences.free.get(name, 0) < count]
            return "Licenses", ", ".join(lacking)
        nodes = state.up & asked.nodes
        allowed = state.reservations.allowed(record, now, record.limit * 60, now, moves=False)
        left = nodes & allowed[0] if allowed is not None else 0
        if state.selector.select(asked, left, state.empty) is None:
            if state.selector.select(asked, nodes, state.empty) is None:
                return "ReqNodeNotAvail", "nodes that it may use are down"
            return "Reservation", ", ".join(self._reserving(record, now))
        if state.selector.select(asked, left & ~state.completing, state.usage) is None:
            return RESOURCES, self._lacking(record, left)
        return "Priority", "there is room for it, which is kept for others"

    def _reserving(self, record: WaitingRecord, now: int) -> list[str]:
        """The reservations that keep a job off its nodes, or the one that it is for."""
        if record.fields.reservation:
            return [record.fields.reservation]
        return [
            each.settings.name
            for each in self._state.reservations.all
            if each.settings.created <= now
            and each.overlaps(now, record.limit * 60)
            and each.nodes & record.asked.nodes
        ]

    def _lacking(self, record: WaitingRecord, nodes: int) -> str:
        """Of what there is too little on some nodes, taken together."""
        asked, usage = record.asked, Usage(self._state.machine)
        for running in self._state.running:
            usage.take(running.share)
        usable = places(
            nodes & (usage.idle if asked.exclusive else ~usage.exclusive) & ~self._state.completing
        )
        cpus, least = sum(usage.cpus[node] for node in usable), asked.least_nodes
        memory = asked.memory_per_cpu * asked.cpus + asked.memory_per_node * least
        wanted = {"idle nodes" if asked.exclusive else "nodes": (len(usable), least)}
        if not asked.exclusive:
            wanted["processors"] = cpus, asked.cpus
            of_nodes = sum(usage.memory[node] for node in usable)
            wanted["MB of memory"] = of_nodes // KIBIBYTES, memory // KIBIBYTES
        for column, of_node, of_task in asked.others:
            free = sum(usage.others[column][node] for node in usable)
            wanted[self._others[column]] = free, of_node * least + of_task * asked.tasks
        lacking = [f"{free} {name} of {needed}" for name, (free, needed) in wanted.items() if free < needed]
        return ", ".join(lacking) + " are free" if lacking else "enough is free, but not on the same nodes"
