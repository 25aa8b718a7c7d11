"""How tasks and GPUs are dealt to the nodes that were chosen for a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batsched_py.schedulers.slurm.asked import Asked


def dealt(asked: Asked, room: dict[int, int], threads: Sequence[int]) -> dict[int, int]:
    """How many processors a job gets of its nodes, of which so many are set aside for it.

    Each node gets a task, and more as long as they fit into the same core. Then each in turn gets as many as
    fit into another core, or one, as long as a whole one fits. Tasks that are left then go to the nodes in
    turn, each cut down to what its node still has: so a job may get less than it has asked for.
    """
    of_task, most = asked.cpus_per_task, asked.tasks_per_node
    order = sorted(room)
    nb_tasks = max(len(order) * asked.cpus_of_node, asked.cpus) // of_task
    given = {node: min(of_task, room[node]) for node in order}
    tasks = dict.fromkeys(given, 1)
    left = nb_tasks - len(given)
    is_full = all(given[node] >= room[node] for node in given)

    def fits(node: int) -> bool:
        return room[node] - given[node] >= of_task and tasks[node] != most

    def give(node: int) -> None:
        tasks[node] += 1
        given[node] = min(given[node] + of_task, room[node])

    for node in order:
        for _ in range(given[node] % threads[node] // of_task):
            if left > 0 and fits(node):
                give(node)
                left -= 1
    while left > 0:
        has_space = False
        for node in order:
            for _ in range(max(threads[node] // of_task, 1)):
                if not left or not (is_full or fits(node)):
                    break
                give(node)
                has_space = has_space or room[node] - given[node] >= of_task
                left -= 1
        is_full = not has_space
    return given


def shared_out(amount: int, nodes: Sequence[int], free: Sequence[int]) -> Iterator[tuple[int, int]]:
    """How many GPUs of a whole job each of its nodes gives, of which so many are free.

    Each gives what it has, but for one for each node that follows. So the first may give none.

    >>> list(shared_out(5, [0, 2], [4, 0, 3])), list(shared_out(1, [0, 2], [4, 0, 3]))
    ([(0, 4), (2, 1)], [(0, 0), (2, 1)])
    """
    for following, node in zip(reversed(range(len(nodes))), nodes, strict=True):
        given = max(min(free[node], amount - following), 0)
        amount -= given
        yield node, given
