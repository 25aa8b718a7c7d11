"""The native library selects nodes and plans starts as the classes in Python do."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
from msgspec import Struct

import batsched_py.slurm.policy.plan as kernel
from batsched_py.protocol.requests import MOST
from batsched_py.slurm.policy.job import Asked
from batsched_py.slurm.policy.nodes import Machine, Node, Share
from batsched_py.slurm.policy.plan import NATIVE, PYTHON, Kernel, Plan
from tests.slurm.scenario import RECORDED, simulated, simulated_anew

pytestmark = pytest.mark.skipif(NATIVE is None, reason="the native library is not built, or turned off")


class Running(Struct):
    """What the future needs of a running job."""

    share: Share
    end: int


class Waiting(Struct):
    """What a plan needs of a waiting job."""

    asked: Asked
    least_limit: int
    cpus: int = 0


def seen(share: Share | None) -> object:
    """A share as plain values, whichever kernel has made it."""
    return share and (share.nodes, share.exclusive, share.parts, share.others)


def begins(plan: Plan) -> list[int]:
    """When the spans of a plan begin; the native one may have an empty one before the first."""
    return sorted(set(plan.begins))


def some_machine(random: Random, sizes: Sequence[int] = (3, 20, 70)) -> Machine:
    """Nodes of one kind or of several, with and without GPUs, over one word of bits or more.

    Processors are given out one by one, in cores of two, or in sockets of four.
    """
    cpus, weights = random.choice([(8,), (4, 8, 16)]), random.choice([(1,), (1, 3)])
    threads, granule = random.choice([(1, 1), (1, 1), (2, 1), (2, 2), (1, 4), (2, 4)])
    return Machine(
        [
            Node(
                f"n{place}",
                0,
                random.choice(cpus),
                random.choice((64, 128)),
                (random.choice((0, 4)), random.choice((0, 2))),
                weight,
                threads,
                granule,
            )
            for place in range(random.choice(sizes))
            for weight in [random.choice(weights)]
        ],
        mixes_weights=random.random() < 0.3,
    )


def some_set(random: Random, machine: Machine) -> int:
    """Most of the nodes of a machine."""
    return machine.all & ~(random.getrandbits(len(machine.nodes)) & random.getrandbits(len(machine.nodes)))


def some_required(random: Random, nodes: int) -> int:
    """One or two of some nodes."""
    places = [place for place in range(nodes.bit_length()) if nodes >> place & 1]
    return sum(1 << place for place in random.sample(places, min(len(places), random.randint(1, 2))))


def some_request(random: Random, number: int, machine: Machine) -> Asked:
    """Tasks on shared or whole nodes, with memory, GPUs, ranges of nodes, and nodes that they must have."""
    of_task, tasks, least = random.choice((1, 1, 2, 3)), random.randint(1, 12), random.choice((1, 1, 2, 3))
    wanted = least + random.choice((0, 0, 2))
    others: tuple[tuple[int, int, int], ...] = random.choice(((), ((0, 1, 0),), ((0, 0, 1),)))
    of_job = random.choice(((), (((0,), 6),), (((1, 0), 3),))) if not others else ()
    of_each = random.choice((0, 0, 1, 2))
    nodes = some_set(random, machine)
    return Asked(
        number=number,
        tasks=tasks,
        cpus_per_task=of_task,
        unit=random.choice((1, of_task)),
        cpus=tasks * of_task,
        least_nodes=least,
        wanted_nodes=wanted,
        most_nodes=random.choice((wanted, MOST)),
        nodes=nodes,
        partition=nodes | some_set(random, machine),
        required=some_required(random, nodes) if random.random() < 0.3 else 0,
        exclusive=random.random() < 0.3,
        memory_per_cpu=random.choice((0, 4, 10)),
        memory_per_node=random.choice((0, 0, 50)),
        others=others,
        capacities=tuple(cpus // of_task for cpus in machine.cpus),
        tasks_per_node=of_each,
        least_cpus_of_node=of_task * (of_each or 1),
        cpus_of_node=of_task * (of_each or 1),
        most_cpus_of_node=random.choice((0, 0, 6)),
        own_cores=random.random() < 0.2,
        cpus_of_core=random.choice((MOST, MOST, 1)),
        charged_of_core=random.choice((MOST, MOST, 1)),
        least_loaded=random.random() < 0.2,
        contiguous=random.random() < 0.2,
        of_job=of_job,
        gpus=random.choice((((0, 1),), ((0, 3), (1, MOST)))) if others or of_job else (),
    )


def story(random: Random, machine: Machine, requests: Sequence[Asked], chosen: Kernel) -> list[object]:
    """Start jobs, end some of them, and plan others: all answers of a kernel on the way."""
    told: list[object] = []
    selector = chosen.selector(machine, random.random() < 0.5)
    usage, running = chosen.usage(machine), list[Running]()
    for asked in requests:
        share = selector.select(asked, some_set(random, machine), usage)
        told.append(seen(share))
        if share is not None:
            usage.take(share)
            running.append(Running(share, random.randrange(900, 9000)))
        if running and random.random() < 0.2:
            usage.give(running.pop(random.randrange(len(running))).share)
        told += [usage.idle, usage.exclusive]
    running.sort(key=lambda each: each.end)
    ending: Any = running
    how = random.choice((0, 0, 45)), random.random() < 0.3, 30, random.choice((0, 17))
    future = chosen.future(usage, ending, selector, *how)
    emptier = usage.copy()
    for each in running[::3]:
        emptier.give(each.share)
    left: Any = [each for place, each in enumerate(running) if place % 3]
    without = chosen.future(emptier, left, selector, *how)
    plan = chosen.plan(machine, 1000, 6_000, 60, machine.all, random.choice((5, 500)), how[-1])
    told.append(future.first_end)
    for asked in requests:
        length = random.choice((60, 600, 6000))
        only_now, completing = random.random() < 0.1, some_set(random, machine) & some_set(random, machine)
        reserved, moves = some_set(random, machine), random.random() < 0.3

        def allowed(
            later: int, reserved: int = reserved, length: int = length
        ) -> tuple[int, int, int] | None:
            """A reservation from 3000 to 5000 s, and no start after 6500 s."""
            overlaps = later < 5000 and later + length > 3000
            return None if later > 6_500 else (reserved if overlaps else machine.all, later, 5001 * overlaps)

        other = without if random.random() < 0.3 else None
        start, share, cpus, is_put_off, make_way_on, was_tried = plan.find_start(
            future, other, asked, length, 1000, only_now, completing, allowed if moves else None
        )
        told += [start, seen(share), cpus, is_put_off, make_way_on, was_tried]
        if start is not None and share is not None and start > 1000:
            told.append(plan.is_full)
            plan.keep(share, start, start + length)
            told.append(begins(plan))
    return told


def some_waiting(random: Random, requests: Sequence[Asked]) -> Waiting:
    """A job with one of some requests."""
    return Waiting(random.choice(requests), random.choice((5, 10, 30, 31, 100)))


def year(random: Random, machine: Machine, requests: Sequence[Asked], chosen: Kernel) -> list[object]:
    """Many cycles over a queue, between which time passes and jobs start, end and join: all their plans."""
    told: list[object] = []
    selector, usage = chosen.selector(machine, random.random() < 0.5), chosen.usage(machine)
    how = random.choice((0, 0, 45)), random.random() < 0.3, 30, random.choice((0, 17))
    window, most = random.choice((900, 1_800, 3_000, 20_000)), random.choice((8, 500, 500))
    future, running, now, up = chosen.future(usage, [], selector, *how), list[Running](), 1000, machine.all
    queue = [some_waiting(random, requests) for _ in range(2 * len(machine.nodes) + 5)]

    def start(record: Waiting, share: Share) -> None:
        began: Any = Running(share, now + record.least_limit * 60)
        place = bisect_right(running, began.end, key=lambda each: each.end)
        running.insert(place, began)
        future.started(place, began)
        queue.remove(record)

    plan = None
    for _ in range(150):
        if plan is None or random.random() < 0.7:
            plan = chosen.plan(machine, now, window, 60, up, most, how[-1])
        completing = some_set(random, machine) & some_set(random, machine) * (random.random() < 0.2)
        records, looked_at = iter(list[Any](queue)), list[Any]()
        while True:
            last, found, kept, is_full = plan.plan_starts(future, records, looked_at, now, completing)
            told += [last and last.cpus, found and (found[0], seen(found[1]), *found[2:]), kept, is_full]
            if last is None or found is None or is_full:
                break
            if found[0] is not None and found[0] <= now and found[1] is not None:
                start(last, found[1])  # type: ignore[arg-type]
        told += [[record.cpus for record in looked_at], plan.has_tried_enough]
        told += [begins(plan), plan.next_change(now), plan.puts_off]
        plan.go_back(random.randrange(10))
        told += [begins(plan), future.first_end]
        now += random.choice((1, 20, 70))
        if running and random.random() < 0.1:
            place = random.randrange(len(running))
            running.pop(place)
            future.ended(place)
        if random.random() < 0.1:
            queue.append(some_waiting(random, requests))
        up = some_set(random, machine) if random.random() < 0.02 else up
    return told


@pytest.mark.parametrize("seed", range(40))
def test_both_kernels_plan_a_year_in_the_same_way(seed: int) -> None:
    random = Random(seed)
    machine = some_machine(random, (3, 8, 20))
    requests = [some_request(random, number, machine) for number in range(12)]
    assert NATIVE is not None
    state = random.getstate()
    told = []
    for chosen in (PYTHON, NATIVE):
        random.setstate(state)
        told.append(year(random, machine, requests, chosen))
    assert told[0] == told[1]


@pytest.mark.parametrize("seed", range(40))
def test_both_kernels_tell_the_same_story(seed: int) -> None:
    random = Random(seed)
    machine = some_machine(random)
    requests = [some_request(random, number, machine) for number in range(30)]
    assert NATIVE is not None
    state = random.getstate()
    told = []
    for chosen in (PYTHON, NATIVE):
        random.setstate(state)
        told.append(story(random, machine, requests, chosen))
    assert told[0] == told[1]


@pytest.mark.parametrize("chosen", [PYTHON, NATIVE])
def test_whole_nodes_have_the_gpus_of_all_tasks(chosen: Kernel) -> None:
    """A job of 8 tasks with a GPU each needs two nodes of 4 GPUs, although one has enough processors."""
    machine = Machine([Node(f"n{place}", 0, 64, 256, (4,)) for place in range(3)])
    asked = Asked(
        number=0,
        tasks=8,
        cpus_per_task=8,
        unit=8,
        cpus=64,
        least_nodes=1,
        wanted_nodes=1,
        most_nodes=MOST,
        nodes=machine.all,
        partition=machine.all,
        exclusive=True,
        others=((0, 0, 1),),
        capacities=(4, 4, 4),
    )
    share = chosen.selector(machine, False).select(asked, machine.all, chosen.usage(machine))
    assert share is not None
    assert share.nodes == 0b11


@pytest.mark.parametrize("chosen", [PYTHON, NATIVE])
def test_a_start_is_tried_at_an_end_on_the_border_of_a_window(chosen: Kernel) -> None:
    """Of three nodes two are needed. The first end opens a window until 1030, then one of 60 s until 1090."""
    machine = Machine([Node(f"n{place}", 0, 4, 256) for place in range(3)])

    def whole(nodes: int) -> Asked:
        return Asked(
            number=nodes,
            tasks=nodes,
            cpus_per_task=4,
            unit=4,
            cpus=4 * nodes,
            least_nodes=nodes,
            wanted_nodes=nodes,
            most_nodes=nodes,
            nodes=machine.all,
            partition=machine.all,
            exclusive=True,
            capacities=(1, 1, 1),
        )

    selector, usage = chosen.selector(machine, False), chosen.usage(machine)
    running: Any = []
    for place, end in enumerate((1010, 1090, 1100)):
        share = selector.select(whole(1), 1 << place, usage)
        assert share is not None
        usage.take(share)
        running.append(Running(share, end))
    future = chosen.future(usage, running, selector, 0, False, 30, 20)
    plan = chosen.plan(machine, 1000, 6_000, 1, machine.all, 500, 20)
    start, share, *_ = plan.find_start(future, None, whole(2), 600, 1000, False, 0, None)
    assert start == 1090
    assert share is not None and share.nodes == 0b11


@pytest.mark.parametrize("name", ["linear-1", "mixed-2", "tiers-1", "preempt-1", "gpus-1"])
def test_recorded_scenarios_are_the_same_in_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder: Path = RECORDED / name
    native = simulated(folder)
    monkeypatch.setattr(kernel, "NATIVE", None)
    pd.testing.assert_frame_equal(simulated_anew(folder), native, check_exact=True)


def test_larger_nodes_than_it_knows_are_left_to_python() -> None:
    assert kernel.kernel_of(Machine([Node("n1", 0, kernel.MOST_CPUS + 1)])) is PYTHON
    assert kernel.kernel_of(Machine([Node("n1", 0, kernel.MOST_CPUS)])) is NATIVE
