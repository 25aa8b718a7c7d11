"""Why jobs of a live cluster wait: what the policy finds as soon as all running jobs are on their nodes.

A listing tells of all their processors together only, so how many they have of each node is found here.
"""

from collections import deque
from collections.abc import Collection, Sequence

from msgspec import Struct

from batsched_py.schedulers.cluster import Cluster
from batsched_py.slurm.forecast.live import AFTERWARDS
from batsched_py.slurm.jobs import WORKLOAD
from batsched_py.slurm.policy.job import WaitingRecord
from batsched_py.slurm.policy.nodes import Share, Usage, places
from batsched_py.slurm.policy.plan import known_share
from batsched_py.slurm.policy.selection import Selector
from batsched_py.slurm.policy.slurm import Slurm

#: A running job starts within so many seconds of the simulation, unless it does not fit.
SETTLED = 60.0


class Resumed(Slurm):
    """The policy, on whose nodes jobs run already, until all jobs have started that are asked about.

    Then it refuses the others.
    """

    asked: Collection[str] = ()
    """Their names."""
    tells = False
    """Whether to note why jobs wait."""

    def begin(self, cluster: Cluster) -> None:
        """Begin as ever."""
        super().begin(cluster)
        self._left = {f"{WORKLOAD}!{name}" for name in self.asked}
        self._noted: dict[str, str] | None = None

    def schedule(self, cluster: Cluster) -> None:
        """Decide as ever, and note why jobs wait once the running jobs are there."""
        if not self._left - self._never.keys():
            for job in list(cluster.queue):
                cluster.reject(job)
            return
        if cluster.now == 0:
            self._hear(cluster)
            self._resume(cluster)
        super().schedule(cluster)
        if self.tells and self._noted is None and self._is_settled(cluster.now):
            waiting = [records for records in self._known.values() if records]
            self._noted = {
                records[0].job.name: self._causes.in_short(records, int(cluster.now)) for records in waiting
            }

    def _resume(self, cluster: Cluster) -> None:
        """Let jobs go on that ran before, on their nodes; one that does not fit there waits until it does."""
        records = [of_job[0] for of_job in self._known.values() if of_job and of_job[0].fields.runs]
        if not records or self._running:
            return
        usage = Usage(self._state.machine)
        selector = Selector(self._state.machine, self._configuration.selection.memory)
        shared = [record for record in records if record.asked.nodes and not record.asked.exclusive]
        jobs = [Placed(places(each.asked.nodes), each.asked.cpus, each.asked.unit) for each in shared]
        place(jobs, usage.cpus)
        parts = {record.job.id: job.parts for record, job in zip(shared, jobs, strict=True)}
        for record in records:
            share = None
            if record.job.id not in parts:
                share = selector.select(record.asked, record.asked.nodes, usage)
            elif all(count <= usage.cpus[node] for node, count in parts[record.job.id].items()):
                share = selector.share(record.asked, parts[record.job.id], usage)
            if share is not None:
                usage.take(share)
                self._begin_job(cluster, record, known_share(share, self._state.machine))

    def _begin_job(self, cluster: Cluster, record: WaitingRecord, share: Share) -> None:
        super()._begin_job(cluster, record, share)
        self._left.discard(record.job.id)

    def _is_settled(self, now: float) -> bool:
        """Whether the running jobs run, and the others are in the queue."""
        if now > SETTLED:
            return True
        return bool(self._running) and not any(
            record.fields.runs or now < record.eligible <= AFTERWARDS
            for records in self._known.values()
            for record in records
        )

    @property
    def waits_for(self) -> dict[str, str]:
        """Why jobs waited or can never run, by the names of the jobs."""
        never = {job_id.partition("!")[2]: why for job_id, why in self._never.items()}
        return (self._noted or {}) | never


class Placed(Struct):
    """A running job."""

    nodes: tuple[int, ...]
    cpus: int
    """Of all its nodes."""
    unit: int = 1
    """They are counted in multiples of this."""
    parts: dict[int, int] = {}
    """How many of each node."""


def place(jobs: Sequence[Placed], free: Sequence[int]) -> None:
    """Find parts for jobs, so that no node gives more than it has free, if that can be.

    Each job has something of each of its nodes. The rest is moved from nodes that give too much to others,
    perhaps by way of further jobs that are on both.

    >>> both, first = Placed((0, 1), 5), Placed((0,), 6)
    >>> place([both, first], [8, 8])
    >>> both.parts
    {0: 2, 1: 3}
    """
    left = list(free)
    for job in jobs:
        least = min(job.unit, job.cpus // len(job.nodes))
        job.parts = dict.fromkeys(job.nodes, least)
        for node in job.nodes:
            left[node] -= least
    for job in sorted(jobs, key=lambda job: len(job.nodes)):
        rest = job.cpus - sum(job.parts.values())
        for node in job.nodes:
            more = min(max(left[node], 0), rest)
            rest -= more
            _give(job, node, more, left)
        _give(job, job.nodes[0], rest, left)
    on_node: dict[int, list[Placed]] = {}
    for job in jobs:
        for node in job.nodes if len(job.nodes) > 1 else ():
            on_node.setdefault(node, []).append(job)
    for node in [node for node, count in enumerate(left) if count < 0]:
        while left[node] < 0 and (way := _way(node, on_node, left)):
            for job, source, target in way:
                _give(job, source, -job.unit, left)
                _give(job, target, job.unit, left)


def _give(job: Placed, node: int, more: int, left: list[int]) -> None:
    job.parts[node] += more
    left[node] -= more


def _way(start: int, on_node: dict[int, list[Placed]], left: Sequence[int]) -> list[tuple[Placed, int, int]]:
    """Jobs that can move some processors each, from a node to the next, the last of which has some free."""
    came: dict[int, tuple[Placed, int] | None] = {start: None}
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for job in on_node.get(node, ()):
            if job.parts[node] <= job.unit:
                continue
            for target in job.nodes:
                if target in came:
                    continue
                came[target] = job, node
                if left[target] >= job.unit:
                    return _back(target, came)
                waiting.append(target)
    return []


def _back(target: int, came: dict[int, tuple[Placed, int] | None]) -> list[tuple[Placed, int, int]]:
    way = []
    while (step := came[target]) is not None:
        job, source = step
        way.append((job, source, target))
        target = source
    return way
