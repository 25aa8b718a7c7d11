"""The native engine: a C++ library that owns the jobs, the queue, the machine and the agenda."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from heapq import merge
from operator import attrgetter
from types import MethodType
from typing import TYPE_CHECKING, Any, NoReturn

from batsched_py import native
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines import Simulation, Situation
from batsched_py.engines.native_cluster import Cluster as NativeCluster
from batsched_py.engines.native_traces import Traces
from batsched_py.errors import Deadlock, EventBroken, PolicyError, RuleBroken
from batsched_py.ledger import kinds
from batsched_py.ledger.profile import AvailabilityProfile, Plan, Reservation
from batsched_py.ledger.queue import JobQueue
from batsched_py.ledger.running import Running, RunningJob
from batsched_py.protocol.dependencies import without_dependencies
from batsched_py.protocol.events import Event, HostsAvailable, HostsUnavailable, SimulationBegins
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job, JobState
from batsched_py.protocol.profiles import Delay, Homogeneous
from batsched_py.schedulers.base import Scheduler
from batsched_py.schedulers.cluster import Cluster
from batsched_py.schedulers.selection import selection
from batsched_py.simulator.catalog import refusal
from batsched_py.simulator.outputs import Outputs, Results
from batsched_py.simulator.platform import EqualHosts
from batsched_py.simulator.setup import Setup
from batsched_py.users import Behaviour, Submission, User, UsersOf, Withdrawal
from batsched_py.users.broker import actions_of, blame, hears_starts, name_of, next_time_of
from batsched_py.users.rigid import who
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload, as_jobs
from batsched_py.workload.swf.quick_reader import Log, NativeJobs

if TYPE_CHECKING:
    from batsched_py.engines.native_holds import NativeHolds
    from batsched_py.ledger.nodes import Refusal

#: The classes of the Python engine whose methods the library has, too.
_REFERENCE = {
    kind.__name__: kind for kind in (Cluster, JobQueue, Running, Plan, Reservation, AvailabilityProfile)
}


#: Events that do something to hosts, in the library's order.
_KINDS = {HostsUnavailable: 0, HostsAvailable: 1}


def _in_library(method: Any) -> str | None:
    """What the library does in place of a method of a policy, if it does."""
    what: str | None = getattr(method, "in_library", None)
    return what


def pause() -> None:
    """Do nothing: when Python is asked for that, it hears signals and what other threads want raised."""


def misused(kind: str, name: str, given: tuple[Any, ...], named: dict[str, Any]) -> NoReturn:
    """A method was called with other arguments than it has: say so as the Python engine does."""
    getattr(_REFERENCE[kind], name)(None, *given, **named)
    raise TypeError(f"{kind}.{name}() cannot be called like that")


library: Any = native.library
if library is not None:
    library.prepare(
        {
            "host_set": HostSet,
            "submission": Submission,
            "withdrawal": Withdrawal,
            "computation": Homogeneous,
            "delay": Delay,
            "states": list(JobState),
            "rule_broken": RuleBroken,
            "policy_error": PolicyError,
            "event_broken": EventBroken,
            "blame": blame,
            "next_time": next_time_of,
            "actions": actions_of,
            "user_name": name_of,
            "running_job": RunningJob,
            "reservation": Reservation,
            "availability_profile": AvailabilityProfile._of_steps,
            "misused": misused,
            "without_dependencies": without_dependencies,
            "check_job": kinds.check_job,
            "check_name": kinds.check_name,
            "check_function": kinds.check_function,
            "expected": kinds.expected,
            "number": kinds.number,
            "count": kinds.count,
            "refuse_copy": kinds.refuse_copy,
            "pause": pause,
        }
    )


class NativeSimulation(Simulation):
    """A simulation that happens in the library, except for the turns of the policy."""

    engine = "native"

    def __init__(self, setup: Setup, process: DecisionProcess, outputs: Outputs) -> None:
        hosts = setup.platform.hosts
        self._engine = library.Engine(len(hosts), hosts[0].speed)
        if not isinstance(hosts, EqualHosts):
            speeds = [host.speed for host in hosts]
            self._engine.set_speeds(speeds, [host.speed * host.cores for host in hosts])
        self.process: DecisionProcess = process
        scheduler: Any = process.scheduler
        self._sleeps = _in_library(scheduler.schedule) == "sleeping"
        self._policy: Any = scheduler.inner if self._sleeps else scheduler
        """What starts jobs."""
        self._setup = setup
        self._cluster: NativeCluster | None = None
        self.outputs = outputs
        self.busy = self._busy
        self.machines = NativeMachines(self._engine, len(hosts))
        outputs.follow(self._engine.set_write, self._refresh, self._first_submission)
        self._expect_events()
        self._engine.set_procedures(setup.launch_time, setup.cleaning_time, setup.late_jobs_stay)
        self._holds: NativeHolds | None = None
        self._traces = Traces(self._engine, setup, outputs)

    @property
    def drawn_joules(self) -> float:
        """What all hosts have drawn so far; nothing where energy is not accounted for."""
        return float(self._engine.drawn_joules) if self._setup.energy else 0.0

    def situation(self) -> Situation:
        """How things stand."""
        engine = self._engine
        resources = self._cluster.resources if self._cluster is not None else {}
        return Situation(engine.now, len(engine.queue()), len(engine.running()), resources)

    def _busy(self, percent: float) -> tuple[float, float] | None:
        found: tuple[float, float] | None = self._engine.busy_until(percent, self.machines.count)
        return found

    # --- running ---------------------------------------------------------------------------------

    def run(self) -> Results:
        """Run the whole simulation."""
        with self._begun() as cluster:
            process = self.process
            advance, seen = self._advance, vars(cluster)
            if not (process.scheduler.leaves_jobs or cluster.heeded):
                if process.scheduler.only_starts_jobs:
                    self._engine.only_starts_jobs()
                if (of := self._turns_of_library(cluster)) is not None:
                    self._take_turns(of, cluster)
            while (now := advance()) is not None or self._leaves_jobs():
                schedule = process.schedule
                if now is None:
                    continue
                seen["now"] = now  # as _go_to does, without the call
                try:
                    schedule(cluster)
                except BaseException as error:
                    process.fail(error, now)
            self._finish()
        return self.results

    def _turns_of_library(self, cluster: NativeCluster) -> str | None:
        """Of which policy the library itself takes all turns, if nobody can tell that it does."""
        if self._sleeps:
            return "easy"
        policy = self._policy
        kind = type(policy)
        of: str | None = _in_library(kind.schedule)
        plain = (
            self.process.schedule == MethodType(kind.schedule, policy)
            and policy.selection == "lowest"
            and not cluster._start_listeners
        )
        if of == "easy":
            orders = (cluster.order, policy.backfill_order)
            plain &= all(order is None or cluster._in_library(order) is not order for order in orders)
        elif of == "conservative":
            plain &= _in_library(kind.take_over) == of and cluster.order is None
        return of if plain else None

    def _take_turns(self, of: str, cluster: NativeCluster) -> None:
        policy = self._policy
        try:
            if of == "easy":
                order = cluster._in_library(policy.backfill_order)
                self._engine.take_turns_of_easy(order, policy.predictions, self.is_looked_at)
            else:
                self._engine.take_turns_of_conservative(policy.plan, self.is_looked_at)
        finally:
            cluster._go_to(self._engine.now)

    def turns(self) -> Iterator[Cluster]:
        """Go through the whole simulation, but leave each turn of the policy to the caller."""
        with self._begun() as cluster:
            while (now := self._advance()) is not None or self._leaves_jobs():
                if now is None:
                    continue
                cluster._go_to(now)
                self.process.at(now)
                yield cluster
            self._finish()

    @contextmanager
    def _begun(self) -> Iterator[NativeCluster]:
        """The cluster of a simulation that begins, and is given up if it does not end well."""
        try:
            self._add_jobs()
            cluster = self._cluster = self._new_cluster()
            self._advance = self._engine.advance
            self.process.begin(cluster)
            scheduler: Any = self.process.scheduler
            if _in_library(type(self._policy).estimate) == "predictions":
                self._engine.estimate_by(self._policy.predictions)
            if self._sleeps:
                self._traces.let_hosts_sleep(scheduler.sleep_states)
                self._engine.let_idle_hosts_sleep(scheduler.after)
            yield cluster
        except EventBroken:
            self.outputs.abandon()
            raise
        except RuleBroken as broken:
            self.outputs.abandon()
            self.process.at(self._engine.now)
            raise self.process.blame(self.process.first_broken or broken) from None
        except BaseException:
            self.outputs.abandon()
            raise
        finally:
            self._engine.close()

    def _new_cluster(self) -> NativeCluster:
        setup, scheduler = self._setup, self.process.scheduler
        choose = None
        if scheduler.selection != "lowest":
            hosts, _ = setup.platform.as_protocol()
            speeds = [host.speed for host in setup.platform.hosts]
            begins = SimulationBegins(hosts, speeds=speeds, switches=setup.platform.switches)
            choose = selection(scheduler.selection, begins, scheduler.selection_seed)
        nodes = setup.platform.as_nodes()
        if nodes is not None:
            from batsched_py.engines.native_nodes import NativeNodes

            NativeNodes(self._engine, nodes, scheduler.nodes, self._refused)
        cluster = NativeCluster(self._engine, setup, choose, self._is_to_come, self.process.failed, nodes)
        cluster._set(_narrows=scheduler.narrows_the_machine)
        if self.process.outlook is not None:
            cluster._set(outside=self.process.outlook(cluster.machines))
        if type(self._policy).estimate is not Scheduler.estimate:
            self._engine.set_estimate(self.process.estimate)
        if self._may_wait_for_others():
            self._hold_jobs(cluster)
        return cluster

    def _may_wait_for_others(self) -> bool:
        """Whether any job may wait for others; users of another kind may submit any."""
        users = self.process.users
        if users and not isinstance(users, UsersOf):
            return True
        workloads = [*self._setup.workloads, *(users.workloads if isinstance(users, UsersOf) else ())]
        return any(have_dependencies(workload.jobs) for workload in workloads)

    def _hold_jobs(self, cluster: NativeCluster) -> None:
        """Let jobs be held that wait for others; where there are several workloads, for any of them."""
        from batsched_py.engines.native_holds import NativeHolds

        process, users = self.process, self.process.users
        workloads = users.workloads if isinstance(users, UsersOf) else self._setup.workloads
        listeners, remembers = process._told_of_releases, process.remembers_ends
        self._holds = NativeHolds(self._engine, cluster, listeners, remembers, bool(users))
        self._engine.set_holds(self._holds, len(workloads) > 1)

    def _refused(self, job: Job, refusal: Refusal) -> None:
        self.process.cluster._go_to(self._engine.now)
        self.process.note_refusal(job, refusal)

    def _finish(self) -> None:
        if (fault := self._why_stuck()) is not None:
            clock = self._engine.clock
            raise Deadlock(f"deadlock at {clock:f}: nothing else will happen, yet {fault}")
        self.process.finished = True
        self._engine.flush()
        self._traces.complete()
        self.outputs.complete(self.machines)

    def _leaves_jobs(self) -> bool:
        """Whether the policy has one more turn, to leave the jobs that wait although nothing will happen."""
        if not (self._engine.left_waiting()[0] and self.process.leaves_jobs()):
            return False
        self._engine.ask_again()
        return True

    def _why_stuck(self) -> str | None:
        count, first = self._engine.left_waiting()
        if count:
            return f"{count} jobs wait, {first} first; they have to be executed or rejected"
        if self._holds is not None and (fault := self._holds.why_stuck()) is not None:
            return fault
        return "registration was never finished" if self._engine.registration_is_open else None

    def _first_submission(self) -> float | None:
        """When the first job is submitted, if that is known before."""
        if self.process.users or self._setup.settings.dynamic_jobs:
            return None
        jobs = [workload.jobs for workload in self._setup.workloads if len(workload.jobs)]
        return min(map(_first_time, jobs), default=None)

    def _refresh(self, results: Results) -> None:
        """Bring the sums up to date."""
        sums = self._engine.sums
        for name in vars(results):
            setattr(results, name, getattr(sums, name, getattr(results, name)))

    # --- what happens from outside ---------------------------------------------------------------

    def _expect_events(self) -> None:
        """Let hosts go and come back, and jobs with them, if that is the rule."""
        setup, rule = self._setup, self.process.on_failure
        if setup.events or setup.failures is not None:
            self._engine.set_outside(map(_with_kind, self._events()))
        if rule is not None:
            self._engine.resubmit_after_failures(rule.resubmits)

    def _events(self) -> Iterator[Event]:
        """All that happens from outside, in order; failures are made as time passes."""
        from batsched_py.simulator.agenda import in_order

        setup = self._setup
        failures = iter(()) if setup.failures is None else setup.failures()
        yield from merge(in_order(setup.events, self.machines.count), failures, key=attrgetter("time"))

    # --- jobs and users --------------------------------------------------------------------------

    def _add_jobs(self) -> None:
        engine, users = self._engine, self.process.users
        for workload in self._setup.workloads:
            if isinstance(workload.jobs, NativeJobs) and workload.jobs.has_usual_ties:
                engine.add_log(workload.jobs.log)
            else:
                engine.add_jobs(as_jobs(workload.jobs).in_submission_order(), dict(workload.profiles))
        if self._setup.settings.dynamic_jobs or users:
            engine.accept_users()
        if isinstance(users, UsersOf):
            for workload in users.workloads:
                self._add_users(users.behaviour, workload)
        else:
            self._add_python_users(users)

    def _add_users(self, behaviour: Behaviour, workload: Workload) -> None:
        """Let the library have the users if it knows such ones, else call those of Python."""
        known = behaviour.native_users() if as_jobs(workload.jobs).has_usual_ties else None
        log = None if known is None else self._as_log(workload)
        if known is None or log is None or (known[0] == "think-time" and log.has_jobs_without_user()):
            self._add_python_users(behaviour.users(workload))
        elif known[0] == "think-time":
            options: dict[str, Any] = known[1]
            self._engine.add_think_time_users(
                log, options["rule"], options["seconds"], options["reduced"], who
            )
        else:
            self._engine.add_rigid_user(log, who)

    def _add_python_users(self, users: Iterable[User]) -> None:
        why_not = partial(refusal, may_send=self._setup.may_send)
        for user in users:
            self._engine.add_user(user, hears_starts(user), why_not)

    def _as_log(self, workload: Workload) -> Log | None:
        """The jobs as columns, if their finishes are known."""
        if isinstance(workload.jobs, NativeJobs):
            return workload.jobs.log
        if workload.finishes is None:
            return None
        jobs = workload.jobs
        order = sorted(range(len(jobs)), key=lambda place: jobs[place].submission_time)
        return library.new_log(
            workload.name,
            [jobs[place] for place in order],
            dict(workload.profiles),
            [float(workload.finishes[place]) for place in order],
        )

    def _is_to_come(self, job_id: str) -> bool:
        """Whether a job of a workload file is yet to be submitted."""
        ranks = {workload.name: rank for rank, workload in enumerate(self._setup.workloads)}

        def turn(name: str) -> tuple[float, int, Any] | None:
            rank = ranks.get(name.partition("!")[0])
            if rank is None:
                return None
            jobs = as_jobs(self._setup.workloads[rank].jobs)
            job = jobs.find(name)
            return None if job is None else (job.submission_time, rank, jobs.tie(job))

        asked, last = turn(job_id), self._engine.last_submitted
        submitted = None if last is None else turn(last)
        return asked is not None and (submitted is None or asked > submitted)


def _with_kind(event: Event) -> tuple[Event, int]:
    """An event, and what it does to its hosts, as the library counts it."""
    return event, _KINDS.get(type(event), len(_KINDS))


def _first_time(jobs: Any) -> float:
    """When the first of some jobs is submitted; a log of the library has them in order."""
    if isinstance(jobs, NativeJobs):
        return jobs[0].submission_time
    return float(as_jobs(jobs).submission_times.min())


#: The states in which hosts neither compute nor are idle, in the library's order.
_AWAY = (HostState.SLEEPING, HostState.SWITCHING_ON, HostState.SWITCHING_OFF, HostState.UNAVAILABLE)


class NativeMachines:
    """What the hosts did."""

    def __init__(self, engine: Any, count: int) -> None:
        self._engine = engine
        self.count = count

    def number_in(self, state: HostState) -> int:
        """How many hosts are in a state."""
        counts = {away: self._engine.nb_away(number) for number, away in enumerate(_AWAY)}
        counts[HostState.COMPUTING] = self._engine.nb_computing
        return int((counts | {HostState.IDLE: self.count - sum(counts.values())})[state])

    def seconds(self) -> dict[HostState, float]:
        """The time that hosts spent in each state, up to each host's last change."""
        away, computing, all_seconds = self._engine.seconds()
        seconds = dict(zip((*_AWAY, HostState.COMPUTING), (*away, computing), strict=True))
        return seconds | {HostState.IDLE: all_seconds - sum(seconds.values())}
