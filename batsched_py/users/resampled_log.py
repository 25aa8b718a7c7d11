"""A new log made of the users of an old one, without feedback."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from batsched_py.users.population import WEEK, Stay, Turnover
from batsched_py.users.resample import Resample
from batsched_py.workload.swf.log import SwfLog
from batsched_py.workload.swf.workload import swf_to_workload

#: What a header says about the jobs of the old log, and not of the new one.
_OUTDATED = ("MaxJobs", "MaxRecords", "EndTime")


def unroll(turnover: Turnover, nb_weeks: int) -> list[Stay]:
    """Who comes during so many weeks, if all submit as recorded."""
    stays: list[Stay] = []
    ends: dict[int, list[Stay]] = {}
    for week in range(nb_weeks):
        for stay in turnover.come(week):
            stays.append(stay)
            ends.setdefault(stay.last_week, []).append(stay)
        for stay in ends.pop(week, ()):
            turnover.left(stay, week)
    return stays


def resampled_log(log: SwfLog, population: Resample) -> SwfLog:
    """A log in which every job is one of an old log, moved by whole weeks or, if jobs are shuffled, anywhere.

    Jobs and users are numbered anew, and so a user who comes twice is two. Jobs without processors or
    without a user are left out, and jobs wait for no others. What is recorded of a job's wait is kept, as it
    tells how the users' think times came about.
    """
    workload = swf_to_workload(log)
    pool = population.pool(workload)
    nb_weeks = population.weeks or pool.nb_weeks
    record_of = {str(number): record for record, number in enumerate(log.job_number.tolist())}
    time_of = {job.name: job.submission_time for job in workload.jobs}
    records: list[int] = []
    times: list[float] = []
    users: list[int] = []
    for number, stay in enumerate(unroll(Turnover(pool, population.rules), nb_weeks), start=1):
        for place in stay.places:
            job = stay.stream.workload.jobs[place]
            if job.submission_time + stay.shift < nb_weeks * WEEK:
                record = record_of[job.name]
                dealt = job.submission_time - time_of[job.name]
                records.append(record)
                times.append(float(log.submit[record]) + (dealt + stay.shift))
                users.append(number)
    submit: NDArray[np.float64] = np.array(times, dtype=np.float64)
    order = np.argsort(submit, kind="stable")
    new = log.select(np.array(records, dtype=np.intp)[order])
    count = len(new)
    header = {key: value for key, value in log.header.items() if key not in _OUTDATED}
    note = (
        f"resampled from the users of {log.header.get('Computer', 'a log')}: {nb_weeks} weeks, "
        f"seed {population.seed}, load {population.load:g}"
    )
    header |= {"MaxJobs": str(count), "MaxRecords": str(count)}
    header["Note"] = "\n".join(filter(None, (header.get("Note", ""), note)))
    return replace(
        new,
        submit=submit[order],
        job_number=np.arange(1, count + 1),
        user=np.array(users, dtype=np.int64)[order],
        preceding_job=np.full(count, -1),
        think_time=np.full(count, -1.0),
        header=header,
        path="",
        more={name: column for name, column in new.more.items() if name not in ("after", "array")},
    )
