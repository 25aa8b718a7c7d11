"""The table in docs/batsim5.md says of every event what becomes of it, and that is what does."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.errors import ProtocolError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM5
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.simulator.setup import Setup
from tests.conftest import ROOT
from tests.drive import platform, workload

#: The events that Batsim 5's documentation and PyBatsim 4 know.
DECISIONS = """EDCHello ExecuteJob RejectJob KillJobs RegisterProfile RegisterJob FinishRegistration
    CallMeLater ChangeHostsPState StopCallMeLater CreateProbe StopProbe ResetProbe TriggerProbe
    ForceSimulationStop TurnOnOffHosts""".split()
HAPPENINGS = """SimulationBegins SimulationEnds JobSubmitted JobCompleted JobsKilled RequestedCall
    AllStaticJobsHaveBeenSubmitted AllStaticExternalEventsHaveBeenInjected ExternalEventOccurred
    HostsPStateChanged HostsTurnedOnOff ProbeDataEmitted SimulationError""".split()

ROW = re.compile(r"\| `(\w+)Event` \| (decision process|Batsim) \| (translated|refused|kept)\b")


def told() -> dict[str, tuple[str, str]]:
    """Who says each event and what becomes of it, as the document has it."""
    text = Path(ROOT / "docs" / "batsim5.md").read_text()
    return {name: (side, fate) for name, side, fate in ROW.findall(text)}


def message(name: str) -> bytes:
    event = {"timestamp": 0, "event_type": f"{name}Event", "event": {"anything": 1}}
    return json.dumps({"now": 0, "events": [event]}).encode()


def test_every_event_is_in_the_table() -> None:
    sides = {name: side for name, (side, _) in told().items()}
    assert sides == dict.fromkeys(DECISIONS, "decision process") | dict.fromkeys(HAPPENINGS, "Batsim")


def is_known(name: str, said_by: str) -> bool:
    """Whether the codec has a shape for it."""
    codec = BATSIM5.codec()
    decode = codec.decode_request if said_by == "Batsim" else codec.decode_reply
    try:
        (event,) = decode(message(name)).events
    except ProtocolError:
        return True
    return not isinstance(event, ev.Unknown)


@pytest.mark.parametrize("name", [*DECISIONS[1:], *HAPPENINGS])
def test_what_is_translated_is_known_and_the_rest_is_not(name: str) -> None:
    side, fate = told()[name]
    assert is_known(name, side) == (fate == "translated")


@pytest.mark.parametrize("name", [name for name, (_, fate) in told().items() if fate == "refused"])
def test_what_is_refused_is_refused_by_name(name: str) -> None:
    batsim = Batsim(Setup(platform(), [workload({"id": "1"})]))
    batsim.begin()
    with pytest.raises(RuleBroken, match=f"^{name}Event at 0.000000: Batsim does not know such a decision"):
        batsim.advance(BATSIM5.codec().decode_reply(message(name)))


class Listener(Scheduler):
    name = "listener"

    def __init__(self) -> None:
        self.heard: list[ev.Event] = []

    def schedule(self, cluster: Cluster) -> None:
        self.heard += cluster.events


@pytest.mark.parametrize("name", [name for name, (_, fate) in told().items() if fate == "kept"])
def test_what_is_kept_reaches_the_policy_and_survives(name: str) -> None:
    codec, policy = BATSIM5.codec(), Listener()
    process = DecisionProcess(policy)
    process.react(Batsim(Setup(platform(), [workload({"id": "1"})])).begin())
    request = codec.decode_request(message(name))
    process.react(request)
    assert policy.heard[-1] == ev.Unknown(f"{name}Event", {"anything": 1})
    assert json.loads(codec.encode_request(request).rstrip(b"\0")) == json.loads(message(name))
