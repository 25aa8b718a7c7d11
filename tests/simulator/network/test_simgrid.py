"""Tasks end when SimGrid says: random tasks on random platforms, where SimGrid is installed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec import Struct

from batsched_py.simulator.agenda import Agenda
from batsched_py.simulator.execution import Computing
from batsched_py.simulator.network.configuration import OF_OTHER_MODELS
from batsched_py.simulator.network.reading import NetworkReader
from batsched_py.simulator.network.solver import Demand
from batsched_py.simulator.network.tasks import FluidTasks
from batsched_py.simulator.platform import PlatformHost, PowerState
from batsched_py.simulator.simgrid_xml import declared_hosts, read_root
from tests.processes import PATIENCE
from tests.simulator.network.random_platforms import KINDS, platform

#: Debian's package is for Debian's own Python.
PYTHON = "/usr/bin/python3"
ORACLE = Path(__file__).with_name("simgrid_oracle.py")
#: Of properties that are neither yes nor no, by the last part of their names.
VALUES = {
    "bandwidth-factor": "0.5",
    "latency-factor": "7",
    "weight-S": "20000",
    "optim": "Full",
    "solver": "maxmin",
    "model": "default",
    "path": "/tmp",
    "tracing": "no",
}
SECONDS = 1e-9
"""How far apart ends may be."""


class Owner(Struct, eq=False):
    """Has one task."""

    number: int
    agenda_number: int = 0


class Player:
    """Plays random tasks with the model of this project."""

    def __init__(self, file: str) -> None:
        declared = declared_hosts(file)
        self.names = {host.name: number for number, host in enumerate(declared)}
        hosts = [
            PlatformHost(number, host.name, [PowerState(host.speeds[0])], cores=host.cores)
            for number, host in enumerate(declared)
        ]
        self.network = NetworkReader(read_root(file)).network(list(self.names), "", file)
        self.agenda = Agenda()
        computing = Computing(hosts, self.agenda, lambda execution, seconds: None, None)
        self.tasks = FluidTasks(computing, self.network, self.agenda, None)
        self.ends: list[float | None] = []

    def play(self, tasks: list[dict[str, Any]]) -> list[float | None]:
        self.ends = [None] * len(tasks)
        for number, task in enumerate(tasks):
            self.agenda.at(task["start"], self._begin, (Owner(number), task))
        while len(self.agenda):
            self.agenda.happen()
        return self.ends

    def _begin(self, begun: tuple[Owner, dict[str, Any]]) -> None:
        owner, task = begun
        hosts, demand = [self.names[name] for name in task["hosts"]], Demand()
        demand.flops += zip(hosts, task["flops"], strict=True)
        pairs = iter(task["bytes"])
        for source in hosts:
            for target in hosts:
                amount = next(pairs)
                if len(hosts) > 1:
                    demand.send(self.network, source, target, amount)
        if task["patience"] is not None:
            self.agenda.at(self.agenda.clock + task["patience"], self._kill, owner)
        self.tasks.begin(owner, demand, self._happen_in)

    def _happen_in(self, owner: Owner, seconds: float, then: Any) -> None:
        owner.agenda_number = self.agenda.at(self.agenda.clock + seconds, then or self._end, owner)

    def _end(self, owner: Owner) -> None:
        self.ends[owner.number] = self.agenda.clock
        if self.tasks.has(owner):
            self.tasks.stop(owner)

    def _kill(self, owner: Owner) -> None:
        if self.tasks.has(owner):
            self.agenda.cancel(owner.agenda_number)
            self.tasks.stop(owner)


def random_tasks(random: Random, hosts: list[str], connected: bool) -> list[dict[str, Any]]:
    """Tasks that begin one after another, and of which some are killed."""
    tasks, start = [], 0.0
    for _ in range(random.randint(1, 12)):
        start += random.choice([0.0, random.expovariate(1.0)])
        used = random.choices(hosts, k=random.randint(1, 4))
        if random.random() < 0.8:
            used = list(dict.fromkeys(used))
        computes, sends = random.choice(
            [(True, True), (True, False), (False, True)] if connected else [(True, False)]
        )
        flops = [random.choice([0.0, random.uniform(1e6, 2e9)]) if computes else 0.0 for _ in used]
        sent = [
            random.choice([0.0, random.uniform(1e5, 3e8)]) if sends else 0.0 for _ in range(len(used) ** 2)
        ]
        if random.random() < 0.8:
            sent[:: len(used) + 1] = [0.0] * len(used)
        patience = random.uniform(0.01, 5.0) if random.random() < 0.25 else None
        tasks.append({"start": start, "patience": patience, "hosts": used, "flops": flops, "bytes": sent})
    return tasks


def scenario(kind: str, seed: int, folder: Path) -> dict[str, Any]:
    random = Random(f"{kind} {seed}")
    text, hosts = platform(kind, random)
    file = folder / f"{kind}-{seed}.xml"
    file.write_text(text)
    return {"platform": str(file), "tasks": random_tasks(random, hosts, kind != "None")}


def ask_simgrid(scenarios: list[dict[str, Any]]) -> list[list[float | None]]:
    """What SimGrid says of all these scenarios."""
    answer = subprocess.run(
        [PYTHON, ORACLE],
        input=json.dumps(scenarios),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return [json.loads(line) for line in answer.stdout.splitlines()]


@pytest.fixture(scope="session")
def simgrid() -> None:
    """SimGrid is there."""
    found = Path(PYTHON).exists() and subprocess.run([PYTHON, "-c", "import simgrid"], capture_output=True)
    if not found or found.returncode:
        pytest.skip("needs SimGrid for Debian's Python (apt-get install python3-simgrid)")


def compare(kind: str, seeds: range, folder: Path) -> None:
    """Compare all ends, but for scenarios with fat pipes in which rates grow for thousands of rounds."""
    scenarios: dict[int, dict[str, Any]] = {}
    ends: dict[int, list[float | None]] = {}
    for seed in seeds:
        drawn = scenario(kind, seed, folder)
        player = Player(drawn["platform"])
        played = player.play(drawn["tasks"])
        if not player.tasks.unsettled:
            scenarios[seed], ends[seed] = drawn, played
    assert len(ends) >= len(seeds) / 2
    for (seed, ours), theirs in zip(ends.items(), ask_simgrid(list(scenarios.values())), strict=True):
        assert [end is None for end in ours] == [end is None for end in theirs], (kind, seed)
        for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            if mine is not None and other is not None:
                assert abs(mine - other) <= SECONDS, (kind, seed, number, mine, other)


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_end_when_they_do_in_simgrid(kind: str, simgrid: None, tmp_path: Path) -> None:
    compare(kind, range(2), tmp_path)


def test_properties_of_other_models_have_no_effect_in_simgrid(simgrid: None, tmp_path: Path) -> None:
    """But one of this model has: the tasks would notice."""
    drawn = scenario("Floyd", 1, tmp_path)
    given = [("network/TCP-gamma", "1000")]
    given += [
        (name, value)
        for name in sorted(OF_OTHER_MODELS - {"network/coordinates"})  # which no version knows any more
        for value in [VALUES.get(name.rpartition("/")[2], "yes")]
    ]
    text = Path(drawn["platform"]).read_text()
    scenarios = [drawn]
    for place, (name, value) in enumerate(given):
        file = tmp_path / f"{place}.xml"
        config = f'<config><prop id="{name}" value="{value}"/></config>\n'
        file.write_text(text.replace("<zone", f"{config}<zone", 1))
        scenarios.append({**drawn, "platform": str(file)})
    usual, other, *same = ask_simgrid(scenarios)
    assert other != usual
    assert same == [usual] * len(same)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_tasks_end_when_they_do_in_simgrid(kind: str, simgrid: None, tmp_path: Path) -> None:
    compare(kind, range(2, 42), tmp_path)
