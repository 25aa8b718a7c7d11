"""Replaying a recorded conversation of the real Batsim against the built-in one."""

from __future__ import annotations

import csv
import json
import re
from math import floor, log10
from pathlib import Path
from typing import Any

from batsched_py.protocol import events as ev
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.wire import conversation
from batsched_py.wire.conversation import read_conversation

UNCOMPARED = {"batsim_version", "scheduling_time", "simulation_time"}


class Recording:
    """One folder of recordings: what both sides said, and the files that came out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = folder.name
        batsim, self.scheduler_command = [
            line.split(": ", 1)[1].split() for line in (folder / "command.txt").read_text().splitlines()[:2]
        ]
        self.command = batsim[1:]
        self.conversation = read_conversation(folder / "conversation.jsonl")
        self.requests = [json.loads(exchange.request) for exchange in self.conversation]
        self.replies = [exchange.reply for exchange in self.conversation if exchange.reply is not None]

    def events(self) -> list[dict[str, Any]]:
        """Everything that Batsim said, in order."""
        return [event for request in self.requests for event in request["events"]]


class RecordedProcess(conversation.RecordedProcess):
    """A decision process that decides as recorded, and notes what it is told."""

    needs = ev.Settings()

    def __init__(self, recording: Recording) -> None:
        super().__init__(conversation.understand(recording.conversation))
        self.said: list[dict[str, Any]] = []
        """All events that it was told of."""
        self.finished = False

    def react(self, request: ev.Message) -> ev.Message:
        """Answer one request of the simulator."""
        self.said += json.loads(BATSIM4.codec().encode_request(request))["events"]
        self.finished = isinstance(request.events[0], ev.SimulationEnds)
        return super().react(request)


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file without the columns that measure the machine it was made on."""
    with path.open(newline="") as file:
        return [{k: v for k, v in row.items() if k not in UNCOMPARED} for row in csv.DictReader(file)]


def same(ours: Any, recorded: Any) -> bool:
    """Equal; numbers to six decimals, large ones to the precision of Batsim's reader of JSON."""
    return conversation.differs(recorded, ours) is None


def same_trace(ours: list[dict[str, str]], recorded: list[dict[str, str]]) -> bool:
    """Equal rows of a file whose times have six digits.

    SimGrid's clock differs from ours in the last bit, so a time that lies between two printed ones may be
    rounded to either; and where no time has passed since the row before, it divides by this bit.
    """
    return len(ours) == len(recorded) and all(map(_same_row, ours, recorded))


def _same_row(ours: dict[str, str], recorded: dict[str, str]) -> bool:
    times = float(ours["time"]), float(recorded["time"])
    digit = 10.0 ** (floor(log10(max(times))) - 5) if max(times) > 0 else 0.0
    free = {"time", "epower"} if ours.get("epower") == "NA" else {"time"}
    return abs(times[0] - times[1]) <= 1.001 * digit and all(
        ours[column] == recorded[column] or _six_digits(ours[column]) == recorded[column]
        for column in recorded.keys() - free
    )


def _six_digits(text: str) -> str:
    """A number as a Batsim 4.2.0 wrote it; 4.2.1 and we write six decimals of energy and power."""
    return f"{float(text):g}" if re.fullmatch(r"-?\d+\.\d{6}", text) else text
