"""Energy, external events and slow schedulers on the command line: in one process, and in two."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py.cli.main import batsched_py
from batsched_py.errors import InputError
from batsched_py.simulator.agenda import read_generic_events
from tests.processes import PATIENCE, call_here, recording, serving

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"
POWER60 = ["-w", GOLDEN / "power60_sleeper" / "power60.json", "-p", GOLDEN / "power60_sleeper" / "power8.xml"]
RIGID200 = ["-w", GOLDEN / "outage_filler" / "rigid200.json", "-p", GOLDEN / "outage_filler" / "flat16.xml"]
OUTAGE = ["--events", GOLDEN / "outage_filler" / "outage.txt"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, ["run", *map(str, arguments)])


@pytest.mark.parametrize(
    ("simulated", "decided", "files"),
    [
        (
            [*POWER60, "--energy"],
            ["-s", "sleeper", "-o", "idle_time=30"],
            ["jobs", "schedule", "consumed_energy", "pstate_changes", "machine_states"],
        ),
        ([*RIGID200, *OUTAGE], ["-s", "easy"], ["jobs", "schedule"]),
        (RIGID200, ["-s", "easy", "--scheduling-delay", "12.3456789"], ["jobs", "schedule"]),
    ],
    ids=["energy", "events", "scheduling-delay"],
)
def test_two_processes_write_the_bytes_of_one(
    simulated: list[str | Path], decided: list[str], files: list[str], tmp_path: Path
) -> None:
    assert run(*simulated, *decided, "-e", tmp_path / "one").exit_code == 0
    with serving(*decided) as service:
        options = ["-s", service.endpoint, "-e", tmp_path / "two", "--timeout", str(PATIENCE)]
        assert call_here(["batsim", *simulated, *options]) == (0, "", "")
    for name in files:
        one, two = (tmp_path / f"{side}_{name}.csv" for side in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()


def test_a_batsim_5_turns_hosts_on_and_off_as_one_process_does(tmp_path: Path) -> None:
    decided = ["-s", "sleeper", "-o", "idle_time=30"]
    assert run(*POWER60, "--energy", *decided, "-e", tmp_path / "one").exit_code == 0
    traced = ["--energy-host", "--trace-machine-state", "--trace-pstate-changes", "-e", f"{tmp_path}/two_"]
    talk = tmp_path / "talk.jsonl"
    with serving(*decided) as service, recording(talk, service.endpoint) as recorder:
        options = ["--protocol", "5", "-s", recorder.endpoint, "", "--timeout", str(PATIENCE)]
        assert call_here(["batsim", *options, *POWER60, *traced]) == (0, "", "")
        assert recorder.end() == (0, [])
    for name in ("jobs", "consumed_energy", "pstate_changes", "machine_states"):
        one, two = (tmp_path / f"{side}_{name}.csv" for side in ("one", "two"))
        assert one.read_bytes() == two.read_bytes()
    said = talk.read_text()
    assert "TurnOnOffHostsEvent" in said and "HostsTurnedOnOffEvent" in said
    assert "ChangeHostsPStateEvent" not in said


def generic(time: float, text: str) -> str:
    """A line of an event file of Batsim 5."""
    return json.dumps({"timestamp": time, "type": "generic", "data": text})


def test_an_outage_is_found_in_the_text_of_a_generic_event_of_batsim_5(tmp_path: Path) -> None:
    gone, back = ({"type": f"machine_{what}", "resources": "0-3"} for what in ("unavailable", "available"))
    four, five = tmp_path / "four.txt", tmp_path / "five.txt"
    four.write_text(f"{json.dumps(gone | {'timestamp': 100})}\n{json.dumps(back | {'timestamp': 600})}\n")
    lines = [generic(100, json.dumps(gone)), generic(300, "any text"), generic(600, json.dumps(back))]
    five.write_text("\n".join(lines))
    assert run(*RIGID200, "--events", four, "-s", "easy", "-e", tmp_path / "one").exit_code == 0
    with serving("-s", "easy") as service:
        options = ["--protocol", "5", "-s", service.endpoint, "", "--timeout", str(PATIENCE)]
        events = ["--external-events", five, "-e", f"{tmp_path}/two_"]
        assert call_here(["batsim", *options, *RIGID200, *events]) == (0, "", "")
    assert (tmp_path / "one_jobs.csv").read_bytes() == (tmp_path / "two_jobs.csv").read_bytes()


def test_a_batsim_5_takes_generic_events_only(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text('{"timestamp": 1, "type": "machine_unavailable", "resources": "0"}')
    with pytest.raises(InputError, match="line 1: type 'machine_unavailable' is not generic, the only one"):
        read_generic_events(path, "ee0")
    path.write_text('{"timestamp": 1, "type": "generic", "data": {}}')
    with pytest.raises(InputError, match="line 1: `data` must be a text"):
        read_generic_events(path, "ee0")


def test_a_slow_scheduler_starts_jobs_later(tmp_path: Path) -> None:
    first = {}
    for delay in ("0", "5"):
        assert (
            run(*RIGID200, "-s", "fcfs", "--scheduling-delay", delay, "-e", tmp_path / delay).exit_code == 0
        )
        with (tmp_path / f"{delay}_jobs.csv").open() as file:
            first[delay] = float(next(csv.DictReader(file))["starting_time"])
    assert first["5"] == pytest.approx(first["0"] + 5)


def test_the_report_tells_the_energy_and_all_files(tmp_path: Path) -> None:
    result = run(*POWER60, "--energy", "-s", "fcfs", "-e", tmp_path / "out", "--json")
    report = json.loads(result.stdout)
    assert report["consumed_joules"] == pytest.approx(9.2177e6, rel=1e-4)
    assert all(Path(file).exists() for file in report["files"])
    assert len(report["files"]) == 5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([*RIGID200, "--energy"], "host 'node00' does not say what power it draws"),
        ([*RIGID200, "--events", "nowhere.txt"], "nowhere.txt: cannot read this event file"),
        (POWER60, "power states can be changed with --energy only"),
    ],
)
def test_what_cannot_be_simulated_is_one_line(
    arguments: list[str | Path], message: str, tmp_path: Path
) -> None:
    result = run(*arguments, "-s", "sleeper", "-e", tmp_path / "out")
    assert result.exit_code == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_machine_states_are_not_traced_when_that_is_disabled(tmp_path: Path) -> None:
    with serving("-s", "fcfs") as service:
        options = ["-s", service.endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE)]
        assert call_here(["batsim", *RIGID200, *options, "--disable-machine-state-tracing"]) == (0, "", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "out_jobs.csv",
        "out_schedule.csv",
        "out_schedule.trace",
    ]
