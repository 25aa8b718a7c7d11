"""The queue against a plain list, with hundreds of jobs that join and leave anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from batsched_py.ledger.free import FreeHosts
from batsched_py.ledger.queue import Condition, JobQueue, Waiting
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job


def job(number: int, size: int = 1, walltime: float = 10.0, user: str | None = None) -> Job:
    return Job(f"w0!{number}", float(number), size, walltime, "p", {} if user is None else {"user": user})


def filled(*jobs: Job) -> JobQueue:
    queue = JobQueue()
    for one in jobs:
        queue._append(one, one.walltime)
    return queue


def shortest(waiting: Waiting) -> object:
    return waiting.estimate


def sizes(queue: JobQueue, widest: int, **options: object) -> list[int]:
    return [one.size for one in search(queue, free(widest), **options)]  # type: ignore[arg-type]


def search(
    queue: JobQueue, hosts: FreeHosts, condition: Condition | None = None, only_new: bool = False
) -> Iterator[Job]:
    return queue._search(hosts, queue._nb_settled if only_new else 0, condition, None, None) or iter(())


def free(count: int) -> FreeHosts:
    return FreeHosts(HostSet.range(count))


@pytest.mark.parametrize("ordered", [False, True])
@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), nb_jobs=st.integers(1, 300))
def test_it_is_a_list_that_is_searched_fast(ordered: bool, seed: int, nb_jobs: int) -> None:
    random = Random(seed)
    queue, plain = filled(), list[Job]()
    if ordered:
        queue._order_by(shortest)  # type: ignore[arg-type]
    for number in range(nb_jobs):
        plain.append(job(number, random.randint(1, 9), float(random.randint(1, 20))))
        queue._append(plain[-1], plain[-1].walltime)
        while plain and random.random() < 0.45:
            gone = plain.pop(random.choice((0, -1, random.randrange(len(plain)))))
            assert queue._discard(gone.id) == gone.walltime
        expected = sorted(plain, key=lambda one: one.walltime) if ordered else plain
        limit, widest = random.randint(1, 20), random.randint(1, 9)
        found = search(queue, free(widest), lambda _, estimate, limit=limit: estimate <= limit)
        assert list(found) == [one for one in expected if one.size <= widest and one.walltime <= limit]
        first = queue.first(limit)
        assert first.submission.tolist() == [one.submission_time for one in plain[:limit]]
        assert first.estimate.tolist() == [one.walltime for one in plain[:limit]]
        assert list(queue) == expected
        assert len(queue) == len(plain)
        assert queue.nb_joined == number + 1
        if plain:
            assert queue.head is expected[0]


@pytest.mark.parametrize("nb_jobs", [5, 500])
def test_a_search_heeds_what_its_own_finds_have_changed(nb_jobs: int) -> None:
    queue = filled(*(job(number, size=number % 5 + 1) for number in range(nb_jobs)))
    found: list[Job] = []
    hosts = free(6)
    for one in search(queue, hosts):
        found.append(one)
        queue._discard(one.id)
        hosts.take_lowest(one.size)
    assert [one.size for one in found] == [1, 2, 3]
    assert len(queue) == nb_jobs - 3


@pytest.mark.parametrize("nb_jobs", [5, 500])
def test_a_search_passes_over_those_that_left_meanwhile(nb_jobs: int) -> None:
    jobs = [job(number) for number in range(nb_jobs)]
    queue = filled(*jobs)
    found = search(queue, free(1))
    assert next(found) is jobs[0]
    queue._discard(jobs[1].id)
    assert next(found) is jobs[2]


@pytest.mark.parametrize("nb_jobs", [3, 8, 300])
@pytest.mark.parametrize(
    "condition",
    [
        lambda size, estimate: True,
        lambda size, estimate: (size <= 4) | (estimate < 60),
        lambda size, estimate: (size * estimate < 50) & ~(size == 3),
        lambda size, estimate: 10 - size > estimate / 2,
        lambda size, estimate: (2.5 + estimate != 7.5) & (size >= 1.5),
        lambda size, estimate: size % 2 == 0,
        lambda size, estimate: np.maximum(size, 4) < np.sqrt(estimate),
        lambda size, estimate: estimate < float("inf"),
    ],
)
def test_any_expression_is_a_condition(nb_jobs: int, condition: Condition) -> None:
    jobs = [job(number, number % 7 + 1, float(number * 37 % 90)) for number in range(nb_jobs)]
    found = search(filled(*jobs), free(6), condition)
    assert list(found) == [one for one in jobs if one.size <= 6 and condition(one.size, one.walltime)]


def test_only_new_jobs_are_those_since_the_mark() -> None:
    queue = filled(*(job(number, size=1) for number in range(100)))
    queue._settle()
    assert sizes(queue, 9, only_new=True) == []
    queue._append(job(100, size=2), 10.0)
    queue._append(job(101, size=3), 10.0)
    assert sizes(queue, 9, only_new=True) == [2, 3]
    assert sizes(queue, 2, only_new=True) == [2]


def test_new_jobs_are_found_after_others_have_left() -> None:
    old = [job(number) for number in range(200)]
    queue = filled(*old)
    queue._settle()
    for one in old[1:-1]:
        queue._discard(one.id)
    queue._append(job(200, size=2), 10.0)
    assert 2 in sizes(queue, 9, only_new=True)


def test_an_estimate_may_change_while_the_job_waits() -> None:
    queue = filled(one := job(1, walltime=100.0), job(2, walltime=50.0))
    queue._order_by(shortest)  # type: ignore[arg-type]
    assert queue.head.name == "2"
    queue._expect(one, 5.0)
    assert queue.estimate(one) == 5.0
    assert queue.head is one
    assert queue._discard(one.id) == 5.0


def test_users_are_numbered_as_they_come() -> None:
    queue = filled(job(1, user="bob"), job(2), job(3, user="ann"))

    def users(waiting: Waiting) -> object:
        return waiting.user

    queue._order_by(users)  # type: ignore[arg-type]
    queue._append(job(4, user="bob"), 10.0)
    assert [one.name for one in queue] == ["1", "4", "2", "3"]
    assert queue.users == {"bob": 0, None: 1, "ann": 2}


def test_a_job_that_is_not_there_cannot_leave() -> None:
    queue = filled(job(1))
    with pytest.raises(KeyError):
        queue._discard("w0!2")
    assert len(queue) == 1
