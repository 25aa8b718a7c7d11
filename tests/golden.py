"""Replaying a recorded conversation of the real Batsim against the built-in one."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

from batsched_py.protocol import events as ev
from batsched_py.protocol.batsim4 import decode_reply, encode_request
from batsched_py.simulation import simulate
from batsched_py.simulator.engine import Batsim

UNCOMPARED = {"batsim_version", "scheduling_time", "simulation_time"}


class Recording:
    """One folder of recordings: what both sides said, and the files that came out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        batsim, self.scheduler_command = [
            line.split(": ", 1)[1].split() for line in (folder / "command.txt").read_text().splitlines()
        ]
        self.command = batsim[1:]
        lines = [json.loads(line) for line in (folder / "conversation.jsonl").read_text().splitlines()]
        self.requests = [json.loads(line["message"]) for line in lines if line["from"] == "batsim"]
        self.replies = [line["message"] for line in lines if line["from"] == "scheduler"]

    def events(self) -> list[dict[str, Any]]:
        """Everything that Batsim said, in order."""
        return [event for request in self.requests for event in request["events"]]


class RecordedProcess:
    """A decision process that decides as recorded, each decision as soon as its time has come."""

    def __init__(self, recording: Recording) -> None:
        self.said: list[dict[str, Any]] = []
        """All events that it was told of."""
        self.finished = False
        self._decisions = [
            (request["now"], decode_reply(reply))
            for request, reply in zip(recording.requests, recording.replies, strict=True)
        ]

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        self.said += json.loads(encode_request(request))["events"]
        self.finished = isinstance(request.events[0], ev.SimulationEnds)
        reply = ev.Message(request.now, [])
        while self._decisions and (self.finished or self._decisions[0][0] <= request.now):
            _, recorded = self._decisions.pop(0)
            reply.events += recorded.events
            reply.now = max(reply.now, recorded.now)
        return reply


def replay(batsim: Batsim, recording: Recording) -> list[dict[str, Any]]:
    """Feed the recorded decisions to a Batsim; everything that it said."""
    process = RecordedProcess(recording)
    simulate(batsim, process)
    return process.said


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file without the columns that measure the machine it was made on."""
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in UNCOMPARED} for row in csv.DictReader(file)]


def same(ours: Any, recorded: Any) -> bool:
    """Equal; numbers to six decimals, large ones to the precision of Batsim's reader of JSON."""
    if isinstance(ours, dict) and isinstance(recorded, dict):
        return ours.keys() == recorded.keys() and all(same(ours[key], recorded[key]) for key in ours)
    if isinstance(ours, list) and isinstance(recorded, list):
        return len(ours) == len(recorded) and all(map(same, ours, recorded))
    if isinstance(ours, float | int) and isinstance(recorded, float | int):
        return abs(ours - recorded) <= max(1.1e-6, 1e-14 * abs(recorded))
    return bool(ours == recorded)
