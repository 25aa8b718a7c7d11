"""Idle nodes sleep, and wake up for jobs: ``SuspendTime`` and what goes with it.

A thread of Slurm's controller looks at all nodes a moment after any has changed, and else every 10 s. It
suspends nodes that have been idle for longer than ``SuspendTime``. For ``SuspendTimeout`` no job gets such a
node; then jobs may, but they get all others first. A job with nodes that sleep has its share at once, and its
nodes are resumed. It starts when the controller looks at time limits for the first time after they are awake.
"""

from math import ceil, floor, inf

from batsched_py.errors import PolicyError
from batsched_py.protocol.hosts import HostSet, expand
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.idle_hosts import SleepStates
from batsched_py.slurm.policy.clock import LOOKS, MOMENT, NODES_KNOWN
from batsched_py.slurm.policy.job import RunningRecord
from batsched_py.slurm.policy.nodes import Machine, places
from batsched_py.slurm.policy.selection import bits
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.slurm.policy.state import State

PERIOD = 10.0
"""Between two looks at nodes of which none has changed, in seconds (``power_save_interval``)."""


class Rate:
    """How many nodes were switched lately; of so many a minute, 0 being no limit."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lately = 0.0

    def pass_time(self, seconds: float) -> None:
        """What was done counts less and less, by a sixth with each look."""
        self._lately *= (1 - PERIOD / 60) ** (seconds / PERIOD)

    @property
    def is_left(self) -> bool:
        """Whether one more may be switched now."""
        return not self._most or floor(self._lately + 0.5) < self._most

    def count(self) -> None:
        """One is switched."""
        self._lately += 1


class PowerSaving:
    """Which nodes sleep, and when that changes next."""

    def __init__(
        self, configuration: Configuration, machine: Machine, sleep_states: SleepStates, started: float
    ) -> None:
        self._settings = settings = configuration.power
        self._machine = machine
        self._sleep_states = sleep_states
        self._started = started
        self._hosts = [HostSet.of(range(node.first, node.first + node.cpus)) for node in machine.nodes]
        excepted = machine.named(expand(settings.suspend_exc_nodes))
        for each in configuration.partitions:
            if each.name in settings.suspend_exc_parts:
                excepted |= machine.written(each.nodes)
        self._may_sleep = machine.where(hosts <= sleep_states.hosts for hosts in self._hosts) & ~excepted
        self._busy_until = [floor(NODES_KNOWN - started)] * len(machine.nodes)
        """When each node was last found busy."""
        self._asleep = 0
        self._falling: dict[int, int] = {}
        """Nodes that no job may get yet, because they fall asleep, and since when."""
        self._rising: dict[int, int] = {}
        """Nodes that wake up, and since when."""
        self._wanted: list[RunningRecord] = []
        """Jobs that have nodes which sleep."""
        self._suspends, self._resumes = Rate(settings.suspend_rate), Rate(settings.resume_rate)
        self._looked = self._first_look = self._second_look = -started

    @property
    def falling(self) -> int:
        """The nodes that fall asleep, which no job may get."""
        return bits(self._falling)

    def must_wait(self, nodes: int) -> bool:
        """Whether some of these nodes are not awake."""
        return bool(nodes & (self._asleep | bits(self._rising)))

    def changed(self, now: float) -> None:
        """A node has changed: the thread looks when it wakes, and again if it does so in this second."""
        look = ceil((now + self._started) / LOOKS - 1e-6) * LOOKS - self._started
        self._first_look, self._second_look = look, look + (floor(look) == floor(now)) * LOOKS

    def left(self, nodes: int, now: float) -> None:
        """Jobs have left these nodes."""
        for node in places(nodes):
            self._busy_until[node] = floor(now)
        self.changed(now)

    def want(self, running: RunningRecord, now: float) -> None:
        """A job has nodes that sleep."""
        self._wanted.append(running)
        self.changed(now)

    def forget(self, running: RunningRecord) -> None:
        """A job needs its nodes no longer."""
        self._wanted = [each for each in self._wanted if each is not running]

    def _look_from(self, time: float) -> float:
        """The first look that is not before a time."""
        if time <= self._first_look + MOMENT:
            return self._first_look
        step = PERIOD * LOOKS
        return self._second_look + max(ceil((time - self._second_look - MOMENT) / step), 0) * step

    def next_time(self, state: State, now: float) -> float:
        """When a look may find something to do."""
        settings = self._settings
        due = [since + settings.suspend_timeout + 1 for since in self._falling.values()]
        due += [self._busy_until[node] + settings.suspend_time + 1 for node in places(self._idle(state))]
        if any(each.share.nodes & self._asleep for each in self._wanted):
            due.append(now)
        return self._look_from(max(min(due), self._looked + 2 * MOMENT)) if due else inf

    def _idle(self, state: State) -> int:
        idle = state.usage.idle & self._may_sleep & ~state.completing
        return idle & ~(self._asleep | bits(self._rising))

    def look(self, state: State, cluster: Cluster, now: float) -> bool:
        """Switch nodes, if it is time for a look that does; whether any has changed for jobs."""
        woken = self._wake_up(cluster, now)
        if self.next_time(state, now) > now + MOMENT:
            return woken
        second, before = floor(now), self._asleep
        for rate in (self._suspends, self._resumes):
            rate.pass_time(now - self._looked)
        self._looked = now
        self._resume(cluster, second)
        self._suspend(state, cluster, second)
        until = second - self._settings.suspend_timeout
        ready = [node for node, since in self._falling.items() if since < until]
        for node in ready:
            del self._falling[node]
        if self._asleep != before:
            self._machine.take_last(self._asleep)
        return woken or bool(ready) or self._asleep != before

    def _wake_up(self, cluster: Cluster, now: float) -> bool:
        """Nodes are awake that have been switched on."""
        switching = cluster.switching | cluster.asleep
        awake = [node for node in self._rising if not self._hosts[node] & switching]
        for node, since in self._rising.items():
            if now > since + self._settings.resume_timeout + PERIOD:
                raise PolicyError(
                    f"node {self._machine.nodes[node].name} takes longer to resume than ResumeTimeout "
                    f"({self._settings.resume_timeout:g} s), and Slurm would take it for down; set "
                    "power.resume_timeout in the configuration, or switch_on_seconds of the platform"
                )
        for node in awake:
            del self._rising[node]
        if awake:
            self.left(bits(awake), now)
        return bool(awake)

    def _resume(self, cluster: Cluster, second: int) -> None:
        """Wake nodes for jobs, in the order in which they were given."""
        self._wanted = [each for each in self._wanted if each.share.nodes & self._asleep]
        for running in self._wanted:
            for node in places(running.share.nodes & self._asleep):
                if self._resumes.is_left and not self._hosts[node] & cluster.switching:
                    self._resumes.count()
                    self._asleep &= ~(1 << node)
                    self._rising[node] = second
                    self._sleep_states.wake(cluster, self._hosts[node])

    def _suspend(self, state: State, cluster: Cluster, second: int) -> None:
        """Put nodes to sleep that have been idle for long enough."""
        for node in places(self._idle(state)):
            if self._suspends.is_left and self._busy_until[node] < second - self._settings.suspend_time:
                self._suspends.count()
                self._asleep |= 1 << node
                self._falling[node] = second
                self._sleep_states.put_to_sleep(cluster, self._hosts[node])
