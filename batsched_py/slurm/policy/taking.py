"""What a job gets of its nodes: they are taken one by one, tasks and GPUs are dealt, hosts are chosen."""

from collections.abc import Iterator, Sequence

from batsched_py.ledger.free_nodes import joined
from batsched_py.protocol.hosts import HostSet
from batsched_py.slurm.policy.job import Asked
from batsched_py.slurm.policy.nodes import Machine, Share, neighbours, places

#: How much of each other resource of the machine is free, node by node.
Columns = Sequence[Sequence[int]]


class Taking:
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
        return [(self.room_of(part), part) for part in neighbours(nodes)]

    def room_of(self, nodes: int) -> int:
        """How many processors the job could use of some nodes."""
        return sum([self._room[node] for node in places(nodes)])

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


def most_nodes(asked: Asked) -> int:
    """How many nodes a job may have: no more than tasks, unless it asks for them."""
    return min(asked.most_nodes, max(asked.tasks, asked.least_nodes))


def _best(sets: list[tuple[int, int]], taking: Taking) -> int:
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


class Hosts:
    """The free hosts of each node; a host is a processor."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._free = [(1 << node.cpus) - 1 for node in machine.nodes]
        """Bits for the processors of each node."""

    def take(self, asked: Asked, share: Share) -> dict[int, int]:
        """Processors for a job, of each of its nodes, the first free ones."""
        if share.exclusive:
            counts = self._of_whole(asked, share.nodes)
        else:
            counts = {node: cpus for node, cpus, _ in share.parts}
        taken = {node: HostSet(self._free[node]).lowest(count).mask for node, count in counts.items()}
        for node, bits in taken.items():
            self._free[node] &= ~bits
        return taken

    def give(self, taken: dict[int, int]) -> None:
        """A job has left its processors."""
        for node, bits in taken.items():
            self._free[node] |= bits

    def hosts(self, asked: Asked, share: Share, taken: dict[int, int], size: int) -> HostSet:
        """The hosts that a job of some size runs on, of the processors that it has taken.

        It may have more of them than it uses: then whole tasks are spread over all nodes.
        """
        counts = {node: bits.bit_count() for node, bits in taken.items()}
        used = self._used(asked, share, counts)
        if sum(used.values()) > size:
            unit = max(asked.unit // asked.cpus_of_each, 1)
            whole = {node: count - count % unit for node, count in used.items()}
            used, unit = (whole, unit) if sum(whole.values()) >= size else (used, 1)
            while (more := sum(used.values()) - size) > 0:
                used[max(used, key=used.__getitem__)] -= min(unit, more)
        if used != counts:
            taken = {node: HostSet(bits).lowest(used[node]).mask for node, bits in taken.items()}
        firsts = sorted((self._machine.nodes[node].first, HostSet(bits)) for node, bits in taken.items())
        runs = ((first + begin, first + end) for first, bits in firsts for begin, end in bits.runs())
        return HostSet.of_runs(joined(runs))

    def _used(self, asked: Asked, share: Share, held: dict[int, int]) -> dict[int, int]:
        """How many processors of its nodes a job can use at most: those of its cores with memory for it."""
        used = dict(held)
        if self._machine.gives_single_cpus and asked.cpus_of_each == 1:
            return used
        for node, cpus, memory in share.parts:
            used[node] = asked.usable_cpus(cpus, self._machine.threads[node])
            if asked.memory_per_cpu:
                used[node] = min(used[node], (memory - asked.memory_per_node) // asked.memory_per_cpu)
        return {node: -(-count // asked.cpus_of_each) for node, count in used.items()}

    def _of_whole(self, asked: Asked, nodes: int) -> dict[int, int]:
        """How many processors of each whole node a job uses.

        Each node gets a task, and then as many as it can take. Tasks that are left then are cut in parts.
        """
        of_task, left = asked.cpus_per_task, asked.tasks
        tasks = dict.fromkeys(places(nodes), 0)
        for most in (1, left):
            for node in tasks:
                more = min(asked.capacities[node] - tasks[node], most, left)
                tasks[node] += more
                left -= more
        counts = {node: count * of_task for node, count in tasks.items()}
        missing = left * of_task
        for node in counts:
            more = min(self._machine.cpus[node] - counts[node], missing)
            counts[node] += more
            missing -= more
        return {node: count for node, count in counts.items() if count}
