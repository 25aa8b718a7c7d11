"""What came out of a simulation, as tables, figures and files, and in a few lines for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.api.terminal import as_html, duration, energy, two_columns
from batsched_py.errors import InputError
from batsched_py.experiment import Experiment
from batsched_py.protocol.jobs import HostState
from batsched_py.simulator.outputs import MemoryFiles
from batsched_py.workload.model import Workload

if TYPE_CHECKING:
    import pandas as pd

    from batsched_py.analysis.conditions import Carried
    from batsched_py.analysis.executions import Executions
    from batsched_py.analysis.outcome import Outcome
    from batsched_py.analysis.own_metrics import OwnMetric
    from batsched_py.analysis.validator import Policy
    from batsched_py.analysis.validator.rules import Violation
    from batsched_py.api.explained import Explained
    from batsched_py.api.figures import ResultFigures
    from batsched_py.api.log import FileName, Log
    from batsched_py.engines import Simulation
    from batsched_py.ledger.nodes import NodeMachine
    from batsched_py.simulator.platform import Platform
    from batsched_py.workload.swf.log import SwfLog


class Overview(Struct, frozen=True, omit_defaults=True):
    """What came out of a simulation; times in seconds, means over the jobs that ran."""

    scheduler: str
    users: str | None
    hosts: int
    jobs: int
    rejected: int
    killed: int
    makespan: float
    mean_waiting_time: float
    max_waiting_time: float
    mean_slowdown: float
    mean_bounded_slowdown: float
    """Jobs that ran for less than ten seconds count as if they ran so long."""
    walltime: str
    """By which rule the walltimes of logs were made."""
    utilization: float
    """The share of hosts and time, from 0 to the makespan, in which jobs ran."""
    consumed_joules: float | None
    """What the hosts drew, if that was accounted for."""
    files: list[str]
    wall_seconds: float
    refused: dict[str, int] = {}
    """How many of the rejected jobs a machine of nodes could never run, by the kind of what they lacked."""

    @classmethod
    def of(
        cls, experiment: Experiment, simulation: Simulation, files: list[str], wall_seconds: float
    ) -> Overview:
        """The overview of a finished simulation."""
        results, machines = simulation.results, simulation.machines
        capacity = machines.count * results.makespan
        users = experiment.actors.users
        return cls(
            scheduler=experiment.actors.scheduler.name,
            users=None if users is None else users.name,
            hosts=machines.count,
            jobs=results.nb_jobs,
            rejected=results.nb_rejected,
            killed=results.nb_finished - results.nb_success,
            makespan=results.makespan,
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
        )

    def _rejected(self) -> str:
        if not self.rejected:
            return "0"
        return f"{self.rejected:,} ({self.rejected / self.jobs:.1%}), in no mean"

    def rows(self) -> list[tuple[str, str]]:
        """What people read."""
        joules = self.consumed_joules
        return [
            ("scheduler", self.scheduler),
            ("users", self.users or "-"),
            ("hosts", f"{self.hosts:,}"),
            ("jobs", f"{self.jobs:,}"),
            ("  rejected", self._rejected()),
            *((f"    cannot get: {kind}", f"{count:,}") for kind, count in self.refused.items()),
            ("  killed or failed", f"{self.killed:,}"),
            ("makespan", duration(self.makespan)),
            ("mean wait", duration(self.mean_waiting_time) if self.jobs > self.rejected else "-"),
            ("max wait", duration(self.max_waiting_time)),
            ("mean bounded slowdown (10 s)", f"{self.mean_bounded_slowdown:.2f}"),
            ("walltime", self.walltime),
            ("utilization", f"{self.utilization:.1%}"),
            *([] if joules is None else [("energy", energy(joules))]),
            *zip(chain(["files"], repeat("")), self.files, strict=False),
            ("took", f"{self.wall_seconds:.2f} s"),
        ]


class Result:
    """A finished simulation. What it says is read when it is asked for."""

    def __init__(
        self,
        experiment: Experiment,
        overview: Overview,
        workloads: Sequence[Workload],
        files: MemoryFiles | str,
        logs: Mapping[int, SwfLog],
    ) -> None:
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

    # --- tables ----------------------------------------------------------------------------------

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """The jobs, one row each: the columns of Batsim's ``jobs.csv``, and who submitted what when.

        ``user`` is the job's user, ``recorded`` when it was submitted in the log, and ``lateness`` how much
        later it was submitted here; they are missing where the workload does not tell.
        """
        from batsched_py.analysis.user_metrics import with_recorded

        return with_recorded(self._schedule, self.workloads)

    @property
    def machine(self) -> NodeMachine | None:
        """The nodes of the machine, if it has any: their cores, memory, features and partitions."""
        return None if self.experiment.scenario.machine.file is None else self._platform.as_nodes()

    @cached_property
    def _platform(self) -> Platform:
        from batsched_py.experiment.build import read_machine

        return read_machine(self.experiment.scenario.machine, self.workloads)

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
    def carried(self) -> Carried:
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
        from batsched_py.analysis.metrics import measure

        return measure(self.outcome)

    def measure(self, metric: str | OwnMetric) -> float | None:
        """A metric of your own, by its name, such as ``path/to/file.py:ClassName``, or as an object."""
        from batsched_py.analysis.own_metrics import OWN_METRICS, measured

        return measured(OWN_METRICS.create(metric, {}) if isinstance(metric, str) else metric, self.outcome)

    @cached_property
    def outcome(self) -> Outcome:
        """What metrics look at."""
        from batsched_py.analysis.outcome import Outcome, summary_in

        summary = replace(
            summary_in(self._open("schedule")),
            nb_hosts=self.overview.hosts,
            consumed_joules=self.overview.consumed_joules,
        )
        decisions = self.decisions if self.experiment.decisions else None
        data = self._table_if_written("data")
        return Outcome.of(self._schedule, summary, self._carried, decisions, data)

    def validate(self, policy: Policy | None = None) -> list[Violation]:
        """All violations that `batsched-py validate` finds, of a policy's promises too if one is named."""
        from batsched_py.analysis.validator import Facts, validate
        from batsched_py.api.explained import outages_in
        from batsched_py.outside.closures import read_closures
        from batsched_py.outside.curve import read_curve

        outside, platform = self.experiment.actors.outside, self._platform
        machine, options = platform.as_protocol()[0], self.experiment.actors.scheduler.options
        if policy == "conservative" and platform.has_nodes and options.get("allocator"):
            raise InputError(
                "what conservative backfilling promises depends on which nodes are chosen, so it cannot be "
                "checked for an allocator of your own"
            )
        facts = Facts(
            machine=machine,
            speeds=[host.speed for host in platform.hosts],
            nodes=str(options.get("nodes", "first-fit")),
            absences=(),
            events=outages_in(self.experiment.scenario.events),
            closures=() if outside.closures is None else read_closures(outside.closures, machine).all,
            power_cap=None
            if outside.power_cap is None or not all(host.has_power for host in platform.hosts)
            else read_curve(outside.power_cap, outside.outside_period),
        )
        return validate(
            self._schedule, self.overview.hosts, self.workloads, policy, facts.with_files(self._open)
        )

    def explain(self, job: str) -> Explained:
        """Why a job waited, as `batsched-py explain` tells it; it knows more after ``remarks=True``.

        After ``links=True`` it also tells why the job ran longer than alone.
        """
        from batsched_py.analysis.conditions import read_held
        from batsched_py.analysis.explain import Evidence, Explainer, read_remarks
        from batsched_py.analysis.schedule import read_table
        from batsched_py.analysis.validator.nodes import Nodes, requests_of
        from batsched_py.api.explained import Explained, absences_in

        remarks = read_table(self._open, "remarks", read_remarks) or {}
        events, changes = self.experiment.scenario.events, self._open("pstate_changes")
        absences = absences_in(self._schedule, events, changes, self._open("absences"))
        nodes = Nodes.of(self._platform.as_protocol()[0])
        requests = {} if nodes is None else requests_of(self.workloads, self._schedule)
        held = read_table(self._open, "held", read_held) or {}
        known = Evidence(self.overview.hosts, remarks, absences, self._carried, nodes, requests, held)
        return Explained(Explainer(self._schedule, known).explain(str(job)))

    def diff(self, other: Result) -> Executions:
        """Compare another execution of the same workload with this one, job by job.

        ``first.diff(second).jobs`` has a row for each job, and ``.save("both.html")`` writes a page with both
        Gantt charts, as `batsched-py diff` does.
        """
        from batsched_py.analysis.executions import compare_executions
        from batsched_py.api.figures import runs_of

        return compare_executions(*runs_of([self, other]))

    # --- figures ---------------------------------------------------------------------------------

    @property
    def plot(self) -> ResultFigures:
        """The figures of `batsched-py plot`, as methods: ``result.plot.gantt().save("gantt.pdf")``.

        They show other results beside this one, and the log that was simulated where it is given:
        ``easy.plot.cumulative(fcfs, recorded=log)``.
        """
        from batsched_py.api.figures import ResultFigures

        return ResultFigures(self)

    @property
    def log(self) -> Log:
        """What happened, as a log of the simulated machine."""
        from batsched_py.analysis.schedule_log import schedule_log
        from batsched_py.api.log import Log

        return Log(schedule_log(self.jobs, self.workloads, self.overview.hosts, self.simulated_log))

    @property
    def simulated_log(self) -> SwfLog | None:
        """The log that was simulated, if it was one and is in memory."""
        return self._logs.get(0) if len(self.workloads) == 1 else None

    # --- files -----------------------------------------------------------------------------------

    def save(self, prefix: FileName) -> list[str]:
        """Write Batsim's files, ``PREFIX_jobs.csv`` and so on, and tell their names."""
        if isinstance(self._files, str):
            raise InputError(f"the files are written already: {', '.join(self.overview.files)}")
        return self._files.save(str(prefix))

    def to_swf(self, path: FileName) -> None:
        """Write what happened as a log in the Standard Workload Format."""
        self.log.save(path, "swf")

    @cached_property
    def _schedule(self) -> pd.DataFrame:
        from batsched_py.analysis.schedule import read_table, schedule_in, with_resizes

        schedule = read_table(self._open, "jobs", schedule_in)
        assert schedule is not None
        return with_resizes(schedule, self._open)

    @cached_property
    def _carried(self) -> Carried | None:
        from batsched_py.analysis.conditions import read_carried

        uses, rates = self._open("uses"), self._open("rates")
        if uses is None or rates is None:
            return None
        with uses, rates:
            return read_carried(uses, rates)

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
