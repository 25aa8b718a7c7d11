"""Jobs that are made when they are asked for, against the same jobs in a list."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from batsched_py.protocol.jobs import Job
from batsched_py.workload import model as jobs_module
from batsched_py.workload.model import Jobs, ListedJobs, as_jobs
from batsched_py.workload.swf.reader import read_swf
from batsched_py.workload.swf.workload import LoggedJobs, read_swf_workload, swf_to_workload

RECORDS = st.lists(
    st.tuples(st.integers(0, 3) | st.just(2.5), st.integers(0, 3), st.integers(-1, 2), st.integers(-1, 2)),
    min_size=1,
    max_size=30,
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("log") / "log.swf"


def write(path: Path, records: list[tuple[float, int, int, int]]) -> None:
    """A log of records that are numbered backwards: submission, run time, user and requested time."""
    path.write_text(
        "".join(
            f"{len(records) - i} {submit} 5 {run_time} 1 -1 -1 1 {requested} -1 1 {user} 3 -1 -1 -1 -1 -1\n"
            for i, (submit, run_time, user, requested) in enumerate(records)
        )
    )


def fields(jobs: list[Job]) -> list[dict]:
    return [asdict(job) for job in jobs]


@given(RECORDS)
def test_lazy_jobs_are_those_of_a_list(path: Path, records) -> None:
    write(path, records)
    lazy = read_swf_workload(path).jobs
    assert isinstance(lazy, LoggedJobs)
    listed = list(lazy)
    assert fields([lazy[place] for place in range(len(lazy))]) == fields(listed)
    assert fields([lazy[-1]]) == fields(listed[-1:])
    assert fields(list(lazy[1:4])) == fields(listed[1:4])
    assert lazy.submission_times.tolist() == ListedJobs(listed).submission_times.tolist()
    for jobs in (lazy, ListedJobs(listed)):
        names, places = jobs.users()
        assert [names[place] for place in places] == [job.user for job in listed]


@given(RECORDS, st.randoms(use_true_random=False))
def test_the_jobs_of_a_user_are_known_in_the_order_of_submission(path: Path, records, random) -> None:
    write(path, records)
    lazy = read_swf_workload(path).jobs
    assert isinstance(lazy, LoggedJobs)
    shuffled = list(lazy)
    random.shuffle(shuffled)
    for jobs in (lazy, ListedJobs(shuffled), as_jobs(shuffled)):
        expected: dict[str | None, list[int]] = {}
        for place in sorted(range(len(jobs)), key=lambda place: jobs[place].submission_time):
            expected.setdefault(jobs[place].user, []).append(place)
        found = jobs.by_user()
        assert {user: places.tolist() for user, places in found.items()} == expected
        for places in found.values():
            part = jobs.part(places)
            assert fields(list(part)) == fields([jobs[place] for place in places])
            assert fields(part[1:3]) == fields(list(part)[1:3])
            assert jobs.submissions_of(places).tolist() == [job.submission_time for job in part]


def test_jobs_read_piece_by_piece_are_those_of_the_whole_log(shared: Path) -> None:
    path = shared / "logs" / "KTH-SP2-1996-2.1-cln.swf.gz"
    piecewise, whole = read_swf_workload(path), swf_to_workload(read_swf(path))
    assert fields(list(piecewise.jobs)) == fields(list(whole.jobs))
    assert list(piecewise.finishes) == list(whole.finishes)
    assert (piecewise.profiles, piecewise.nb_hosts) == (whole.profiles, whole.nb_hosts)


@pytest.mark.parametrize("kind", [as_jobs, ListedJobs, lambda jobs: as_jobs(list(jobs))])
@given(RECORDS)
def test_they_are_submitted_by_time_and_then_by_the_letters_of_their_ids(path: Path, kind, records) -> None:
    write(path, records)
    jobs: Jobs = kind(read_swf_workload(path).jobs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "BATCH", 4)
        order = [job.id for job in jobs.in_submission_order()]
    assert order == [job.id for job in sorted(jobs, key=lambda job: (job.submission_time, job.id))]


def test_the_order_in_a_list_does_not_matter() -> None:
    listed = [Job(f"w0!{n}", time, 1, 1.0, "p") for n, time in enumerate([5.0, 0.0, 5.0, 2.0])]
    assert [job.name for job in as_jobs(listed).in_submission_order()] == ["1", "3", "0", "2"]


@pytest.mark.parametrize("kind", [as_jobs, ListedJobs])
def test_a_job_is_found_by_its_identifier(path: Path, kind) -> None:
    write(path, [(0, 1, 1, 1), (1, 2, 1, 1), (2, 3, 1, 1)])
    jobs = kind(read_swf_workload(path).jobs)
    found = jobs.find("w0!2")
    assert found is not None and (found.id, found.profile) == ("w0!2", "run_2")
    for stranger in ("w0!4", "w0!0", "w1!2", "w0!02", "w0!2.0", "w0!", "w0!²", "2", "w0!" + "9" * 5000):
        assert jobs.find(stranger) is None, stranger
