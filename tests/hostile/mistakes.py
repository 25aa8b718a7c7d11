"""Plausible mistakes of policies, and acts at moments at which nobody expects them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

from msgspec.structs import replace

from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers import Scheduler

#: Policies of a line or two: what is done at a turn when jobs wait and run.
MISTAKES: dict[str, Callable[[Any], object]] = {}


def mistake(function: Callable[[Any], object]) -> Callable[[Any], object]:
    MISTAKES[function.__name__] = function
    return function


def a_job(cluster: Any) -> Job:
    return next(job for job in cluster.queue if cluster.fits(job))


@mistake
def a_started_job_is_given_more_time(cluster: Any) -> None:
    cluster.start(a_job(cluster)).expected_end += 60


@mistake
def a_started_job_is_counted_on(cluster: Any) -> None:
    cluster.start(a_job(cluster)).number += 1


@mistake
def a_started_job_loses_its_job(cluster: Any) -> None:
    cluster.start(a_job(cluster)).job = None


@mistake
def what_was_decided_is_appended_to(cluster: Any) -> None:
    cluster.decided.append(cluster.start(a_job(cluster)))


@mistake
def decisions_are_looked_for(cluster: Any) -> None:
    cluster.decisions.clear()


@mistake
def hosts_in_a_list(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet.of_runs([[3, 3]]))  # type: ignore[arg-type]


@mistake
def a_host_twice(cluster: Any) -> None:
    cluster.start(cluster.queue.head, HostSet.of_runs(((2, 3), (3, 3))))


@mistake
def hosts_that_touch(cluster: Any) -> None:
    cluster.start(cluster.queue.head, HostSet.of_runs(((2, 2), (3, 3))))


@mistake
def hosts_backwards(cluster: Any) -> None:
    cluster.start(cluster.queue.head, HostSet(None, ((3, 2),)))


@mistake
def hosts_whose_text_lies(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet(1 << 3, None, "0-7"))


@mistake
def hosts_of_a_negative_mask(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet(-1))


@mistake
def hosts_of_no_mask(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet(None))


@mistake
def hosts_of_text(cluster: Any) -> None:
    cluster.start(a_job(cluster), "0-3")


@mistake
def a_host_by_its_number(cluster: Any) -> None:
    cluster.start(a_job(cluster), 3)


@mistake
def hosts_that_do_not_exist(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet.of([77]))


@mistake
def a_host_beyond_all(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet.of([2**40]))


@mistake
def busy_hosts(cluster: Any) -> None:
    cluster.start(a_job(cluster), HostSet.of([0]))


@mistake
def too_few_hosts(cluster: Any) -> None:
    cluster.start(cluster.queue.head, HostSet.of([3]))


@mistake
def the_same_job_twice(cluster: Any) -> None:
    chosen = a_job(cluster)
    cluster.start(chosen)
    cluster.start(chosen)


@mistake
def the_same_job_twice_unnoticed(cluster: Any) -> None:
    try:
        the_same_job_twice(cluster)
    except Exception:
        return


@mistake
def a_smaller_job_of_the_same_name(cluster: Any) -> None:
    cluster.start(replace(cluster.queue.head, size=1))


@mistake
def a_job_of_ones_own(cluster: Any) -> None:
    cluster.start(Job("w0!77", 0.0, 1, 10.0, "long"))


@mistake
def a_job_that_is_to_come(cluster: Any) -> None:
    cluster.start(Job("w0!5", 2.25, 4, 5.0, "long"))


@mistake
def a_job_whose_name_is_a_number(cluster: Any) -> None:
    cluster.start(Job(7, 0.0, 1, 10.0, "long"))  # type: ignore[arg-type]


@mistake
def the_name_of_a_job(cluster: Any) -> None:
    cluster.start(cluster.queue.head.id)


@mistake
def a_running_job_is_started(cluster: Any) -> None:
    cluster.start(next(iter(cluster.running)))


@mistake
def a_running_job_is_rejected(cluster: Any) -> None:
    cluster.reject(next(iter(cluster.running)).job)


@mistake
def a_waiting_job_is_killed(cluster: Any) -> None:
    cluster.kill(cluster.queue.head)


@mistake
def a_running_job_is_killed_twice(cluster: Any) -> None:
    running = next(iter(cluster.running))
    cluster.kill(running.job)
    cluster.kill(running.job)


@mistake
def a_job_is_looked_for_among_running_ones(cluster: Any) -> None:
    _ = cluster.queue.head in cluster.running


@mistake
def every_running_job_is_given_more_time(cluster: Any) -> None:
    for running in cluster.running:
        cluster.expect(running.job, running.expected_end - running.start + 60)


@mistake
def jobs_are_started_while_running_ones_are_gone_through(cluster: Any) -> None:
    for _ in cluster.running:
        for job in cluster.fitting():
            cluster.start(job)


@mistake
def jobs_are_rejected_while_they_are_gone_through(cluster: Any) -> None:
    for job in cluster.queue:
        cluster.reject(job)


@mistake
def an_unknown_job_is_expected(cluster: Any) -> None:
    cluster.expect(Job("w0!77", 0.0, 1, 10.0, "long"), 5)


@mistake
def a_job_is_expected_for_ever(cluster: Any) -> None:
    cluster.expect(cluster.queue.head, inf)


@mistake
def a_job_is_expected_before_it_starts(cluster: Any) -> None:
    cluster.expect(next(iter(cluster.running)).job, -inf)


@mistake
def a_call_in_the_past(cluster: Any) -> None:
    cluster.call_at(0)


@mistake
def a_call_is_changed_afterwards(cluster: Any) -> None:
    call = ev.CallMeLater(cluster.now + 1)
    cluster.decide(call)
    call.at = nan
    cluster.decided[-1].at = nan


@mistake
def a_kill_is_changed_afterwards(cluster: Any) -> None:
    kill = ev.KillJobs([next(iter(cluster.running)).job.id])
    cluster.decide(kill)
    kill.job_ids.append("w0!77")
    cluster.decided[-1].job_ids.clear()


@mistake
def an_execution_is_changed_afterwards(cluster: Any) -> None:
    execution = ev.ExecuteJob(a_job(cluster).id, HostSet.of([3]), mapping=[0])
    cluster.decide(execution)
    execution.hosts, execution.mapping = HostSet.of([0]), [99]


@mistake
def a_mapping_outside_the_hosts(cluster: Any) -> None:
    cluster.decide(ev.ExecuteJob(a_job(cluster).id, HostSet.of([3]), mapping=[-1]))


@mistake
def a_mapping_of_texts(cluster: Any) -> None:
    cluster.decide(ev.ExecuteJob(a_job(cluster).id, HostSet.of([3]), mapping=["0"]))  # type: ignore[list-item]


@mistake
def news_are_changed(cluster: Any) -> None:
    for event in cluster.events:
        event.time = nan
        event.extra = {"x": 1}


@mistake
def machines_are_changed(cluster: Any) -> None:
    for machine in cluster.machines:
        machine.id = -1
        machine.properties["speed"] = "x"


@mistake
def an_event_of_another_kind(cluster: Any) -> None:
    class Mine(ev.CallMeLater):
        pass

    cluster.decide(Mine(cluster.now + 1))


@mistake
def a_happening_is_decided(cluster: Any) -> None:
    cluster.decide(ev.RequestedCall())


@mistake
def a_switch_without_energy(cluster: Any) -> None:
    cluster.switch(cluster.free, 1)


@mistake
def a_note_with_a_quote(cluster: Any) -> None:
    cluster.decide(ev.SetJobMetadata(cluster.queue.head.id, 'a "quote"'))


@mistake
def a_registration_without_dynamic_jobs(cluster: Any) -> None:
    cluster.decide(ev.RegisterJob(Job("dyn!1", 0.0, 1, 10.0, "p")))


@mistake
def an_order_that_gives_too_few(cluster: Any) -> None:
    cluster.order_queue(lambda waiting, now: waiting.size[1:])
    _ = cluster.queue.head


@mistake
def an_order_that_gives_nan(cluster: Any) -> None:
    cluster.order_queue(lambda waiting, now: waiting.size * nan)
    _ = list(cluster.queue)


@mistake
def an_order_that_gives_nothing(cluster: Any) -> None:
    cluster.order_queue(lambda waiting, now: None)
    _ = list(cluster.fitting())


@mistake
def an_order_of_texts(cluster: Any) -> None:
    cluster.order_queue(lambda waiting, now: ["x"] * len(waiting))
    _ = cluster.queue.head


@mistake
def an_order_that_starts_jobs(cluster: Any) -> None:
    def order(waiting: Any, now: float) -> Any:
        cluster.reject(cluster.queue.get("w0!2"))
        return waiting.size

    _ = list(cluster.fitting(order=order))


@mistake
def an_order_of_itself(cluster: Any) -> None:
    cluster.order_queue(lambda waiting, now: cluster.queue.head)
    _ = cluster.queue.head


@mistake
def a_condition_that_starts_the_job(cluster: Any) -> None:
    chosen = a_job(cluster)

    def condition(size: int, estimate: float) -> bool:
        if chosen in cluster.queue:
            cluster.start(chosen)
        return True

    _ = [cluster.start(job) for job in cluster.fitting(condition)]


@mistake
def a_condition_without_an_answer(cluster: Any) -> None:
    class Odd:
        def __bool__(self) -> bool:
            raise ValueError("neither")

    _ = list(cluster.fitting(lambda size, estimate: Odd()))


@mistake
def columns_are_kept(cluster: Any) -> None:
    columns = cluster.queue.first(9)
    cluster.start(a_job(cluster))
    _ = columns.size


@mistake
def columns_are_changed(cluster: Any) -> None:
    cluster.queue.first(9).size[:] = -1


@mistake
def the_users_are_changed(cluster: Any) -> None:
    _ = cluster.queue.first(9).user
    cluster.queue.users["z"] = 99


@mistake
def a_reservation_for_a_monster(cluster: Any) -> None:
    for size in (-(2**63), 2**63 - 1, 0):
        reservation = cluster.reservation(Job("w0!77", 0.0, size, 10.0, "long"))
        reservation.admit(next(iter(cluster.running)))
        _ = list(cluster.fitting(beside=reservation))


@mistake
def a_profile_of_nonsense(cluster: Any) -> None:
    profile = cluster.profile()
    profile.advance(-inf)
    profile.take(-inf, inf, 2**24)
    profile.give(0, 1e308, 2**24)
    profile.advance(inf)
    _ = profile.earliest(1, 0), profile.free_at(0), repr(profile)


@mistake
def a_plan_out_of_order(cluster: Any) -> None:
    plan = cluster.plan()
    running = next(iter(cluster.running))
    plan.job_started(running)
    plan.job_ended(running)
    plan.job_ended(running)
    plan.move_forward()
    plan.reserve_new()
    plan.reserve_new()
    plan.advance()
    _ = plan.due(), plan.reservations()


@mistake
def it_leaves(cluster: Any) -> None:
    sys.exit(0)


@mistake
def it_leaves_silently(cluster: Any) -> None:
    raise SystemExit


@mistake
def it_says_two_lines(cluster: Any) -> None:
    raise ValueError("one\ntwo \x1b[31m")


@mistake
def it_says_very_much(cluster: Any) -> None:
    raise ValueError("x" * 10**6)


@mistake
def it_cannot_be_told(cluster: Any) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError("no text")

    raise Odd


@mistake
def it_raises_what_nobody_catches(cluster: Any) -> None:
    class Odd(BaseException):
        pass

    raise Odd("strange")


@mistake
def it_ends_a_generator(cluster: Any) -> None:
    raise GeneratorExit


@mistake
def it_stops_an_iteration(cluster: Any) -> None:
    raise StopIteration


@mistake
def it_recurs(cluster: Any) -> None:
    it_recurs(cluster)


@mistake
def its_name_is_changed(cluster: Any) -> None:
    Scheduler.name = "two\nlines"
    try:
        raise ValueError("and now?")
    finally:
        del Scheduler.name


#: What may be done at any moment.
DEEDS: dict[str, Callable[[Any], object]] = {
    "exits": lambda cluster: sys.exit(0),
    "raises": lambda cluster: 1 / 0,
    "starts all": lambda cluster: [cluster.start(job) for job in cluster.fitting()],
    "starts the head": lambda cluster: cluster.queue and cluster.start(cluster.queue.head),
    "rejects all": lambda cluster: [cluster.reject(job) for job in cluster.queue],
    "kills all": lambda cluster: [cluster.kill(running.job) for running in cluster.running],
    "asks for a call": lambda cluster: cluster.now < 30 and cluster.call_at(cluster.now + 0.5),
    "asks for a call in the past": lambda cluster: cluster.call_at(-1),
    "expects all": lambda cluster: [cluster.expect(job, 1.0) for job in cluster.queue],
    "orders the queue": lambda cluster: cluster.order_queue(lambda waiting, now: -waiting.size),
    "listens": lambda cluster: cluster.now < 2 and cluster.on_end(lambda ended: None),
    "listens wrongly": lambda cluster: cluster.on_end(lambda: None),
    "looks at all": lambda cluster: [
        *cluster.queue,
        *cluster.running,
        *cluster.events,
        *cluster.decided,
        cluster.free,
        cluster.profile(),
    ],
}

MOMENTS = ("begin", "estimate", "schedule", "condition", "order", "end", "decided")


def deeds() -> Iterator[tuple[str, str, Callable[[Any], object]]]:
    """Each deed at each moment."""
    for moment in MOMENTS:
        for name, deed in DEEDS.items():
            yield f"{name} ({moment})", moment, deed
