"""How much of the house a job passes, as the page about the architecture tells it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim, simulate
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.platform import Platform
from batsched_py.simulator.setup import Setup
from batsched_py.simulator.world import World
from batsched_py.testing import JobSpec, workload_of


def test_a_job_passes_as_many_files_as_the_architecture_says(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those in which a function is called from its submission on until all have heard of its end."""
    package, passed = root / "batsched_py", set[str]()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and Path(frame.f_code.co_filename).is_relative_to(package):
            passed.add(frame.f_code.co_filename)

    submit, hear_end = World._submit, DecisionProcess.job_ended

    def begin(world: World, job: object) -> None:
        sys.setprofile(note)
        submit(world, job)  # type: ignore[arg-type]

    def end(*arguments: object) -> None:
        hear_end(*arguments)  # type: ignore[arg-type]
        sys.setprofile(None)

    monkeypatch.setattr(World, "_submit", begin)
    monkeypatch.setattr(DecisionProcess, "job_ended", end)
    easy = DecisionProcess(SCHEDULERS.create("easy", {}))
    setup = Setup(Platform.homogeneous(64), [workload_of([JobSpec("0", 0, 4, 100)])])
    assert simulate(Batsim(setup), easy).nb_success == 1
    told = re.search(r"passes (\d+) files", (root / "docs" / "architecture.md").read_text())
    assert told is not None
    assert len(passed) == int(told[1]), sorted(passed)
