"""The jobs of workload files, in the order of their submissions."""

from __future__ import annotations

from itertools import accumulate
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from batsched_py.protocol.jobs import Job
from batsched_py.simulator.agenda import Agenda, Submitter
from batsched_py.workload.model import Workload

TIMES = st.lists(st.integers(0, 3), max_size=12)


def workload(name: str, times: list[int]) -> Workload:
    return Workload(name, [Job(f"{name}!{n}", float(time), 1, inf, "p") for n, time in enumerate(times)], {})


@given(TIMES, TIMES)
def test_jobs_come_by_time_then_workload_by_workload_then_by_the_letters_of_their_ids(
    first: list[int], second: list[int]
) -> None:
    """And a job is yet to come exactly until it has come, also for those of the same instant."""
    workloads = [workload("w1", first), workload("w0", second)]
    jobs = [(job.submission_time, rank, job.id) for rank, w in enumerate(workloads) for job in w.jobs]
    expected = [job_id for _, _, job_id in sorted(jobs)]
    agenda, submitted, ended = Agenda(), [], []

    def submit(job: Job) -> None:
        assert (agenda.clock, job.id) == (job.submission_time, expected[len(submitted)])
        submitted.append(job.id)
        assert [job_id for job_id in expected if submitter.is_to_come(job_id)] == expected[len(submitted) :]

    submitter = Submitter(workloads, agenda, submit, ended.append)
    assert all(map(submitter.is_to_come, expected))
    while agenda.heap:
        agenda.happen()
    assert submitted == expected
    assert ended == [None]


def test_nobody_knows_a_job_that_is_in_no_workload() -> None:
    submitter = Submitter([workload("w0", list(accumulate([1] * 3)))], Agenda(), print, print)
    assert not submitter.is_to_come("w0!3")
    assert not submitter.is_to_come("w1!0")
