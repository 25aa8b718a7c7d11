"""The JSON of Batsim 5: what was recorded survives, every event goes there and back, the rest is refused."""

from __future__ import annotations

import json
from functools import partial
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from msgspec.structs import replace

from batsched_py.errors import ProtocolError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim5.codec import Batsim5Codec
from batsched_py.protocol.dialect import Codec
from batsched_py.protocol.dialects import BATSIM4, BATSIM5, spoken_in
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, HostState, Job, JobState
from batsched_py.protocol.profiles import (
    Composed,
    DataStaging,
    Delay,
    FileSystemAccess,
    Homogeneous,
    HomogeneousTotal,
    MpiTrace,
    Parallel,
    Profile,
    UsageTrace,
)
from batsched_py.wire.conversation import read_conversation
from tests.conftest import SHARED
from tests.protocol.test_batsim4 import jsonable

SNAPSHOT = sorted((SHARED / "golden" / "batsim5-snapshot").glob("*.jsonl"))


@pytest.mark.usefixtures("shared")
def test_there_are_recordings() -> None:
    assert len(SNAPSHOT) == 4


@pytest.mark.parametrize("path", SNAPSHOT, ids=lambda path: path.stem)
def test_the_conversations_of_the_snapshot_survive(path: Any) -> None:
    decides, simulates = Batsim5Codec(), Batsim5Codec()
    messages = 0
    for exchange in read_conversation(path):
        assert exchange.reply is not None
        if not exchange.request.startswith(b"{"):
            continue
        request = decides.encode_request(decides.decode_request(exchange.request))
        assert parsed(request) == rounded(parsed(exchange.request))
        assert request[-1:] == exchange.request[-1:] == b"\0"
        assert parsed(simulates.encode_reply(simulates.decode_reply(exchange.reply))) == parsed(
            exchange.reply
        )
        messages += 2
    assert messages > 30


def parsed(text: bytes) -> Any:
    return json.loads(text.removesuffix(b"\0"))


def rounded(message: Any) -> Any:
    """A message of Batsim with times as they are read."""
    for event in message["events"]:
        event["timestamp"] = round(event["timestamp"], 6)
        if "submission_time" in event["event"]:
            event["event"]["submission_time"] = round(event["event"]["submission_time"], 6)
    return message | {"now": round(message["now"], 6)}


def test_the_first_words_tell_which_batsim_it_is() -> None:
    assert spoken_in(b"\x05\0\0\0hello") is BATSIM5
    assert spoken_in(b"\0\0\0\0") is BATSIM5
    assert spoken_in(b"\x7b\0\0\0" + b"x" * 0x7B) is BATSIM5
    assert spoken_in(b"\2\0\0\0\0\0\0\0") is BATSIM5
    for other in (b'{"now":0,"events":[]}', b"", b"\x05\0\0\0hell", b"nonsense", b"\xff" * 9):
        assert spoken_in(other) is BATSIM4


# --- there and back ------------------------------------------------------------------------------

names = st.text(st.characters(codec="utf-8", exclude_characters="!"), min_size=1, max_size=8)
times = st.integers(0, 10**13).map(lambda ticks: ticks / 10**6)
amounts = st.floats(0, 1e15) | st.integers(0, 2**53)
host_sets = st.sets(st.integers(0, 300), min_size=1).map(HostSet.of)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(names.map(lambda name: f"x{name}"), values, max_size=3)
settings = st.builds(
    ev.Settings,
    dynamic_jobs=st.booleans(),
    acknowledge_dynamic_jobs=st.booleans(),
    profile_reuse=st.booleans(),
    forward_profiles=st.booleans(),
    scheduler_config=st.text(max_size=20),
)


@st.composite
def profiles(draw: st.DrawFn) -> Profile:
    count = draw(st.integers(1, 3))
    numbers = partial(st.lists, amounts)
    made = draw(
        st.one_of(
            st.builds(Delay, seconds=amounts),
            st.builds(Homogeneous, work=amounts, bytes_sent=amounts),
            st.builds(HomogeneousTotal, work=amounts, bytes_sent=amounts),
            st.builds(
                Parallel,
                work=numbers(min_size=count, max_size=count).map(tuple),
                bytes_sent=numbers(min_size=count**2, max_size=count**2).map(tuple),
            ),
            st.builds(
                Composed,
                sequence=st.lists(names, min_size=1, max_size=3).map(tuple),
                repeat=st.integers(1, 9),
            ),
            st.builds(FileSystemAccess, bytes_read=amounts, bytes_written=amounts, storage=names),
            st.builds(DataStaging, bytes_moved=amounts, source=names, target=names),
            st.builds(MpiTrace, file=names),
            st.builds(UsageTrace, file=names),
        )
    )
    extra = draw(st.none() | objects.filter(bool))
    return msgspec.structs.replace(made, return_code=draw(st.integers(0, 300)), extra=extra)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    walltime = draw(times.filter(bool) | st.just(inf))
    extra = draw(objects | st.just({"extra_data": "a text"}) | st.just({"user": "ann", "rigid": False}))
    return Job(
        f"{draw(names)}!{draw(names)}", draw(times), draw(st.integers(0, 10**6)), walltime, draw(names), extra
    )


@st.composite
def progresses(draw: st.DrawFn) -> ev.Progress:
    node = ev.Progress(draw(names), draw(st.floats(0, 1)))
    for _ in range(draw(st.integers(0, 2))):
        node = ev.Progress(draw(names), task_index=draw(st.integers(-1, 99)), task=node)
    return node


@st.composite
def begins(draw: st.DrawFn) -> ev.SimulationBegins:
    texts = st.dictionaries(names, names, max_size=2)
    hosts = [
        Host(number, draw(names), properties=draw(texts), zone_properties=draw(texts))
        for number in range(draw(st.integers(1, 3)))
    ]
    storage = [Host(len(hosts), draw(names))] if draw(st.booleans()) else []
    known = draw(
        st.dictionaries(names, st.dictionaries(names, profiles(), min_size=1, max_size=2), max_size=2)
    )
    speeds = draw(st.none() | st.lists(amounts.map(float), min_size=len(hosts), max_size=len(hosts)))
    return ev.SimulationBegins(hosts, storage, draw(settings), draw(texts), known, speeds)


ids = st.builds("{}!{}".format, names, names)
HAPPENINGS: dict[type[ev.Event], st.SearchStrategy[Any]] = {
    ev.SimulationBegins: begins(),
    ev.SimulationEnds: st.builds(ev.SimulationEnds),
    ev.JobSubmitted: st.builds(ev.JobSubmitted, jobs(), st.none() | profiles()),
    ev.JobCompleted: st.builds(
        ev.JobCompleted, ids, st.sampled_from(JobState), host_sets, st.integers(-9, 300)
    ),
    ev.JobsKilled: st.builds(
        ev.JobsKilled, st.lists(ids, max_size=3), st.dictionaries(ids, progresses(), max_size=2)
    ),
    ev.HostsStateChanged: st.builds(ev.HostsStateChanged, host_sets, st.integers(0, 99)),
    ev.HostsPStateChanged: st.builds(ev.HostsPStateChanged, host_sets, st.integers(0, 99)),
    ev.RequestedCall: st.builds(ev.RequestedCall),
    ev.NoMoreStaticJobs: st.builds(ev.NoMoreStaticJobs),
    ev.NoMoreExternalEvents: st.builds(ev.NoMoreExternalEvents),
    ev.HostsUnavailable: st.builds(ev.HostsUnavailable, host_sets),
    ev.HostsAvailable: st.builds(ev.HostsAvailable, host_sets),
    ev.ExternalEvent: st.builds(ev.ExternalEvent, objects.map(lambda data: {"type": "weather"} | data)),
    ev.Unknown: st.builds(ev.Unknown, names.map(lambda name: f"x{name}"), values),
}
DECISIONS: dict[type[ev.Event], st.SearchStrategy[Any]] = {
    ev.ExecuteJob: st.builds(
        ev.ExecuteJob,
        ids,
        host_sets,
        st.none() | st.lists(st.integers(0, 99), max_size=4),
        st.none() | st.dictionaries(names, st.integers(0, 99), min_size=1, max_size=2),
    ),
    ev.RejectJob: st.builds(ev.RejectJob, ids),
    ev.KillJobs: st.builds(ev.KillJobs, st.lists(ids, max_size=3)),
    ev.CallMeLater: st.builds(ev.CallMeLater, st.integers(10**9, 10**12).map(lambda ms: ms / 1000)),
    ev.RegisterProfile: st.builds(ev.RegisterProfile, names, names, profiles()),
    ev.RegisterJob: st.builds(ev.RegisterJob, jobs()),
    ev.RegistrationFinished: st.builds(ev.RegistrationFinished),
    ev.CallMeAtOnce: st.builds(ev.CallMeAtOnce),
    ev.SetHostsState: st.builds(ev.SetHostsState, host_sets, st.integers(0, 99)),
    ev.ChangeHostsPState: st.builds(ev.ChangeHostsPState, host_sets, st.integers(0, 99)),
    ev.Unknown: st.builds(ev.Unknown, names.map(lambda name: f"x{name}"), values),
}
#: What Batsim 5 has no words for.
UNSPEAKABLE: list[ev.Event] = [
    ev.EnergyAnswer(1.0),
    ev.WaitingTimeQuery(Job("w0!1", 0.0, 1, inf, "p")),
    ev.JobSaid("w0!1", {}),
    ev.ContinueRegistration(),
    ev.ChangeJobState("w0!1", JobState.KILLED),
    ev.QueryEnergy(),
    ev.WaitingTimeAnswer("w0!1", 1.0),
    ev.TellJob("w0!1", "hello"),
]


def test_the_kinds_of_events_are_all_tested() -> None:
    kinds = {cls for cls in vars(ev).values() if isinstance(cls, type) and issubclass(cls, ev.Event)}
    assert {*HAPPENINGS, *DECISIONS, *map(type, UNSPEAKABLE)} == kinds - {ev.Event, ev.SetJobMetadata}


def opened(asked: ev.Settings) -> tuple[Codec, Codec]:
    """The codecs of a simulator and of a decision process that asks for this, after their handshake."""
    simulates, decides = BATSIM5.codec(), BATSIM5.codec()

    def answer(said: bytes) -> bytes:
        greeting = decides.answer(said, asked)
        assert greeting is not None
        return greeting

    simulates.open(answer, asked.scheduler_config)
    return simulates, decides


def sleepers(pstate: int) -> ev.SimulationBegins:
    """The beginning of a simulation whose hosts sleep in a power state."""
    ways = (pstate + 1, pstate + 2)
    properties = {"sleep_pstates": f"{pstate}:{ways[0]}:{ways[1]}"}
    hosts = [Host(number, "h", properties=properties, sleep_pstates={pstate: ways}) for number in range(301)]
    return ev.SimulationBegins(hosts)


def there_and_back(event: ev.Event, simulates: Codec, decides: Codec) -> ev.Message:
    """What the other side understands."""
    message = ev.Message(event.time, [event])
    if type(event) in HAPPENINGS and not isinstance(event, ev.Unknown):
        return decides.decode_request(simulates.encode_request(message))
    return simulates.decode_reply(decides.encode_reply(message))


@effort(max_examples=60)
@given(
    st.one_of(*HAPPENINGS.values(), *DECISIONS.values()),
    st.integers(0, 10**12).map(lambda ticks: ticks / 10**6),
    st.dictionaries(names.map(lambda name: f"y{name}"), values, max_size=2),
)
def test_every_event_is_understood_as_it_was_meant(event: ev.Event, time: float, extra: Any) -> None:
    event.time = time
    if not isinstance(event, ev.Unknown):
        event.extra = extra or None
    if isinstance(event, ev.RegisterJob):
        event.job = replace(event.job, submission_time=time)
    simulates, decides = BATSIM5.codec(), BATSIM5.codec()
    if isinstance(event, ev.SimulationBegins):
        config = event.settings.scheduler_config.encode()
        decides.answer(len(config).to_bytes(4, "little") + config, event.settings)
    if isinstance(event, ev.JobCompleted):
        start = ev.ExecuteJob(event.job_id, event.hosts)
        there_and_back(start, simulates, decides)
    if isinstance(event, ev.CallMeLater):
        event.time = min(time, event.at - 1)
    if type(event) is ev.SetHostsState:
        there_and_back(sleepers(event.pstate), simulates, decides)
    if isinstance(event, ev.CallMeAtOnce):
        event.extra = None
    understood = there_and_back(event, simulates, decides)
    assert jsonable(understood) == jsonable(ev.Message(event.time, [event]))


#: What Batsim 4 has no words for.
OF_BATSIM5 = (ev.HostsPStateChanged, ev.ChangeHostsPState, ev.CallMeAtOnce)


@effort(max_examples=60)
@given(
    st.one_of(
        *(events for kind, events in (HAPPENINGS | DECISIONS).items() if not issubclass(kind, OF_BATSIM5))
    )
)
def test_what_batsim_4_says_batsim_5_carries_back(event: ev.Event) -> None:
    """Through both wires and back to the first: the same bytes.

    Batsim 5 has a field of its own for ``rigid``, so that comes back after all else that a job says.
    """
    if isinstance(event, ev.ExecuteJob) and None not in (event.mapping, event.storage_mapping):
        event.storage_mapping = None
    if isinstance(event, ev.CallMeLater):
        event.time = event.at - 1
    if isinstance(event, ev.RegisterJob):
        event.job = replace(event.job, submission_time=0.0)
    old = BATSIM4.codec()
    simulates, decides = BATSIM5.codec(), BATSIM5.codec()
    happens = type(event) in HAPPENINGS and not isinstance(event, ev.Unknown)
    encode, decode = (
        (old.encode_request, old.decode_request) if happens else (old.encode_reply, old.decode_reply)
    )
    if isinstance(event, ev.SimulationBegins):
        event.settings = ev.Settings()
        event.speeds = None
    if isinstance(event, ev.JobCompleted):
        there_and_back(ev.ExecuteJob(event.job_id, event.hosts), simulates, decides)
    if isinstance(event, ev.SetHostsState):
        there_and_back(sleepers(event.pstate), simulates, decides)
    said = encode(ev.Message(event.time, [event]))
    (meant,) = decode(said).events
    assert encode(there_and_back(meant, simulates, decides)) == said


@pytest.mark.parametrize("event", UNSPEAKABLE, ids=lambda event: type(event).__name__)
def test_what_batsim_5_cannot_say_is_refused_by_name(event: ev.Event) -> None:
    codec, message = BATSIM5.codec(), ev.Message(0.0, [event])
    for encode in (codec.encode_request, codec.encode_reply):
        with pytest.raises(ProtocolError, match=f"{type(event).__name__} cannot be said in this dialect"):
            encode(message)


def test_a_note_travels_with_the_registration_of_its_job() -> None:
    simulates, decides = opened(ev.Settings(dynamic_jobs=True))
    job = Job("w0!1", 2.0, 1, 30.0, "p", {"user": "ann", "session": 3})
    said = [ev.RegisterJob(job, time=2.0), ev.SetJobMetadata("w0!1", "a note", time=2.0)]
    text = decides.encode_reply(ev.Message(2.0, list(said)))
    (event,) = parsed(text)["events"]
    assert json.loads(event["event"]["job"]["extra_data"])["session"] == 3
    assert jsonable(simulates.decode_reply(text)) == jsonable(ev.Message(2.0, list(said)))


def test_a_later_note_is_left_out_since_batsim_5_has_no_place_for_it() -> None:
    note = ev.SetJobMetadata("w0!1", "a note", time=2.0)
    said = parsed(BATSIM5.codec().encode_reply(ev.Message(2.0, [note, ev.RejectJob("w0!1", time=2.0)])))
    assert [event["event_type"] for event in said["events"]] == ["RejectJobEvent"]


# --- the handshake -------------------------------------------------------------------------------


@effort(max_examples=25)
@given(settings)
def test_what_is_asked_for_is_what_the_simulator_hears(asked: ev.Settings) -> None:
    simulates, decides = BATSIM5.codec(), BATSIM5.codec()
    heard = simulates.open(lambda said: decides.answer(said, asked) or b"", asked.scheduler_config)
    assert heard == msgspec.structs.replace(asked, forward_unknown_events=True)
    first = ev.Message(0.0, [ev.SimulationBegins([Host(0, "h")], settings=asked)])
    (begins,) = decides.decode_request(simulates.encode_request(first)).events
    assert isinstance(begins, ev.SimulationBegins)
    assert begins.settings == asked


def test_the_greeting_is_the_one_of_the_protocol() -> None:
    greeting = BATSIM5.codec().answer(b"\2\0\0\0hi", ev.Settings(dynamic_jobs=True, profile_reuse=True))
    assert greeting is not None and greeting[:4] == b"\2\0\0\0"
    (event,) = json.loads(greeting[4:])["events"]
    assert event["event_type"] == "EDCHelloEvent"
    assert event["event"]["requested_simulation_features"] == {
        "dynamic_registration": True,
        "profile_reuse": True,
        "acknowledge_dynamic_jobs": False,
        "forward_profiles_on_job_submission": False,
        "forward_profiles_on_jobs_killed": False,
        "forward_profiles_on_simulation_begins": False,
    }


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\2\0",
        b"\1\0\0\0binary",
        b"\2\0\0\0",
        b"\2\0\0\0{}",
        b'\2\0\0\0{"now":0,"events":[]}',
        b"\2\0\0\0\xff",
    ],
)
def test_a_simulator_says_what_is_wrong_with_a_greeting(answer: bytes) -> None:
    with pytest.raises(ProtocolError, match="the answer to the opening of Batsim 5"):
        BATSIM5.codec().open(lambda said: answer)


def test_profiles_are_told_at_the_beginning_to_whoever_asks() -> None:
    begins = ev.SimulationBegins([Host(0, "h")], profiles={"w0": {"p": Delay(3)}})
    for asked in (True, False):
        codec = BATSIM5.codec()
        hello = {"requested_simulation_features": {"forward_profiles_on_simulation_begins": asked}}
        event = {"timestamp": 0, "event_type": "EDCHelloEvent", "event": hello}
        codec.open(lambda said, event=event: b"\2\0\0\0" + json.dumps({"now": 0, "events": [event]}).encode())
        told = parsed(codec.encode_request(ev.Message(0.0, [begins])))["events"][0]["event"]
        assert [profile["id"] for profile in told["profiles"]] == ["w0!p"] * asked


def test_the_profiles_of_killed_jobs_are_told_to_whoever_asks() -> None:
    begins = ev.SimulationBegins([Host(0, "h")], profiles={"w0": {"c": Composed(("p",)), "p": Delay(3)}})
    progress = {"w0!1": ev.Progress("c", task_index=0, task=ev.Progress("p", 0.5))}
    killed = ev.JobsKilled(["w0!1"], progress)
    for asked in (True, False):
        codec = BATSIM5.codec()
        hello = {"requested_simulation_features": {"forward_profiles_on_jobs_killed": asked}}
        event = {"timestamp": 0, "event_type": "EDCHelloEvent", "event": hello}
        greeting = b"\2\0\0\0" + json.dumps({"now": 0, "events": [event]}).encode()
        codec.open(lambda said, greeting=greeting: greeting)
        codec.encode_request(ev.Message(0.0, [begins]))
        (said,) = parsed(codec.encode_request(ev.Message(1.0, [killed])))["events"]
        told = [profile["id"] for profile in said["event"].get("profiles", [])]
        assert told == (["w0!c"] if asked else [])


def test_a_killed_sequence_tells_its_repetition_and_its_task_in_it() -> None:
    progress = ev.Progress("c", task_index=7, task=ev.Progress("p", 0.5), nb_tasks=3)
    (said,) = parsed(
        BATSIM5.codec().encode_request(ev.Message(1.0, [ev.JobsKilled(["w0!1"], {"w0!1": progress})]))
    )["events"]
    (told,) = said["event"]["progresses"]
    sequence = told["wrapper"]["kill_progress"]
    assert (sequence["current_repetition"], sequence["current_task_index"]) == (2, 1)


# --- power states --------------------------------------------------------------------------------


def turned(hosts: str, pstate: int) -> bytes:
    event = {
        "timestamp": 1,
        "event_type": "TurnOnOffHostsEvent",
        "event": {"host_ids": hosts, "state": pstate},
    }
    return json.dumps({"now": 1, "events": [event]}).encode()


def test_hosts_that_are_on_cannot_be_turned_on() -> None:
    codec = BATSIM5.codec()
    codec.encode_request(ev.Message(0.0, [sleepers(2)]))
    with pytest.raises(RuleBroken, match="hosts 3 are on already; ChangeHostsPStateEvent changes"):
        codec.decode_reply(turned("3", 0))
    codec.decode_reply(turned("3", 2))
    codec.encode_request(ev.Message(1.0, [ev.HostsStateChanged(HostSet.of([3]), 2)]))
    assert codec.decode_reply(turned("3", 0)).events == [ev.SetHostsState(HostSet.of([3]), 0, time=1.0)]


def test_hosts_that_sleep_and_others_are_put_into_a_state_by_two_events() -> None:
    simulates, decides = opened(ev.Settings())
    decides.decode_request(simulates.encode_request(ev.Message(0.0, [sleepers(2)])))
    decides.encode_reply(ev.Message(0.0, [ev.SetHostsState(HostSet.of([3]), 2)]))
    said = parsed(decides.encode_reply(ev.Message(1.0, [ev.SetHostsState(HostSet.of([3, 4]), 0, time=1.0)])))
    assert [(event["event_type"], event["event"]) for event in said["events"]] == [
        ("TurnOnOffHostsEvent", {"host_ids": "3", "state": 0}),
        ("ChangeHostsPStateEvent", {"host_ids": "4", "pstate": 0}),
    ]


def test_a_host_in_a_sleeping_state_sleeps_even_if_batsim_5_calls_it_idle() -> None:
    host = {"id": 0, "name": "h", "pstate": 2, "properties": [{"key": "sleep_pstates", "value": "2:3:4"}]}
    event = {"host_number": 1, "computation_host_number": 1, "computation_hosts": [host]}
    said = {"timestamp": 0, "event_type": "SimulationBeginsEvent", "event": event}
    codec = BATSIM5.codec()
    (begins,) = codec.decode_request(json.dumps({"now": 0, "events": [said]}).encode()).events
    assert isinstance(begins, ev.SimulationBegins)
    assert begins.hosts[0].state is HostState.SLEEPING


# --- calls ---------------------------------------------------------------------------------------


@given(st.integers(0, 10**13), st.integers(1, 10**13))
def test_a_call_comes_at_its_very_microsecond(now: int, wait: int) -> None:
    """From a Batsim that is asked in milliseconds, and calls at once for a time that has passed.

    It never waits for less than ten microseconds.
    """
    decides = BATSIM5.codec()
    clock, at = now / 10**6, (now + max(wait, 10 if (now + wait) % 1000 else 0)) / 10**6
    for _ in range(2):
        reply = parsed(decides.encode_reply(ev.Message(clock, [ev.CallMeLater(at, time=clock)])))
        (asked,) = reply["events"]
        assert clock <= asked["timestamp"] <= reply["now"]
        clock = max(asked["timestamp"], asked["event"]["when"]["time"] / 1000)
        event = {
            "timestamp": clock,
            "event_type": "RequestedCallEvent",
            "event": {"call_me_later_id": asked["event"]["call_me_later_id"]},
        }
        (call,) = decides.decode_request(json.dumps({"now": clock, "events": [event]}).encode()).events
        assert isinstance(call, ev.RequestedCall)
        assert clock <= at and call.at <= at
        if clock >= at:
            break
    assert clock == at


def test_of_two_calls_within_a_millisecond_the_first_is_exact_and_the_other_follows() -> None:
    calls = [ev.CallMeLater(1.0007, time=1.0001), ev.CallMeLater(1.0003, time=1.0001)]
    reply = parsed(BATSIM5.codec().encode_reply(ev.Message(1.0001, list(calls))))
    asked = [(event["timestamp"], event["event"]["when"]["time"]) for event in reply["events"]]
    assert (reply["now"], asked) == (1.0003, [(1.0001, 1001), (1.0003, 1000)])


def test_a_call_for_a_time_that_has_passed_is_made_at_once() -> None:
    event = {
        "timestamp": 5.0003,
        "event_type": "CallMeLaterEvent",
        "event": {"call_me_later_id": "x", "when_type": "OneShot", "when": {"time": 5}},
    }
    codec = BATSIM5.codec()
    message = codec.decode_reply(json.dumps({"now": 5.0003, "events": [event]}).encode())
    assert message.events == [ev.CallMeAtOnce(time=5.0003)]
    (call,) = parsed(codec.encode_request(ev.Message(5.0003, [ev.RequestedCall(time=5.0003)])))["events"]
    assert call["event"] == {"call_me_later_id": "x", "last_periodic_call": False}


def test_calls_are_made_under_the_names_that_were_given_to_them() -> None:
    codec = BATSIM5.codec()
    asked = [("late", 9000), ("first", 1000), ("second", 1000)]
    events = [
        {
            "timestamp": 0,
            "event_type": "CallMeLaterEvent",
            "event": {
                "call_me_later_id": name,
                "when_type": "OneShot",
                "when": {"time": time, "time_unit": "Millisecond"},
            },
        }
        for name, time in asked
    ]
    message = codec.decode_reply(json.dumps({"now": 0, "events": events}).encode())
    assert message.events == [ev.CallMeLater(9.0), ev.CallMeLater(1.0), ev.CallMeLater(1.0)]
    calls = [ev.RequestedCall(time=time) for time in (1.0, 1.0, 9.0)]
    said = parsed(codec.encode_request(ev.Message(9.0, list(calls))))["events"]
    assert [event["event"]["call_me_later_id"] for event in said] == ["first", "second", "late"]


@pytest.mark.parametrize(
    ("kind", "data", "complaint"),
    [
        (
            "CallMeLaterEvent",
            {"call_me_later_id": "a", "when_type": "Periodic", "when": {"period": 3}},
            "'Periodic' calls are not supported",
        ),
        (
            "CallMeLaterEvent",
            {"call_me_later_id": "a", "when_type": "OneShot", "when": {"time": 1.5}},
            "expected a whole number, got 1.5",
        ),
        (
            "ExecuteJobEvent",
            {
                "job_id": "w0!1",
                "allocation": {
                    "host_allocation": "0",
                    "executor_placement": {"strategy": "FillOneHostCoresFirst"},
                },
            },
            "FillOneHostCoresFirst",
        ),
        (
            "ExecuteJobEvent",
            {"job_id": "w0!1", "allocation": {"host_allocation": "0"}, "profile_allocation_override": [{}]},
            "profile_allocation_override",
        ),
        ("RegisterJobEvent", {"job_id": "w0!1", "job": {"resource_request": -1}}, "job.resource_request"),
        ("RegisterProfileEvent", {"profile": {"id": "p"}}, "profile.id"),
    ],
)
def test_what_is_wrong_with_a_decision_is_named(kind: str, data: Any, complaint: str) -> None:
    event = {"timestamp": 0, "event_type": kind, "event": data}
    with pytest.raises(ProtocolError, match=complaint) as caught:
        BATSIM5.codec().decode_reply(json.dumps({"now": 0, "events": [event]}).encode())
    assert str(caught.value).startswith(f"event 0 ({kind})")


@given(st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_nonsense_is_an_error_of_the_protocol(text: bytes) -> None:
    codec = BATSIM5.codec()
    for decode in (codec.decode_request, codec.decode_reply):
        with pytest.raises(ProtocolError):
            decode(text)


@effort(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from(["event_type", "event", "job", "job_id", "profile"]), values)))
def test_a_message_with_anything_in_it_is_read_or_refused(parts: list[tuple[str, Any]]) -> None:
    text = json.dumps({"now": 0, "events": [{"timestamp": 0, **dict(parts)}]}).encode()
    codec = BATSIM5.codec()
    for decode in (codec.decode_request, codec.decode_reply):
        try:
            decode(text)
        except ProtocolError as error:
            assert "\n" not in str(error)


def registered(*decisions: ev.Event) -> list[tuple[str, ...]]:
    """What a Batsim 5 is told to register: profiles with their types, and jobs with their profiles."""
    codec, said = Batsim5Codec(), []
    for decision in decisions:
        for told in json.loads(codec.encode_reply(ev.Message(0.0, [decision])))["events"]:
            profile, event = told["event"].get("profile"), told["event"]
            if profile is None:
                said.append((event["job_id"], event["job"]["profile_id"]))
            else:
                said.append((profile["id"], profile["profile_type"]))
    return said


def test_a_job_without_work_on_one_host_is_a_vector_with_a_zero_in_it() -> None:
    """With anything else a real 5.0.0-rc2 gives SimGrid no work at all, which aborts the simulation."""
    idle = ev.RegisterProfile("w0", "idle", Homogeneous(0.0))
    jobs = [
        ev.RegisterJob(Job(f"w0!{size}{name}", 0.0, size, 9.0, "idle")) for size in (2, 1) for name in "ab"
    ]
    flat, alone = "ParallelTaskHomogeneousProfile", "ParallelTaskProfile"
    assert registered(idle, *jobs, idle, jobs[2]) == [
        ("w0!idle", flat),
        ("w0!2a", "w0!idle"),
        ("w0!2b", "w0!idle"),
        ("w0!idle_on_one_host", alone),
        ("w0!1a", "w0!idle_on_one_host"),
        ("w0!1b", "w0!idle_on_one_host"),
        ("w0!idle", flat),
        ("w0!idle_on_one_host", alone),
        ("w0!1a", "w0!idle_on_one_host"),
    ]
    work = ev.RegisterProfile("w0", "idle", Homogeneous(1.0))
    assert registered(idle, work, jobs[2]) == [("w0!idle", flat), ("w0!idle", flat), ("w0!1a", "w0!idle")]
