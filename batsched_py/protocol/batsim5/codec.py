"""Messages in the JSON of Batsim 5, and the handshake before the first of them.

The codec has a memory. Messages of Batsim 5 do not contain which hosts a job leaves, which request a call
answers, nor what is allowed: each side knows that from earlier messages.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from heapq import heappop, heappush
from struct import Struct
from typing import Annotated, Any, Literal

import msgspec
from msgspec import structs

from batsched_py import __version__
from batsched_py.errors import PeerFailed, ProtocolError, RuleBroken
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim5 import jobs
from batsched_py.protocol.batsim5.events import DECISIONS, HAPPENINGS, milliseconds, name_of_call
from batsched_py.protocol.dialect import ON_ONE_HOST, UNREADABLE, Codec, encode
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host, HostState, as_told, to_tick
from batsched_py.protocol.profiles import Profile
from batsched_py.protocol.shown import shown

#: Batsim cannot wait for less than this, in seconds.
_LEAST_WAIT = 1e-5


def said_exactly(message: ev.Message) -> ev.Message:
    """The same decisions; the first call that cannot be asked for in milliseconds is at its exact time.

    A Batsim 5 is asked for calls in whole milliseconds. A call at any microsecond is asked for in two steps.
    First comes a call at the millisecond before; the decision process asks again, since it is too early. What
    is left is about a millisecond. So the second request itself has the time of the call, and asks for a time
    that has passed by then: Batsim reads it when its time has come, and calls at once. Until then it sends
    nothing. Others of this kind, which only a policy could ask for, come in the next millisecond.
    """
    near = [event for event in message.events if isinstance(event, ev.CallMeLater) and _is_near(event)]
    if not near:
        return message
    first = min(near, key=lambda call: call.at)
    events: list[ev.Event] = []
    for event in message.events:
        if event is first:
            continue
        if isinstance(event, ev.CallMeLater) and _is_near(event):
            event = ev.CallMeLater((round(event.at * 1e6) // 1000 + 1) / 1000, time=event.time)
        events.append(event)
    now = to_tick(max(first.at, first.time + _LEAST_WAIT, message.now))
    return ev.Message(now, [*events, ev.CallMeAtOnce(time=now)])


def _is_near(call: ev.CallMeLater) -> bool:
    """Whether the millisecond from which Batsim could wait for a call has passed."""
    return milliseconds(call.at) * 1000 <= round(call.time * 1e6)


class Sleep:
    """The hosts that sleep, or were told to, as one side of a conversation knows it.

    Batsim 5 has one event for hosts that fall asleep or wake up, which takes them time, and another one for a
    change of the power state that is done at once. A policy says only which power state it wants.
    """

    def __init__(self) -> None:
        self._sleep_pstates: dict[int, frozenset[int]] = {}
        """The power states in which each host sleeps."""
        self._asleep = HostSet()

    def begin(self, hosts: Sequence[Host]) -> None:
        """These hosts are there."""
        self._sleep_pstates = {host.id: frozenset(host.sleep_pstates) for host in hosts if host.sleep_pstates}
        self._asleep = HostSet.of(host.id for host in hosts if host.state is HostState.SLEEPING)

    def reach(self, hosts: HostSet, pstate: int) -> None:
        """Hosts are put into a power state."""
        self._asleep = self._asleep - hosts | self._sleeping_in(hosts, pstate)

    def divide(self, request: ev.SetHostsState) -> list[ev.Event]:
        """The events by which a decision process says what it wants: hosts on or off, and the others."""
        hosts, pstate = request.hosts, request.pstate
        turned = self._sleeping_in(hosts, pstate) | hosts & self._asleep
        self.reach(hosts, pstate)
        ways = ((ev.SetHostsState, turned), (ev.ChangeHostsPState, hosts - turned))
        return [way(some, pstate, time=request.time, extra=request.extra) for way, some in ways if some]

    def check(self, request: ev.SetHostsState) -> None:
        """Refuse to turn on hosts that are on, as a Batsim 5 does."""
        awake = request.hosts - self._asleep - self._sleeping_in(request.hosts, request.pstate)
        if awake:
            raise RuleBroken(
                f"TurnOnOffHostsEvent at {request.time:f}: hosts {awake} are on already; "
                "ChangeHostsPStateEvent changes their power state"
            )

    def _sleeping_in(self, hosts: HostSet, pstate: int) -> HostSet:
        """Those of the hosts that sleep in a power state."""
        if not self._sleep_pstates:
            return HostSet()
        return HostSet.of(host for host in hosts if pstate in self._sleep_pstates.get(host, ()))


class _Alone:
    """The profiles that are registered for jobs on one host in the place of those without work."""

    def __init__(self) -> None:
        self._others: dict[tuple[str, str], Profile] = {}
        self._registered: set[tuple[str, str]] = set()

    def learn(self, event: ev.RegisterProfile) -> None:
        """A profile is registered, perhaps again."""
        self._registered.discard(key := (event.workload, event.name))
        other = jobs.on_one_host(event.profile)
        if other is None:
            self._others.pop(key, None)
        else:
            self._others[key] = other

    def said(self, event: ev.RegisterJob) -> list[ev.Event]:
        """What is said to register a job."""
        job, key = event.job, (event.job.workload, event.job.profile)
        if job.size != 1 or key not in self._others:
            return [event]
        name = f"{job.profile}{ON_ONE_HOST}"
        profile = ev.RegisterProfile(job.workload, name, self._others[key], time=event.time)
        new = [] if key in self._registered else [profile]
        self._registered.add(key)
        return [*new, structs.replace(event, job=structs.replace(job, profile=name))]


_ANSWER = "the answer to the opening of Batsim 5"
_PROTOCOL_VERSION = "1.0.0"
_JSON = 2
_FLAGS, _SIZE, _SNAPSHOT = Struct("<I"), Struct("=I"), Struct("<II")

#: What the decision process may ask for, and the name of that here.
_FEATURES = {
    "dynamic_registration": "dynamic_jobs",
    "profile_reuse": "profile_reuse",
    "acknowledge_dynamic_jobs": "acknowledge_dynamic_jobs",
    "forward_profiles_on_job_submission": "forward_profiles",
}

#: The field for the note of a job that is registered: Batsim 5 has none.
_NOTE = "jobs.csv metadata"


class _Hello(msgspec.Struct):
    requested_simulation_features: dict[str, Any] = {}


class _HelloEvent(msgspec.Struct):
    event_type: Literal["EDCHelloEvent"]
    event: _Hello


class _Greeting(msgspec.Struct):
    events: Annotated[list[_HelloEvent], msgspec.Meta(min_length=1, max_length=1)]


class Batsim5Codec(Codec):
    """Encodes and decodes the messages of one conversation."""

    happenings, decisions = HAPPENINGS, DECISIONS

    def __init__(self) -> None:
        self._asked = ev.Settings()
        """What the decision process has asked for."""
        self._opened = False
        self._tells_profiles = True
        """Whether the first message contains the profiles of the workloads."""
        self._profiles: dict[tuple[str, str], Profile] | None = None
        """By workload and name, if messages contain those of killed jobs."""
        self._places: dict[str, HostSet] = {}
        """The hosts of the jobs that this side has started."""
        self._sleep = Sleep()
        self._alone = _Alone()
        self._calls = 0
        """How many calls this side has requested."""
        self._awaited: dict[str, float] = {}
        """When the calls are to come that this side has requested, by their names."""
        self._pending: list[tuple[float, int, str]] = []
        """The calls requested from this side, as a heap: time, number, name."""

    # --- the handshake ---------------------------------------------------------------------------

    def open(self, ask: Callable[[bytes], bytes], config: str = "") -> ev.Settings:
        """Send the decision process its text, and return what it asks for."""
        text = config.encode()
        answer = ask(_SIZE.pack(len(text)) + text)
        if len(answer) < _FLAGS.size or _FLAGS.unpack_from(answer)[0] != _JSON:
            raise ProtocolError(f"{_ANSWER} does not choose JSON: {shown(answer[:40])}")
        text = _text(answer[_FLAGS.size :])
        try:
            (hello,) = msgspec.json.decode(text, type=_Greeting).events
        except UNREADABLE as error:
            if ev.STOP_MARK.encode() in text and (reason := ev.reason_to_stop(self.decode_reply(text))):
                raise PeerFailed(f"the decision process failed: {reason}") from None
            raise ProtocolError(f"{_ANSWER} is no EDCHelloEvent: {error}") from None
        asked = hello.event.requested_simulation_features
        self._tells_profiles = asked.get("forward_profiles_on_simulation_begins") is True
        self._profiles = {} if asked.get("forward_profiles_on_jobs_killed") is True else None
        self._opened = True
        wanted = {ours: asked.get(theirs) is True for theirs, ours in _FEATURES.items()}
        return ev.Settings(**wanted, forward_unknown_events=True, scheduler_config=config)

    def answer(self, said: bytes, needs: ev.Settings = ev.Settings()) -> bytes | None:
        """Greet, and ask for what is needed.

        The handshake of a development snapshot of Batsim 5 works too: it begins with a format and a size, and
        the greeting is the reply to Batsim's own, in a message.
        """
        for head, ahead in ((_SIZE, ()), (_SNAPSHOT, (_JSON,))):
            if _opens(said, head, *ahead):
                config = said[head.size :].decode("utf-8", "replace")
                self._asked = structs.replace(needs, scheduler_config=config)
                return b"" if ahead else _FLAGS.pack(_JSON) + self._hello()
        return self._hello() if b'"BatsimHelloEvent"' in said[:200] else None

    def refuse(self, said: bytes, now: float, reason: str) -> bytes:
        """The reply to a simulator that has said this; the answer to the opening begins with its format."""
        flags = _FLAGS.pack(_JSON) if _opens(said, _SIZE) else b""
        return flags + super().refuse(said, now, reason)

    def _hello(self) -> bytes:
        features = {theirs: getattr(self._asked, ours) for theirs, ours in _FEATURES.items()}
        unused = ("forward_profiles_on_jobs_killed", "forward_profiles_on_simulation_begins")
        hello = {
            "batprotocol_version": _PROTOCOL_VERSION,
            "decision_component_name": "batsched_py",
            "decision_component_version": __version__,
            "decision_component_commit": "",
            "requested_simulation_features": features | dict.fromkeys(unused, False),
        }
        return self.encode_reply(ev.Message(0.0, [ev.Unknown("EDCHelloEvent", hello)]))

    # --- at the side of the decision process -----------------------------------------------------

    def decode_request(self, text: bytes | str) -> ev.Message:
        """Decode a message of Batsim. Its times have all their digits, and are rounded to ticks here."""
        message = HAPPENINGS.decode(_text(text))
        message.now = to_tick(message.now)
        for event in message.events:
            event.time = to_tick(event.time)
            if isinstance(event, ev.JobCompleted):
                event.hosts = self._places.pop(event.job_id, event.hosts)
            elif isinstance(event, ev.JobSubmitted):
                event.job = as_told(event.job)
            elif isinstance(event, ev.RequestedCall):
                event.at = self._awaited.pop(name_of_call(event), 0.0)
            elif isinstance(event, ev.SimulationBegins):
                event.settings = self._asked
                self._sleep.begin(event.hosts)
        return message

    def encode_reply(self, message: ev.Message) -> bytes:
        """Encode a message of a decision process.

        Notes on jobs are inside their registrations; others cannot be told to a Batsim 5.
        """
        notes = {said.job_id: said.metadata for said in message.events if isinstance(said, ev.SetJobMetadata)}
        events: list[ev.Event] = []
        for event in message.events:
            if type(event) is ev.SetHostsState:
                events += self._sleep.divide(event)
            elif isinstance(event, ev.RegisterJob):
                if event.job.id in notes:
                    extra = event.job.extra | {_NOTE: notes[event.job.id]}
                    event = structs.replace(event, job=structs.replace(event.job, extra=extra))
                events += self._alone.said(event)
            elif not isinstance(event, ev.SetJobMetadata):
                if isinstance(event, ev.RegisterProfile):
                    self._alone.learn(event)
                events.append(event)
        message = said_exactly(ev.Message(message.now, events))
        return _encode(message.now, [self._spell_decision(event) for event in message.events])

    def _spell_decision(self, event: ev.Event) -> Any:
        spelled = DECISIONS.spell(event)
        if isinstance(event, ev.Unknown):
            spelled.type = ev.as_one_word(event.type)
        if isinstance(event, ev.ExecuteJob):
            self._places[event.job_id] = event.hosts
        elif isinstance(event, ev.CallMeLater | ev.CallMeAtOnce):
            self._calls += 1
            _put(spelled, "call_me_later_id", name := str(self._calls))
            self._awaited[name] = to_tick(event.at) if isinstance(event, ev.CallMeLater) else event.time
        return spelled

    # --- at the side of the simulator ------------------------------------------------------------

    def decode_reply(self, text: bytes | str) -> ev.Message:
        """Decode a message of a decision process."""
        message = DECISIONS.decode(_text(text))
        events: list[ev.Event] = []
        for event in message.events:
            if events and event.time < events[-1].time:
                raise ProtocolError(f"an event at {event.time:g} stands below one at {events[-1].time:g}")
            events.append(event)
            if isinstance(event, ev.CallMeLater):
                self._calls += 1
                heappush(self._pending, (max(event.at, event.time), self._calls, name_of_call(event)))
                if event.at <= event.time:
                    events[-1] = ev.CallMeAtOnce(time=event.time)
            elif isinstance(event, ev.RegisterProfile):
                self._learn(event.workload, {event.name: event.profile})
            elif isinstance(event, ev.RegisterJob):
                extra = dict(event.job.extra)
                note = extra.pop(_NOTE) if isinstance(extra.get(_NOTE), str) else None
                event.job = structs.replace(event.job, submission_time=event.time, extra=extra)
                if note is not None:
                    events.append(ev.SetJobMetadata(event.job.id, note, time=event.time))
            elif type(event) is ev.SetHostsState:
                self._sleep.check(event)
        return ev.Message(message.now, events)

    def encode_request(self, message: ev.Message) -> bytes:
        """Encode a message of Batsim; it ends with a zero byte."""
        return _encode(message.now, [self._spell_happening(event) for event in message.events]) + b"\0"

    def _spell_happening(self, event: ev.Event) -> Any:
        if isinstance(event, ev.HostsStateChanged):
            self._sleep.reach(event.hosts, event.pstate)
        if isinstance(event, ev.SimulationBegins):
            self._sleep.begin(event.hosts)
            for workload, profiles in event.profiles.items():
                self._learn(workload, profiles)
            if not self._tells_profiles:
                event = structs.replace(event, profiles={})
            if self._opened:
                event = structs.replace(event, extra=_ABOUT_US | (event.extra or {}))
        spelled = HAPPENINGS.spell(event)
        if isinstance(event, ev.RequestedCall) and self._pending:
            _put(spelled, "call_me_later_id", heappop(self._pending)[2])
        if isinstance(event, ev.JobsKilled) and self._profiles is not None:
            _put(spelled, "profiles", _killed(event, self._profiles))
        return spelled

    def _learn(self, workload: str, profiles: Mapping[str, Profile]) -> None:
        if self._profiles is not None:
            self._profiles |= {(workload, name): profile for name, profile in profiles.items()}


def _opens(said: bytes, head: Struct, *ahead: int) -> bool:
    """Whether a message is a text for the decision process: after such a head, which has its length."""
    return len(said) >= head.size and head.unpack_from(said) == (*ahead, len(said) - head.size)


#: What our simulator sends about itself at the beginning.
_ABOUT_US = {
    "batprotocol_version": _PROTOCOL_VERSION,
    "batsim_version": f"batsched_py {__version__}",
    "batsim_commit": "",
    "batsim_arguments": [],
    "batsim_execution_context_json": "{}",
    "external_event_lists": [],
}


def _text(said: bytes | str) -> bytes:
    """A message without the zero byte at its end."""
    text = said.encode() if isinstance(said, str) else said
    return text.removesuffix(b"\0")


def _encode(now: float, events: list[Any]) -> bytes:
    return encode(now, events, partial(json.dumps, allow_nan=False))


def _killed(event: ev.JobsKilled, known: Mapping[tuple[str, str], Profile]) -> list[Any]:
    """The profiles of the jobs that were killed, each once, without those of which they are composed."""
    found: dict[tuple[str, str], Any] = {}
    for job_id, progress in event.progress.items():
        workload = job_id.partition("!")[0]
        if (key := (workload, progress.profile)) in known:
            found[key] = jobs.profile_to_message(known[key], progress.profile, workload)
    return list(found.values())


def _put(spelled: Any, name: str, value: Any) -> None:
    """Set a field of an encoded event."""
    if isinstance(spelled.data, dict):
        spelled.data[name] = value
    else:
        setattr(spelled.data, name, value)
