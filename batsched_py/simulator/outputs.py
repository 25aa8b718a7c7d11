"""Batsim's output files, column by column and decimal by decimal.

Files of Batsim 5 are beside those of Batsim 4; programs that want results and no files keep them in memory.
"""

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import chain
from math import inf, isfinite
from operator import add, attrgetter, lt, sub, truediv
from pathlib import Path
from typing import Protocol, TextIO

import msgspec

from batsched_py import __version__
from batsched_py.errors import InputError
from batsched_py.output_files import Draft
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job, JobState
from batsched_py.simulator.distribution import Distribution

JOBS_HEADER = (
    "job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,"
    "starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,"
    "consumed_energy,metadata\n"
)

_ROW = '%s,%s,%s,%.6f,%d,%.6f,%s,%.6f,%.6f,%.6f,%.6f,%.6f,%.6f,%s,%.6f,"%s"\n'

#: The same of whole numbers, which are written in half the time.
_WHOLE_ROW = (
    '%s,%s,%s,%d.000000,%d,%d.000000,%s,%d.000000,%d.000000,%d.000000,%d.000000,%d.000000,%.6f,%s,%.6f,"%s"\n'
)

#: Whether a job succeeded, and its final state.
_ENDINGS = {state: f"{state is JobState.SUCCESS:d},{state}" for state in JobState}

#: What is written of a job as it was submitted.
_DESCRIPTION = attrgetter("id", "submission_time", "size", "walltime", "profile")

#: The joules of a job, where energy is not accounted for.
NO_JOULES = -1.0

#: Batsim writes seconds of its own clock here; the same simulation must give the same bytes, so we do not.
UNMEASURED = "nan"

#: Batsim gives a job that took no time this run time, so that its stretch is finite.
LEAST_RUNTIME = 1e-5

#: In the bounded slowdown, shorter jobs count as if they ran for so many seconds.
SLOWDOWN_BOUND = 10.0

#: What a cell of CSV may hold only between quotes.
_TO_BE_QUOTED = re.compile(r'[",\r\n]')

#: So many jobs are counted and written at a time.
MANY = 256

#: How a job ended: itself, state, hosts, start, end, joules and metadata.
End = tuple[Job, JobState, HostSet, float, float, float, str]

#: Writes text to a file, or nowhere.
Write = Callable[[str], object]


class File(ABC):
    """Where the lines of one kind of output go."""

    path: Path

    @abstractmethod
    def write(self, text: str) -> None:
        """Add some lines."""

    def complete(self) -> None:  # noqa: B027
        """The simulation ended well."""

    def abandon(self) -> None:  # noqa: B027
        """The simulation did not end well."""


class OutputFile(File):
    """A file that gets its name only when it is complete; a ``visible`` one is ``NAME.part`` until then."""

    def __init__(self, path: Path, header: str, visible: bool = False) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._draft = Draft(path, visible)
        except OSError as error:
            raise self._blame(error) from None
        self._file = io.TextIOWrapper(self._draft.file, "utf-8", "backslashreplace", newline="")
        self.write(header)

    def write(self, text: str) -> None:
        """Add some lines."""
        try:
            self._file.write(text)
        except OSError as error:
            raise self._blame(error) from None

    def complete(self) -> None:
        """Give the file its name."""
        try:
            self._file.flush()
            self._draft.complete()
        except OSError as error:
            raise self._blame(error) from None

    def abandon(self) -> None:
        """Remove what was written: half a schedule is easily taken for a whole one."""
        self._draft.abandon()

    def _blame(self, error: OSError) -> InputError:
        return InputError(f"cannot write {self.path}: {error.strerror}")


#: Begins a file of this name with this header, wherever it is kept.
NewFile = Callable[[Path, str], File]


class CountsHosts(Protocol):
    """Knows how many hosts there are, and what they do and did."""

    count: int

    def number_in(self, state: HostState) -> int:
        """How many hosts are in a state."""

    def seconds(self) -> dict[HostState, float]:
        """The time that hosts spent in each state, up to each host's last change."""


class Results:
    """Sums over finished jobs, for ``schedule.csv`` and for programs."""

    def __init__(self) -> None:
        self.nb_jobs = 0
        self.nb_rejected = 0
        self.nb_success = 0
        self.makespan = 0.0
        """Batsim's: when the last job ended."""
        self.first_submission = inf
        self.sum_waiting = self.max_waiting = 0.0
        self.sum_turnaround = self.max_turnaround = 0.0
        self.sum_slowdown = self.max_slowdown = 0.0
        self.sum_bounded_slowdown = 0.0
        self.waitings = Distribution()
        self.bounded_slowdowns = Distribution()
        """Those of the jobs that ran, for medians."""
        self.consumed_joules = 0.0
        self.bill: dict[str, float] = {}
        """What the energy cost, and the carbon that it caused, where that is known."""
        self.nb_grouped_switches = 0
        """Requests to change power states."""
        self.nb_machine_switches = 0
        """Hosts in all of them."""

    def count(self, ended: Sequence[End]) -> str:
        """Jobs have left their hosts; their rows."""
        jobs, states, hosts, starts, ends, joules, notes = zip(*ended, strict=True)
        ids, submissions, sizes, limits, profiles = zip(*map(_DESCRIPTION, jobs), strict=True)
        names = [name.partition("!") for name in ids]
        if _TO_BE_QUOTED.search("".join(chain(ids, profiles))):
            names = [(quoted(workload), mark, quoted(name)) for workload, mark, name in names]
            profiles = tuple(map(quoted, profiles))
        walltimes: Sequence[float] = [-1.0 if limit == inf else limit for limit in limits]
        row, times = _ROW, (submissions, walltimes, starts, ends)
        if all(map(float.is_integer, chain(*times))) and all(map(lt, starts, ends)):
            row = _WHOLE_ROW
            submissions, walltimes, starts, ends = (tuple(map(int, column)) for column in times)
        runtimes = [runtime or LEAST_RUNTIME for runtime in map(sub, ends, starts)]
        finishes = list(map(add, starts, runtimes))
        waitings = list(map(sub, starts, submissions))
        turnarounds = list(map(sub, finishes, submissions))
        slowdowns = list(map(truediv, turnarounds, runtimes))
        bounds = [runtime if runtime > SLOWDOWN_BOUND else SLOWDOWN_BOUND for runtime in runtimes]
        bounded = [each if each > 1.0 else 1.0 for each in map(truediv, turnarounds, bounds)]
        self.nb_jobs += len(ended)
        self.nb_success += states.count(JobState.SUCCESS)
        self.makespan = float(max(self.makespan, *finishes))
        self.first_submission = float(min(self.first_submission, *submissions))
        self.sum_waiting = added(waitings, self.sum_waiting)
        self.max_waiting = float(max(self.max_waiting, *waitings))
        self.sum_turnaround = added(turnarounds, self.sum_turnaround)
        self.max_turnaround = float(max(self.max_turnaround, *turnarounds))
        self.sum_slowdown = added(slowdowns, self.sum_slowdown)
        self.max_slowdown = max(self.max_slowdown, *slowdowns)
        self.sum_bounded_slowdown = added(bounded, self.sum_bounded_slowdown)
        self.waitings.add(waitings)
        self.bounded_slowdowns.add(bounded)
        rows = zip(
            [name for _, _, name in names],
            [workload for workload, _, _ in names],
            profiles,
            submissions,
            sizes,
            walltimes,
            [_ENDINGS[state] for state in states],
            starts,
            runtimes,
            finishes,
            waitings,
            turnarounds,
            slowdowns,
            [allocation.text() for allocation in hosts],
            joules,
            notes,
            strict=True,
        )
        return "".join(map(row.__mod__, rows))

    def reject(self, job: Job, metadata: str) -> str:
        """A job was refused; its row."""
        self.nb_jobs += 1
        self.nb_rejected += 1
        self.first_submission = min(self.first_submission, job.submission_time)
        name, workload, profile = map(quoted, (job.name, job.workload, job.profile))
        walltime = job.walltime if job.has_walltime else -1.0
        return (
            f"{name},{workload},{profile},{job.submission_time:.6f},{job.size},{walltime:.6f},0,REJECTED,"
            f',,,,,,,,"{metadata}"\n'
        )

    def look_at(self, rows: str) -> None:
        """An engine has counted the jobs of these rows, but does not tell when the first was submitted.

        No job is submitted before 0, so that most simulations are looked at once.
        """
        if self.first_submission > 0:
            import csv

            submissions = (float(row[3]) for row in csv.reader(io.StringIO(rows, newline="")))
            self.first_submission = min(self.first_submission, *submissions)

    @property
    def span(self) -> float:
        """From the first submission to the last end, which is the makespan that people are told."""
        return self.makespan - self.first_submission if self.nb_finished else 0.0

    @property
    def nb_finished(self) -> int:
        """Jobs that ran to some end."""
        return self.nb_jobs - self.nb_rejected

    def mean(self, total: float) -> float:
        """Batsim's mean: over all jobs, the rejected ones adding 0."""
        return total / self.nb_jobs if self.nb_jobs else float("nan")

    def mean_of_finished(self, total: float) -> float:
        """The mean over the jobs that ran."""
        return total / self.nb_finished if self.nb_finished else float("nan")


class Outputs:
    """Writes one simulation's files, or only counts when there is no prefix.

    Jobs are counted and written many at a time, which takes half as long as one by one.
    """

    _after_prefix = "_"
    """What stands between the prefix and the name of a file."""

    def __init__(
        self,
        prefix: str | None,
        machine_states: bool = False,
        new_file: NewFile = OutputFile,
        links: bool = False,
        schedule_trace: bool = False,
    ) -> None:
        self.machine_states = machine_states and bool(prefix)
        """Whether the states of the machines are to be traced."""
        self.links = links and bool(prefix)
        """Whether what links, hosts and storages carry is to be recorded."""
        self.schedule_trace = schedule_trace and bool(prefix)
        """Whether the schedule is to be written as a Paje trace, too."""
        self._new_file = new_file
        self._results = Results()
        self._prefix = prefix
        self._files: list[File] = []
        self._write_jobs = self.open("jobs", JOBS_HEADER)
        self._ends: list[End] = []
        self._refresh: Callable[[Results], None] | None = None

    def follow(
        self,
        set_write: Callable[[Write], None],
        refresh: Callable[[Results], None],
        first: Callable[[], float | None],
    ) -> None:
        """Let an engine write the rows of jobs and add up the results itself.

        Rows are not looked at if it is known when the ``first`` is submitted, and not made without files.
        """

        def write(rows: str) -> None:
            self._results.look_at(rows)
            self._write_jobs(rows)

        begins = first()
        if begins is None:
            set_write(write)
        elif self._files:
            self._results.first_submission = float(f"{begins:.6f}")  # as rows have it
            set_write(self._write_jobs)
        else:
            self._results.first_submission = begins
        self._refresh = refresh

    @property
    def results(self) -> Results:
        """What has come out so far."""
        self._flush()
        if self._refresh is not None:
            self._refresh(self._results)
        return self._results

    @property
    def nb_ended(self) -> int:
        """How many jobs have ended or were rejected; another thread may ask while the simulation goes on."""
        if self._refresh is not None:
            self._refresh(self._results)
        return self._results.nb_jobs + len(self._ends)

    def open(self, name: str, header: str, suffix: str = ".csv") -> Write:
        """Begin a file, and give what writes to it; without a prefix, that writes nowhere."""
        if not self._prefix:
            return lambda text: None
        file = self._new_file(self._path(f"{name}{suffix}"), header)
        self._files.append(file)
        return file.write

    def open_schedule_trace(self, beginning: str) -> Write:
        """The same for the Paje trace."""
        return self.open("schedule", beginning, ".trace")

    def _path(self, name: str) -> Path:
        return Path(f"{self._prefix}{self._after_prefix}{name}")

    @property
    def files(self) -> list[str]:
        """The names of the files."""
        return [str(file.path) for file in self._files]

    def rejected(self, job: Job, metadata: str) -> None:
        """A job was refused."""
        self._flush()
        self._write_jobs(self._results.reject(job, metadata))

    def finished(self, end: End) -> None:
        """A job left its hosts."""
        ends = self._ends
        ends.append(end)
        if len(ends) >= MANY:
            self._flush()

    def _flush(self) -> None:
        """Count and write the jobs that have ended."""
        if self._ends:
            rows = self._results.count(self._ends)
            self._ends.clear()
            self._write_jobs(rows)

    def complete(self, machines: CountsHosts) -> None:
        """The simulation ended well: give the files their names.

        The resizes of an earlier simulation are removed, which would be taken for those of this one.
        """
        self._write_schedule(machines)
        for file in self._files:
            file.complete()
        resizes = self._path("resizes.csv")
        if self._files and isinstance(self._files[0], OutputFile) and str(resizes) not in self.files:
            with suppress(OSError):
                resizes.unlink()

    def _write_schedule(self, machines: CountsHosts) -> None:
        row = {
            name: f"{value:.6f}" if isinstance(value, float) else str(value)
            for name, value in self._schedule(machines).items()
        }
        write = self.open("schedule", ",".join(row) + "\n")
        write(",".join(row.values()) + "\n")

    def abandon(self) -> None:
        """The simulation did not end well: nothing of what was written stays."""
        for file in self._files:
            file.abandon()

    def _schedule(self, machines: CountsHosts) -> dict[str, float | int | str]:
        """What came out of the whole simulation."""
        r = self.results
        seconds = machines.seconds()
        return {
            "batsim_version": f"batsched_py {__version__}",
            "consumed_joules": r.consumed_joules,
            "makespan": r.makespan,
            "max_slowdown": r.max_slowdown,
            "max_turnaround_time": r.max_turnaround,
            "max_waiting_time": r.max_waiting,
            "mean_slowdown": r.mean(r.sum_slowdown),
            "mean_turnaround_time": r.mean(r.sum_turnaround),
            "mean_waiting_time": r.mean(r.sum_waiting),
            "nb_computing_machines": machines.count,
            "nb_grouped_switches": r.nb_grouped_switches,
            "nb_jobs": r.nb_jobs,
            "nb_jobs_finished": r.nb_finished,
            "nb_jobs_killed": r.nb_finished - r.nb_success,
            "nb_jobs_rejected": r.nb_rejected,
            "nb_jobs_success": r.nb_success,
            "nb_machine_switches": r.nb_machine_switches,
            "scheduling_time": UNMEASURED,
            "simulation_time": UNMEASURED,
            "success_rate": r.mean(r.nb_success),
            "time_computing": seconds[HostState.COMPUTING],
            "time_idle": seconds[HostState.IDLE],
            "time_sleeping": seconds[HostState.SLEEPING],
            "time_switching_off": seconds[HostState.SWITCHING_OFF],
            "time_switching_on": seconds[HostState.SWITCHING_ON],
            "time_unavailable": seconds[HostState.UNAVAILABLE],
            **r.bill,
        }


def added(values: Iterable[float], total: float = 0.0) -> float:
    """The total with these added one by one; from Python 3.12 on, :func:`sum` rounds in another way."""
    for value in values:
        total += value
    return total


def quoted(text: str) -> str:
    """A cell of CSV.

    >>> quoted('a "b", c'), quoted("17")
    ('"a ""b"", c"', '17')
    """
    return '"{}"'.format(text.replace('"', '""')) if _TO_BE_QUOTED.search(text) else text


class Batsim5Outputs(Outputs):
    """Files whose names just follow the prefix, such as ``out/``; what came out of it all is in JSON.

    The makespan begins with the first submission of a job that was executed. Batsim 5 also writes a
    ``real_exec_info.json``, which holds nothing but seconds of its own clock; the same simulation must give
    the same bytes, so we do not.
    """

    _after_prefix = ""
    _first_submission = inf

    def finished(self, end: End) -> None:
        """A job left its hosts."""
        self._first_submission = min(self._first_submission, end[0].submission_time)
        super().finished(end)

    def _write_schedule(self, machines: CountsHosts) -> None:
        values = self._schedule(machines)
        if self.results.nb_finished:
            values["makespan"] = self.results.makespan - self._first_submission
        told = {
            name: None if isinstance(value, float) and not isfinite(value) else value
            for name, value in values.items()
            if value != UNMEASURED
        }
        write = self.open("schedule", "", ".json")
        write(msgspec.json.format(msgspec.json.encode(told), indent=2).decode() + "\n")


#: What the names of files begin with; nobody sees it.
PREFIX = "kept"


class MemoryFile(File):
    """The lines of one file; what was written stays, whether anybody asks for it or not."""

    def __init__(self, path: Path, header: str) -> None:
        self.path = path
        self._pieces = [header]

    def write(self, text: str) -> None:
        """Add some lines."""
        self._pieces.append(text)

    @property
    def text(self) -> str:
        """All that was written."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]


class MemoryFiles:
    """The files of one simulation, by what their names end with: ``jobs.csv``, ``schedule.csv``, ..."""

    def __init__(self) -> None:
        self._files: dict[str, MemoryFile] = {}

    def new_file(self, path: Path, header: str) -> MemoryFile:
        """Begin a file."""
        file = MemoryFile(path, header)
        self._files[path.name.removeprefix(f"{PREFIX}_")] = file
        return file

    def open(self, name: str) -> TextIO | None:
        """The text of the table of this name, such as ``jobs``, if there is one."""
        file = self._files.get(f"{name}.csv")
        return None if file is None else io.StringIO(file.text)

    def save(self, prefix: str) -> list[str]:
        """Write all of them as ``PREFIX_jobs.csv`` and so on; their names."""
        saved = []
        for name, file in self._files.items():
            written = OutputFile(Path(f"{prefix}_{name}"), file.text)
            written.complete()
            saved.append(str(written.path))
        return saved
