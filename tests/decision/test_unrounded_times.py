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

from batsched_py.campaign.batsim5 import fill_in_notes
from batsched_py.decision.notes import NoteKeeper
from batsched_py.decision.server import Server
from batsched_py.experiment import Actors, Choice, Machine, Scenario, Workloads
from batsched_py.experiment.build import new_batsim, new_process, read_machine, read_workloads
from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim5.codec import Batsim5Codec
from batsched_py.protocol.dialects import BATSIM5
from batsched_py.simulation import simulate
from batsched_py.simulator.client import RemoteProcess
from batsched_py.simulator.outputs5 import Batsim5Outputs
from batsched_py.users import USERS
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd
from tests.cli.test_serve_and_batsim import first_jobs
from tests.processes import PATIENCE, call_here

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


def jobs_over_the_wire(actors: Actors, log: Path, machine: Machine, prefix: Path) -> bytes:
    """The ``jobs.csv`` of the stand-in, with the notes on jobs that Batsim 5 is not told."""
    read = read_workloads(Workloads(files=(str(log),)))
    process = NoteKeeper(new_process(actors, read), Path(f"{prefix}notes.csv"))
    with AnsweringEnd("tcp://127.0.0.1:*", PATIENCE) as back, AskingEnd(back.endpoint, PATIENCE) as front:
        service = Thread(target=Server(back, lambda: process).serve)
        service.start()
        remote = RemoteProcess(front, UNROUNDED)
        scenario = Scenario(settings=remote.open())
        static = read if actors.users is None else ()
        simulate(new_batsim(scenario, read_machine(machine, read), static, str(prefix), Batsim5Outputs), remote)
        service.join(PATIENCE)
    jobs = Path(f"{prefix}jobs.csv")
    fill_in_notes(jobs, Path(f"{prefix}notes.csv"))
    return jobs.read_bytes()


@pytest.mark.parametrize("name", [None, *USERS.all(), "patience(fluid)", "sober(patience(adjusted))"])
def test_users_do_what_they_do_in_one_process(name: str | None, tmp_path: Path) -> None:
    log, prefix = first_jobs(tmp_path / "log.swf", 150), tmp_path / "one"
    known = {} if name is None else USERS.options(name)
    options = {key: value for key, value in OPTIONS.items() if key in known}
    users = [] if name is None else ["--users", name]
    words = [word for key, value in options.items() for word in ("-u", f"{key}={value}")]
    command = ["run", "-s", "easy", "-w", log, "--hosts", "64", "-e", prefix, *users, *words]
    code, _, complaint = call_here(command)
    assert (code, complaint) == (0, "")
    actors = Actors(scheduler=Choice("easy"), users=None if name is None else Choice(name, options))
    expected = Path(f"{prefix}_jobs.csv").read_bytes()
    assert expected.count(b"\n") > 20
    assert jobs_over_the_wire(actors, log, Machine(hosts=64), tmp_path / "five_") == expected
