"""Random decisions: those that keep the rules come to an end, one that breaks a rule is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from batsched_py.engines.python import Batsim, simulate
from batsched_py.errors import RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.setup import Setup
from tests.drive import platform, workload
from tests.simulator.player import PROFILES, QUARTER, Player

HOSTS = 4


class Scenario:
    """A machine and a workload, with what the decision process may do to them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.outages = self.random.random() < 0.3
        self.dynamic = self.random.random() < 0.5
        profiles = sorted(PROFILES)
        self.jobs = [
            {
                "id": f"j{number}",
                "subtime": self.random.randint(0, 200) * QUARTER,
                "profile": (profile := self.random.choice(profiles)),
                "res": 2 if profile == "uneven" else self.random.randint(1, HOSTS),
                "walltime": self.random.choice([-1, 1.5, 8, 50]),
            }
            for number in range(self.random.randint(1, 8))
        ]

    def batsim(self, prefix: Path | None = None) -> Batsim:
        """The Batsim that simulates it."""
        return Batsim(
            Setup(
                platform(HOSTS),
                [workload(*self.jobs, profiles=PROFILES)],
                ev.Settings(dynamic_jobs=self.dynamic),
                energy=True,
                events=[self._outages()] if self.outages else (),
            ),
            Outputs(None if prefix is None else str(prefix), machine_states=True),
        )

    def _outages(self) -> list[ev.Event]:
        """Each host goes at some time and comes back at a later one."""
        events: list[ev.Event] = []
        for host in range(HOSTS):
            hosts, time = HostSet.of([host]), QUARTER * (20 + 40 * host)
            events += [ev.HostsUnavailable(hosts, time=time), ev.HostsAvailable(hosts, time=3 * time)]
        return events

    def player(self) -> Player:
        """Who decides. Hosts that go and come back are neither put to sleep nor promised for later."""
        sizes = {f"w0!{job['id']}": (int(str(job["res"])), str(job["profile"])) for job in self.jobs}
        return Player(self.random, sizes, HOSTS, not self.outages, self.dynamic, late=not self.outages)


def breaches(player: Player) -> list[ev.Event]:
    """Decisions that break a rule in the player's situation, whatever it decides beside them."""
    broken: list[ev.Event] = [
        ev.ExecuteJob("w0!nobody", HostSet.of([0])),
        ev.RejectJob("w0!nobody"),
        ev.KillJobs([]),
        ev.KillJobs(["w0!nobody"]),
        ev.CallMeLater(player.now),
        ev.CallMeLater(player.now - 1),
        ev.SetHostsState(HostSet(), 0),
        ev.SetHostsState(HostSet.of([HOSTS]), 0),
        ev.SetHostsState(HostSet.of([0]), 9),
        ev.SetJobMetadata("w0!nobody", "note"),
        ev.TellJob("w0!nobody", "hello"),
        ev.RegisterProfile("w0", "nap", BATSIM4.read_profile(PROFILES["nap"])),
        ev.Unknown("DANCE", {}),
        ev.RejectJob("w0!nobody", time=player.now + 1),
    ]
    for job in player.waiting:
        broken += [
            ev.ExecuteJob(job, HostSet()),
            ev.ExecuteJob(job, HostSet.range(HOSTS + 1)),
            ev.ExecuteJob(job, HostSet.of([HOSTS + 3])),
            ev.KillJobs([job]),
            ev.SetJobMetadata(job, '"'),
        ]
    sure_to_run = player.running if player.now == player.asked else {}
    for job, (hosts, _) in sure_to_run.items():
        broken += [
            ev.ExecuteJob(job, HostSet.of(player.idle)),
            ev.RejectJob(job),
            ev.SetHostsState(hosts, 2),
        ]
        broken += [ev.ExecuteJob(other, hosts) for other in player.waiting]
    broken += [ev.SetHostsState(HostSet.of([host]), 2) for host in player.sleeping]
    return broken


class Breaker:
    """Decides like a player, but at one request also something that breaks a rule."""

    def __init__(self, player: Player, at: int, choose: Callable[[list[ev.Event]], ev.Event]) -> None:
        self._player = player
        self._at = at
        self._choose = choose
        self.breach: ev.Event | None = None

    def react(self, request: ev.Message) -> ev.Message:
        reply = self._player.react(request)
        self._at -= 1
        if self._at < 0 and not isinstance(request.events[-1], ev.SimulationEnds):
            self.breach = self._choose(breaches(self._player))
            self.breach.time = max(self.breach.time, reply.now)
            reply.events.append(self.breach)
        return reply


@given(st.integers(0, 2**32))
def test_what_keeps_the_rules_comes_to_an_end(seed: int) -> None:
    scenario = Scenario(seed)
    player = scenario.player()
    results = simulate(scenario.batsim(), player)
    assert results.nb_jobs >= len(scenario.jobs)
    assert not player.waiting and not player.running


@given(st.integers(0, 2**32))
def test_energy_is_the_sum_over_hosts_of_the_integral_of_power(seed: int) -> None:
    scenario = Scenario(seed)
    player = scenario.player()
    simulate(scenario.batsim(), player)
    for told, added_up in player.answers:
        assert told == pytest.approx(added_up, rel=1e-9)


@given(st.integers(0, 2**32), st.integers(0, 12), st.randoms(use_true_random=False))
def test_what_breaks_a_rule_is_named(seed: int, request_number: int, random: Random) -> None:
    scenario = Scenario(seed)
    breaker = Breaker(scenario.player(), request_number, random.choice)
    try:
        simulate(scenario.batsim(), breaker)
    except RuleBroken as broken:
        assert breaker.breach is not None
        name = (
            breaker.breach.type if isinstance(breaker.breach, ev.Unknown) else type(breaker.breach).__name__
        )
        assert str(broken).startswith(name)
    else:
        assert breaker.breach is None


@given(seed=st.integers(0, 2**32))
def test_the_same_decisions_give_the_same_bytes(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    scenario = Scenario(seed)
    player = scenario.player()
    simulate(scenario.batsim(), player)
    folders = [tmp_path_factory.mktemp("bytes") for _ in range(2)]
    said = []
    for folder in folders:
        batsim = scenario.batsim(folder / "out")
        request: ev.Message | None = batsim.begin()
        texts = []
        for reply in player.replies:
            assert request is not None
            texts.append(BATSIM4.codec().encode_request(request))
            request = batsim.advance(reply)
        assert request is None
        said.append(texts)
    assert said[0] == said[1]
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0] == files[1]
    assert len(files[0]) == 5
