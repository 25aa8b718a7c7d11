"""What came out of a simulation, as tables, figures and files, and in a few lines for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.steadiness import FEWEST_JOBS
from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.terminal import as_html, duration, energy, two_columns
from batsched_py.errors import InputError, NoSuchMetric, did_you_mean
from batsched_py.experiment import Experiment
from batsched_py.protocol.jobs import HostState
from batsched_py.simulator.outputs import MemoryFiles, Results
from batsched_py.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.engines import Simulation
    from batsched_py.schedulers import Scheduler


#: A mean wait of this share of the makespan, or a maximum of this one, may be due to a queue that only grows.
SUSPICIOUS_MEAN = 0.001
SUSPICIOUS_MAXIMUM = 0.05

#: What an overview has of a window.
_OF_WINDOWS = (
    "mean_waiting_time",
    "max_waiting_time",
    "mean_slowdown",
    "mean_bounded_slowdown",
    "utilization",
)

#: What an overview tells of distributions, to five digits, and the metrics that have all digits of it.
_ABOUT = {
    "wait_median": "p50_waiting_time",
    "wait_p95": "p95_waiting_time",
    "bounded_slowdown_median": "p50_bounded_slowdown",
    "bounded_slowdown_p95": "p95_bounded_slowdown",
    "part_of_top_percent": "share_of_top_percent",
}


class Overview(Struct, frozen=True, omit_defaults=True):
    """What came out of a simulation; times in seconds, means over the jobs that ran."""

    scheduler: str
    users: str | None
    hosts: int
    jobs: int
    rejected: int
    killed: int
    makespan: float
    """From the first submission to the last end."""
    mean_waiting_time: float
    max_waiting_time: float
    mean_slowdown: float
    mean_bounded_slowdown: float
    """Jobs that ran for less than ten seconds count as if they ran so long."""
    walltime: str
    """By which rule the walltimes of logs were made."""
    utilization: float
    """The share of hosts and time, within the makespan, in which jobs ran."""
    consumed_joules: float | None
    """What the hosts drew, if that was accounted for."""
    files: list[str]
    wall_seconds: float
    refused: dict[str, int] = {}
    """How many of the rejected jobs a machine of nodes could never run, by the kind of what they lacked."""
    pending: dict[str, int] = {}
    """How many of them were left in the queue in the end, by why they could not start."""
    with_whole_nodes: float | None = None
    """The utilization, if all cores of nodes count that jobs have to themselves; none if there are none."""
    sizes: str = ""
    """What the sizes of jobs of logs are."""
    unrequested: int = 0
    """How many jobs of logs requested no time."""
    raised: int = 0
    """How many requested less time than the walltime that they were given."""
    sized_otherwise: int = 0
    """How many jobs of logs have the size of the other kind, as the log does not tell the one that counts."""
    measured: str = ""
    """Over which window means, maxima and the utilization are; over the whole run if nothing is said."""
    unstable: str = ""
    """What shows that there is no steady state, if that was seen: one backlog makes most of the means."""
    partitions: int = 0
    """How many partitions the machine of the log had, if they are simulated as one."""
    wait_median: float = 0.0
    wait_p95: float = 0.0
    bounded_slowdown_median: float = 0.0
    """Bounded slowdowns; these and the waits to five digits, which the metrics have in full."""
    bounded_slowdown_p95: float = 0.0
    part_of_top_percent: float = 0.0
    """The part of all bounded slowdowns that 1 % of the jobs have."""
    busy_until: float | None = None
    """With users who react, when 90 % of the jobs were submitted: until then is the utilization."""
    slower_because: str = ""
    """Why the Python engine ran it although the native one could have, if that is so."""

    @classmethod
    def of(
        cls,
        experiment: Experiment,
        simulation: Simulation,
        workloads: Sequence[Workload],
        files: list[str],
        wall_seconds: float,
    ) -> Overview:
        """The overview of a finished simulation."""
        results, machines = simulation.results, simulation.machines
        capacity = machines.count * results.span
        users = experiment.actors.users
        overview = cls(
            scheduler=experiment.actors.scheduler.name,
            users=None if users is None else users.name,
            hosts=machines.count,
            jobs=results.nb_jobs,
            rejected=results.nb_rejected,
            killed=results.nb_finished - results.nb_success,
            makespan=results.span,
            mean_waiting_time=results.mean_of_finished(results.sum_waiting),
            max_waiting_time=results.max_waiting,
            mean_slowdown=results.mean_of_finished(results.sum_slowdown),
            mean_bounded_slowdown=results.mean_of_finished(results.sum_bounded_slowdown),
            walltime=experiment.scenario.workloads.walltime_rule,
            utilization=machines.seconds()[HostState.COMPUTING] / capacity if capacity else float("nan"),
            consumed_joules=results.consumed_joules if experiment.scenario.energy else None,
            files=files,
            wall_seconds=round(wall_seconds, 3),
            refused=dict(simulation.refused.most_common()),
            pending=dict(simulation.pending.most_common()),
            sizes=experiment.scenario.workloads.sizes_rule,
            unrequested=sum(workload.nb_unrequested for workload in workloads),
            raised=sum(workload.nb_raised for workload in workloads),
            sized_otherwise=sum(workload.nb_sized_otherwise for workload in workloads),
            partitions=max((workload.nb_partitions for workload in workloads), default=0)
            if experiment.scenario.machine.file is None
            else 0,
            slower_because=simulation.slower_because,
        )
        return replace(overview, **_distributions(results))

    @property
    def may_be_unstable(self) -> bool:
        """Whether waits are so long for the time that it took that the steady state should be looked at."""
        return self.jobs >= FEWEST_JOBS and (
            self.mean_waiting_time > SUSPICIOUS_MEAN * self.makespan
            or self.max_waiting_time > SUSPICIOUS_MAXIMUM * self.makespan
        )

    def over(self, window: Window, figures: Mapping[str, float]) -> Overview:
        """The same with what was measured over a window."""
        return replace(
            self,
            measured=f"{window} ({int(figures['nb_jobs']):,} jobs)",
            **{name: figures[name] for name in _OF_WINDOWS},
            **{ours: figures[name] for ours, name in _ABOUT.items()},
        )

    @property
    def knows_run_times(self) -> bool:
        """Whether the walltimes of jobs without a request are made of their run times."""
        return self.walltime.endswith("run time")

    @property
    def _waits(self) -> tuple[float, float, float]:
        return self.wait_median, self.wait_p95, self.max_waiting_time

    @property
    def _slowdowns(self) -> str:
        share = f"{self.part_of_top_percent:.0%}"
        quantiles = (self.bounded_slowdown_median, self.bounded_slowdown_p95)
        return ", ".join([*(f"{each:,.{2 - (each >= 100) - (each >= 1000)}f}" for each in quantiles), share])

    def _walltimes(self) -> Iterator[tuple[str, str]]:
        """How many jobs have other walltimes than they requested: a policy then knows more than it could."""
        least = self.walltime.removeprefix("requested, at least ") if self.knows_run_times else "run time"
        if self.unrequested:
            replaced = least if self.knows_run_times else "none"
            replaced = "a modelled one" if self.walltime.endswith("modelled") else replaced
            yield "  without a request", f"{self.unrequested:,} jobs, {replaced} instead"
        if self.raised:
            yield f"  raised to {least.replace('run time', 'the run time')}", f"{self.raised:,} jobs"

    def _sizes(self) -> Iterator[tuple[str, str]]:
        """What sizes are, and how many jobs have the other ones."""
        yield "sizes", self.sizes
        if self.sized_otherwise:
            kind, _, other = self.sizes.partition(", else ")
            yield (
                f"  without {'an' if kind == 'allocated' else 'a'} {kind} size",
                f"{self.sized_otherwise:,} jobs, {other} instead",
            )

    def _whole_nodes(self) -> list[tuple[str, str]]:
        share = self.with_whole_nodes
        return [] if share is None else [("  with all of whole nodes", f"{share:.1%}")]

    def rows(self) -> list[tuple[str, str]]:
        """What people read."""
        joules, rejected = self.consumed_joules, "0"
        if self.rejected:
            rejected = f"{self.rejected:,} ({self.rejected / self.jobs:.1%}), in no mean"
        return [
            ("scheduler", self.scheduler),
            ("users", self.users or "-"),
            ("hosts", f"{self.hosts:,}"),
            ("jobs", f"{self.jobs:,}"),
            ("  rejected", rejected),
            *((f"    cannot get: {kind}", f"{count:,}") for kind, count in self.refused.items()),
            *((f"    pending: {reason}", f"{count:,}") for reason, count in self.pending.items()),
            ("  killed or failed", f"{self.killed:,}"),
            *([("makespan", duration(self.makespan))] if self.busy_until is None else []),
            ("measured", self.measured or "all jobs of the run"),
            *zip(chain(["no steady state"], repeat("")), _parts(self.unstable), strict=False),
            ("mean wait", duration(self.mean_waiting_time) if self.jobs > self.rejected else "-"),
            ("  median, p95, maximum", ", ".join(map(duration, self._waits))),
            ("mean bounded slowdown (10 s)", f"{self.mean_bounded_slowdown:.2f}"),
            ("  median, p95, part of top 1%", self._slowdowns),
            *self._sizes(),
            *([("  partitions", f"{self.partitions}, as one machine")] if self.partitions > 1 else []),
            ("walltime", self.walltime),
            *self._walltimes(),
            ("utilization", f"{self.utilization:.1%}"),
            *self._whole_nodes(),
            *([] if self.busy_until is None else [("  until 90% are submitted", duration(self.busy_until))]),
            *([] if joules is None else [("energy", energy(joules))]),
            *zip(chain(["files"], repeat("")), self.files, strict=False),
            ("took", f"{self.wall_seconds:.2f} s"),
            *([("  engine", self.slower_because)] if self.slower_because else []),
        ]


def _parts(text: str) -> list[str]:
    """The parts of a text between semicolons."""
    return text.split("; ") if text else []


def _distributions(results: Results) -> dict[str, float]:
    """Medians, 95th percentiles and dominance."""
    waits, slowdowns = results.waitings, results.bounded_slowdowns
    if not waits.count:
        return {}
    found = {
        "wait_median": waits.quantile(0.5),
        "wait_p95": waits.quantile(0.95),
        "bounded_slowdown_median": slowdowns.quantile(0.5),
        "bounded_slowdown_p95": slowdowns.quantile(0.95),
        "part_of_top_percent": slowdowns.part_of_top(0.01),
    }
    return {name: float(f"{value:.5g}") for name, value in found.items()}


class Metrics(dict[str, float]):
    """Metrics by name; a name that is none is told with those that are like it."""

    def __missing__(self, name: str) -> float:
        raise NoSuchMetric(
            f"there is no metric {name!r}{did_you_mean(name, self)}; there are {', '.join(sorted(self))}"
        )


class Result:
    """A finished simulation. What it says is read when it is asked for."""

    def __init__(
        self,
        experiment: Experiment,
        overview: Overview,
        workloads: Sequence[Workload],
        files: MemoryFiles | str,
        logs: Mapping[int, lazy.swf_log.SwfLog],
        window: Window | None = None,
        policy: Scheduler | None = None,
        busy: Callable[[float], tuple[float, float] | None] | None = None,
    ) -> None:
        """An engine may tell how ``busy`` the machine was; else the rows of the jobs do."""
        self.experiment = experiment
        """What was simulated."""
        self.overview = overview
        """What `batsched-py run` prints."""
        self.label = " with ".join(filter(None, [overview.scheduler, overview.users]))
        """How it is called in figures; free to be changed."""
        self.workloads = workloads
        self._files = files
        """Where Batsim's files are: in memory, or on the disk behind this prefix."""
        self._logs = logs
        self._window = window
        self._policy = policy
        """The policy, if it is an object that a program has given."""
        self._control: lazy.control.Control | None = None
        if window is None and overview.users and (until := self._busy(busy)) is not None:
            self.overview = replace(self.overview, utilization=until[0], busy_until=until[1])
        elif window is None and (whole := self._with_whole_nodes()) is not None:
            self.overview = replace(self.overview, with_whole_nodes=whole)
        if overview.may_be_unstable:
            found = self._quick_steadiness()
            if found is not None and not found.is_steady:
                self.overview = replace(self.overview, unstable=str(found))
        if window is not None:
            self.overview = self.overview.over(window, self.metrics)

    def _quick_steadiness(self) -> lazy.steadiness.Steadiness | None:
        """Whether there is a steady state, without tables if the run is small."""
        if self._window is not None or self.overview.jobs > lazy.small_runs.MANY or self._has_resizes:
            return self.steadiness
        with self._open_jobs() as jobs:
            return lazy.small_runs.steadiness(jobs, self.overview.hosts)

    def _with_whole_nodes(self) -> float | None:
        """The utilization, if jobs with whole nodes use all cores of these."""
        if self.experiment.scenario.machine.file is None or not self.overview.makespan:
            return None
        jobs = (job for workload in self.workloads for job in workload.jobs)
        exclusive = {job.id for job in jobs if job.extra.get("request", {}).get("exclusive")}
        if not exclusive:
            return None
        node_of = [host.properties.get("node") for host in self._platform.hosts]
        with self._open_jobs() as opened:
            more = lazy.small_runs.kept_from_others(opened, exclusive.__contains__, node_of)
        return self.overview.utilization + more / (self.overview.hosts * self.overview.makespan)

    def _busy(self, told: Callable[[float], tuple[float, float] | None] | None) -> tuple[float, float] | None:
        """Utilization until 90 % of the jobs are submitted, and how long that takes, if users react."""
        if told is not None:
            return told(lazy.small_runs.MOST_PERCENT)
        if not self._has_resizes:
            return lazy.small_runs.busy(self._open_jobs, self.overview.jobs, self.overview.hosts)
        busy = self._whole.busy
        if busy is self._whole:
            return None
        return busy.host_seconds / (busy.machine_size * busy.makespan), busy.makespan

    @property
    def _has_resizes(self) -> bool:
        resizes = self._open("resizes")
        if resizes is not None:
            resizes.close()
        return resizes is not None

    def _open_jobs(self) -> TextIO:
        jobs = self._open("jobs")
        assert jobs is not None
        return jobs

    # --- tables ----------------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """The jobs, one row each: the columns of Batsim's ``jobs.csv``, and who submitted what when.

        ``user`` is the job's user, ``recorded`` when it was submitted in the log, and ``lateness`` how much
        later it was submitted here; they are missing where the workload does not tell.
        """
        return lazy.user_metrics.with_recorded(self._schedule, self.workloads)

    @property
    def machine(self) -> lazy.nodes.NodeMachine | None:
        """The nodes of the machine, if it has any: their cores, memory, features and partitions."""
        return None if self.experiment.scenario.machine.file is None else self._platform.as_nodes()

    @cached_property
    def _platform(self) -> lazy.platform.Platform:
        return lazy.build.read_machine(self.experiment.scenario.machine, self.workloads)

    @cached_property
    def machine_states(self) -> pd.DataFrame:
        """How many hosts were in which state, from each time on at which that changed."""
        return self._table("machine_states", "enable_machine_state_tracing=True")

    @cached_property
    def energy(self) -> pd.DataFrame:
        """The energy that was drawn by each time at which something happened, and the power from then on."""
        return self._table("consumed_energy", "energy=True")

    @cached_property
    def decisions(self) -> pd.DataFrame:
        """What each decision took, and how many jobs waited; known after ``decisions=True``.

        ``decision_seconds`` is the processor time of the decision, ``other_seconds`` that of all else since
        the decision before, and ``memory_bytes`` the memory of the process afterwards.
        """
        return self._table("decisions", "decisions=True")

    @cached_property
    def data(self) -> pd.DataFrame:
        """The changes of additional data that classes computed, with the columns time, name and value."""
        return self._table("data", "data=...")

    def monitored(self, name: str) -> pd.DataFrame:
        """What the monitor of this name has written."""
        return self._table(f"monitor_{name}", "monitor=...")

    @property
    def carried(self) -> lazy.conditions.Carried:
        """What links, hosts and storages carried, and what jobs lost by it; known after ``links=True``."""
        if self._carried is None:
            raise InputError("what links carried was not recorded; simulate with links=True")
        return self._carried

    @cached_property
    def held(self) -> pd.DataFrame:
        """The jobs that waited for others: when each joined the queue, or why it never could."""
        return self._table("held", "a workload whose jobs wait for others")

    @cached_property
    def resizes(self) -> pd.DataFrame:
        """The changes of the hosts of malleable jobs: when, and which they had before and after."""
        return self._table("resizes", "a workload with malleable jobs")

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The metrics that `batsched-py metrics --explain` defines, by name."""
        return Metrics(lazy.metrics.measure(self.outcome))

    def measure(self, metric: str | lazy.own_metrics.OwnMetric) -> float | None:
        """A metric of your own, by its name, such as ``path/to/file.py:ClassName``, or as an object."""
        known = lazy.own_metrics.OWN_METRICS.create(metric, {}) if isinstance(metric, str) else metric
        return lazy.own_metrics.measured(known, self.outcome)

    @property
    def log_in_memory(self) -> lazy.swf_log.SwfLog | None:
        """The first log that was simulated, unless it is a file."""
        return self._logs.get(0)

    def control(self) -> lazy.control.Control:
        """The same users on the machine of the log, under the policy that fits it best, beside this result.

        Four policies are calibrated and one more simulation is made. Lateness against the log has a part that
        is due to what is not simulated; the difference to the control has not.
        """
        self._control = lazy.control.control_of(self)
        return self._control

    @property
    def outcome(self) -> lazy.outcome.Outcome:
        """What metrics look at: the whole run, or the window that was to be measured."""
        return self._whole if self._window is None else self._whole.within(self._window)

    @cached_property
    def steadiness(self) -> lazy.steadiness.Steadiness | None:
        """Whether means over the run make sense: offered load, growth of the backlog, longest queue."""
        return lazy.steadiness.steadiness(self._whole)

    @cached_property
    def _whole(self) -> lazy.outcome.Outcome:
        summary = replace(
            lazy.outcome.summary_in(self._open("schedule")),
            nb_hosts=self.overview.hosts,
            consumed_joules=self.overview.consumed_joules,
        )
        decisions = self.decisions if self.experiment.decisions else None
        data = self._table_if_written("data")
        rows = lazy.job_rows.rows_of(self._open, lambda: self._schedule)
        return lazy.outcome.Outcome.of(rows, summary, self._carried, decisions, data)

    def validate(self, policy: lazy.validator.Policy | None = None) -> list[lazy.validator_rules.Violation]:
        """All violations that `batsched-py validate` finds, of a policy's promises too if one is named."""
        actors, platform = self.experiment.actors, self._platform
        outside, options = actors.outside, actors.scheduler.options
        if policy == "conservative" and platform.has_nodes and options.get("allocator"):
            raise InputError(
                "what conservative backfilling promises depends on which nodes are chosen, so it cannot be "
                "checked for an allocator of your own"
            )
        cap = None
        if all(host.has_power for host in platform.hosts):
            watts = lazy.validating.watts_of(actors.scheduler, self._policy)
            cap = lazy.validating.power_cap(outside.power_cap, outside.outside_period, watts)
        facts = lazy.validating.facts_of(
            platform,
            nodes=str(options.get("nodes", "first-fit")),
            closures=outside.closures,
            power_cap=cap,
            absences=(),
            events=lazy.explained.outages_in(self.experiment.scenario.events),
        ).with_files(self._open)
        return lazy.validator.validate(self._schedule, self.overview.hosts, self.workloads, policy, facts)

    def review(self) -> list[lazy.review.Check]:
        """What a reviewer would object to, as `batsched-py review` tells it, the worst first.

        It knows of a control if `control()` has made one.
        """
        study = lazy.review_facts.of_run(
            self.label,
            self.outcome,
            self.experiment,
            self.simulated_log,
            self.overview.hosts,
            "" if self._control is None else self._control.words,
        )
        return lazy.review.review(study)

    def explain(self, job: str) -> lazy.explained.Explained:
        """Why a job waited, as `batsched-py explain` tells it; it knows more after ``remarks=True``.

        After ``links=True`` it also tells why the job ran longer than alone.
        """
        events, tables = self.experiment.scenario.events, self._open
        absences = lazy.explained.absences_of(self._schedule, tables, events, may_have_slept=False)
        machine, hosts = self._platform.as_protocol()[0], self.overview.hosts
        explain = lazy.explained.explaining(
            self._schedule, tables, hosts, absences, self._carried, machine, self.workloads
        )
        return explain(str(job))

    def diff(self, other: Result) -> lazy.executions.Executions:
        """Compare another execution of the same workload with this one, job by job.

        ``first.diff(second).jobs`` has a row for each job, and ``.save("both.html")`` writes a page with both
        Gantt charts, as `batsched-py diff` does.
        """
        return lazy.executions.compare_executions(*lazy.figures.runs_of([self, other]))

    # --- figures ---------------------------------------------------------------------------------

    @property
    def plot(self) -> lazy.figures.ResultFigures:
        """The figures of `batsched-py plot`, as methods: ``result.plot.gantt().save("gantt.pdf")``.

        They show other results beside this one, and the log that was simulated where it is given:
        ``easy.plot.cumulative(fcfs, recorded=log)``.
        """
        return lazy.figures.ResultFigures(self)

    @property
    def log(self) -> lazy.log.Log:
        """What happened, as a log of the simulated machine."""
        hosts, replayed = self.overview.hosts, self.simulated_log
        return lazy.log.Log(lazy.schedule_log.schedule_log(self.jobs, self.workloads, hosts, replayed))

    @property
    def simulated_log(self) -> lazy.swf_log.SwfLog | None:
        """The log that was simulated, if it was one and is in memory."""
        return self._logs.get(0) if len(self.workloads) == 1 else None

    # --- files -----------------------------------------------------------------------------------

    def save(self, prefix: lazy.log.FileName) -> list[str]:
        """Write Batsim's files, ``PREFIX_jobs.csv`` and so on, and tell their names."""
        if isinstance(self._files, str):
            raise InputError(f"the files are written already: {', '.join(self.overview.files)}")
        return self._files.save(str(prefix))

    def to_swf(self, path: lazy.log.FileName) -> None:
        """Write what happened as a log in the Standard Workload Format."""
        self.log.save(path, "swf")

    @cached_property
    def _schedule(self) -> pd.DataFrame:
        return lazy.schedule.schedule_of(self._open)

    @cached_property
    def _carried(self) -> lazy.conditions.Carried | None:
        uses, rates = self._open("uses"), self._open("rates")
        if uses is None or rates is None:
            return None
        with uses, rates:
            return lazy.conditions.read_carried(uses, rates)

    def _table(self, name: str, asked_for_by: str) -> pd.DataFrame:
        table = self._table_if_written(name)
        if table is None:
            raise InputError(f"{name.replace('_', ' ')} were not written; simulate with {asked_for_by}")
        return table

    def _table_if_written(self, name: str) -> pd.DataFrame | None:
        import pandas as pd

        file = self._open(name)
        if file is None:
            return None
        with file:
            return pd.read_csv(file)

    def _open(self, name: str) -> TextIO | None:
        if isinstance(self._files, MemoryFiles):
            return self._files.open(name)
        path = Path(f"{self._files}_{name}.csv")
        return path.open(encoding="utf-8", newline="") if str(path) in self.overview.files else None

    # --- how it looks ----------------------------------------------------------------------------

    def __repr__(self) -> str:
        return two_columns(self.overview.rows()).strip("\n")

    def _repr_html_(self) -> str:
        return as_html(self.overview.rows())
