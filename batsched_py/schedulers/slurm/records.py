"""The jobs as the twin keeps them."""

from __future__ import annotations

from math import inf
from operator import attrgetter

from batsched_py.protocol.dependencies import array_of
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.slurm.asked import Asked
from batsched_py.schedulers.slurm.job_fields import JobFields
from batsched_py.schedulers.slurm.nodes import Share
from batsched_py.schedulers.slurm.settings.partitions import Partition

#: Where a job stands in the queue; the lowest comes first.
Rank = tuple[int, int, float, int]

rank_of = attrgetter("rank")
"""That of a record."""


class PartitionRecord:
    """A partition with its nodes."""

    __slots__ = ("bit", "name", "nodes", "number", "settings")

    def __init__(self, settings: Partition, nodes: int, number: int) -> None:
        self.name = settings.name
        self.settings = settings
        self.nodes = nodes
        self.number = number
        self.bit = 1 << number
        """Itself in a set of partitions."""


class WaitingRecord:
    """A job that waits, in one of its partitions."""

    __slots__ = (
        "array",
        "asked",
        "cpus",
        "eligible",
        "fields",
        "job",
        "latest_start",
        "least_limit",
        "limit",
        "nb_partitions",
        "number",
        "partition",
        "parts",
        "priority",
        "rank",
        "submitted",
    )

    def __init__(
        self,
        job: Job,
        number: int,
        fields: JobFields,
        partition: PartitionRecord,
        asked: Asked,
        limit: int,
        least_limit: int,
    ) -> None:
        self.job = job
        self.number = number
        """Its place in the order of submission."""
        self.fields = fields
        array = array_of(job)
        self.array = "" if array is None else array.name
        """The array that it is a task of, if any."""
        self.partition = partition
        self.asked = asked
        self.cpus = asked.cpus
        """What it asks for, or what it would get by the last plan: that counts as its size."""
        self.limit = limit
        """Its time limit in minutes."""
        self.least_limit = least_limit
        """By ``--time-min``: with so many minutes the backfill loop plans it, and starts it."""
        self.nb_partitions = 1
        """In how many partitions it waits."""
        self.submitted = int(job.submission_time)
        self.eligible: float = self.submitted
        """Since when it may start, as far as that depends on its submitter."""
        self.latest_start = inf
        """After this second it is given up, because it could not end before its deadline."""
        if fields.deadline is not None:
            self.latest_start = int(round(job.submission_time + fields.deadline, 3)) - least_limit * 60
        self.parts: tuple[int, tuple[float, ...]] = (-1, ())
        """The parts of its priority but for its age, and for how many processors they were computed."""
        self.give_priority(0)

    @property
    def is_special(self) -> bool:
        """Whether more than nodes decides on its start: its submitter, licences, or other records."""
        return bool(
            self.eligible > self.submitted
            or self.asked.licences
            or self.array
            or self.nb_partitions > 1
            or self.latest_start < inf
        )

    def give_priority(self, priority: int) -> None:
        """Let it have this priority in its partition."""
        self.priority = priority
        tier = self.partition.settings.priority_tier
        self.rank: Rank = (-tier, -priority, self.job.submission_time, self.number)

    def go_back(self, before: WaitingRecord, eligible: float) -> None:
        """Be in the queue again as before, with the same place and priority, but wait until a time."""
        self.number, self.eligible = before.number, eligible
        self.give_priority(before.priority)


class RunningRecord:
    """A job that runs."""

    __slots__ = ("end", "share", "start", "taken", "waiting")

    def __init__(self, waiting: WaitingRecord, share: Share, start: int) -> None:
        self.waiting = waiting
        self.share = share
        self.start = start
        self.end = start + waiting.limit * 60
        """When its time limit is over."""
        self.taken: dict[int, int] = {}
        """Its processors on each of its nodes, as bits."""
