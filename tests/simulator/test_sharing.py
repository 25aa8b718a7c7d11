"""Jobs that share hosts: how fast each advances, worked out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.engines.python import Batsim
from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.simulator.network.solver import Fluid, Resource, Use, component, join, leave, solve
from batsched_py.simulator.setup import Setup
from tests.drive import GIGA, Drive, computing, execute, platform, workload

SHARED = ev.Settings(compute_sharing=True)
WORK = {"ten": computing(10 * GIGA), "twenty": computing(20 * GIGA), "nap": {"type": "delay", "delay": 10}}


def drive(*jobs: tuple[str, int, str], cores: int = 1, energy: bool = False) -> Drive:
    """Four hosts that may be shared, on which jobs wait; each is given as its name, size and profile."""
    described = [{"id": name, "res": size, "profile": profile} for name, size, profile in jobs]
    batsim = Batsim(
        Setup(platform(cores=cores), [workload(*described, profiles=WORK)], SHARED, energy=energy)
    )
    conversation = Drive(batsim)
    conversation.reply()
    return conversation


def ends(conversation: Drive) -> dict[str, float]:
    """When each job has ended, if nothing more is decided."""
    conversation.finish()
    return {event.job_id.removeprefix("w0!"): event.time for event in conversation.all(ev.JobCompleted)}


def test_two_jobs_on_a_host_take_twice_as_long() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "ten"))
    conversation.reply(execute("a", "0"), execute("b", "0"))
    assert ends(conversation) == {"a": 20.0, "b": 20.0}


def test_who_is_left_alone_speeds_up() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "twenty"))
    conversation.reply(execute("a", "0"), execute("b", "0"))
    assert ends(conversation) == {"a": 20.0, "b": 30.0}


def test_who_is_joined_slows_down() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "ten"))
    conversation.until(ev.RequestedCall, execute("a", "0"), ev.CallMeLater(5.0))
    conversation.reply(execute("b", "0"))
    assert ends(conversation) == {"a": 15.0, "b": 20.0}


def test_a_killed_job_leaves_its_share_to_others() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "ten"))
    conversation.until(ev.RequestedCall, execute("a", "0"), execute("b", "0"), ev.CallMeLater(10.0))
    conversation.reply(ev.KillJobs(["w0!a"]))
    (killed,) = conversation.all(ev.JobsKilled)
    assert killed.progress["w0!a"].done == pytest.approx(0.5)
    assert ends(conversation)["b"] == 15.0


def test_delays_neither_slow_down_nor_slow_others_down() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "nap"))
    conversation.reply(execute("a", "0"), execute("b", "0"))
    assert ends(conversation) == {"a": 10.0, "b": 10.0}


def test_a_job_goes_at_the_pace_of_its_slowest_host() -> None:
    conversation = drive(("a", 2, "ten"), ("b", 1, "ten"), ("c", 1, "ten"))
    conversation.reply(execute("a", "0-1"), execute("b", "0"), execute("c", "1"))
    assert ends(conversation) == {"a": 20.0, "b": 20.0, "c": 20.0}


def test_what_a_slow_job_leaves_is_there_for_others() -> None:
    conversation = drive(("a", 2, "ten"), ("b", 1, "ten"), ("c", 1, "ten"), ("d", 1, "twenty"))
    conversation.reply(execute("a", "0-1"), execute("b", "0"), execute("c", "0"), execute("d", "1"))
    assert ends(conversation)["d"] == pytest.approx(30.0)


def test_jobs_on_different_cores_do_not_feel_each_other() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "ten"), cores=2)
    conversation.reply(execute("a", "0"), execute("b", "0"))
    assert ends(conversation) == {"a": 10.0, "b": 10.0}


def test_a_walltime_that_is_reached_through_sharing_ends_the_job() -> None:
    described = [{"id": name, "profile": "ten", "walltime": 15} for name in "ab"]
    conversation = Drive(Batsim(Setup(platform(), [workload(*described, profiles=WORK)], SHARED)))
    conversation.reply()
    conversation.reply(execute("a", "0"), execute("b", "0"))
    assert ends(conversation) == {"a": 15.0, "b": 15.0}
    assert {event.state.value for event in conversation.all(ev.JobCompleted)} == {
        "COMPLETED_WALLTIME_REACHED"
    }


def test_a_shared_host_is_loaded_by_all_its_jobs_together() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "ten"), cores=4, energy=True)
    conversation.until(ev.JobCompleted, execute("a", "0"), execute("b", "0"))
    (answer,) = [e for e in conversation.reply(ev.QueryEnergy()) if isinstance(e, ev.EnergyAnswer)]
    assert answer.joules == pytest.approx(10 * (120 + 80 / 2 + 3 * 100))


def test_a_host_is_idle_when_its_last_job_has_left() -> None:
    conversation = drive(("a", 1, "ten"), ("b", 1, "twenty"), ("c", 1, "nap"), energy=True)
    conversation.until(ev.JobCompleted, execute("a", "0"), execute("b", "0"))
    with pytest.raises(RuleBroken, match="hosts 0 run job w0!b"):
        conversation.reply(ev.SetHostsState(execute("a", "0").hosts, 2))


def test_without_sharing_a_second_job_is_refused() -> None:
    jobs = workload({"id": "a"}, {"id": "b"})
    conversation = Drive(Batsim(Setup(platform(), [jobs])))
    conversation.reply()
    with pytest.raises(RuleBroken, match="hosts 0 are busy and may not be shared"):
        conversation.reply(execute("a", "0"), execute("b", "0"))


def test_storage_hosts_are_shared_unless_that_is_disabled() -> None:
    jobs = workload({"id": "a"}, {"id": "b"})
    conversation = Drive(Batsim(Setup(platform(1, storages=1), [jobs])))
    conversation.reply()
    conversation.reply(execute("a", "1"), execute("b", "1"))
    assert ends(conversation) == {"a": 10.0, "b": 10.0}


WORK_BY_HOST = st.dictionaries(st.integers(0, 4), st.floats(1e3, 1e12), min_size=1)
TASKS = st.lists(st.tuples(WORK_BY_HOST, st.floats(1e-6, 1e3)), min_size=1, max_size=6)


def joined(tasks: list[tuple[dict[int, float], float]], hosts: list[Resource]) -> list[Fluid]:
    """Tasks on hosts, each given by its work and the bound of its rate; nothing is solved yet."""
    fluids = [
        Fluid(number, {hosts[host]: Use(flops, flops) for host, flops in work.items()}, bound)
        for number, (work, bound) in enumerate(tasks)
    ]
    for fluid in fluids:
        join(fluid)
    return fluids


def five_hosts() -> list[Resource]:
    return [Resource(f"host {number}", 1e9) for number in range(5)]


@given(TASKS)
def test_no_host_does_more_than_it_can_and_every_task_advances(
    tasks: list[tuple[dict[int, float], float]],
) -> None:
    hosts = five_hosts()
    fluids = joined(tasks, hosts)
    solve(fluids)
    for host in hosts:
        used = sum(use.total * fluid.rate for fluid, use in host.users.items())
        assert used <= host.capacity * (1 + 1e-9)
    for fluid in fluids:
        assert 0 < fluid.rate <= fluid.bound * (1 + 1e-9)


@given(TASKS)
def test_each_component_may_be_solved_by_itself(tasks: list[tuple[dict[int, float], float]]) -> None:
    fluids = joined(tasks, five_hosts())
    solve(fluids)
    together = [fluid.rate for fluid in fluids]
    for fluid in fluids:
        solve(component([fluid]))
    assert [fluid.rate for fluid in fluids] == together


@given(TASKS)
def test_who_leaves_leaves_nothing_behind(tasks: list[tuple[dict[int, float], float]]) -> None:
    fluids, others = joined(tasks, five_hosts()), joined(tasks[1:], five_hosts())
    leave(fluids[0])
    solve(fluids[1:])
    solve(others)
    assert [fluid.rate for fluid in fluids[1:]] == [fluid.rate for fluid in others]


def test_what_a_satisfied_task_took_last_is_taken_again() -> None:
    """Two hosts of 1 flop/s. Were it not so, the second task would get 7/32."""
    hosts = [Resource("0", 1.0), Resource("1", 1.0)]
    tasks = [
        ({0: 1.0}, 1 / 16),
        ({1: 2.0, 0: 2.0}, 1 / 4),
        ({0: 1.0, 1: 2.0}, 1 / 4),
        ({0: 4.0, 1: 1.0}, 1 / 16),
    ]
    fluids = joined(tasks, hosts)
    solve(fluids)
    assert [fluid.rate for fluid in fluids] == pytest.approx([1 / 16, 37 / 192, 1 / 4, 1 / 16])
