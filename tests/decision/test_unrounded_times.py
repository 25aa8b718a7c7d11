"""A Batsim 5 whose times are not rounded, over a real socket: users must do what they do in ``run``.

The stand-in is the built-in Batsim. Its messages contain the neighbours of the times that it means, as those
of a real Batsim 5 do (116788.999999999985 for a call at 116789), and some of its calls come a little early.
"""

from __future__ import annotations

import json
from math import inf, nextafter
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from msgspec.structs import replace

from batsched_py.campaign.batsim import fill_in_notes
from batsched_py.decision.server import Answers, NoteKeeper, Server
from batsched_py.engines.python import simulate
from batsched_py.experiment import Actors, Choice, Machine, Scenario, Workloads
from batsched_py.experiment.build import new_batsim, new_process, read_machine, read_workloads
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim5.codec import Batsim5Codec
from batsched_py.protocol.dialects import BATSIM5
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.simulator.outputs import Batsim5Outputs
from batsched_py.users import USERS
from batsched_py.wire.conversation import ConversationFile, read_conversation
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd
from batsched_py.workload.model import Workload
from tests.cli.test_serve_and_batsim import first_jobs
from tests.processes import PATIENCE, call_here, serving

#: How much too early every third call comes, in seconds.
EARLY = 0.0004

#: So that users of a short log are impatient and sober enough for it to matter.
OPTIONS = {
    "for_good": "0.3",
    "withdraw": "true",
    "tolerated": "nothing",
    "windows": "9-17",
    "later": "0.2",
    "fewer": "0.2",
    "less": "0.2",
    "give_up": "0.2",
    "weeks": "1",
    "margin": "0",
}


def neighbour(time: float) -> float:
    """A number beside a time: always the same one."""
    if time == 0:
        return time
    return nextafter(time, -inf if round(time) % 3 else inf)


class UnroundedCodec(Batsim5Codec):
    """What the built-in Batsim says, with times as a real one prints them."""

    def __init__(self) -> None:
        super().__init__()
        self._nb_calls = 0

    def encode_request(self, message: ev.Message) -> bytes:
        said: dict[str, Any] = json.loads(super().encode_request(message).removesuffix(b"\0"))
        said["now"] = neighbour(said["now"])
        for event in said["events"]:
            event["timestamp"] = neighbour(event["timestamp"])
            if "submission_time" in event["event"]:
                event["event"]["submission_time"] = neighbour(event["event"]["submission_time"])
        return json.dumps(said).encode() + b"\0"

    def decode_reply(self, text: bytes | str) -> ev.Message:
        message = super().decode_reply(text)
        for event in message.events:
            if isinstance(event, ev.CallMeLater):
                self._nb_calls += 1
                if self._nb_calls % 3 == 0:
                    event.at = max(event.at - EARLY, message.now + 1e-5)
        return message


UNROUNDED = replace(BATSIM5, codec=UnroundedCodec)


class Overheard(AskingEnd):
    """An end of a conversation that is written down."""

    def __init__(self, endpoint: str, file: ConversationFile) -> None:
        super().__init__(endpoint, PATIENCE)
        self._file = file

    def ask(self, said: bytes) -> bytes:
        reply = super().ask(said)
        self._file.write("batsim", said)
        self._file.write("scheduler", reply)
        return reply


def stand_in(endpoint: str, folder: Path, static: list[Workload]) -> None:
    """Simulate on 64 hosts, with ``talk.jsonl`` and the results in a folder."""
    with (
        ConversationFile(folder / "talk.jsonl") as file,
        Overheard(endpoint, file) as end,
    ):
        remote = RemoteProcess(end, UNROUNDED)
        scenario = Scenario(settings=remote.open())
        machine = read_machine(Machine(hosts=64), static)
        simulate(new_batsim(scenario, machine, static, f"{folder}/five_", Batsim5Outputs), remote)


def options_for(name: str) -> dict[str, str]:
    return {key: value for key, value in OPTIONS.items() if key in USERS.options(name)}


def words_for(name: str | None, log: Path) -> list[str | Path]:
    """What the commands are told of the actors."""
    if name is None:
        return ["-s", "easy"]
    options = [word for key, value in options_for(name).items() for word in ("-u", f"{key}={value}")]
    return ["-s", "easy", "--users", name, *options, "-w", log]


def expected_jobs(name: str | None, log: Path, folder: Path) -> bytes:
    """The ``jobs.csv`` of one process."""
    words = words_for(name, log) if name is not None else ["-s", "easy", "-w", log]
    code, _, complaint = call_here(["run", *words, "--hosts", "64", "-e", folder / "one"])
    assert (code, complaint) == (0, "")
    jobs = (folder / "one_jobs.csv").read_bytes()
    assert jobs.count(b"\n") > 20
    return jobs


@pytest.mark.parametrize("name", [None, *USERS.all(), "patience(fluid)", "sober(patience(adjusted))"])
def test_users_do_what_they_do_in_one_process(name: str | None, tmp_path: Path) -> None:
    check_users(name, 150, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fluid", "distribution", "patience(think-time)"])
def test_users_of_the_whole_sample_do_what_they_do_in_one_process(name: str, tmp_path: Path) -> None:
    check_users(name, 3000, tmp_path)


def check_users(name: str | None, nb_jobs: int, tmp_path: Path) -> None:
    """Simulate in one process and with the stand-in, and compare."""
    log, notes = first_jobs(tmp_path / "log.swf", nb_jobs), tmp_path / "notes.csv"
    expected = expected_jobs(name, log, tmp_path)
    read = read_workloads(Workloads(files=(str(log),)))
    actors = Actors(scheduler=Choice("easy"), users=None if name is None else Choice(name, options_for(name)))
    with AnsweringEnd("tcp://127.0.0.1:*", PATIENCE) as end:
        service = Thread(target=Server(end, lambda: NoteKeeper(new_process(actors, read), notes)).serve)
        service.start()
        stand_in(end.endpoint, tmp_path, read if name is None else [])
        service.join(PATIENCE)
    jobs = tmp_path / "five_jobs.csv"
    fill_in_notes(jobs, notes)
    assert jobs.read_bytes() == expected
    assert_same_answers(tmp_path / "talk.jsonl", new_process(actors, read))


def assert_same_answers(talk: Path, process: Answers) -> None:
    """A process that is asked what was recorded answers as it was recorded."""
    codec = BATSIM5.codec()
    conversation = read_conversation(talk)
    nows = [json.loads(one.request[:-1])["now"] for one in conversation[1:]]
    assert any(now != round(now, 6) for now in nows)
    for exchange in conversation:
        answer = codec.answer(exchange.request, process.needs)
        if answer is None:
            answer = codec.encode_reply(process.react(codec.decode_request(exchange.request)))
        assert answer == exchange.reply


def test_so_they_do_in_a_process_of_their_own_which_keeps_their_notes(tmp_path: Path) -> None:
    name = "sober(patience(adjusted))"
    log, notes = first_jobs(tmp_path / "log.swf", 150), tmp_path / "notes.csv"
    with serving(*words_for(name, log), "--notes", notes) as service:
        stand_in(service.endpoint, tmp_path, [])
        assert service.end() == (0, [])
    jobs = tmp_path / "five_jobs.csv"
    assert b"left=" not in jobs.read_bytes()
    fill_in_notes(jobs, notes)
    assert b"left=" in jobs.read_bytes()
    assert jobs.read_bytes() == expected_jobs(name, log, tmp_path)
