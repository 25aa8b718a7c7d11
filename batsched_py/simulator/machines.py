"""What the hosts are doing, and for how long they did what."""

from batsched_py.ledger.free import FreeHosts
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState

#: So many changes are remembered before those that no longer matter are forgotten.
_MANY = 4096


class Machines:
    """How many hosts are in which state over time, when each host has one job at most.

    Time counts for a host up to its last change, as in Batsim. So besides the sums over all hosts, it is
    remembered which hosts changed last and when, and what has passed since is taken off in the end.
    """

    def __init__(self, computing: int, storages: int = 0) -> None:
        self.count = computing + storages
        self.storages = storages
        self.computing = 0
        """How many hosts have a job and are not away."""
        apart = (HostState.IDLE, HostState.COMPUTING)
        others: list[HostState] = [state for state in HostState if state not in apart]
        self.away = dict.fromkeys(others, HostSet())
        """The hosts in each state that is neither idle nor computing."""
        self._unavailable = False
        self._since = 0.0
        self._host_seconds = 0.0
        """Of computing."""
        self._changes: list[tuple[float, HostSet]] = []
        self._many = _MANY
        self._away_since: dict[HostState, float] = dict.fromkeys(self.away, 0.0)
        self._away_seconds: dict[HostState, float] = dict.fromkeys(self.away, 0.0)

    def number_in(self, state: HostState) -> int:
        """How many hosts are in a state."""
        match state:
            case HostState.COMPUTING:
                return self.computing
            case HostState.IDLE:
                return self.count - self.computing - sum(map(len, self.away.values()))
            case _:
                return len(self.away[state])

    def occupy(self, hosts: HostSet, count: int, now: float) -> None:
        """A job begins on so many hosts, which were idle. Those that were made unavailable stay so."""
        if self._unavailable:
            count = len(hosts - self.away[HostState.UNAVAILABLE])
        self._host_seconds += self.computing * (now - self._since)
        self._since = now
        self.computing += count

    def vacate(self, hosts: HostSet, count: int, now: float) -> None:
        """A job leaves so many hosts. Those that were made unavailable meanwhile stay so."""
        if self._unavailable:
            hosts = hosts - self.away[HostState.UNAVAILABLE]
            count = len(hosts)
        self._host_seconds += self.computing * (now - self._since)
        self._since = now
        self.computing -= count
        changes = self._changes
        changes.append((now, hosts))
        if len(changes) > self._many:
            self._forget()

    def turn(self, hosts: HostSet, after: HostState, busy: HostSet, now: float) -> None:
        """Hosts go over to a state, whatever state each was in; ``busy`` are all that have jobs."""
        self._host_seconds += self.computing * (now - self._since)
        self._since = now
        rest = hosts
        for state, away in self.away.items():
            if away:
                self._away_seconds[state] += len(away) * (now - self._away_since[state])
                self.away[state] = away - hosts
                rest = rest - away
            self._away_since[state] = now
        self.computing -= len(rest & busy)
        if after is HostState.COMPUTING:
            self.computing += len(hosts)
        elif after is not HostState.IDLE:
            self.away[after] = self.away[after] | hosts
        self._unavailable = bool(self.away[HostState.UNAVAILABLE])
        self._changes.append((now, hosts))
        if len(self._changes) > self._many:
            self._forget()

    def seconds(self) -> dict[HostState, float]:
        """The time that hosts spent in each state, up to each host's last change; no job may be running."""
        self._forget()
        now = max([self._since, *self._away_since.values()])
        seconds = {
            state: self._away_seconds[state] + len(away) * (now - self._away_since[state])
            for state, away in self.away.items()
        }
        seconds[HostState.COMPUTING] = self._host_seconds
        last_changes = 0.0
        for time, hosts in self._changes:
            last_changes += len(hosts) * time
            for state, away in self.away.items():
                seconds[state] -= len(hosts & away) * (now - time)
        seconds[HostState.IDLE] = last_changes - sum(seconds.values())
        return seconds

    def _forget(self) -> None:
        """Keep of each host the last change only."""
        unseen = FreeHosts(HostSet.range(self.count))
        changes = []
        for time, hosts in reversed(self._changes):
            new = unseen.overlap(hosts)
            if new:
                unseen.take(new)
                changes.append((time, new))
            if not unseen.count:
                break
        self._changes = changes[::-1]
        self._many = 2 * len(changes) + _MANY


class SharedMachines(Machines):
    """The hosts' states, when several jobs may be on a host."""

    def __init__(self, computing: int, storages: int = 0) -> None:
        super().__init__(computing, storages)
        self._jobs = [0] * self.count

    def occupy(self, hosts: HostSet, count: int, now: float) -> None:
        """A job begins on hosts, beside those that are there."""
        idle = [host for host in hosts if not self._jobs[host]]
        for host in hosts:
            self._jobs[host] += 1
        super().occupy(HostSet.of(idle), len(idle), now)

    def vacate(self, hosts: HostSet, count: int, now: float) -> None:
        """A job ends; its hosts are idle unless others are there."""
        for host in hosts:
            self._jobs[host] -= 1
        left = [host for host in hosts if not self._jobs[host]]
        super().vacate(HostSet.of(left), len(left), now)
