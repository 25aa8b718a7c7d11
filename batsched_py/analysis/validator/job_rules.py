"""Rules for what jobs do: wait for others, grow and shrink, and run as long as their profiles say.

All are written from their definitions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import isnan, nan
from operator import truediv
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from batsched_py.analysis import schedule as jobs_csv
from batsched_py.analysis.schedule import INSTANT, RESIZES, SLACK, Piece
from batsched_py.analysis.validator.rows import with_hosts
from batsched_py.analysis.validator.rules import Violation
from batsched_py.protocol import profiles
from batsched_py.protocol.dependencies import START, End, array_of, dependency_of, depends, full_name
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState
from batsched_py.protocol.profiles import TIMING_PRECISION, Profile
from batsched_py.protocol.sizes import MALLEABLE, Malleable, malleable_of
from batsched_py.workload.dependencies import have_dependencies
from batsched_py.workload.model import Workload
from batsched_py.workload.swf.quick_reader import RunTimeProfiles


def dependencies(schedule: pd.DataFrame, workloads: Sequence[Workload]) -> Iterator[Violation]:
    """No job starts before what it waits for, and no array runs more tasks at once than it may."""
    depending = [workload for workload in workloads if have_dependencies(workload.jobs)]
    executions: dict[str, list[Any]] = {}
    """The rows of each job, in their order: of one that was started again after a failure there are more."""
    failed = jobs_csv.ended_by_failures(schedule) if depending else set[str]()
    for row in sorted(schedule.itertuples(), key=lambda row: row.submission_time) if depending else ():
        executions.setdefault(jobs_csv.before_restarts(row, failed), []).append(row)
    for workload in depending:
        jobs = {job.id: job for job in workload.jobs if depends(job)}
        yield from _ends(jobs, executions)
        yield from _singletons(workload.jobs, executions)
        yield from _limits(jobs, executions)


def _ends(jobs: dict[str, Job], executions: dict[str, list[Any]]) -> Iterator[Violation]:
    """The jobs that start before the ends and starts that they wait for."""
    tasks = _tasks(jobs.values())
    for job in jobs.values():
        dependency = dependency_of(job)
        if dependency is None or (start := _start(executions.get(job.id))) is None:
            continue
        unmet = []
        for end in dependency.ends:
            name = full_name(job, end.target)
            others = [executions[other] for other in tasks.get(name, [name]) if other in executions]
            time = start - end.delay
            if end.kind == START:
                met = all(_is_over(rows[0], time, "starting_time") for rows in others)
            else:
                met = all(_is_over(rows[-1], time) for rows in others)
            success = all(rows[-1].success for rows in others)
            if not met or (end.kind in ("afterok", "afternotok") and success != (end.kind == "afterok")):
                unmet.append(str(end))
        if unmet and not (dependency.any and (len(unmet) < len(dependency.ends) or dependency.singleton)):
            yield Violation("dependency", (job.id,), start, f"job {job.id} starts, yet {unmet[0]} is not met")


def _tasks(jobs: Iterable[Job]) -> dict[str, list[str]]:
    """The tasks of each array."""
    tasks: dict[str, list[str]] = {}
    for job in jobs:
        if (array := array_of(job)) is not None:
            tasks.setdefault(array.name, []).append(job.id)
    return tasks


def _singletons(jobs: Iterable[Job], executions: dict[str, list[Any]]) -> Iterator[Violation]:
    """The jobs that start although one of the same user and name, submitted before, is not over."""
    namesakes: dict[tuple[str | None, str], list[Job]] = {}
    for job in jobs:
        if job.id in executions:
            name = str(job.extra.get("name", job.extra.get("executable", "")))
            namesakes.setdefault((job.user, name), []).append(job)
    for group in namesakes.values():
        for job in group:
            dependency, start = dependency_of(job), _start(executions[job.id])
            if start is None or dependency is None or not dependency.singleton or dependency.any:
                continue
            submission = executions[job.id][0].submission_time
            for other in group:
                rows = executions[other.id]
                if rows[0].submission_time < submission - SLACK and not _is_over(rows[-1], start):
                    text = f"job {job.id} starts, yet {other.id} of the same user and name is not over"
                    yield Violation("dependency", (job.id, other.id), start, text)


def _start(rows: list[Any] | None) -> float | None:
    """When a job was first started, if it was."""
    if rows is None or rows[0].final_state == JobState.REJECTED:
        return None
    return float(rows[0].starting_time)


def _is_over(row: Any, time: float, column: str = "finish_time") -> bool:
    """Whether a job was over, or had started; of a rejected one only its submission is known."""
    happened = row.submission_time if row.final_state == JobState.REJECTED else getattr(row, column)
    return bool(happened <= time + SLACK)


def _limits(jobs: dict[str, Job], executions: dict[str, list[Any]]) -> Iterator[Violation]:
    """The tasks that start although as many of their array run as may at once."""
    changes: dict[str, list[tuple[float, int, str]]] = {}
    limits: dict[str, int] = {}
    for job in jobs.values():
        array = array_of(job)
        if array is None or array.limit is None:
            continue
        limits[array.name] = array.limit
        found = changes.setdefault(array.name, [])
        for row in executions.get(job.id, ()):
            if row.final_state != JobState.REJECTED:
                found.append((row.starting_time, 1, row.id))
                found.append((row.finish_time - SLACK, -1, row.id))
    for name, moments in changes.items():
        running = 0
        for time, change, job_id in sorted(moments):
            running += change
            if change > 0 and running > limits[name]:
                what = f"{running} tasks of array {name} run at once, {limits[name]} may"
                yield Violation("array", (job_id,), time, what)


def as_queued(
    schedule: pd.DataFrame, workloads: Sequence[Workload], arrivals: Mapping[str, float]
) -> pd.DataFrame:
    """The schedule with the times at which jobs joined the queue in place of their submissions.

    At one instant, jobs that wait for others join the queue after those that do not, in the order of their
    submissions; and after them those that wait for the starts of these. Their column ``turn`` says so.
    """
    held = {
        job.id: job
        for workload in workloads
        if have_dependencies(workload.jobs)
        for job in workload.jobs
        if dependency_of(job) is not None
        or ((array := array_of(job)) is not None and array.limit is not None)
    }
    if not held:
        return schedule
    submissions = schedule["submission_time"]
    queued = schedule.assign(submission_time=schedule["id"].map(arrivals).fillna(submissions))
    round_of = _rounds(held, queued)
    turns = [
        (round_of(name), submission) if name in held else (-1, -1.0)
        for name, submission in zip(schedule["id"], submissions, strict=True)
    ]
    places = {turn: place for place, turn in enumerate(sorted(set(turns)))}
    return queued.assign(turn=[float(places[turn]) for turn in turns])


def _rounds(held: Mapping[str, Job], queued: pd.DataFrame) -> Callable[[str], int]:
    """How many times a policy was asked at an instant before a job joined the queue.

    That is never, unless the job waits for the start of another, which the policy has started then.
    """
    tasks, all_rows = _tasks(held.values()), {row.id: row for row in queued.itertuples()}

    @cache
    def round_of(name: str) -> int:
        dependency = dependency_of(held[name]) if name in held else None
        if dependency is None:
            return 0
        found = [after(name, end) for end in dependency.ends]
        return (min if dependency.any else max)([each for each in found if each is not None], default=0)

    def after(name: str, end: End) -> int | None:
        """The round of what has happened when a job has joined the queue; none if it had happened before."""
        target, arrival = full_name(held[name], end.target), all_rows[name].submission_time
        rows = [all_rows[each] for each in tasks.get(target, [target]) if each in all_rows]
        if end.kind == START and not end.delay:
            same_time = [round_of(row.id) for row in rows if abs(row.starting_time - arrival) <= SLACK]
            return 1 + max(same_time) if same_time else None
        last = max((row.finish_time for row in rows), default=-1.0)
        return 0 if abs(last + end.delay - arrival) <= SLACK else None

    return round_of


def resizes(schedule: pd.DataFrame) -> Iterator[Violation]:
    """The changes of a job's hosts fit together, and lie between its start and its end."""
    if RESIZES not in schedule:
        return
    for row in with_hosts(schedule[schedule[RESIZES].map(bool)]).itertuples():
        for time, text in _gaps(row):
            yield Violation("resize", (row.id,), time, f"job {row.id} {text}")


def _gaps(row: Any) -> Iterator[tuple[float, str]]:
    if row.final_state == JobState.REJECTED:
        yield row.submission_time, "was rejected, but has grown or shrunk"
        return
    time, hosts = row.starting_time, row.resizes[0].before
    for resize in row.resizes:
        if not time - SLACK <= resize.time <= row.finish_time + SLACK:
            yield resize.time, f"changes its hosts at {resize.time:.6f}, which is not between its other times"
        if resize.before != hosts:
            yield resize.time, f"gives up {resize.before} for {resize.after}, but has {hosts}"
        time, hosts = resize.time, resize.after
    if hosts != row.hosts:
        yield row.finish_time, f"ends on {row.hosts}, but went over to {hosts} before"


def malleable_jobs(workloads: Sequence[Workload]) -> dict[str, tuple[Job, Profile]]:
    """The jobs that may grow and shrink, each with what it does."""
    return {
        job.id: (job, load.profiles[job.profile])
        for load in workloads
        if isinstance(load.jobs, list)
        for job in load.jobs
        if MALLEABLE in job.extra
    }


def malleable(
    schedule: pd.DataFrame, workloads: Sequence[Workload], speeds: Sequence[float] | None
) -> Iterator[Violation]:
    """Only malleable jobs change their hosts, within their bounds, and they do all of their work.

    How much work a job does that computes is known only with the ``speeds`` of the hosts.
    """
    jobs, names = malleable_jobs(workloads), {load.name for load in workloads}
    if not jobs and RESIZES not in schedule:
        return
    failed = jobs_csv.ended_by_failures(schedule)
    for row in with_hosts(jobs_csv.started(schedule)).itertuples():
        changes, name = getattr(row, RESIZES, ()), jobs_csv.before_restarts(row, failed)
        if name not in jobs:
            if changes and row.workload_name in names:
                text = f"job {row.id} changes its hosts, but is not malleable"
                yield Violation("malleable", (row.id,), changes[0].time, text)
            continue
        job, profile = jobs[name]
        bounds = malleable_of(job)
        assert bounds is not None
        pieces = [Piece(row.starting_time, row.finish_time, row.hosts)]
        if changes:
            pieces = list(jobs_csv.pieces_of(row.starting_time, row.finish_time, changes))
        for piece in pieces:
            if not bounds.least <= len(piece.hosts) <= bounds.most:
                text = f"job {row.id} runs on {len(piece.hosts)} hosts instead of {bounds}"
                yield Violation("malleable", (row.id,), piece.start, text)
        if row.final_state in (JobState.SUCCESS, JobState.FAILED):
            yield from _work(row.id, job, profile, bounds, pieces, speeds)


def _work(
    job_id: str,
    job: Job,
    profile: Profile,
    bounds: Malleable,
    pieces: Sequence[Piece],
    speeds: Sequence[float] | None,
) -> Iterator[Violation]:
    """A job that has come to its end has done all of its work, and no more."""
    done, error = Fraction(0), Fraction(0)
    for piece in pieces:
        seconds = _seconds(profile, job.size, piece, speeds)
        if not seconds:
            return
        speed = bounds.speedup(len(piece.hosts)) / bounds.speedup(job.size) / Fraction(seconds)
        done += speed * (Fraction(piece.finish) - Fraction(piece.start))
        error += speed * Fraction(2 * SLACK)
    if abs(done - 1) > error:
        text = f"job {job_id} ends when {float(100 * done):.6f} % of its work are done"
        yield Violation("work", (job_id,), pieces[-1].finish, text)


def _seconds(profile: Profile, size: int, piece: Piece, speeds: Sequence[float] | None) -> float | None:
    """How long a profile takes with as many hosts as the job asks for, which are like those of a piece."""
    match profile:
        case profiles.Delay(seconds=seconds):
            return seconds
        case profiles.Homogeneous(work=work) if speeds is not None and piece.hosts.mask < 1 << len(speeds):
            share = work / size if isinstance(profile, profiles.HomogeneousTotal) else work
            return share / min(speeds[host] for host in piece.hosts)
    return None


def lengths(
    schedule: pd.DataFrame, workloads: Sequence[Workload], speeds: Sequence[float] | None
) -> Iterator[Violation]:
    """A job that came to its end ran as long as its profile says; one that its walltime ended needed longer.

    Of jobs that communicate, wait for messages or are malleable, profiles alone do not tell it; of those that
    compute, only with the ``speeds`` of their hosts, where these are numbers.
    """
    known = {load.name: load.profiles for load in workloads}
    changing = malleable_jobs(workloads)
    failed = jobs_csv.ended_by_failures(schedule) if changing else set[str]()
    executed = jobs_csv.started(schedule)
    for row in with_hosts(executed[~_plainly_right(executed, known, speeds)]).itertuples():
        found = _length(row.profile, known.get(row.workload_name, {}), row.hosts, speeds)
        if (
            found is None
            or bool(getattr(row, RESIZES, False))
            or jobs_csv.before_restarts(row, failed) in changing
        ):
            continue
        seconds, ran = max(found[0], INSTANT), max(row.execution_time, INSTANT)
        if row.final_state in (JobState.SUCCESS, JobState.FAILED):
            wrong = abs(ran - seconds) > SLACK + seconds * TIMING_PRECISION
        elif row.final_state == JobState.WALLTIME_REACHED:
            wrong = seconds < row.requested_time - SLACK
        else:
            wrong = ran > seconds + SLACK
        if wrong and row.execution_time >= 0:
            text = f"job {row.id} is {row.final_state} after {ran:.6f}, but its profile takes {seconds:.6f}"
            yield Violation("profile", (row.id,), row.finish_time, text)


def _plainly_right(
    executed: pd.DataFrame, known: Mapping[str, Mapping[str, Profile]], speeds: Sequence[float] | None
) -> NDArray[np.bool_]:
    """Whether each job did nothing but sleep, or compute on hosts of one speed, for as long as that takes."""
    count = len(speeds or ())
    are_even = speeds is not None and count > 0 and all(speed == speeds[0] for speed in speeds)
    seconds, untold = np.full(len(executed), nan), np.zeros(len(executed), np.bool_)
    on_hosts = ((executed["held"] > 0) & (executed["highest"] < count)).to_numpy()
    for workload, told in known.items():
        places = np.flatnonzero(executed["workload_name"] == workload)
        if speeds is None and isinstance(told, RunTimeProfiles):
            untold[places] = True  # these compute, on hosts of which nothing is known
            continue
        codes, names = pd.factorize(executed["profile"].to_numpy()[places])
        sleeps = [type(told.get(name)) is profiles.Delay for name in names]
        computes = [are_even and type(told.get(name)) is profiles.Homogeneous for name in names]
        found = [
            _length(name, told, HostSet.range(1), speeds) if sleeping or computing else None
            for name, sleeping, computing in zip(names, sleeps, computes, strict=True)
        ]
        times = np.array([nan if each is None else each[0] for each in found], np.float64)[codes]
        is_known = np.array(sleeps, np.bool_)[codes] | on_hosts[places]
        seconds[places] = np.where(is_known, times, nan)
    seconds = np.maximum(seconds, INSTANT)
    ran = np.maximum(executed["execution_time"].to_numpy(), INSTANT)
    states, limit = executed["final_state"], executed["requested_time"].to_numpy()
    return untold | np.select(
        [states.isin((JobState.SUCCESS, JobState.FAILED)), states == JobState.WALLTIME_REACHED],
        [abs(ran - seconds) <= SLACK + seconds * TIMING_PRECISION, seconds >= limit - SLACK],
        ran <= seconds + SLACK,
    )


def _length(
    name: str, known: Mapping[str, Profile], hosts: HostSet, speeds: Sequence[float] | None
) -> tuple[float, int] | None:
    """How long a profile takes on hosts, and its return code; nothing if it does not tell that."""
    profile = known.get(name)
    match profile:
        case profiles.Delay(seconds=seconds):
            return seconds, profile.return_code
        case profiles.Composed():
            total = 0.0
            for part in profile.sequence:
                if (found := _length(part, known, hosts, speeds)) is None:
                    return None
                total += found[0]
                if found[1]:
                    return total, found[1]
            return total * profile.repeat, profile.return_code
        case profiles.Homogeneous() | profiles.Parallel() if speeds is not None and not profile.sends_bytes:
            own = [speeds[host] if host < len(speeds) else nan for host in hosts]
            flops = profile.flops(len(own))
            if len(flops) == len(own) > 0 and not isnan(sum(own)):
                return max(map(truediv, flops, own)), profile.return_code
    return None


def constant_speeds(
    speeds: Sequence[float] | None, machine: Sequence[Host], switches: pd.DataFrame | None
) -> Sequence[float] | None:
    """The speeds of hosts; of those that computed in several power states, they are no numbers."""
    if speeds is None or switches is None or not machine:
        return None if switches is not None else speeds
    constant = list(speeds)
    for _, hosts, pstate in switches.itertuples(index=False):
        for host in HostSet.parse(hosts):
            if pstate >= 0 and pstate not in (machine[host].computing_pstate, *machine[host].sleep_pstates):
                constant[host] = nan
    return constant
