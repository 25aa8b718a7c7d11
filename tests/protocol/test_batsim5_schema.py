"""All that our two sides say in protocol 5 passes a strict reading of its schema."""

from __future__ import annotations

from collections import Counter

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM5
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers import Cluster
from batsched_py.simulator.setup import Setup
from tests.drive import GIGA, computing, platform, workload
from tests.feedback import Arbitrary, Record, workload_of
from tests.protocol.batsim5_schema import UNIONS, check
from tests.users.behaviours import behaviour

PROFILES = {
    "nap": {"type": "delay", "delay": 7.75},
    "work": computing(4.25 * GIGA),
    "total": {"type": "parallel_homogeneous_total", "cpu": 9 * GIGA, "com": 0},
    "uneven": {"type": "parallel", "cpu": [3 * GIGA, GIGA], "com": [0] * 4},
    "both": {"type": "composed", "seq": ["work", "nap"], "repeat": 3},
    "fails": {"type": "delay", "delay": 2.5, "ret": 1},
    "reads": {"type": "parallel_homogeneous_pfs", "bytes_to_read": 0, "bytes_to_write": 0},
}


class Restless(Arbitrary):
    """Also lets hosts sleep, wake up and change their speed, and wants to be called at odd times."""

    def begin(self, cluster: Cluster) -> None:
        cluster.switch(HostSet.parse("7"), 2)
        cluster.switch(HostSet.parse("6"), 1)

    def schedule(self, cluster: Cluster) -> None:
        super().schedule(cluster)
        if 7 in cluster.asleep and not cluster.switching:
            cluster.switch(HostSet.parse("7"), 0)
        if cluster.now < 5:
            cluster.call_at(cluster.now + 0.333337)


class Checked:
    """A decision process behind texts, each of which is read strictly."""

    def __init__(self, process: DecisionProcess) -> None:
        self.said: Counter[str] = Counter()
        self._process = process
        self._simulates, self._decides = BATSIM5.codec(), BATSIM5.codec()
        self.settings = self._simulates.open(self._greet, "a text")

    def _greet(self, said: bytes) -> bytes:
        needs = ev.Settings(dynamic_jobs=True, profile_reuse=True, forward_profiles=True)
        greeting = self._decides.answer(said, needs)
        assert greeting is not None
        self._count(greeting[4:], "Reply")
        return greeting.replace(b"false", b"true").replace(
            b'"acknowledge_dynamic_jobs":true', b'"acknowledge_dynamic_jobs":false'
        )

    def react(self, request: ev.Message) -> ev.Message:
        text = self._simulates.encode_request(request)
        self._count(text, "Request")
        reply = self._decides.encode_reply(self._process.react(self._decides.decode_request(text)))
        self._count(reply, "Reply")
        return self._simulates.decode_reply(reply)

    def _count(self, text: bytes, side: str) -> None:
        self.said.update(event["event_type"] for event in check(text, side)["events"])


def test_our_batsim_and_our_decision_process_keep_to_the_schema() -> None:
    names = list(PROFILES)
    jobs = workload(
        *(
            {
                "id": str(number),
                "subtime": number / 7,
                "res": 2,
                "profile": names[number % len(names)],
                "walltime": 5 if number % 2 else -1,
            }
            for number in range(1, 60)
        ),
        profiles=PROFILES,
    )
    events: list[ev.Event] = [ev.ExternalEvent({"type": "generic", "data": "a text"}, "ee0!0", time=2.0)]
    static = Checked(DecisionProcess(Restless()))
    assert static.settings is not None
    hosts = platform(8, storages=1)
    settings = ev.Settings(forward_profiles=True, forward_unknown_events=True)
    simulate(Batsim(Setup(hosts, [jobs], settings, energy=True, events=[events])), static)
    log = [Record(number % 3, float(number), 3.5, 1 + number % 2) for number in range(40)]
    dynamic = Checked(DecisionProcess(Arbitrary(), behaviour("patience(rigid)").users(workload_of(log))))
    assert dynamic.settings is not None
    simulate(Batsim(Setup(platform(4), [], dynamic.settings)), dynamic)
    said = static.said + dynamic.said
    assert set(said) == {*UNIONS["Happening"].split(), *UNIONS["Decision"].split()}
