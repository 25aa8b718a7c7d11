"""A decision process that decides at random but keeps the rules, and that adds up the energy by itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random
from typing import Any

from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.hosts import HostSet
from tests.drive import GIGA

#: Idle, least and full power in each power state, and speed; as in tests/drive.py.
WATTS = {0: (100, 120, 200), 1: (50, 60, 100), 2: (10, 10, 10), 3: (110, 110, 110), 4: (130, 130, 130)}
SPEEDS = {0: GIGA, 1: GIGA / 2}
ASLEEP, FALLING_ASLEEP, WAKING = 2, 3, 4

#: Durations and works are multiples of this, so that times need no rounding.
QUARTER = 0.25

PROFILES: dict[str, dict[str, Any]] = {
    "nap": {"type": "delay", "delay": 7.75},
    "work": {"type": "parallel_homogeneous", "cpu": 4.25 * GIGA, "com": 0},
    "nothing": {"type": "parallel_homogeneous", "cpu": 0, "com": 0},
    "uneven": {"type": "parallel", "cpu": [3 * GIGA, GIGA], "com": [0] * 4},
    "both": {"type": "composed", "seq": ["work", "nap"], "repeat": 2},
    "fails": {"type": "delay", "delay": 2.5, "ret": 1},
    "says": {"type": "send", "msg": {"hello": 1}, "sleeptime": 0.5},
}


class Ledger:
    """What each host did over time, and the energy that follows from it."""

    def __init__(self, hosts: int) -> None:
        self.pstates: list[list[tuple[float, int]]] = [[(0.0, 0)] for _ in range(hosts)]
        self.loads: list[list[tuple[float, float]]] = [[(0.0, 0.0)] for _ in range(hosts)]

    def pstate(self, host: int) -> int:
        return self.pstates[host][-1][1]

    def switch(self, host: int, time: float, pstate: int) -> None:
        self.pstates[host].append((time, pstate))

    def run(self, hosts: HostSet, profile: str, start: float, end: float) -> None:
        """A job ran on hosts, which kept their power states; the end cuts its tasks short."""
        for duration, loads in self._tasks(list(hosts), profile):
            for host, load in loads.items():
                self.loads[host].append((start, load))
            start = min(start + duration, end)
            for host in hosts:
                self.loads[host].append((start, 0.0))

    def _tasks(self, hosts: list[int], name: str) -> list[tuple[float, dict[int, float]]]:
        """How long each task of a profile takes, and the load it is to each host."""
        profile = PROFILES[name]
        match profile["type"]:
            case "delay":
                return [(profile["delay"], {})]
            case "send":
                return [(profile["sleeptime"], {})]
            case "composed":
                return [task for part in profile["seq"] for task in self._tasks(hosts, part)] * profile[
                    "repeat"
                ]
        work = profile["cpu"] if profile["type"] == "parallel" else [profile["cpu"]] * len(hosts)
        alone = {host: flops / SPEEDS[self.pstate(host)] for host, flops in zip(hosts, work, strict=True)}
        longest = max(alone.values())
        return [(longest, {host: time / longest for host, time in alone.items() if longest})]

    def joules(self, until: float) -> float:
        """The integral of power over time, summed over the hosts."""
        return sum(self._joules_of(host, until) for host in range(len(self.pstates)))

    def _joules_of(self, host: int, until: float) -> float:
        changes = [time for time, _ in (*self.pstates[host], *self.loads[host]) if time < until]
        return sum(
            (end - start) * self._watts(host, start)
            for start, end in pairwise([*sorted(set(changes)), until])
        )

    def _watts(self, host: int, time: float) -> float:
        pstate = [value for at, value in self.pstates[host] if at <= time][-1]
        load = [value for at, value in self.loads[host] if at <= time][-1]
        idle, least, full = WATTS[pstate]
        return least + load * (full - least) if load else idle


class Player:
    """Decides whatever comes to its mind, as long as it keeps the rules, and becomes sensible in the end."""

    def __init__(
        self,
        random: Random,
        sizes: Mapping[str, tuple[int, str]],
        hosts: int,
        energy: bool,
        dynamic: bool,
        late: bool,
    ) -> None:
        self.ledger = Ledger(hosts)
        self.answers: list[tuple[float, float]] = []
        """The joules that were told and those of the ledger."""
        self.replies: list[ev.Message] = []
        self.waiting: list[str] = []
        self.running: dict[str, tuple[HostSet, float]] = {}
        self.switching: dict[HostSet, int] = {}
        self.lost = HostSet()
        self.nb_hosts = hosts
        self.calls = 0
        self.now = self.asked = 0.0
        """When its last decision takes effect, and when it was asked for it."""
        self._random = random
        self._jobs = dict(sizes)
        self._energy = energy
        self._open = dynamic
        self._late = late
        self._moods = 40
        self._said: list[ev.Event] = []

    @property
    def idle(self) -> list[int]:
        """The hosts that a job can be given."""
        busy = self.lost.mask
        for hosts, _ in self.running.values():
            busy |= hosts.mask
        for hosts in self.switching:
            busy |= hosts.mask
        return [
            host
            for host in range(self.nb_hosts)
            if not busy >> host & 1 and self.ledger.pstate(host) in SPEEDS
        ]

    @property
    def sleeping(self) -> list[int]:
        return [host for host in range(self.nb_hosts) if self.ledger.pstate(host) == ASLEEP]

    def react(self, request: ev.Message) -> ev.Message:
        """Answer a request."""
        self._learn(request)
        self.now = self.asked = request.now
        self._said = []
        if isinstance(request.events[-1], ev.SimulationEnds):
            return self._reply()
        if self._moods > 0:
            for _ in range(self._random.randint(0, 3)):
                self._moods -= 1
                self._random.choice(self._whims())()
            if not (self.running or self.switching or self.calls):
                self._call()
        else:
            self._be_sensible()
        return self._reply()

    def _reply(self) -> ev.Message:
        self.replies.append(ev.Message(self.now, self._said))
        return self.replies[-1]

    def say(self, decision: ev.Event) -> None:
        """Decide something, now or after some thought."""
        if self._late and self._moods > 0 and self._random.random() < 0.3:
            self.now += self._random.randint(0, 12) * QUARTER
        decision.time = self.now
        self._said.append(decision)

    # --- what happened ---------------------------------------------------------------------------

    def _learn(self, request: ev.Message) -> None:
        for event in request.events:
            match event:
                case ev.JobSubmitted(job=job):
                    self.waiting.append(job.id)
                case ev.JobCompleted(job_id=job_id, time=end):
                    hosts, start = self.running.pop(job_id)
                    self.ledger.run(hosts, self._jobs[job_id][1], start, end)
                case ev.HostsStateChanged(hosts=hosts, time=time):
                    target = self.switching.pop(hosts)
                    for host in hosts:
                        if self.ledger.pstate(host) != target:
                            self.ledger.switch(host, time, target)
                            self.ledger.loads[host].append((time, 0.0))
                case ev.HostsUnavailable(hosts=hosts):
                    self.lost = self.lost | hosts
                case ev.HostsAvailable(hosts=hosts):
                    self.lost = self.lost - hosts
                case ev.RequestedCall():
                    self.calls -= 1
        for event in request.events:
            if isinstance(event, ev.EnergyAnswer):
                self.answers.append((event.joules, self._joules(event.time)))

    def _joules(self, time: float) -> float:
        """What the ledger says, and the jobs that still run."""
        ledger = Ledger(self.nb_hosts)
        ledger.pstates = [list(changes) for changes in self.ledger.pstates]
        ledger.loads = [list(changes) for changes in self.ledger.loads]
        for job_id, (hosts, start) in self.running.items():
            if start < time:
                ledger.run(hosts, self._jobs[job_id][1], start, time)
        return ledger.joules(time)

    # --- what to do ------------------------------------------------------------------------------

    def _whims(self) -> list[Callable[[], None]]:
        whims: list[Callable[[], None]] = [self._call, self._start, self._start]
        if self.waiting:
            whims += [self._reject, self._annotate]
        if self.running:
            whims += [self._kill]
        if self._energy:
            whims += [self._switch, self._switch, lambda: self.say(ev.QueryEnergy())]
        if self._open:
            whims += [self._register]
        return whims

    def _call(self) -> None:
        self.calls += 1
        self.say(ev.CallMeLater(0.0))
        decision = self._said[-1]
        assert isinstance(decision, ev.CallMeLater)
        decision.at = self.now + self._random.randint(1, 100) * QUARTER

    def _start(self) -> None:
        idle = self.idle
        fitting = [job for job in self.waiting if self._jobs[job][0] <= len(idle)]
        if fitting:
            job = self._random.choice(fitting)
            self._execute(job, HostSet.of(self._random.sample(idle, self._jobs[job][0])))

    def _execute(self, job: str, hosts: HostSet) -> None:
        self.say(ev.ExecuteJob(job, hosts))
        self.waiting.remove(job)
        self.running[job] = (hosts, self.now)

    def _reject(self) -> None:
        job = self._random.choice(self.waiting)
        self.say(ev.RejectJob(job))
        self.waiting.remove(job)

    def _annotate(self) -> None:
        self.say(ev.SetJobMetadata(self._random.choice(self.waiting), "a note"))

    def _kill(self) -> None:
        jobs = [job for job, (_, start) in self.running.items() if start <= self.now]
        self.say(ev.KillJobs(self._random.choices(jobs, k=self._random.randint(1, 2))))

    def _switch(self) -> None:
        idle, sleeping = self.idle, self.sleeping
        free = [host for host in sleeping if not any(host in hosts for hosts in self.switching)]
        if free and self._random.random() < 0.5:
            self._put(self._some(free), self._random.choice([0, 1]))
        elif idle:
            self._put(self._some(idle), self._random.choice([0, 1, ASLEEP]))

    def _some(self, hosts: list[int]) -> HostSet:
        return HostSet.of(self._random.sample(hosts, self._random.randint(1, len(hosts))))

    def _put(self, hosts: HostSet, pstate: int) -> None:
        self.say(ev.SetHostsState(hosts, pstate))
        self.switching[hosts] = pstate
        for host in hosts:
            if pstate == ASLEEP or self.ledger.pstate(host) == ASLEEP:
                self.ledger.switch(host, self.now, FALLING_ASLEEP if pstate == ASLEEP else WAKING)
                self.ledger.loads[host].append((self.now, 1.0))
            else:
                self.ledger.switch(host, self.now, pstate)

    def _register(self) -> None:
        name = f"dyn{len(self._jobs)}"
        profile = self._random.choice(["nap", "work"])
        size = self._random.randint(1, self.nb_hosts)
        fields = {"id": f"dyn!{name}", "subtime": self.now, "res": size, "profile": name}
        self.say(ev.RegisterProfile("dyn", name, BATSIM4.read_profile(PROFILES[profile])))
        self.say(ev.RegisterJob(BATSIM4.read_job(fields, "dyn")))
        self._jobs[f"dyn!{name}"] = (size, profile)
        self.waiting.append(f"dyn!{name}")

    def _be_sensible(self) -> None:
        """Wake all hosts up and start what fits, so that all comes to an end."""
        if self._open:
            self.say(ev.RegistrationFinished())
            self._open = False
        free = [host for host in self.sleeping if not any(host in hosts for hosts in self.switching)]
        if free:
            self._put(HostSet.of(free), 0)
        for job in list(self.waiting):
            size, _ = self._jobs[job]
            if size > self.nb_hosts:
                self.say(ev.RejectJob(job))
                self.waiting.remove(job)
            elif size <= len(self.idle):
                self._execute(job, HostSet.of(self.idle[:size]))
