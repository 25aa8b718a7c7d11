"""The built-in Batsim, started as the real one was and told the same, says the same and writes the same.

The command line, the wire and the simulator are all in it: the recorded command runs against a decision
process behind a real socket that decides as recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest

from batsched_py.cli.batsim import batsim_command
from batsched_py.decision.server import Server
from batsched_py.wire.sockets import AnsweringEnd
from tests.golden import RecordedProcess, Recording, rows, same, same_trace
from tests.processes import PATIENCE

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
RECORDINGS = [folder for folder in sorted(GOLDEN.iterdir()) if folder.is_dir()]
TRACES = ("machine_states.csv", "consumed_energy.csv", "pstate_changes.csv")


def run_batsim(arguments: Sequence[str], process: RecordedProcess) -> None:
    """Run the command ``batsim`` against a decision process, each at its end of a socket."""
    with AnsweringEnd("tcp://127.0.0.1:*", timeout=PATIENCE) as end:
        service = Thread(target=Server(end, lambda: process).serve)
        service.start()
        try:
            batsim_command.main(
                [*arguments, "-s", end.endpoint, "--timeout", str(PATIENCE)], standalone_mode=False
            )
        finally:
            service.join(PATIENCE)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_the_same_decisions_have_the_same_consequences(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = Recording(folder)
    process = RecordedProcess(recording)
    monkeypatch.chdir(folder)
    run_batsim([*recording.command, "-e", str(tmp_path / "ours")], process)
    assert len(process.said) == len(recording.events())
    for ours, recorded in zip(process.said, recording.events(), strict=True):
        assert same(ours, recorded)
    for name in ("jobs.csv", "schedule.csv"):
        assert rows(tmp_path / f"ours_{name}") == rows(folder / name)
    for name in TRACES:
        assert (tmp_path / f"ours_{name}").exists() == (folder / name).exists()
        if (folder / name).exists():
            assert same_trace(rows(tmp_path / f"ours_{name}"), rows(folder / name))
