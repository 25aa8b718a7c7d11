"""Protocol 5 with our own two sides, against protocol 4 and against ``run`` in one process."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner

from batsched_py.cli.main import batsched_py
from batsched_py.decision.server import Server
from batsched_py.engines.python import simulate
from batsched_py.experiment import Actors, Choice, Machine, Scenario, Workloads
from batsched_py.experiment.build import new_batsim, new_process, read_machine, read_workloads
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.events import Settings
from batsched_py.schedulers import SCHEDULERS
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.simulator.outputs import Batsim5Outputs, Outputs
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd
from tests.cli.test_serve_and_batsim import GOLDEN, first_jobs, scenario
from tests.processes import PATIENCE, Peer, call_here, recording, serving

ANYWHERE = "tcp://127.0.0.1:*"
#: Batsim 5's first words, with a text for the decision process.
OPENING = struct.pack("=I", 2) + b"hi"


def in_process(prefix: Path, actors: Actors, workloads: Workloads, machine: Machine) -> bytes:
    options = ["run", "-e", str(prefix), "-s", actors.scheduler.name]
    options += ["--users", actors.users.name] if actors.users is not None else []
    options += [word for file in workloads.files for word in ("-w", file)]
    options += ["-p", machine.file] if machine.file is not None else ["--hosts", str(machine.hosts)]
    result = CliRunner().invoke(batsched_py, options)
    assert result.exit_code == 0, result.stderr
    return Path(f"{prefix}_jobs.csv").read_bytes()


def over_the_wire(
    version: str, prefix: Path, actors: Actors, workloads: Workloads, machine: Machine
) -> bytes:
    """The ``jobs.csv`` of the built-in Batsim and the server, each at its end of a socket."""
    read = read_workloads(workloads)
    static = read if actors.users is None else ()
    dialect, outputs = (BATSIM4, Outputs) if version == "4" else (BATSIM5, Batsim5Outputs)
    with AnsweringEnd(ANYWHERE, PATIENCE) as back, AskingEnd(back.endpoint, PATIENCE) as front:
        service = Thread(target=Server(back, lambda: new_process(actors, read)).serve)
        service.start()
        process = RemoteProcess(front, dialect)
        asked = process.open()
        if asked is None:
            asked = Settings(dynamic_jobs=bool(actors.users), profile_reuse=bool(actors.users))
        scenario = Scenario(settings=asked)
        name = f"{prefix}_" if version == "5" else str(prefix)
        simulate(new_batsim(scenario, read_machine(machine, read), static, name, outputs), process)
        service.join(PATIENCE)
    return Path(f"{prefix}_jobs.csv").read_bytes()


@pytest.mark.parametrize("users", [None, "think-time"])
@pytest.mark.parametrize("scheduler", SCHEDULERS.all())
def test_both_protocols_write_the_bytes_of_one_process(
    scheduler: str, users: str | None, tmp_path: Path
) -> None:
    sample = first_jobs(tmp_path / "sample.swf", 60)
    actors = Actors(scheduler=Choice(scheduler), users=None if users is None else Choice(users))
    setting = (actors, Workloads(files=(str(sample),)), Machine(hosts=64))
    expected = in_process(tmp_path / "one", *setting)
    assert expected.count(b"\n") == 61
    for version in ("4", "5"):
        assert over_the_wire(version, tmp_path / version, *setting) == expected


@pytest.mark.parametrize("name", ["rigid200_fcfs", "kinds120_fcfs"])
def test_times_with_fractions_and_all_kinds_of_profiles_make_no_difference(name: str, tmp_path: Path) -> None:
    _, workload, _, platform = map(str, scenario(name))
    actors = Actors(scheduler=Choice("easy"))
    setting = (actors, Workloads(files=(workload,)), Machine(file=platform))
    assert over_the_wire("5", tmp_path / "5", *setting) == in_process(tmp_path / "one", *setting)


def batsim5(endpoint: str, *arguments: str | Path) -> None:
    """Run ``batsim`` with the options of Batsim 5."""
    options = ["batsim", "--protocol", "5", "-s", endpoint, "hi", "--timeout", str(PATIENCE)]
    assert call_here([*options, *arguments]) == (0, "", "")


def test_the_service_tells_4_from_5_and_the_files_are_those_of_each(tmp_path: Path) -> None:
    with serving("-s", "fcfs", "--keep-alive") as service:
        batsim5(service.endpoint, *scenario("rigid200_fcfs"), "-e", f"{tmp_path}/new/")
        old = ["batsim", "-s", service.endpoint, "-e", tmp_path / "old", *scenario("rigid200_fcfs")]
        assert call_here(old) == (0, "", "")
    assert (tmp_path / "new" / "jobs.csv").read_bytes() == (tmp_path / "old_jobs.csv").read_bytes()
    names = {path.name for path in (tmp_path / "new").iterdir()}
    assert names == {"jobs.csv", "schedule.json"}
    rows = [row.split(",") for row in (tmp_path / "old_jobs.csv").read_text().splitlines()[1:]]
    makespan = max(float(row[10]) for row in rows) - min(float(row[3]) for row in rows)
    summary = json.loads((tmp_path / "new" / "schedule.json").read_text())
    assert summary["makespan"] == pytest.approx(makespan, abs=1e-5)
    assert summary["nb_jobs"] == 200


def test_a_conversation_is_recorded_and_held_again_with_either_side(tmp_path: Path) -> None:
    talk, inputs = tmp_path / "talk.jsonl", scenario("rigid200_fcfs")
    with serving("-s", "easy") as service, recording(talk, service.endpoint) as recorder:
        batsim5(recorder.endpoint, *inputs, "-e", f"{tmp_path}/")
        assert recorder.end() == (0, [])
    for side in (["-s", "easy"], ["--to", "batsim", *inputs]):
        result = CliRunner().invoke(batsched_py, list(map(str, ["replay", talk, *side])))
        assert (result.exit_code, result.stderr) == (0, "")
        assert "events as recorded" in result.stdout


@pytest.mark.parametrize("policy", ["fcfs", "easy"])
@pytest.mark.parametrize("workload", ["test_delays", "test_various_profile_types"])
def test_our_policies_decide_as_the_snapshot_of_batsim_5_heard_it(
    policy: str, workload: str, shared: Path
) -> None:
    """FCFS and EASY of other authors, for a Batsim 5 of December 2024."""
    path = shared / "golden" / "batsim5-snapshot" / f"{policy}_{workload}.jsonl"
    result = CliRunner().invoke(batsched_py, ["replay", str(path), "-s", policy])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "events as recorded" in result.stdout


def refused(arguments: Sequence[str | Path], complaint: str) -> None:
    result = CliRunner().invoke(batsched_py, list(map(str, arguments)))
    assert (result.exit_code, result.stdout) == (1, "")
    assert complaint in result.stderr and result.stderr.count("\n") == 1


def test_options_that_contradict_each_other_are_named(tmp_path: Path) -> None:
    inputs = [*scenario("rigid200_fcfs"), "-e", tmp_path / "out"]
    batsim = ["batsim", *inputs, "--edc-socket-str", "ipc:///nowhere", ""]
    refused([*batsim, "--protocol", "4"], "are Batsim 5's")
    refused([*batsim, "--edc-socket-file", "ipc:///nowhere", "x"], "give one of them")
    refused([*batsim, "--enable-dynamic-jobs"], "the decision process says what is to be enabled")
    missing = ["batsim", *inputs, "--edc-socket-file", "ipc:///nowhere", tmp_path / "none"]
    refused(missing, "cannot be read")


HELLO = {
    "timestamp": 0,
    "event_type": "EDCHelloEvent",
    "event": {"requested_simulation_features": {}},
}


def reply(*events: dict[str, object]) -> bytes:
    return json.dumps({"now": 0, "events": events}).encode()


@pytest.mark.parametrize(
    ("answers", "complaint"),
    [
        ([b"hello"], "the answer to the opening of Batsim 5 does not choose JSON"),
        ([b"\2\0\0\0" + reply()], "is no EDCHelloEvent"),
        *(
            (
                [b"\2\0\0\0" + reply(HELLO), reply({"timestamp": 0, "event_type": kind, "event": {}})],
                f"{kind} at 0.000000: Batsim does not know such a decision",
            )
            for kind in ("CreateProbeEvent", "StopCallMeLaterEvent", "ForceSimulationStopEvent")
        ),
        (
            [
                b"\2\0\0\0" + reply(HELLO),
                reply(
                    {"timestamp": 0, "event_type": "RejectJobEvent", "event": {"job_id": "w0!1"}},
                    {"timestamp": -1, "event_type": "RejectJobEvent", "event": {"job_id": "w0!2"}},
                ),
            ],
            "an event at -1 stands below one at 0",
        ),
    ],
)
def test_batsim_names_what_is_wrong_with_an_answer(
    answers: list[bytes], complaint: str, tmp_path: Path
) -> None:
    with AnsweringEnd(ANYWHERE, PATIENCE) as peer:

        def answer() -> None:
            for each in answers:
                peer.receive()
                peer.send(each)

        service = Thread(target=answer)
        service.start()
        options = ["batsim", *scenario("rigid200_fcfs"), "-q", "-e", f"{tmp_path}/"]
        refused([*options, "--edc-socket-str", peer.endpoint, ""], complaint)
        service.join(PATIENCE)
    assert not list(tmp_path.glob("*.csv"))


def test_the_service_greets_and_asks_for_what_its_users_need(tmp_path: Path) -> None:
    sample = first_jobs(tmp_path / "sample.swf", 10)
    for users in ([], ["--users", "think-time", "-w", sample]):
        with (
            serving("-s", "fcfs", "--timeout", str(PATIENCE), *users) as service,
            Peer(service.endpoint) as peer,
        ):
            peer.send(OPENING)
            greeting = peer.hear_bytes()
            assert greeting[:4] == b"\2\0\0\0"
            (hello,) = json.loads(greeting[4:])["events"]
            asked = hello["event"]["requested_simulation_features"]
            wanted = {"dynamic_registration", "profile_reuse"} if users else set()
            assert {name for name, value in asked.items() if value} == wanted


def test_the_reason_of_a_failure_is_one_word_so_that_batsim_5_prints_all_of_it(tmp_path: Path) -> None:
    policy = tmp_path / "policy.py"
    policy.write_text(
        "from batsched_py.schedulers import Scheduler\n"
        "class Broken(Scheduler):\n"
        "    name = 'broken'\n"
        "    def schedule(self, cluster):\n"
        "        raise ValueError('no idea what to do')\n"
    )
    talk = tmp_path / "talk.jsonl"
    with serving("-s", f"{policy}:Broken") as service, recording(talk, service.endpoint) as recorder:
        options = ["batsim", "--protocol", "5", "-s", recorder.endpoint, "", "-e", f"{tmp_path}/"]
        code, _, complaint = call_here([*options, *scenario("rigid200_fcfs"), "--timeout", str(PATIENCE)])
        service.end()
    assert code == 1
    assert "ValueError: no idea what to do" in complaint
    last = json.loads(talk.read_text().splitlines()[-1])
    (event,) = json.loads(last["message"])["events"]
    assert " " not in event["event_type"]
    told = event["event_type"].replace("\N{NO-BREAK SPACE}", " ")
    assert told.startswith(
        "THE_DECISION_PROCESS_FAILED: scheduler 'broken' failed at time 0: ValueError: no idea"
    )


def test_a_simulator_that_begins_anew_is_greeted_anew() -> None:
    with serving("-s", "fcfs", "--keep-alive") as service, Peer(service.endpoint) as peer:
        peer.send(OPENING)
        first = peer.hear_bytes()
        begins = {
            "timestamp": 0,
            "event_type": "SimulationBeginsEvent",
            "event": {
                "host_number": 1,
                "computation_host_number": 1,
                "computation_hosts": [{"id": 0, "name": "h"}],
            },
        }
        for _ in range(2):
            message = json.dumps({"now": 0, "events": [begins]}).encode() + b"\0"
            assert peer.ask(message) == {"now": 0.0, "events": []}
            peer.send(OPENING)
            assert peer.hear_bytes() == first


def test_a_service_for_one_protocol_refuses_the_other() -> None:
    with serving("-s", "fcfs", "--protocol", "4") as service, Peer(service.endpoint) as peer:
        peer.send(OPENING)
        answer = peer.hear_bytes()
        code, lines = service.end()
    told = "a Batsim 5 has called, but --protocol 4 was given; leave it out to serve both"
    assert answer[:4] == b"\2\0\0\0", "a Batsim 5 takes these for the format, and reads the rest"
    (event,) = json.loads(answer[4:])["events"]
    said = event["event_type"].replace("\N{NO-BREAK SPACE}", " ")
    assert said == f"THE_DECISION_PROCESS_FAILED: {told}"
    assert (code, lines) == (1, [f"batsched-py: error: {told}"])


def test_a_batsim_that_is_refused_at_its_opening_says_why(tmp_path: Path) -> None:
    with serving("-s", "fcfs", "--protocol", "4") as service:
        options = ["batsim", *scenario("rigid200_fcfs"), "-q", "-e", f"{tmp_path}/"]
        told = "the decision process failed: a Batsim 5 has called, but --protocol 4 was given"
        refused([*options, "--edc-socket-str", service.endpoint, ""], told)
        service.end()


def test_a_batsim_4_is_told_in_its_own_protocol_that_5_was_awaited() -> None:
    begins = json.loads((GOLDEN / "rigid200_fcfs" / "conversation.jsonl").read_text().splitlines()[0])
    with serving("-s", "fcfs", "--protocol", "5") as service, Peer(service.endpoint) as peer:
        (event,) = peer.ask(begins["message"].encode())["events"]
        code, lines = service.end()
    told = "a Batsim 4 has called, but --protocol 5 was given; leave it out to serve both"
    assert event["type"] == f"THE_DECISION_PROCESS_FAILED: {told}"
    assert (code, lines) == (1, [f"batsched-py: error: {told}"])
