"""What a policy sees and may do when the native engine runs the simulation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cached_property
from math import log
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from batsched_py.errors import PolicyError, RuleBroken
from batsched_py.ledger import rules
from batsched_py.ledger.effects import Effect, RejectedJob, describe
from batsched_py.ledger.kinds import check_function, check_job, float_scores, lowest, positive, ranking
from batsched_py.ledger.queue import Condition
from batsched_py.ledger.running import RunningJob
from batsched_py.ledger.trials import HostResizing, Resizing
from batsched_py.outside.curve import NOTHING_KNOWN
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet, checked
from batsched_py.protocol.jobs import Host, Job
from batsched_py.schedulers import cluster
from batsched_py.schedulers.cluster import Order
from batsched_py.schedulers.predictions import Predictions
from batsched_py.schedulers.selection import Selection
from batsched_py.simulator.catalog import check_io_job, refusal
from batsched_py.simulator.setup import Setup

if TYPE_CHECKING:
    from batsched_py.ledger.nodes import NodeMachine
    from batsched_py.ledger.profile import AvailabilityProfile, Plan, Reservation
    from batsched_py.schedulers.use import Use

_WAITING, _RUNNING, _HELD = "SUBMITTED", "RUNNING", "NOT_SUBMITTED"


class _Rigid(HostResizing):
    """Other sizes of running jobs: no job that this engine runs has any."""

    __slots__ = ("_cluster",)

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.nb_free, HostSet())
        self._cluster = cluster

    def fits(self, job: Job) -> bool:
        """Whether a waiting job fits now."""
        return self._cluster.fits(job)


#: So many orders of the queue may be asked for inside each other.
_MOST_ORDERS = 50


class Cluster(cluster.Cluster):
    """Looks at the queue and the machine of the library; documented in the class of the same name.

    The library answers what a policy asks for most often. Decisions that may break a rule are checked here.
    """

    asleep = switching = HostSet()
    _engine: Any
    _setup: Setup
    _node_machine: NodeMachine | None
    _selection: Selection | None
    _is_to_come: Callable[[str], bool]
    _failed: Callable[[BaseException, object], PolicyError]
    _formulas: dict[Order, Any]
    """Orders as the library computes them."""
    _use: Use | None

    def __init__(
        self,
        engine: Any,
        setup: Setup,
        selection: Selection | None,
        is_to_come: Callable[[str], bool],
        failed: Callable[[BaseException, object], PolicyError],
        nodes: NodeMachine | None = None,
    ) -> None:
        """A job ``is_to_come`` if it is known and not submitted; ``failed`` tells what the policy raised."""
        self._set(
            now=0.0,
            settings=setup.settings,
            nb_hosts=len(setup.platform.hosts),
            hosts=HostSet.range(len(setup.platform.hosts)),
            queue=engine.queue(),
            running=engine.running(),
            order=None,
            heeded=False,
            outside=NOTHING_KNOWN,
            _broken=None,
            _nb_orders=0,
            _formulas={},
            _use=None,
            _node_machine=nodes,
            _engine=engine,
            _setup=setup,
            _selection=selection,
            _is_to_come=is_to_come,
            _failed=failed,
            _heed=None,
            _start_listeners=[],
            _resize_listeners=[],
        )
        engine.set_cluster(self, self._start_otherwise, self._rank, self._scores)

    # --- what a policy sees ----------------------------------------------------------------------

    @cached_property
    def machines(self) -> Sequence[Host]:
        return deepcopy(tuple(self._setup.platform.as_protocol()[0]))

    @property
    def events(self) -> Sequence[ev.Event]:
        return tuple(_as_event(*told) for told in self._engine.told)

    @property
    def resources(self) -> dict[str, tuple[int, int]]:
        machine = self._node_machine
        if machine is None:
            return {}
        free, licences = self._engine.free_amounts()
        import numpy as np

        amounts = np.array(free, np.int64).reshape(len(machine.resources), -1).T
        return machine.totals(amounts, dict(zip(machine.licences, licences, strict=True)))

    @property
    def decided(self) -> Sequence[Effect]:
        return tuple(_as_effect(*decided) for decided in self._engine.decided)

    @property
    def quiet(self) -> bool:
        return bool(self._engine.quiet)

    @property
    def nb_free(self) -> int:
        return int(self._engine.nb_free)

    @property
    def free(self) -> HostSet:
        hosts: HostSet = self._engine.free
        return hosts

    @property
    def available(self) -> HostSet:
        there: HostSet = self.hosts if self._engine.all_there else self._engine.there
        return there

    def fits(self, job: Job) -> bool:
        fits: bool = self._engine.fits(job)
        return fits

    def fitting(
        self,
        condition: Condition | None = None,
        order: Order | None = None,
        only_new: bool = False,
        beside: Reservation | None = None,
    ) -> Iterator[Job]:
        jobs: Iterator[Job] = self._engine.fitting(condition, self._in_library(order), only_new, beside)
        return jobs

    def reservation(self, job: Job) -> Reservation:
        reservation: Reservation = self._engine.reservation(job)
        return reservation

    def profile(self) -> AvailabilityProfile:
        profile: AvailabilityProfile = self._engine.profile()
        return profile

    def plan(self) -> Plan:
        plan: Plan = self._engine.plan()
        return plan

    def resizing(self) -> Resizing:
        return _Rigid(self)

    def could_fit(self, job: Job) -> bool:
        check_job(job)
        return 0 < job.size <= self.nb_hosts

    def hosts_beside(self, job: Job, run_time: float, beside: Reservation | None = None) -> HostSet | None:
        if not self.fits(job) or (beside is not None and not beside.allows(job.size, run_time)):
            return None
        return (self._selection or HostSet.lowest)(self.free, job.size)

    def starts(self, choices: Sequence[tuple[Job, float]]) -> list[float]:
        profile = self.profile()
        return [profile.earliest(job.size, duration) for job, duration in choices]

    def _rank(self, order: Order | None, waiting: Any, head_only: bool) -> list[int]:
        """The places of waiting jobs in an order, by default that of the queue; the first only, or all."""
        order = order or self.order
        assert order is not None
        scores = self._ordered(order, waiting)
        if head_only:
            return [lowest(scores, len(waiting))]
        places: list[int] = ranking(scores, len(waiting)).tolist()
        return places

    def _scores(self, waiting: Any) -> Any:
        """The scores of waiting jobs in the order of the queue."""
        assert self.order is not None
        return float_scores(self._ordered(self.order, waiting), len(waiting))

    def _ordered(self, order: Order, waiting: Any) -> Any:
        """What an order says of waiting jobs.

        One that asks for itself goes through the library again and again, whose stack may be full long before
        Python counts too many calls: that depends on a limit that any package may raise.
        """
        seen = vars(self)
        if seen["_nb_orders"] >= _MOST_ORDERS:
            raise RecursionError("an order of the queue asks for the order of the queue")
        seen["_nb_orders"] += 1
        try:
            scores = order(waiting, self.now)
        finally:
            seen["_nb_orders"] -= 1
        self._engine.check_current(waiting)
        return scores

    # --- what a policy says ----------------------------------------------------------------------

    def order_queue(self, order: Order | None) -> None:
        if order is not None:
            check_function(order)
        self._set(order=order)
        formula = self._in_library(order)
        self._engine.order_queue(
            order is not None,
            getattr(order, "fixed", False) is True,
            None if formula is order else formula,
        )

    def _in_library(self, order: Order | None) -> Any:
        """An order as the library computes it, or as it is where only Python does."""
        steps = getattr(order, "in_library", None)
        if steps is None or order is None:
            return order
        usage = getattr(order, "usage", None)
        if usage is not None and usage is not self._use:
            return order
        formula = self._formulas.get(order)
        if formula is None:
            self._formulas[order] = formula = self._engine.formula(steps)
        return formula

    def predictions(self, shortest: float, corrections: Sequence[float]) -> Predictions:
        predictions: Predictions = self._engine.predict(shortest, list(corrections))
        return predictions

    def count_use(self, half_life: float) -> Use:
        half_life = positive(half_life)
        use: Use = self._engine.count_use(half_life, half_life / log(2))
        self._set(_use=use)
        return use

    def count_all_ends(self) -> None:
        super().count_all_ends()
        self._engine.count_all_ends()

    def on_end(self, listener: Callable[[RunningJob], None]) -> None:
        check_function(listener)

        def call(ended: RunningJob) -> None:
            try:
                listener(ended)
            except BaseException as error:
                raise self._failed(error, listener) from error

        self._engine.on_end(call)

    def start(self, job: Job, hosts: HostSet | None = None) -> RunningJob:
        running: RunningJob
        if self._selection is None:
            running = self._engine.start(job, hosts)
        else:
            running = self._start_otherwise(job, hosts)
        if self._start_listeners:
            self._tell_start(running)
        return running

    def start_from_head(self) -> Job | None:
        if not self._start_listeners and self._selection is None:
            head: Job | None = self._engine.start_from_head()
            return head
        queue, fits, start = self.queue, self._engine.fits, self.start
        while queue:
            head = queue.head
            if not fits(head):
                return head
            start(head)
        return None

    def start_fitting(
        self, order: Order | None = None, only_new: bool = False, beside: Reservation | None = None
    ) -> None:
        if self._start_listeners or self._selection is not None:
            super().start_fitting(order, only_new, beside)
        else:
            self._engine.start_fitting(self._in_library(order), only_new, beside)

    def expect(self, job: Job, run_time: float) -> None:
        run_time = self._check_expected(job, run_time)
        if self._engine.state(job.id) not in (_WAITING, _RUNNING):
            raise self._unexpected(job)
        self._engine.expect(job.id, run_time)

    def _start_otherwise(self, job: Job, hosts: HostSet | None = None) -> RunningJob:
        """Start a job on hosts that are given or chosen, or say which rule this breaks."""
        check_job(job)
        if hosts is not None:
            hosts = checked(hosts)
        else:
            job = self.queue.get(job.id) or job
            if self._selection is not None and self.fits(job):
                hosts = self._selection(self.free, job.size)
        try:
            self._check_waiting(job.id)
            return self._execute(
                ev.ExecuteJob(job.id, self.free.lowest(job.size) if hosts is None else hosts)
            )
        except RuleBroken as broken:
            raise self._broke(f"ExecuteJob {job.id}", broken) from None

    def _decide(self, decision: ev.Event) -> None:
        try:
            self._take(decision)
        except RuleBroken as broken:
            raise self._broke(describe(decision), broken) from None

    def _broke(self, decision: str, rule: RuleBroken) -> RuleBroken:
        broken = super()._broke(decision, rule)
        self._engine.break_rule(str(self._broken))
        return broken

    def _take(self, decision: ev.Event) -> None:
        """Check a decision and give it to the library."""
        from batsched_py.ledger.ledger import DECISIONS

        engine = self._engine
        engine.check_not_ended()
        if type(decision) not in DECISIONS:
            rules.refuse_without_energy(decision)
        match decision:
            case ev.CallMeLater(at=at):
                rules.check_call(at, self.now)
                engine.call_at(at, decision)
            case ev.ExecuteJob(job_id=job_id):
                self._check_waiting(job_id)
                self._tell_start(self._execute(decision, decision))
            case ev.RejectJob(job_id=job_id):
                self._check_waiting(job_id, may_be_held=True)
                engine.reject(job_id)
            case ev.KillJobs(job_ids=job_ids):
                rules.check_kill(job_ids, self._is_running, self._is_waiting)
                engine.kill(job_ids, decision)
            case ev.SetJobMetadata(job_id=job_id, metadata=metadata):
                rules.check_note(metadata)
                self._check_known(job_id)
                engine.note(job_id, metadata, decision)
            case ev.TellJob(job_id=job_id):
                self._check_known(job_id)
                engine.do_nothing(decision)
            case ev.RegisterProfile(workload=workload, name=name, profile=profile):
                fault = refusal(profile, self._setup.may_send)
                if fault is not None:
                    raise RuleBroken(f"workload {workload!r}: profile {name!r} {fault}")
                engine.add_profile(workload, name, profile)
                engine.do_nothing(decision)
            case ev.RegisterJob(job=job):
                engine.register_job(job)
                engine.do_nothing(decision)
            case ev.RegistrationFinished():
                engine.finish_registration()
                engine.do_nothing(decision)
            case ev.ContinueRegistration():
                engine.reopen_registration()
                engine.do_nothing(decision)
            case ev.WaitingTimeAnswer():
                engine.do_nothing(decision)
            case ev.SetHostsState() | ev.ChangeHostsPState() | ev.QueryEnergy() if self._setup.energy:
                raise RuleBroken("a policy that says `only_starts_jobs = True` may only start jobs")
            case _:
                rules.refuse_without_energy(decision)

    def _execute(self, decision: ev.ExecuteJob, told: ev.ExecuteJob | None = None) -> RunningJob:
        job, hosts, mapping = self._engine.job(decision.job_id), decision.hosts, decision.mapping
        rules.check_allocation(decision, job, self.nb_hosts, False)
        if not self._engine.are_free(hosts):
            if away := hosts - self.available:
                raise RuleBroken(f"hosts {away} are unavailable")
            raise RuleBroken(f"hosts {hosts - self.free} are busy and may not be shared")
        if decision.io_job is not None:
            check_io_job(self._setup.may_send)
        places = list(hosts) if mapping else []
        executors = [places[place] for place in mapping or ()]
        running: RunningJob = self._engine.run_on(job.id, hosts, executors, told)
        return running

    def _is_waiting(self, job_id: str) -> bool:
        return self._engine.state(job_id) in (_WAITING, _HELD)

    def _is_running(self, job_id: str) -> bool:
        return bool(self._engine.state(job_id) == _RUNNING)

    def _check_waiting(self, job_id: str, may_be_held: bool = False) -> None:
        if not self._is_waiting(job_id):
            raise RuleBroken(rules.why_not_waiting(job_id, self._is_running(job_id)))
        if not may_be_held and self._engine.state(job_id) == _HELD:
            raise RuleBroken(rules.HELD)

    def _check_known(self, job_id: str) -> None:
        if not self._engine.state(job_id) and not self._is_to_come(job_id):
            raise RuleBroken(f"job {job_id} is unknown or has completed")


def _as_event(kind: str, time: float, *facts: Any) -> ev.Event:
    match kind, facts:
        case "submitted", (job,):
            return ev.JobSubmitted(job, time=time)
        case "ended", (ended, state, return_code):
            return ev.JobCompleted(ended.job.id, state, ended.hosts, return_code, time=time)
        case "killed", (job_ids, progress):
            done = {job_id: ev.Progress(name, done=part) for job_id, (name, part) in progress.items()}
            return ev.JobsKilled(job_ids, done, time=time)
        case "outside", (event,):
            return replace(event, time=time)  # type: ignore[no-any-return]
        case "no more outside", _:
            return ev.NoMoreExternalEvents(time=time)
        case "called", _:
            return ev.RequestedCall(time=time)
        case _:
            return ev.NoMoreStaticJobs(time=time)


def _as_effect(kind: str, time: float, *facts: Any) -> Effect:
    match kind, facts:
        case "start", (running,):
            return running  # type: ignore[no-any-return]
        case "reject", (job,):
            return RejectedJob(job, time)
        case "call", ():
            return ev.CallMeLater(time)
        case _, (decision,):
            return deepcopy(decision)  # type: ignore[no-any-return]
    raise AssertionError(kind)
