"""What the controls of a campaign say: the same users on the machine of their log, beside its runs.

A control is no run of the plan. It is in a campaign of its own, in the folder ``control``, and what it says
about the runs of the plan is in one file, which only tables, pages and reviews read.
"""

from __future__ import annotations

from os.path import isfile
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from batsched_py.analysis.runs.columns import OF_CONTROL
from batsched_py.campaign.files import read_json
from batsched_py.campaign.run import RunResult, RunWindow

#: Where a campaign keeps its controls, and what they say.
CONTROL_FOLDER: Final = "control"
CONTROL_FILE: Final = "control.json"


class LogControl(Struct, frozen=True):
    """How the control of a log is simulated."""

    scheduler: str
    """The policy whose waits on the machine of the log are nearest to the recorded ones."""
    hosts: int
    trust: str
    """What `batsched-py calibrate` says of this policy and the log: in one word, and in several."""
    words: str

    def __str__(self) -> str:
        return f"{self.scheduler} on {self.hosts:,} hosts"


class Controlled(Struct, frozen=True):
    """What the control says about a run."""

    identity: str
    """That of the run: of another one, it says nothing."""
    windows: dict[str, dict[str, float]]
    """By the number of the part of the log, or for all of the run."""


class Controls(Struct, frozen=True):
    """The controls of a campaign."""

    logs: dict[str, LogControl] = {}
    runs: dict[str, Controlled] = {}
    without: list[str] = []
    """Which logs have no control, and why."""

    @classmethod
    def read(cls, folder: Path) -> Controls:
        """Those of the campaign in a folder, if it has any."""
        file = folder / CONTROL_FILE
        return read_json(file, cls) if isfile(file) else cls()

    def of(self, run: RunResult) -> LogControl | None:
        """The control beside a run."""
        known = self.runs.get(run.name)
        is_its = known is not None and known.identity == run.run.identity
        return self.logs.get(run.axes["log"]) if is_its else None

    def beside(self, window: RunWindow) -> RunWindow:
        """A window of a run with what the control says about it."""
        if self.of(window.run) is None:
            return window
        said = self.runs[window.run.name].windows.get(window.part, {})
        return replace(window, metrics=window.metrics | {name: said.get(name) for name in OF_CONTROL})

    @property
    def remarks(self) -> list[str]:
        """What a reader of the results must know."""
        told = [
            f"{log}: the control is {control}, which fits the log: {control.trust}. {control.words}"
            for log, control in self.logs.items()
        ]
        return [*told, *self.without]
