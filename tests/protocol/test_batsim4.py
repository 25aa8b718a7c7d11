"""The JSON of Batsim 4: what was recorded survives, what is bad is named."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from procset import ProcSet

from batsched_py.errors import ProtocolError
from batsched_py.protocol import dialect
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim4.codec import Batsim4Codec
from batsched_py.protocol.batsim4.jobs import job_to_json, six_decimals
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, Job, JobState, to_tick
from batsched_py.protocol.profiles import Delay
from tests.golden import Recording

CODEC = Batsim4Codec()
decode_request, encode_request = CODEC.decode_request, CODEC.encode_request
decode_reply, encode_reply = CODEC.decode_reply, CODEC.encode_reply

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
RECORDINGS = sorted(path.parent for path in GOLDEN.glob("*/conversation.jsonl"))


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) == 36


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_recorded_messages_survive(folder: Path) -> None:
    recording = Recording(folder)
    for request in recording.requests:
        assert json.loads(encode_request(decode_request(json.dumps(request)))) == request
    for reply in recording.replies:
        assert json.loads(encode_reply(decode_reply(reply))) == as_we_spell_it(json.loads(reply))


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_messages_are_the_bytes_of_batsim_where_no_job_is_spelled_out(folder: Path) -> None:
    for line in (folder / "conversation.jsonl").read_text().splitlines():
        said = json.loads(line)
        if said["from"] == "batsim" and "JOB_SUBMITTED" not in said["message"]:
            assert encode_request(decode_request(said["message"])).decode() == said["message"]


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_messages_are_the_bytes_that_they_always_were(folder: Path) -> None:
    """The digests were made when messages were written field by field from dictionaries."""
    digest = hashlib.sha256()
    for exchange in Recording(folder).conversation:
        digest.update(encode_request(decode_request(exchange.request)) + b"\n")
        if exchange.reply is not None:
            digest.update(encode_reply(decode_reply(exchange.reply)) + b"\n")
    assert digest.hexdigest() == json.loads((GOLDEN.parent / "wire_digests.json").read_text())[folder.name]


def as_we_spell_it(reply: dict[str, Any]) -> dict[str, Any]:
    """A recorded reply, where it used the freedom that the protocol leaves to spell the same thing."""
    for event in reply["events"]:
        data = event["data"]
        if event["type"] == "EXECUTE_JOB":
            data["alloc"] = str(ProcSet.from_str(data["alloc"]))
            if "mapping" in data:
                data["mapping"] = {executor: int(host) for executor, host in data["mapping"].items()}
        elif event["type"] == "REGISTER_JOB":
            data["job"]["id"] = data["job_id"]
    return reply


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_recorded_messages_hold_nothing_unknown(folder: Path) -> None:
    recording = Recording(folder)
    messages = [decode_request(json.dumps(request)) for request in recording.requests]
    messages += [decode_reply(reply) for reply in recording.replies]
    for message in messages:
        for event in message.events:
            assert not isinstance(event, ev.Unknown)
            assert event.extra is None


JOB = Job("w0!1", 1.5, 2, 30.0, "p", {"user": "ann"})
PROGRESS = ev.Progress("outer", task_index=3, task=ev.Progress("inner", 0.25))

REQUESTS: list[ev.Event] = [
    ev.SimulationBegins(
        [Host(0, "h0", properties={"role": ""})],
        [Host(1, "disk", properties={"role": "storage"})],
        ev.Settings(True, True, True, True, True, True, False, "some text"),
        {"w0": "/w.json"},
        {"w0": {"p": Delay(3)}},
    ),
    ev.SimulationEnds(),
    ev.JobSubmitted(JOB, Delay(3)),
    ev.JobCompleted("w0!1", JobState.KILLED, HostSet.parse("0-2 5"), -2),
    ev.JobsKilled(["w0!1", "w0!2"], {"w0!1": PROGRESS}),
    ev.HostsStateChanged(HostSet.parse("3"), 13),
    ev.RequestedCall(),
    ev.EnergyAnswer(12.5),
    ev.WaitingTimeQuery(JOB),
    ev.NoMoreStaticJobs(),
    ev.NoMoreExternalEvents(),
    ev.HostsUnavailable(HostSet.parse("0-4")),
    ev.HostsAvailable(HostSet.parse("0-4")),
    ev.ExternalEvent({"type": "weather", "sunny": True}),
    ev.JobSaid("w0!1", {"progress": 3}),
    ev.Unknown("NEW_EVENT", {"a": [1, None, "x"]}),
]
REPLIES: list[ev.Event] = [
    ev.ExecuteJob("w0!1", HostSet.parse("0-1"), mapping=[1, 0]),
    ev.ExecuteJob("w0!1", HostSet.parse("0-1"), storage_mapping={"pfs": 4}),
    ev.ExecuteJob("w0!1", HostSet.parse("0-1"), io_job=ev.IoJob("io", HostSet.parse("4"))),
    ev.RejectJob("w0!1"),
    ev.KillJobs(["w0!1", "w0!2"]),
    ev.CallMeLater(1 / 3),
    ev.RegisterProfile("dyn", "p", Delay(0.1)),
    ev.RegisterJob(JOB),
    ev.RegistrationFinished(),
    ev.ContinueRegistration(),
    ev.SetHostsState(HostSet.parse("0 2"), 1),
    ev.SetJobMetadata("w0!1", "a note"),
    ev.ChangeJobState("w0!1", JobState.KILLED, "because"),
    ev.QueryEnergy(),
    ev.WaitingTimeAnswer("w0!1", 2.5),
    ev.TellJob("w0!1", "hello"),
    ev.Unknown("NEW_DECISION", {}),
]


def jsonable(value: Any) -> Any:
    """A message to compare: jobs have no equality of their own, and host sets know more and more."""
    if isinstance(value, HostSet):
        return str(value)
    if isinstance(value, msgspec.Struct):
        return {name: jsonable(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    return value


@pytest.mark.parametrize("event", REQUESTS, ids=lambda event: type(event).__name__)
def test_every_happening_survives(event: ev.Event) -> None:
    event.time = 2.25
    message = ev.Message(2.5, [event])
    assert jsonable(decode_request(encode_request(message))) == jsonable(message)


@pytest.mark.parametrize("event", REPLIES, ids=lambda event: type(event).__name__)
def test_every_decision_survives(event: ev.Event) -> None:
    event.time = 2.25
    message = ev.Message(2.5, [event])
    assert jsonable(decode_reply(encode_reply(message))) == jsonable(message)


def test_the_kinds_of_events_are_all_tested() -> None:
    kinds = {cls for cls in vars(ev).values() if isinstance(cls, type) and issubclass(cls, ev.Event)}
    of_batsim5 = {ev.HostsPStateChanged, ev.ChangeHostsPState, ev.CallMeAtOnce}
    assert {type(event) for event in REQUESTS + REPLIES} == kinds - {ev.Event} - of_batsim5


def test_batsim_prints_six_decimals_and_leaves_integers_alone() -> None:
    text = encode_request(
        ev.Message(
            1 / 3, [ev.ExternalEvent({"type": "x", "third": 1 / 3, "tiny": 1e-7, "three": 3}, time=2.0)]
        )
    )
    assert b'"now":0.333333' in text
    assert b'"timestamp":2.000000' in text
    assert b'"third":0.333333' in text
    assert b'"tiny":0.000000' in text
    assert b'"three":3}' in text


def test_a_decision_process_prints_numbers_in_full() -> None:
    text = encode_reply(ev.Message(1 / 3, [ev.CallMeLater(2 / 3, time=1 / 3)]))
    assert json.loads(text) == {
        "now": 1 / 3,
        "events": [{"timestamp": 1 / 3, "type": "CALL_ME_LATER", "data": {"timestamp": 2 / 3}}],
    }


@given(st.floats(0, 1e12))
def test_the_time_on_the_wire_is_what_a_reader_of_the_text_sees(time: float) -> None:
    assert to_tick(time) == json.loads(six_decimals(time))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_everything_without_a_fraction_is_written_as_json(value: Any) -> None:
    assert json.loads(six_decimals(value)) == value


def test_numbers_that_json_lacks_are_refused() -> None:
    with pytest.raises(ProtocolError, match="inf cannot be written as JSON"):
        encode_request(ev.Message(0.0, [ev.EnergyAnswer(float("inf"))]))


@pytest.mark.parametrize("event", REQUESTS, ids=lambda event: type(event).__name__)
def test_what_is_printed_directly_is_what_would_be_spelled(event: ev.Event) -> None:
    """An unknown field is enough to take the long way."""
    marked = msgspec.structs.replace(event, extra={"mark": 1})
    direct, spelled = (json.loads(encode_request(ev.Message(2.5, [e]))) for e in (event, marked))
    if not isinstance(event, ev.Unknown):
        assert spelled["events"][0]["data"].pop("mark") == 1
    assert direct == spelled


@given(
    st.floats(0, 1e9), st.floats(0, 1e9), st.text(), st.dictionaries(st.text(), st.floats(0, 1) | st.text())
)
def test_a_submission_is_printed_like_any_json(
    subtime: float, walltime: float, name: str, extra: Any
) -> None:
    extra = {f"x{key}": value for key, value in extra.items()}
    job = Job(f"w0!{name}", subtime, 3, walltime or inf, name, extra)
    data = {"job_id": job.id, "job": job_to_json(job), "profile": {"type": "delay", "delay": 1.5}}
    event = {"timestamp": subtime, "type": "JOB_SUBMITTED", "data": data}
    message = ev.Message(subtime, [ev.JobSubmitted(job, Delay(1.5), time=subtime)])
    assert encode_request(message).decode() == six_decimals({"now": subtime, "events": [event]})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize(
    "message",
    [
        lambda number: ev.Message(number, []),
        lambda number: ev.Message(0.0, [ev.CallMeLater(number)]),
        lambda number: ev.Message(0.0, [ev.RejectJob("w0!1", time=number)]),
        lambda number: ev.Message(0.0, [ev.RegisterJob(Job("w0!1", 0.0, 1, inf, "p", {"a": [number]}))]),
    ],
)
def test_a_decision_has_no_number_that_json_lacks(
    message: Callable[[float], ev.Message], number: float
) -> None:
    with pytest.raises(ProtocolError, match=f"{number} cannot be written as JSON"):
        encode_reply(message(number))


def test_a_decision_may_say_null() -> None:
    message = ev.Message(0.0, [ev.Unknown("NEW_DECISION", {"a": None})])
    assert json.loads(encode_reply(message))["events"][0]["data"] == {"a": None}


def test_what_json_cannot_say_is_an_error_of_the_protocol() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for data in (object(), 10**5000, endless):
        for encode in (encode_reply, encode_request):
            with pytest.raises(ProtocolError, match="cannot be written as JSON"):
                encode(ev.Message(0.0, [ev.Unknown("NEW", data)]))


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing has been logged yet."""
    monkeypatch.setattr(dialect, "_logged", set())


@pytest.mark.usefixtures("forgetful")
def test_an_unknown_type_survives_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    text = '{"now":1,"events":[{"timestamp":1,"type":"CORE_FAILED","data":{"host":[3]}}]}'
    for _ in range(2):
        assert json.loads(encode_request(decode_request(text))) == json.loads(text)
    assert [record.getMessage() for record in caplog.records] == [
        "event type CORE_FAILED is not known; it is kept but not interpreted"
    ]
    assert caplog.records[0].levelno == logging.WARNING


@pytest.mark.usefixtures("forgetful")
def test_an_unknown_field_survives_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    text = (
        '{"now":1,"events":[{"timestamp":1,"type":"JOB_COMPLETED","data":{"job_id":"w0!1",'
        '"job_state":"COMPLETED_FAILED","return_code":1,"alloc":"0","watts":7}}]}'
    )
    for _ in range(2):
        message = decode_request(text)
        assert message.events[0].extra == {"watts": 7}
        assert json.loads(encode_request(message)) == json.loads(text)
    assert [record.getMessage() for record in caplog.records] == [
        "field `watts` of JOB_COMPLETED is not known; it is kept but not interpreted"
    ]


@pytest.mark.usefixtures("forgetful")
def test_who_invents_names_for_ever_does_not_fill_the_memory(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(2 * dialect.MOST_LOGGED):
        decode_request(f'{{"now":1,"events":[{{"timestamp":1,"type":"NEW_{number}","data":{{}}}}]}}')
    assert len(dialect._logged) == dialect.MOST_LOGGED
    assert caplog.messages[-1] == "so much is not known here that no more of it will be logged"
    assert len(caplog.messages) == dialect.MOST_LOGGED + 1


@pytest.mark.usefixtures("forgetful")
def test_names_that_a_terminal_would_obey_are_not_logged_raw(caplog: pytest.LogCaptureFixture) -> None:
    decode_request('{"now":1,"events":[{"timestamp":1,"type":"\\u001b[2J","data":{}}]}')
    assert caplog.messages == ["event type '\\x1b[2J' is not known; it is kept but not interpreted"]


def test_unknown_members_outside_the_data_are_ignored() -> None:
    text = '{"now":1,"by":"me","events":[{"timestamp":1,"type":"REQUESTED_CALL","data":{},"why":"so"}]}'
    assert decode_request(text) == ev.Message(1.0, [ev.RequestedCall(time=1.0)])


def test_the_progress_may_be_named_as_the_documentation_does() -> None:
    text = (
        '{"now":1,"events":[{"timestamp":1,"type":"JOB_KILLED","data":{"job_ids":["w0!1"],'
        '"job_progress":{"w0!1":{"profile":"p","progress":0.5}}}}]}'
    )
    (killed,) = decode_request(text).events
    assert isinstance(killed, ev.JobsKilled)
    assert killed.progress == {"w0!1": ev.Progress("p", 0.5)}


def test_a_registered_job_may_leave_its_workload_out() -> None:
    text = (
        '{"now":1,"events":[{"timestamp":1,"type":"REGISTER_JOB","data":{"job_id":"dyn!7",'
        '"job":{"id":7,"subtime":1,"res":2,"profile":"p"}}}]}'
    )
    (registered,) = decode_reply(text).events
    assert isinstance(registered, ev.RegisterJob)
    assert registered.job.id == "dyn!7"
    assert not registered.job.has_walltime


def event(kind: str, data: str) -> str:
    good = '{"timestamp":1,"type":"NOTIFY","data":{"type":"registration_finished"}}'
    return f'{{"now":1,"events":[{good},{{"timestamp":1,"type":"{kind}","data":{data}}}]}}'


def job(fields: str) -> str:
    return event("REGISTER_JOB", f'{{"job_id":"w0!1","job":{{{fields}}}}}')


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "not a message of Batsim's protocol: Input data was truncated"),
        ("null", "not a message of Batsim's protocol: Expected `object`, got `null`"),
        ('{"events":[]}', "not a message of Batsim's protocol: Object missing required field `now`"),
        (
            '{"now":"1","events":[]}',
            "not a message of Batsim's protocol: Expected `float`, got `str` - at `$.now`",
        ),
        (
            '{"now":1,"events":{}}',
            "not a message of Batsim's protocol: Expected `array`, got `object` - at `$.events`",
        ),
        ('{"now":1,"events":[7]}', "event 0: Expected `object`, got `int`"),
        ('{"now":1,"events":[{"type":"X","data":{}}]}', "event 0: Object missing required field `timestamp`"),
        ('{"now":1,"events":[{"timestamp":1,"data":{}}]}', "event 0: Object missing required field `type`"),
        ('{"now":1,"events":[{"timestamp":1,"type":"X"}]}', "event 0: Object missing required field `data`"),
        (event("REJECT_JOB", "{}"), "event 1 (REJECT_JOB): Object missing required field `job_id`"),
        (
            event("REJECT_JOB", '{"job_id":3}'),
            "event 1 (REJECT_JOB): Expected `str`, got `int` - at `$.job_id`",
        ),
        (
            event("KILL_JOB", '{"job_ids":[1]}'),
            "event 1 (KILL_JOB): Expected `str`, got `int` - at `$.job_ids[0]`",
        ),
        (
            event("EXECUTE_JOB", '{"job_id":"w0!1","alloc":"0,3"}'),
            "event 1 (EXECUTE_JOB): field `alloc`: "
            "'0,3' is not a host or an interval of hosts like '3' or '0-3'",
        ),
        (
            event("EXECUTE_JOB", '{"job_id":"w0!1","alloc":"3-1"}'),
            "event 1 (EXECUTE_JOB): field `alloc`: interval '3-1' ends before it begins",
        ),
        (
            event("EXECUTE_JOB", '{"job_id":"w0!1","alloc":"0-99999999999"}'),
            "event 1 (EXECUTE_JOB): field `alloc`: '0-99999999999' names a host beyond 16777216",
        ),
        (
            event("EXECUTE_JOB", '{"job_id":"w0!1","alloc":"0","mapping":{"1":0}}'),
            "event 1 (EXECUTE_JOB): field `mapping`: "
            "must give an integer for each executor from 0 on, without a hole",
        ),
        (
            event("EXECUTE_JOB", '{"job_id":"w0!1","alloc":"0","mapping":{"0":0},"storage_mapping":{}}'),
            "event 1 (EXECUTE_JOB): "
            "at most one of `mapping`, `storage_mapping`, `additional_io_job` may be given",
        ),
        (
            event("NOTIFY", '{"type":"hello"}'),
            "event 1 (NOTIFY): field `type`: "
            "expected registration_finished or continue_registration, got 'hello'",
        ),
        (
            event("SET_RESOURCE_STATE", '{"resources":"0","state":"on"}'),
            "event 1 (SET_RESOURCE_STATE): field `state`: "
            "expected a power state's number as a string, got 'on'",
        ),
        (
            event("QUERY", '{"requests":{"air_traffic":{}}}'),
            "event 1 (QUERY): field `requests`: only consumed_energy can be asked for, got ['air_traffic']",
        ),
        (event("ANSWER", "{}"), "event 1 (ANSWER): unknown answer []"),
        (job('"id":"1","res":1,"profile":"p"'), "event 1 (REGISTER_JOB): field `job`: a job needs `subtime`"),
        (
            job('"id":"1","subtime":0,"res":1.5,"profile":"p"'),
            "event 1 (REGISTER_JOB): field `job.res`: expected a number of hosts, got 1.5",
        ),
        (
            job('"id":"1","subtime":0,"res":1,"profile":7'),
            "event 1 (REGISTER_JOB): field `job.profile`: expected a profile's name, got 7",
        ),
        (
            job('"id":"1","subtime":"soon","res":1,"profile":"p"'),
            "event 1 (REGISTER_JOB): field `job.subtime`: expected a number, got 'soon'",
        ),
        (
            job('"id":"1","subtime":0,"res":1,"profile":"p","walltime":0'),
            "event 1 (REGISTER_JOB): field `job.walltime`: must be positive, or -1 for none, got 0",
        ),
        (
            job('"id":"w0!1!2","subtime":0,"res":1,"profile":"p"'),
            "event 1 (REGISTER_JOB): field `job.id`: 'w0!1!2' is not of the form WORKLOAD!NAME",
        ),
        (
            job('"id":"2","subtime":0,"res":1,"profile":"p"'),
            "event 1 (REGISTER_JOB): field `job_id`: 'w0!1' but the job calls itself 'w0!2'",
        ),
    ],
)
def test_bad_text_names_the_event_and_the_field(text: str, error: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        decode_reply(text)
    assert str(raised.value) == error


def test_a_submission_without_its_job_names_the_reason() -> None:
    with pytest.raises(ProtocolError, match=r"event 0 \(JOB_SUBMITTED\): field `job`: missing \(.*redis"):
        decode_request('{"now":1,"events":[{"timestamp":1,"type":"JOB_SUBMITTED","data":{"job_id":"w0!1"}}]}')


def job_in(fields: str) -> str:
    return event("JOB_SUBMITTED", f'{{"job_id":"w0!1","job":{{"id":"w0!1","res":1,"profile":"p",{fields}}}}}')


def host_with(properties: str) -> str:
    resources = f'[{{"id":0,"name":"h","properties":{properties}}}]'
    return event(
        "SIMULATION_BEGINS",
        '{"nb_resources":1,"nb_compute_resources":1,"nb_storage_resources":0,"allow_compute_sharing":false,'
        f'"allow_storage_sharing":true,"config":{{}},"compute_resources":{resources}}}',
    )


def nested(depth: int) -> str:
    inner = '{"profile_name":"p","current_task_index":0,"current_task":' * depth
    progress = inner + '{"profile_name":"p","progress":0.5}' + "}" * depth
    return event("JOB_KILLED", f'{{"job_ids":["w0!1"],"job_progress":{{"w0!1":{progress}}}}}')


NINES, MANY_NINES = "9" * 310, "9" * 4300


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (job_in(f'"subtime":{NINES}'), "field `job.subtime`: expected a number, got 9999"),
        (job_in(f'"subtime":1,"walltime":{NINES}'), "field `job.walltime`: expected a number, got 9999"),
        (event("ANSWER", f'{{"consumed_energy":{NINES}}}'), "Number out of range - at `$.consumed_energy`"),
        (event("FLY", f'{{"a":{MANY_NINES}9}}'), "Integer value out of range - at `$[...]`"),
        (
            event("RESOURCE_STATE_CHANGED", f'{{"resources":"0","state":"{MANY_NINES}"}}'),
            "field `state`: expected a power state's number as a string, got '9999",
        ),
        (
            event("RESOURCE_STATE_CHANGED", f'{{"resources":"{MANY_NINES}","state":"1"}}'),
            "field `resources`: '9999",
        ),
        (host_with('{"sleep_pstates":"a:b"}'), "property `sleep_pstates`: expected triplets like 1:2:3, got"),
        (host_with(f'{{"sleep_pstates":"1:2:{NINES}"}}'), "property `sleep_pstates`: expected triplets like"),
        (nested(100_000), "it is nested too deeply"),
    ],
)
def test_absurd_numbers_and_nests_are_named(text: str, error: str) -> None:
    with pytest.raises(ProtocolError) as raised:
        decode_request(text)
    assert error in str(raised.value)
    assert str(raised.value).startswith(
        "event 1 (" if error != "it is nested too deeply" else "not a message"
    )
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("depth", [10, 200, 600, 900, 2000])
def test_a_nest_is_read_or_refused(depth: int) -> None:
    try:
        encode_request(decode_request(nested(depth)))
    except ProtocolError as error:
        assert "nested too deeply" in str(error) or "cannot be written as JSON" in str(error)


def test_hosts_are_told_in_which_power_states_they_sleep() -> None:
    (_, begins) = decode_request(
        host_with('{"sleep_pstates":"1:2:3, 4:5:6"}').replace("NOTIFY", "NEWS")
    ).events
    assert isinstance(begins, ev.SimulationBegins)
    assert begins.hosts[0].sleep_pstates == {1: (2, 3), 4: (5, 6)}


KINDS = [
    "SIMULATION_BEGINS",
    "JOB_SUBMITTED",
    "JOB_COMPLETED",
    "JOB_KILLED",
    "RESOURCE_STATE_CHANGED",
    "NOTIFY",
    "ANSWER",
    "QUERY",
    "EXECUTE_JOB",
    "REGISTER_JOB",
    "SET_RESOURCE_STATE",
    "CALL_ME_LATER",
]
FIELDS = st.sampled_from(
    ["job_id", "job", "id", "alloc", "mapping", "type", "job_ids", "job_progress", "requests", "state", "res"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4),
    max_leaves=8,
)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_message_or_an_error_of_the_protocol(text: bytes) -> None:
    for decode in (decode_request, decode_reply):
        try:
            decode(text)
        except ProtocolError as error:
            assert "\n" not in str(error)


@given(st.sampled_from(KINDS), JSON)
def test_any_data_are_an_event_or_an_error_of_the_protocol(kind: str, data: Any) -> None:
    text = json.dumps({"now": 0, "events": [{"timestamp": 0, "type": kind, "data": data}]})
    for decode in (decode_request, decode_reply):
        try:
            decode(text)
        except ProtocolError as error:
            assert str(error).startswith(f"event 0 ({kind}): ")


def test_a_message_of_too_many_events_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batsched_py.protocol.dialect.LONG_MESSAGE", 100)
    monkeypatch.setattr("batsched_py.protocol.dialect.MOST_EVENTS", 3)
    text = '{"now": 1, "events": [' + ",".join(['{"timestamp": 1, "type": "X", "data": {}}'] * 4) + "]}"
    with pytest.raises(ProtocolError, match="a message has 4 events; 3 are the most"):
        Batsim4Codec().decode_request(text.encode())


def test_a_message_of_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("batsched_py.protocol.dialect.LONG_MESSAGE", 100)
    monkeypatch.setattr("batsched_py.protocol.dialect.MOST_VALUES", 30)
    text = '{"now": 1, "events": [{"timestamp": 1, "type": "X", "data": [' + ",".join(["{}"] * 30) + "]}]}"
    with pytest.raises(ProtocolError, match="a message has some 66 values; 30 are the most"):
        Batsim4Codec().decode_request(text.encode())
