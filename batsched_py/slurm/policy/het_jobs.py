"""Heterogeneous jobs: parts that ask for different things, and start together.

Only the backfill loop starts them. It plans each part like a job, but not before the other parts can start.
When a cycle is over, those jobs start of which all parts could start now. What was found is remembered for
one more cycle, and forgotten before every second one.
"""

from collections.abc import Iterator

from msgspec import Struct, field

from batsched_py.slurm.policy.job import YEAR, WaitingRecord

NEVER = YEAR * 60
"""So much later, in seconds, is what cannot be planned."""


class _Parts(Struct):
    """What is known of the parts of a job."""

    latest: int = 0
    """When the last of them could start, by the last cycle; 0 if that is not known."""
    starts: dict[str, tuple[int, WaitingRecord]] = field(default_factory=dict)
    """When each of them could start, and in which partition."""


class HetJobs:
    """When the parts of all heterogeneous jobs could start."""

    def __init__(self) -> None:
        self._known: dict[str, _Parts] = {}
        self._nb_cycles = 0
        self._epoch = self._nb_since = -1
        """The changes that the last cycle has seen, and how many cycles there were since."""

    def begin_cycle(self, epoch: int) -> None:
        """Forget what was found before the last cycle; so many changes have happened."""
        self._nb_since = self._nb_since + 1 if epoch == self._epoch else 0
        self._epoch = epoch
        if self._nb_cycles % 2 == 0:
            self._known = {name: _Parts() for name, parts in self._known.items() if parts.latest}
        self._nb_cycles += 1

    def earliest(self, record: WaitingRecord) -> int:
        """When the other parts of a job could start; 0 if that is not known."""
        parts = self._known.get(record.fields.het)
        if parts is None:
            return 0
        others = [start for name, (start, _) in parts.starts.items() if name != record.job.id]
        return max([parts.latest, *others])

    def note(self, record: WaitingRecord, start: int) -> None:
        """A part could start at a time, in one of its partitions."""
        parts = self._known.setdefault(record.fields.het, _Parts())
        known = parts.starts.get(record.job.id)
        if known is None or start < known[0]:
            parts.starts[record.job.id] = start, record

    def ready(self, now: int) -> Iterator[list[WaitingRecord]]:
        """The parts of each job all of which could start now."""
        for parts in list(self._known.values()):
            records = [record for _, record in parts.starts.values()]
            if not records or len(records) < records[0].fields.het_size:
                parts.latest = now + NEVER
                continue
            parts.latest = max(start for start, _ in parts.starts.values())
            if parts.latest <= now:
                yield records

    def matter(self, now: int) -> bool:
        """Whether another cycle may find something else though nothing has happened."""
        return self._nb_since < 2 or any(
            now < each.latest < now + NEVER // 2 for each in self._known.values()
        )

    def put_off(self, record: WaitingRecord, now: int) -> None:
        """A job is not looked at in the next cycle, because a limit keeps it from starting."""
        self._known[record.fields.het].latest = now + NEVER

    def started(self, record: WaitingRecord) -> None:
        """A job has started."""
        self._known.pop(record.fields.het, None)
