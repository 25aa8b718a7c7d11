"""``batsched-py record`` and ``batsched-py replay``, with real sockets and processes."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from batsched_py.cli.main import batsched_py
from batsched_py.wire.conversation import Exchange, read_conversation
from tests.golden import Recording
from tests.processes import PATIENCE, SILENCE, Peer, call, call_here, recording, serving

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
RECORDINGS = sorted(path.parent for path in GOLDEN.glob("*/conversation.jsonl"))
FCFS = [folder for folder in RECORDINGS if "batsched -v fcfs" in (folder / "command.txt").read_text()]
RIGID = GOLDEN / "rigid200_fcfs"
INPUTS = ("-p", RIGID / "flat16.xml", "-w", RIGID / "rigid200.json")
NOWHERE = "tcp://127.0.0.1:1"


def replay(*arguments: str | Path) -> Result:
    return CliRunner().invoke(batsched_py, ["replay", *map(str, arguments)])


def write(path: Path, exchanges: list[Exchange]) -> Path:
    """A conversation made by hand."""
    with path.open("w") as file:
        for exchange in exchanges:
            file.write(json.dumps({"from": "batsim", "message": exchange.request.decode()}) + "\n")
            if exchange.reply is not None:
                file.write(json.dumps({"from": "scheduler", "message": exchange.reply.decode()}) + "\n")
    return path


# --- recording -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulation of FCFS over a recorder: what was said in ``talk.jsonl``, the results in ``out_*``."""
    folder = tmp_path_factory.mktemp("recorded")
    talk = folder / "talk.jsonl"
    with serving("-s", "fcfs") as decision, recording(talk, decision.endpoint) as recorder:
        simulator = call_here(
            ["batsim", *INPUTS, "-s", recorder.endpoint, "-e", folder / "out", "--timeout", str(PATIENCE)]
        )
        assert simulator == (0, "", "")
        assert recorder.process.stdout is not None
        said = recorder.process.stdout.readline()
        assert recorder.end() == (0, [])
        assert decision.end() == (0, [])
    assert said == f"{talk}: {len(read_conversation(talk))} exchanges\n"
    return folder


def test_a_recorded_simulation_has_the_results_of_an_unrecorded_one(folder: Path) -> None:
    assert (folder / "out_jobs.csv").read_bytes() == (RIGID / "jobs.csv").read_bytes()


def test_the_whole_conversation_is_recorded(folder: Path) -> None:
    lines = [json.loads(line) for line in (folder / "talk.jsonl").read_text().splitlines()]
    assert [line["from"] for line in lines] == ["batsim", "scheduler"] * (len(lines) // 2)
    first, last = json.loads(lines[0]["message"]), json.loads(lines[-2]["message"])
    assert [event["type"] for event in first["events"]] == ["SIMULATION_BEGINS"]
    assert [event["type"] for event in last["events"]] == ["SIMULATION_ENDS"]
    kinds = [event["type"] for line in lines for event in json.loads(line["message"])["events"]]
    assert kinds.count("JOB_SUBMITTED") == kinds.count("EXECUTE_JOB") == kinds.count("JOB_COMPLETED") == 200


def test_what_is_no_message_is_recorded_and_passed_on_as_it_is(tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    garbage = b'\x00\xfe "garbage" \xc3\xa9'
    with serving("-s", "fcfs") as decision, recording(talk, decision.endpoint) as recorder:
        with Peer(recorder.endpoint) as peer:
            (stop,) = peer.ask(garbage)["events"]
            assert "not a message of Batsim's protocol: JSON is malformed" in stop["type"]
        _, (complaint,) = decision.end()
        recorder.end(signal.SIGTERM)
    assert complaint.startswith("batsched-py: error: not a message of Batsim's protocol")
    assert [exchange.request for exchange in read_conversation(talk)] == [garbage]


def test_ctrl_c_leaves_what_was_said_so_far(tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    begins = read_conversation(RIGID / "conversation.jsonl")[0].request
    with serving("-s", "fcfs") as decision, recording(talk, decision.endpoint) as recorder:
        with Peer(recorder.endpoint) as peer:
            peer.ask(begins)
        assert recorder.end(signal.SIGINT) == (128 + signal.SIGINT, ["batsched-py: stopped by Ctrl-C"])
    (exchange,) = read_conversation(talk)
    assert exchange == Exchange(1, begins, b'{"now":0.0,"events":[]}')


def test_a_decision_process_that_does_not_answer_ends_the_recording(tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    begins = read_conversation(RIGID / "conversation.jsonl")[0].request
    with recording(talk, NOWHERE, "--timeout", SILENCE) as recorder, Peer(recorder.endpoint) as peer:
        peer.send(begins)
        assert recorder.end() == (
            1,
            [f"batsched-py: error: nothing came from the decision process at {NOWHERE} for {SILENCE} s"],
        )
    assert read_conversation(talk) == [Exchange(1, begins)]


def test_a_simulator_that_never_comes_ends_the_recording(tmp_path: Path) -> None:
    with recording(tmp_path / "talk.jsonl", NOWHERE, "--timeout", "0.2") as recorder:
        assert recorder.end() == (
            1,
            [f"batsched-py: error: nothing came from the simulator at {recorder.endpoint} for 0.2 s"],
        )


def test_a_file_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    talk = tmp_path / "nowhere" / "talk.jsonl"
    arguments = ["record", "--front", "tcp://127.0.0.1:*", "--back", NOWHERE, talk]
    assert call_here(arguments) == (
        1,
        "",
        f"batsched-py: error: cannot write {talk}: No such file or directory\n",
    )


def test_an_endpoint_in_use_is_an_error(tmp_path: Path) -> None:
    with serving("-s", "fcfs") as decision:
        code, out, err = call_here(
            ["record", "--front", decision.endpoint, "--back", NOWHERE, tmp_path / "talk.jsonl"]
        )
    assert (code, out) == (1, "")
    assert err.startswith(f"batsched-py: error: {decision.endpoint} cannot be used: Address already in use")
    assert err.count("\n") == 1


# --- replaying -----------------------------------------------------------------------------------


def test_a_recording_replays_to_the_scheduler_that_took_part(folder: Path) -> None:
    talk = folder / "talk.jsonl"
    assert call(["replay", talk, "-s", "fcfs"]) == (0, f"{talk}: all 200 events as recorded\n", "")


def test_a_recording_replays_to_a_running_decision_process(folder: Path) -> None:
    talk = folder / "talk.jsonl"
    with serving("-s", "fcfs") as decision:
        result = call_here(["replay", talk, "--endpoint", decision.endpoint, "--timeout", str(PATIENCE)])
        assert decision.end() == (0, [])
    assert result == (0, f"{talk}: all 200 events as recorded\n", "")


def test_a_recording_replays_to_batsim(folder: Path) -> None:
    talk = folder / "talk.jsonl"
    result = call_here(["replay", talk, "--to", "batsim", *INPUTS])
    assert result == (0, f"{talk}: all 403 events as recorded\n", "")


def test_a_changed_policy_is_told_by_the_first_difference(folder: Path) -> None:
    talk = folder / "talk.jsonl"
    code, out, err = call_here(["replay", talk, "-s", "easy"])
    assert (code, err) == (1, "")
    first, time, where, recorded, replayed = out.splitlines()
    line = int(first.removeprefix(f"{talk}, line ").split(":")[0])
    *before, reply = [json.loads(exchange.reply or b"") for exchange in read_conversation(talk)[: line // 2]]
    assert first.endswith(f"the first difference, after {sum(len(r['events']) for r in before)} equal events")
    assert reply["events"] == []
    assert time == f"  time      {reply['now']:.6f}"
    assert where == "  where     decision 0 of the reply"
    assert recorded == "  recorded  nothing"
    decision = json.loads(replayed.removeprefix("  replayed  "))
    assert (decision["timestamp"], decision["type"]) == (reply["now"], "EXECUTE_JOB")


@pytest.mark.parametrize("folder", FCFS, ids=lambda folder: folder.name)
def test_recordings_of_batsched_replay_to_our_fcfs(folder: Path) -> None:
    result = replay(folder / "conversation.jsonl", "-s", "fcfs")
    assert (result.exit_code, result.stderr) == (0, "")
    jobs = (folder / "jobs.csv").read_text().count("\n") - 1
    assert result.stdout == f"{folder / 'conversation.jsonl'}: all {jobs} events as recorded\n"


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_recordings_of_batsim_replay_to_ours(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recording(folder)
    monkeypatch.chdir(folder)
    start = recorded.command.index("-p")
    inputs = [word for word in recorded.command[start:] if word != "-q"]
    result = replay("conversation.jsonl", "--to", "batsim", *inputs)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == f"conversation.jsonl: all {len(recorded.events())} events as recorded\n"


def test_hosts_are_compared_as_sets(tmp_path: Path) -> None:
    talk = tmp_path / "talk.jsonl"
    text = (RIGID / "conversation.jsonl").read_text()
    respelled = text.replace('\\"alloc\\":\\"0-1\\"', '\\"alloc\\":\\"1 0\\"')
    assert respelled != text
    talk.write_text(respelled)
    assert replay(talk, "-s", "fcfs").exit_code == 0


def test_a_changed_workload_is_told_by_what_differs_in_it(tmp_path: Path) -> None:
    workload = json.loads((RIGID / "rigid200.json").read_text())
    longer = workload["profiles"][workload["jobs"][0]["profile"]]
    longer["cpu" if "cpu" in longer else "delay"] += 1
    changed = tmp_path / "changed.json"
    changed.write_text(json.dumps(workload))
    result = replay(RIGID / "conversation.jsonl", "--to", "batsim", "-p", RIGID / "flat16.xml", "-w", changed)
    assert result.exit_code == 1
    where = f"  where     event 0 of the simulation, data.profiles.w0.{workload['jobs'][0]['profile']}."
    assert where in result.stdout


def test_a_decision_that_batsim_refuses_is_a_difference(tmp_path: Path) -> None:
    exchanges = read_conversation(RIGID / "conversation.jsonl")
    place = next(n for n, exchange in enumerate(exchanges) if b"EXECUTE_JOB" in (exchange.reply or b""))
    exchange = exchanges[place]
    assert exchange.reply is not None
    decision = json.loads(exchange.reply)
    decision["events"][0]["data"]["job_id"] = "w0!nobody"
    exchanges[place] = Exchange(exchange.line, exchange.request, json.dumps(decision).encode())
    result = replay(write(tmp_path / "talk.jsonl", exchanges), "--to", "batsim", *INPUTS)
    assert result.exit_code == 1
    assert "  replayed  error: ExecuteJob w0!" in result.stdout
    assert "w0!nobody" in result.stdout


def test_a_recording_that_was_cut_short_replays_as_far_as_it_goes(tmp_path: Path) -> None:
    exchanges = read_conversation(RIGID / "conversation.jsonl")[:10]
    exchanges[-1] = Exchange(exchanges[-1].line, exchanges[-1].request)
    talk = write(tmp_path / "talk.jsonl", exchanges)
    assert replay(talk, "-s", "fcfs").exit_code == 0
    assert replay(talk, "--to", "batsim", *INPUTS).exit_code == 0


def test_the_reply_that_made_batsim_abort_is_named(tmp_path: Path) -> None:
    exchanges = read_conversation(RIGID / "conversation.jsonl")[:2]
    bad = b'{"now": 0, "events": [{"timestamp": 0, "type": "REJECT_JOB", "data": {"job_id": "w0!x"}}]}'
    exchanges[-1] = Exchange(exchanges[-1].line, exchanges[-1].request, bad)
    result = replay(write(tmp_path / "talk.jsonl", exchanges), "--to", "batsim", *INPUTS)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("batsched-py: error: RejectJob w0!")
    assert "w0!x" in result.stderr


def test_a_request_that_broke_the_policy_breaks_it_again(tmp_path: Path) -> None:
    policy = tmp_path / "broken_policy.py"
    policy.write_text(
        "from batsched_py.schedulers import Scheduler\n\n\n"
        "class Broken(Scheduler):\n"
        "    name = 'broken'\n\n"
        "    def schedule(self, cluster):\n"
        "        if cluster.queue:\n"
        "            raise RuntimeError('too many jobs')\n"
    )
    exchanges = read_conversation(RIGID / "conversation.jsonl")
    place = next(n for n, exchange in enumerate(exchanges) if b"JOB_SUBMITTED" in exchange.request)
    cut = [*exchanges[:place], Exchange(exchanges[place].line, exchanges[place].request)]
    result = replay(write(tmp_path / "talk.jsonl", cut), "-s", f"{policy}:Broken")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "RuntimeError: too many jobs" in result.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ": nothing was said in this conversation"),
        ("job_id,profile\n", ', line 1: expected {"from": "batsim" or "scheduler", "message": TEXT}'),
        (
            '{"from": "batsim", "message": 3}\n',
            ', line 1: expected {"from": "batsim" or "scheduler", "message": TEXT}',
        ),
        (
            '{"from": "scheduler", "message": "x"}\n',
            ", line 1: batsim and scheduler do not take turns, batsim first",
        ),
    ],
)
def test_a_file_that_is_no_recording_is_an_error(tmp_path: Path, text: str, complaint: str) -> None:
    talk = tmp_path / "talk.jsonl"
    talk.write_text(text)
    result = replay(talk, "-s", "fcfs")
    assert (result.exit_code, result.stderr) == (1, f"batsched-py: error: {talk}{complaint}\n")


def test_a_recorded_message_that_is_none_is_named_by_its_line(tmp_path: Path) -> None:
    talk = write(tmp_path / "talk.jsonl", [Exchange(1, b'{"now": 0, "events": []}', b"{}")])
    result = replay(talk, "-s", "fcfs")
    assert result.exit_code == 1
    assert result.stderr.startswith("batsched-py: error: line 2 of the recording: not a message of Batsim's")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name the decision process that shall answer: give -s NAME or --endpoint ENDPOINT"),
        (
            ["-s", "fcfs", "--endpoint", NOWHERE],
            "name the decision process that shall answer: give -s NAME or --endpoint ENDPOINT",
        ),
        (["--to", "batsim", "-s", "fcfs"], "--to batsim: the recording decides; leave out -s and --endpoint"),
        (["--to", "batsim"], "no workload says how large its machine was; give --hosts N or -p PLATFORM.xml"),
    ],
)
def test_it_must_be_clear_who_takes_part(arguments: list[str], complaint: str) -> None:
    result = replay(RIGID / "conversation.jsonl", *arguments)
    assert (result.exit_code, result.stderr) == (1, f"batsched-py: error: {complaint}\n")
