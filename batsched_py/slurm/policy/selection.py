"""Which nodes a job gets, as ``select/cons_tres`` chooses them.

The nodes that have room for the job are cut into sets of neighbours. Of those with the least weight, Slurm
takes the smallest set that is large enough, or else the largest, and goes on until the job has all it asks
for. In a set it begins with the first node; for the last node of a job it takes the one with the fewest
processors that are enough. Of nodes with the same weight, those with more free GPUs come first, if the job
needs GPUs.
"""

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from batsched_py.slurm.policy.job import Asked
from batsched_py.slurm.policy.nodes import Machine, Share, Usage, neighbours, places
from batsched_py.slurm.policy.taking import Columns, Taking, dealt, most_nodes, shared_out
from batsched_py.slurm.policy.topology import Switches, take_by_switches


class Selector(Struct, frozen=True):
    """Chooses nodes of one machine."""

    machine: Machine
    consumes_memory: bool = False

    def select(self, asked: Asked, nodes: int, usage: Usage) -> Share | None:
        """The nodes that a job gets, if only these may be taken."""
        if asked.exclusive:
            return self.whole(asked, nodes & asked.nodes & usage.idle)
        room = self._room(asked, nodes & asked.nodes & ~usage.exclusive, usage)
        chosen = self._choose_any(asked, room, usage.others, self.machine.by_weight)
        return None if chosen is None else self.share(asked, chosen, usage)

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
        chosen = self._choose_some(asked, room, free, by_weight)
        switches = self.machine.switches
        if chosen is None or switches is None or not asked.most_switches:
            return chosen
        return chosen if switches.nb_leaves(bits(chosen)) <= asked.most_switches else None

    def _choose_some(
        self, asked: Asked, room: dict[int, int], free: Columns, by_weight: list[int]
    ) -> dict[int, int] | None:
        """The same, wherever the nodes are."""
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
            and self.machine.switches is None
            and asked.cpus <= asked.least_nodes == asked.wanted_nodes
            and not (asked.required or asked.gpus or asked.contiguous or asked.least_loaded)
        ):
            chosen = fewest_neighbours(asked.least_nodes, nodes, by_weight)
            return Share(chosen, True)
        cpus, threads, of_task = self.machine.cpus, self.machine.threads, asked.cpus_per_task
        if asked.unit == of_task:
            room = {node: asked.capacities[node] * of_task for node in places(nodes)}
        else:
            room = {node: asked.usable_cpus(cpus[node], threads[node]) for node in places(nodes)}
        found = self._choose_any(asked, room, self.machine.others, by_weight)
        return None if found is None else Share(bits(found), True)

    def _room(self, asked: Asked, nodes: int, usage: Usage) -> dict[int, int]:
        """How many processors a job could use on each node."""
        free, memory = usage.cpus, usage.memory
        room: dict[int, int] = {}
        per_task, least, most = asked.cpus_per_task, asked.least_cpus_of_node, asked.most_cpus_of_node
        of_cpu = asked.memory_per_cpu
        for node in places(nodes):
            threads, granule = self.machine.threads[node], self.machine.granules[node]
            cpus = asked.usable_cpus(free[node], threads)
            if cpus < least:
                continue
            if of_cpu:
                left = memory[node] - asked.memory_per_node
                if asked.own_cores and per_task == 1 < granule:
                    cpus = min(cpus, left // (of_cpu * threads))
                elif cpus * of_cpu > left:
                    cpus -= -(-(cpus * of_cpu - left) // (of_cpu * granule)) * granule
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
        taking = Taking(asked, room, free, self.machine)
        nodes = bits(room)
        if asked.required & ~nodes:
            return None
        for node in places(asked.required):
            taking.take(node)
        if (switches := self._switches_for(asked)) is not None:
            if not take_by_switches(taking, nodes, asked.required, by_weight, switches):
                return None
            by_weight = ()
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

    def _switches_for(self, asked: Asked) -> Switches | None:
        """The switches if they count for a job."""
        counts = asked.most_switches or not self.machine.switches_if_asked
        return self.machine.switches if counts and not (asked.least_loaded or asked.contiguous) else None

    def share(self, asked: Asked, chosen: dict[int, int], usage: Usage) -> Share:
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
        count = -(-asked.held_cpus(cpus, threads) // granule)
        if granule > threads:
            count = max(count, min(-(-cpus // asked.cpus_per_task), free // granule))
        return count * granule


def bits(nodes: Iterable[int]) -> int:
    """Some nodes as a set."""
    return sum(1 << node for node in nodes)


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


def fewest_neighbours(count: int, nodes: int, by_weight: list[int]) -> int:
    """So many of some nodes that have the same number of processors; there are enough.

    >>> bin(fewest_neighbours(2, 0b1101110111, [0b1111111111]))
    '0b1100000000'
    """
    chosen = 0
    for of_weight in by_weight:
        sets = list(neighbours(nodes & of_weight))
        while sets and count:
            enough = [part for part in sets if part.bit_count() >= count]
            best = min(enough, key=int.bit_count) if enough else max(sets, key=int.bit_count)
            sets.remove(best)
            chosen |= sum(1 << node for node in places(best)[:count]) if enough else best
            count = 0 if enough else count - best.bit_count()
        if not count:
            break
    return chosen
