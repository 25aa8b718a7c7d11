"""Which nodes a job gets, as ``select/cons_tres`` chooses them.

The nodes that have room for the job are cut into sets of neighbours. Of those with the least weight, Slurm
takes the smallest set that is large enough, or else the largest, and goes on until the job has all it asks
for. In a set it begins with the first node; for the last node of a job it takes the one with the fewest
processors that are enough. Of nodes with the same weight, those with more free GPUs come first, if the job
needs GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from batsched_py.schedulers.slurm.asked import Asked, held_cpus, usable_cpus
from batsched_py.schedulers.slurm.nodes import Machine, Share, Usage, neighbours, places

#: How much of each other resource of the machine is free, node by node.
Columns = Sequence[Sequence[int]]


class Selector:
    """Chooses nodes of one machine."""

    def __init__(self, machine: Machine, consumes_memory: bool = False) -> None:
        self.machine = machine
        self.consumes_memory = consumes_memory

    def select(self, asked: Asked, nodes: int, usage: Usage) -> Share | None:
        """The nodes that a job gets, if only these may be taken."""
        if asked.exclusive:
            return self.whole(asked, nodes & asked.nodes & usage.idle)
        room = self._room(asked, nodes & asked.nodes & ~usage.exclusive, usage)
        chosen = self._choose_any(asked, room, usage.others, self.machine.by_weight)
        return None if chosen is None else self._share(asked, chosen, usage)

    def _by_gpus(self, asked: Asked, free: Columns, by_weight: list[int]) -> list[int]:
        """The nodes of each weight, and of each number of free GPUs that count; more of them come first."""
        if not asked.gpus:
            return by_weight
        near = [
            sum(min(count, most) for count, (_, most) in zip(counts, asked.gpus, strict=True))
            for counts in zip(*(free[column] for column, _ in asked.gpus), strict=True)
        ]
        return [
            of_weight & self.machine.where(each == count for each in near)
            for of_weight in by_weight
            for count in sorted(set(near), reverse=True)
        ]

    def _choose_any(
        self, asked: Asked, room: dict[int, int], free: Columns, by_weight: list[int]
    ) -> dict[int, int] | None:
        """Choose of all nodes with room, or else leave out the smallest, more and more, until the rest do."""
        by_weight = self._by_gpus(asked, free, by_weight)
        chosen = self._choose(asked, room, by_weight, free)
        if chosen is not None or most_nodes(asked) >= len(room):
            return chosen
        sizes = {node: cpus + sum(free[each][node] for each, _ in asked.gpus) for node, cpus in room.items()}
        for smallest in range(1, max(sizes.values())):
            fewer = {node: cpus for node, cpus in room.items() if sizes[node] > smallest}
            if len(fewer) < max(asked.least_nodes, 1):
                return None
            if len(fewer) < len(room):
                room = fewer
                chosen = self._choose(asked, room, by_weight, free)
                if chosen is not None:
                    return chosen
        return None

    def whole(self, asked: Asked, nodes: int) -> Share | None:
        """Some of these idle nodes, which are given whole.

        ``select/linear`` takes no notice of weights among the nodes of which it chooses. These are the
        lightest ones, more and more of them until they are enough.
        """
        by_weight = self.machine.by_weight
        if not self.machine.mixes_weights:
            return self._whole(asked, nodes, by_weight)
        lightest = 0
        for of_weight in by_weight:
            lightest |= nodes & of_weight
            if lightest.bit_count() >= asked.wanted_nodes or lightest == nodes:
                found = self._whole(asked, lightest, [self.machine.all])
                if found is not None or lightest == nodes:
                    return found
        return None

    def _whole(self, asked: Asked, nodes: int, by_weight: list[int]) -> Share | None:
        if nodes.bit_count() < asked.least_nodes:
            return None
        if (
            self.machine.is_uniform
            and asked.cpus <= asked.least_nodes == asked.wanted_nodes
            and not (asked.required or asked.gpus or asked.contiguous or asked.least_loaded)
        ):
            chosen = fewest_neighbours(asked.least_nodes, nodes, by_weight)
            return Share(chosen, True)
        room = {node: self._room_of_idle(asked, node) for node in places(nodes)}
        found = self._choose_any(asked, room, self.machine.others, by_weight)
        return None if found is None else Share(sum(1 << node for node in found), True)

    def _room_of_idle(self, asked: Asked, node: int) -> int:
        """How many processors a job could use on a node that nobody uses."""
        if asked.unit == asked.cpus_per_task:
            return asked.capacities[node] * asked.cpus_per_task
        threads = self.machine.threads[node]
        of_core = asked.cpus_of_core
        return usable_cpus(self.machine.cpus[node], threads, asked.cpus_per_task, asked.own_cores, of_core)

    def _room(self, asked: Asked, nodes: int, usage: Usage) -> dict[int, int]:
        """How many processors a job could use on each node."""
        free, memory = usage.cpus, usage.memory
        room: dict[int, int] = {}
        per_task, least, most = asked.cpus_per_task, asked.least_cpus_of_node, asked.most_cpus_of_node
        of_cpu = asked.memory_per_cpu
        for node in places(nodes):
            threads, granule = self.machine.threads[node], self.machine.granules[node]
            cpus = usable_cpus(free[node], threads, per_task, asked.own_cores, asked.cpus_of_core)
            if cpus < least:
                continue
            if of_cpu:
                left = memory[node] - asked.memory_per_node
                if asked.own_cores and per_task == 1 < granule:
                    cpus = min(cpus, left // (of_cpu * threads))
                elif cpus * of_cpu > left:
                    cpus -= ceil_division(cpus * of_cpu - left, of_cpu * granule) * granule
            elif asked.memory_per_node:
                if asked.memory_per_node > memory[node]:
                    continue
            elif self.consumes_memory and memory[node] < self.machine.memory[node]:
                continue
            for column, of_node, of_task in asked.others:
                left = usage.others[column][node] - of_node
                cpus = min(cpus, left // of_task * per_task) if of_task else cpus * (left >= 0)
            for columns, _ in asked.of_job:
                cpus *= usage.others[columns[0]][node] > 0
            if asked.unit > 1:
                cpus -= cpus % asked.unit
            if most:
                cpus = min(cpus, most)
            if cpus >= least:
                room[node] = cpus
        return room

    def _choose(
        self, asked: Asked, room: dict[int, int], by_weight: Sequence[int], free: Columns
    ) -> dict[int, int] | None:
        """How many processors a job gets on which nodes; those of the first weight are taken first."""
        if len(room) < asked.least_nodes or sum(room.values()) < asked.cpus:
            return None
        taking = _Taking(asked, room, free, self.machine)
        nodes = 0
        for node in room:
            nodes |= 1 << node
        if asked.required & ~nodes:
            return None
        for node in places(asked.required):
            taking.take(node)
        for node in _around(asked.required, nodes, by_weight):
            taking.take_if_needed(node)
        for node in taking.chosen:
            nodes &= ~(1 << node)
        lighter = 0
        for of_weight in by_weight:
            if asked.least_loaded:
                taking.take_least_loaded(nodes & of_weight)
            elif asked.contiguous:
                lighter |= of_weight
                if taking.take_one_set(nodes & lighter):
                    break
            else:
                taking.take_neighbours(nodes & of_weight)
            if taking.is_enough:
                break
        is_enough = taking.cpus_left <= 0 and taking.least_nodes_left <= 0 and taking.have_gpus()
        return taking.chosen if is_enough else None

    def _share(self, asked: Asked, chosen: dict[int, int], usage: Usage) -> Share:
        """What a job takes of the nodes that it shares."""
        nodes, parts, others = 0, [], []
        if asked.cpus_per_task > 1 or sum(chosen.values()) > asked.cpus:
            chosen = dealt(asked, chosen, self.machine.threads)
        for node, cpus in chosen.items():
            threads, held = self.machine.threads[node], self._held(asked, node, cpus, usage.cpus[node])
            charged = held // threads * min(threads, asked.charged_of_core)
            if self.machine.granules[node] == 1:
                charged = cpus
            memory = asked.memory_per_cpu * charged + asked.memory_per_node
            if self.consumes_memory and not memory:
                memory = self.machine.memory[node]
            parts.append((node, held, memory))
            for column, of_node, of_task in asked.others:
                others.append((column, node, of_node + of_task * (cpus // asked.cpus_per_task)))
            nodes |= 1 << node
        for columns, amount in asked.of_job:
            for node, given in shared_out(amount, sorted(chosen), usage.others[columns[0]]):
                others += [(column, node, given) for column in columns]
        return Share(nodes, False, tuple(parts), tuple(others))

    def _held(self, asked: Asked, node: int, cpus: int, free: int) -> int:
        """How many processors of a node are taken for so many that a job uses: whole cores, or whole sockets.

        Tasks are dealt to the free sockets in turn, so a job has as many sockets as tasks, if they are free.
        """
        threads, granule = self.machine.threads[node], self.machine.granules[node]
        held = held_cpus(cpus, threads, asked.cpus_per_task, asked.own_cores, asked.cpus_of_core)
        count = ceil_division(held, granule)
        if granule > threads:
            count = max(count, min(ceil_division(cpus, asked.cpus_per_task), free // granule))
        return count * granule


class _Taking:
    """The nodes that are taken for a job one after another, and what is still missing."""

    def __init__(self, asked: Asked, room: dict[int, int], free: Columns, machine: Machine) -> None:
        self._asked = asked
        self._room = room
        self._machine = machine
        self._usable_cpus = self.cpus_left = asked.cpus
        self.nodes_left = asked.wanted_nodes
        self.least_nodes_left = asked.least_nodes
        """So many are missing at least, if a range of nodes was asked for."""
        self.most_nodes = most_nodes(asked)
        self._gpus = [free[columns[0]] for columns, _ in asked.of_job]
        self._gpus_left = [amount for _, amount in asked.of_job]
        self.chosen: dict[int, int] = {}
        """How many processors of which node."""

    @property
    def is_enough(self) -> bool:
        """Whether nothing is missing."""
        return self.nodes_left <= 0 and self.cpus_left <= 0 and self.have_gpus()

    def have_gpus(self, *nodes: int) -> bool:
        """Whether these nodes have the GPUs of the whole job that are missing."""
        return not self._gpus_left or all(
            left <= sum(free[node] for node in nodes)
            for left, free in zip(self._gpus_left, self._gpus, strict=True)
        )

    def take_neighbours(self, nodes: int) -> None:
        """Take nodes that follow one another, as long as something is missing."""
        sets = self._sets(nodes)
        while sets and self.most_nodes and not self.is_enough:
            self._take_set(sets.pop(_best(sets, self))[1])

    def take_one_set(self, nodes: int) -> bool:
        """Take nodes that follow one another, if one set of them is enough; whether it is."""
        sets = self._sets(nodes)
        best = _best(sets, self) if sets and self.most_nodes and not self.is_enough else None
        if best is None or not self.are_enough(*sets[best]):
            return False
        self._take_set(sets[best][1])
        return True

    def _sets(self, nodes: int) -> list[tuple[int, int]]:
        """Nodes that follow one another, and how many processors each such set has."""
        return [(sum([self._room[node] for node in places(part)]), part) for part in neighbours(nodes)]

    def _take_set(self, nodes: int) -> None:
        members, room = list(places(nodes)), self._room
        if self.nodes_left <= 1:
            enough = [node for node in members if room[node] >= self.cpus_left and self.have_gpus(node)]
            if enough:
                members = [min(enough, key=room.__getitem__)]
        for node in members:
            self.take_if_needed(node)

    def take_least_loaded(self, nodes: int) -> None:
        """Take the nodes of which the largest part is free, as long as something is missing.

        Slurm looks no further when it comes to a node with as many free processors as the last one had.
        """
        room, cpus, last = self._room, self._machine.cpus, -1
        left = list(places(nodes))
        while left and self.most_nodes and not self.is_enough:
            best = left[0]
            for node in left:
                if node == best or room[best] * cpus[node] < room[node] * cpus[best]:
                    best = node
                    if room[node] == last:
                        break
            last = room[best]
            self.take(best)
            left.remove(best)

    def are_enough(self, cpus: int, nodes: int) -> bool:
        """Whether these nodes with so many processors are all that is missing."""
        return (
            cpus >= self.cpus_left
            and nodes.bit_count() >= self.least_nodes_left
            and self.have_gpus(*places(nodes))
        )

    def take_if_needed(self, node: int) -> None:
        """Take a node if something is missing, and if it is enough where no other may follow."""
        if node in self.chosen or not self.most_nodes or self.is_enough:
            return
        if self.most_nodes > 1 or self._room[node] >= self.cpus_left:
            self.take(node)

    def take(self, node: int) -> None:
        """Take a node: all processors of use, but for a core or socket of each node that must follow."""
        cpus = self._room[node]
        if not self._asked.exclusive:
            threads, granule = self._machine.threads[node], self._machine.granules[node]
            of_core = min(threads, self._asked.cpus_of_core)
            of_following = of_core * max(granule // threads, 1)
            kept = self._usable_cpus - max(self.least_nodes_left - 1, 0) * of_following
            if cpus > kept:
                cpus = max(kept, self._asked.cpus_of_node)
        self.chosen[node] = cpus
        for kind, free in enumerate(self._gpus):
            self._gpus_left[kind] -= free[node]
        self.cpus_left -= cpus
        self._usable_cpus -= cpus
        self.nodes_left -= 1
        self.least_nodes_left -= 1
        self.most_nodes -= 1


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


def ceil_division(value: int, divisor: int) -> int:
    """A quotient, rounded up."""
    return -(-value // divisor)


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


def most_nodes(asked: Asked) -> int:
    """How many nodes a job may have: no more than tasks, unless it asks for them."""
    return min(asked.most_nodes, max(asked.tasks, asked.least_nodes))


def _around(required: int, nodes: int, by_weight: Sequence[int]) -> Iterator[int]:
    """The neighbours of nodes that a job must have: first those after the first of them, then those before.

    >>> list(_around(0b10000, 0b1110110, [0b11111111]))
    [5, 6]
    >>> list(_around(0b10000, 0b1011110, [0b11111111]))
    [3, 2, 1]
    """
    for of_weight in by_weight if required else ():
        for part in neighbours((nodes | required) & of_weight):
            if part & required:
                first = places(part & required)[0]
                yield from (node for node in places(part) if node > first)
                yield from (node for node in reversed(places(part)) if node < first)


def _best(sets: list[tuple[int, int]], taking: _Taking) -> int:
    """The smallest set of neighbours that is enough, or else the largest; of equal ones the first."""
    best, best_cpus, best_is_enough = 0, 0, False
    for place, (of_set, part) in enumerate(sets):
        enough = taking.are_enough(of_set, part)
        if (
            place == 0
            or (enough and not best_is_enough)
            or (enough and of_set < best_cpus)
            or (not enough and of_set > best_cpus)
        ):
            best, best_cpus, best_is_enough = place, of_set, enough
    return best


def fewest_neighbours(count: int, nodes: int, by_weight: list[int]) -> int:
    """So many of some nodes that have the same number of processors; there are enough.

    >>> bin(fewest_neighbours(2, 0b1101110111, [0b1111111111]))
    '0b1100000000'
    """
    chosen = 0
    for of_weight in by_weight:
        sets = list(neighbours(nodes & of_weight))
        while sets and count:
            best = sets[0]
            size = best.bit_count()
            enough = size >= count
            for part in sets[1:]:
                of_part = part.bit_count()
                if of_part >= count:
                    if not enough or of_part < size:
                        best, size, enough = part, of_part, True
                elif of_part > size:
                    best, size, enough = part, of_part, False
            sets.remove(best)
            if size <= count:
                chosen |= best
                count -= size
                continue
            for node in places(best):
                chosen |= 1 << node
                count -= 1
                if not count:
                    break
        if not count:
            break
    return chosen
