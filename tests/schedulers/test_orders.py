"""Orders of the queue: each against its formula, job by job."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log2, log10, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import Cluster
from batsched_py.schedulers.orders import HALF_LIFE, OrderName, order
from batsched_py.testing import Workbench

NOW = 1000.0


def job(name: str, submission: float, size: int, walltime: float, user: str | None = None) -> Job:
    return Job(f"w0!{name}", submission, size, walltime, "p", {} if user is None else {"user": user})


def bench_with(*jobs: Job, now: float = NOW) -> Workbench:
    bench = Workbench(64, now=now)
    bench.submit(*jobs)
    return bench


def names(cluster: Cluster) -> list[str]:
    return [job.name for job in cluster.queue]


#: What the definitions say of one job; the lowest goes first.
FORMULAS: dict[OrderName, Callable[[Job], float]] = {
    "submission": lambda job: job.submission_time,
    "shortest": lambda job: job.walltime,
    "longest": lambda job: -job.walltime,
    "smallest-area": lambda job: job.size * job.walltime,
    "largest-area": lambda job: -job.size * job.walltime,
    "expansion-factor": lambda job: -(1 + (NOW - job.submission_time) / job.walltime),
    "wfp3": lambda job: -job.size * ((NOW - job.submission_time) / job.walltime) ** 3,
    "unicep": lambda job: -(NOW - job.submission_time) / (log2(max(job.size, 2)) * job.walltime),
    "f1": lambda job: log10(max(job.walltime, 1)) * job.size + 870 * log10(max(job.submission_time, 1)),
    "f2": lambda job: sqrt(job.walltime) * job.size + 25_600 * log10(max(job.submission_time, 1)),
    "f3": lambda job: job.walltime * job.size + 6_860_000 * log10(max(job.submission_time, 1)),
    "f4": lambda job: job.walltime * sqrt(job.size) + 530_000 * log10(max(job.submission_time, 1)),
}

jobs = st.lists(
    st.builds(
        job,
        st.just("?"),
        st.integers(0, 1000).map(float),
        st.integers(1, 64),
        st.one_of(st.integers(1, 5000).map(float), st.just(inf)),
    ),
    min_size=1,
    max_size=80,
).map(
    lambda jobs: [
        job(str(n), *args)
        for n, args in enumerate(sorted((j.submission_time, j.size, j.walltime) for j in jobs))
    ]
)


@pytest.mark.parametrize("name", FORMULAS)
@given(waiting=jobs)
def test_an_order_is_its_formula(name: OrderName, waiting: list[Job]) -> None:
    bench = bench_with(*waiting)
    cluster = bench.cluster
    cluster.order_queue(order(name, cluster))
    scores = [FORMULAS[name](one) for one in cluster.queue]
    assert scores == pytest.approx(sorted(scores))
    assert FORMULAS[name](cluster.queue.head) == pytest.approx(min(scores))


def test_unicep_counts_one_host_like_two_and_three_as_more() -> None:
    bench = bench_with(*(job(str(size), 0.0, size, 60.0) for size in (3, 2, 1)))
    cluster = bench.cluster
    cluster.order_queue(order("unicep", cluster))
    assert names(cluster) == ["2", "1", "3"]


def test_without_an_order_it_is_submission_order_again() -> None:
    bench = bench_with(job("long", 0.0, 1, 60.0), job("short", 5.0, 1, 10.0))
    cluster = bench.cluster
    cluster.order_queue(order("shortest", cluster))
    assert names(cluster) == ["short", "long"]
    bench.ledger.settle()
    cluster.order_queue(None)
    assert names(cluster) == ["long", "short"]
    assert not cluster.quiet  # whoever looks at new jobs only must look at all of them again


@pytest.mark.parametrize("name", FORMULAS)
def test_equal_jobs_go_in_submission_order(name: OrderName) -> None:
    bench = bench_with(*(job(str(number), 5.0, 2, 60.0) for number in range(50)))
    cluster = bench.cluster
    cluster.order_queue(order(name, cluster))
    assert names(cluster) == [str(number) for number in range(50)]


def test_an_order_that_depends_on_time_changes_with_it() -> None:
    bench = bench_with(job("large", 0.0, 8, 100.0), job("small", 0.0, 1, 10.0), now=1.0)
    cluster = bench.cluster
    cluster.order_queue(order("f1", cluster))
    assert names(cluster) == ["small", "large"]
    cluster.order_queue(order("wfp3", cluster))
    assert names(cluster) == ["small", "large"]
    late = job("late", 990.0, 1, 10.0)
    bench.submit(late)
    cluster._go_to(991.0)
    assert cluster.queue.head.name == "small"
    cluster._go_to(1e9)
    assert names(cluster) == ["small", "late", "large"]


def test_f1_of_the_queue_does_the_same_wherever_a_log_begins() -> None:
    """Since the begin of a log, the same jobs a year later are in another order."""
    orders = {}
    for begin in (0.0, 3e7):
        waiting = [job("wide", begin + 1, 64, 1e5), job("small", begin + 9e4, 1, 10.0)]
        cluster = bench_with(*waiting, now=begin + 1e5).cluster
        for name in ("f1", "f1-queue"):
            cluster.order_queue(order(name, cluster))
            orders[name, begin] = names(cluster)
    assert orders["f1-queue", 0.0] == orders["f1-queue", 3e7] == ["wide", "small"]
    assert orders["f1", 0.0] == ["wide", "small"] and orders["f1", 3e7] == ["small", "wide"]


def run_for(bench: Workbench, one: Job, seconds: float) -> None:
    bench.start(one)
    bench.now += seconds
    bench.end(one)


def test_fair_share_puts_the_user_first_who_has_used_least() -> None:
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    run_for(bench, job("1", 0.0, 4, inf, "ann"), 100.0)
    run_for(bench, job("2", 0.0, 2, inf, "bob"), 100.0)
    for name, user in (("a", "ann"), ("b", "bob"), ("c", "cid"), ("d", None)):
        bench.submit(job(name, cluster.now, 1, 10.0, user))
    assert names(cluster) == ["c", "d", "b", "a"]


def test_fair_share_counts_what_runs() -> None:
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    for name, size, user in (("1", 1, "ann"), ("2", 3, "bob")):
        bench.start(job(name, 0.0, size, inf, user))
    bench.submit(job("b", 0.0, 1, 10.0, "bob"))
    bench.submit(job("a", 0.0, 1, 10.0, "ann"))
    assert names(cluster) == ["b", "a"]
    cluster._go_to(5.0)
    assert names(cluster) == ["a", "b"]


def test_fair_share_knows_what_ran_before_it() -> None:
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    bench.start(job("1", 0.0, 1, inf, "ann"))
    bench.now = 5.0
    cluster.order_queue(order("fair-share", cluster))
    bench.submit(job("a", 0.0, 1, 10.0, "ann"), job("b", 0.0, 1, 10.0, "bob"))
    assert names(cluster) == ["b", "a"]


def test_fair_share_does_not_go_through_the_running_jobs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of them, at each turn, that would take most of the time of a simulation."""
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    bench.start(job("1", 0.0, 1, inf, "ann"))
    bench.submit(job("a", 0.0, 1, 10.0, "ann"), job("b", 0.0, 1, 10.0, "bob"))
    bench.now = 5.0
    monkeypatch.setitem(vars(cluster), "running", None)
    assert names(cluster) == ["b", "a"]


def test_fair_share_has_room_for_any_number_of_users() -> None:
    bench = Workbench(30_000)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    for user in range(200, 0, -1):
        bench.start(job(f"runs{user}", 0.0, user, inf, str(user)))
        bench.submit(job(str(user), 0.0, 1, 10.0, str(user)))
    bench.now = 10.0
    assert names(cluster) == [str(user) for user in range(1, 201)]


def test_fair_share_forgets_by_halves() -> None:
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    run_for(bench, job("1", 0.0, 1, inf, "ann"), 100.0)
    cluster._go_to(HALF_LIFE)
    run_for(bench, job("2", 0.0, 1, inf, "bob"), 60.0)
    bench.submit(job("b", cluster.now, 1, 10.0, "bob"))
    bench.submit(job("a", cluster.now, 1, 10.0, "ann"))
    assert names(cluster) == ["a", "b"]
    run_for(bench, job("3", 0.0, 1, inf, "ann"), 5.0)
    assert names(cluster) == ["a", "b"]
    run_for(bench, job("4", 0.0, 1, inf, "ann"), 15.0)
    assert names(cluster) == ["b", "a"]


def test_fair_share_outlives_a_machine_that_nobody_uses() -> None:
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    run_for(bench, job("1", 0.0, 1, inf, "ann"), 100.0)
    bench.now = 3000 * HALF_LIFE
    run_for(bench, job("2", 0.0, 1, inf, "bob"), 1.0)
    bench.submit(job("b", cluster.now, 1, 10.0, "bob"), job("a", cluster.now, 1, 10.0, "ann"))
    assert names(cluster) == ["a", "b"]


def test_fair_share_lasts_for_centuries() -> None:
    bench = bench_with(now=0.0)
    cluster = bench.cluster
    cluster.order_queue(order("fair-share", cluster))
    for number in range(20):
        run_for(bench, job(f"{number}a", 0.0, 2, inf, "ann"), 300 * HALF_LIFE)
        run_for(bench, job(f"{number}b", 0.0, 1, inf, "bob"), 300 * HALF_LIFE)
    bench.submit(job("b", cluster.now, 1, 10.0, "bob"))
    bench.submit(job("a", cluster.now, 1, 10.0, "ann"))
    assert names(cluster) == ["a", "b"]
