"""``serve`` and ``batsim`` as two processes over ZeroMQ, against ``run`` in one."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import zmq
from click.testing import CliRunner

from batsched_py.cli.main import batsched_py
from batsched_py.schedulers import SCHEDULERS
from tests.processes import PATIENCE, Service, call, call_here, serving, start

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "data" / "golden"
FCFS = ["busy400_fcfs", "kinds120_fcfs", "rigid200_fcfs", "uneven100_fcfs"]


def scenario(name: str) -> list[str | Path]:
    """The workload and the platform of a recording."""
    folder = GOLDEN / name
    return ["-w", next(folder.glob("*.json")), "-p", next(folder.glob("*.xml"))]


def first_jobs(path: Path, count: int) -> Path:
    """The beginning of the sample log, header included."""
    lines = (ROOT / "workloads" / "sample.swf").read_text().splitlines()
    comments = [line for line in lines if line.startswith(";")]
    path.write_text("\n".join(comments + lines[len(comments) : len(comments) + count]) + "\n")
    return path


def batsim(service: Service, prefix: Path, *arguments: str | Path) -> None:
    """Run ``batsim`` in this process against a service in another."""
    patience = str(PATIENCE)
    result = call_here(["batsim", "-s", service.endpoint, "-e", prefix, "--timeout", patience, *arguments])
    assert result == (0, "", "")


def run(scheduler: str, prefix: Path, *arguments: str | Path) -> None:
    """Run the same in one process."""
    code, _, err = call_here(["run", "-s", scheduler, "-e", prefix, *arguments])
    assert code == 0, err


#: Policies whose decisions are of different kinds; tests/schedulers has all of them behind a socket.
DIFFERENT = {"conservative", "deferring", "easy", "easy-moldable", "fcfs", "random", "reject-all", "sleeper"}


@pytest.mark.parametrize(
    "scheduler",
    [pytest.param(name, marks=() if name in DIFFERENT else pytest.mark.slow) for name in SCHEDULERS.all()],
)
def test_two_processes_write_the_bytes_of_one(scheduler: str, tmp_path: Path) -> None:
    sample = first_jobs(tmp_path / "sample.swf", 100)
    scenarios = {
        "rigid200": scenario("rigid200_fcfs"),
        "kinds120": scenario("kinds120_fcfs"),
        "sample": ["-w", sample, "--hosts", "64"],
    }
    with serving("-s", scheduler, "--keep-alive") as service:
        for name, arguments in scenarios.items():
            batsim(service, tmp_path / f"two_{name}", *arguments)
            run(scheduler, tmp_path / f"one_{name}", *arguments)
            for file in ("jobs.csv", "schedule.csv"):
                one, two = (tmp_path / f"{side}_{name}_{file}" for side in ("one", "two"))
                assert one.read_bytes() == two.read_bytes()


@pytest.fixture(scope="module")
def fcfs() -> Iterator[Service]:
    """First come, first served, for as many simulations as are asked for."""
    with serving("-s", "fcfs", "--keep-alive") as service:
        yield service
        assert service.end(signal.SIGTERM) == (
            128 + signal.SIGTERM,
            ["batsched-py: stopped by SIGTERM"],
        )


@pytest.mark.parametrize("name", FCFS)
def test_fcfs_over_the_wire_is_that_of_batsched(fcfs: Service, name: str, tmp_path: Path) -> None:
    batsim(fcfs, tmp_path / "ours", *scenario(name), "-q")
    assert (tmp_path / "ours_jobs.csv").read_bytes() == (GOLDEN / name / "jobs.csv").read_bytes()


def test_either_side_may_start_first(tmp_path: Path) -> None:
    with SimpleSocket() as free:
        endpoint = free.endpoint
    arguments = ["batsim", "-s", endpoint, "-e", tmp_path / "out", "--timeout", str(PATIENCE)]
    with start([*arguments, *scenario("rigid200_fcfs")]) as simulator:
        code, _, err = call(["serve", "-s", "fcfs", "--endpoint", endpoint, "--timeout", str(PATIENCE)])
        assert (code, err) == (0, "")
        assert simulator.wait(timeout=PATIENCE) == 0


class SimpleSocket:
    """A REP socket at a free port."""

    def __enter__(self) -> SimpleSocket:
        self._context = zmq.Context()
        self.socket = self._context.socket(zmq.REP)
        self.socket.linger = 0
        self.socket.rcvtimeo = PATIENCE * 1000
        port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.endpoint = f"tcp://127.0.0.1:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._context.destroy(linger=0)


def answer(socket: zmq.Socket[bytes], *replies: list[bytes]) -> None:
    """Answer requests with these frames, one after another."""
    for reply in replies:
        socket.recv()
        socket.send_multipart(reply)


NOTHING = [b'{"now": 0, "events": []}']


def decision(kind: str, **data: object) -> list[bytes]:
    events = [{"timestamp": 0, "type": kind, "data": data}]
    return [json.dumps({"now": 0, "events": events}).encode()]


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ([b"\xff garbage"], "not a message of Batsim's protocol: JSON is malformed"),
        ([b"{}", b"{}"], "a message of the decision process came in 2 frames"),
        (
            decision("EXECUTE_JOB", job_id="w0!9", alloc="0"),
            "ExecuteJob w0!9 at 0.000000: job w0!9 is not waiting",
        ),
        (decision("DANCE"), "DANCE at 0.000000: Batsim does not know such a decision"),
    ],
)
def test_batsim_names_what_is_wrong_with_a_reply(reply: list[bytes], error: str, tmp_path: Path) -> None:
    with SimpleSocket() as peer:
        arguments = ["batsim", "-s", peer.endpoint, "-e", tmp_path / "out", "-q"]
        with start([*arguments, *scenario("rigid200_fcfs")]) as process:
            answer(peer.socket, reply)
            out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (1, "")
    assert err.startswith(f"batsched-py: error: {error}")
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("*.csv"))


def test_batsim_gives_up_on_a_silent_decision_process(tmp_path: Path) -> None:
    with SimpleSocket() as peer:
        arguments = ["batsim", "-s", peer.endpoint, "-e", tmp_path / "out", "--timeout", "0.3"]
        with start([*arguments, *scenario("rigid200_fcfs")]) as process:
            answer(peer.socket, NOTHING)
            _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert err == (
        f"batsched-py: error: nothing came from the decision process at {peer.endpoint} for 0.3 s\n"
    )
    assert not list(tmp_path.glob("*.csv"))


def test_batsim_says_when_nothing_can_happen_any_more(tmp_path: Path) -> None:
    with serving("-s", f"{lazy(tmp_path)}:Lazy", "--timeout", str(PATIENCE)) as service:
        code, _, err = call_here(
            ["batsim", "-s", service.endpoint, "-e", tmp_path / "out", *scenario("rigid200_fcfs")]
        )
    assert code == 1
    assert err.startswith("batsched-py: error: deadlock at ")


def lazy(folder: Path) -> Path:
    """A policy that starts nothing."""
    path = folder / "lazy.py"
    path.write_text(
        "from batsched_py.schedulers import Scheduler\n\n\n"
        "class Lazy(Scheduler):\n    name = 'lazy'\n\n    def schedule(self, cluster):\n        pass\n"
    )
    return path


def test_a_decision_process_that_fails_stops_batsim_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(lazy(tmp_path).read_text().replace("pass", "raise RuntimeError('I am broken')"))
    reason = f"scheduler 'lazy' failed at time 0: RuntimeError: I am broken ({path}:8)"
    with serving("-s", f"{path}:Lazy", "--timeout", str(PATIENCE)) as service:
        arguments = ["batsim", "-s", service.endpoint, "-e", tmp_path / "out"]
        code, _, err = call([*arguments, *scenario("rigid200_fcfs")])
        assert service.end() == (1, [f"batsched-py: error: {reason}"])
    assert (code, err) == (1, f"batsched-py: error: the decision process failed: {reason}\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "no workload says how large its machine was; give --hosts N or -p PLATFORM.xml"),
        (["--hosts", "4", "-s", "nonsense"], "nonsense cannot be used: Invalid argument"),
        (
            ["--hosts", "4", "--enable-profile-reuse"],
            "--enable-profile-reuse makes sense with --enable-dynamic-jobs only",
        ),
        (
            ["--hosts", "4", "--sched-cfg", "a", "--sched-cfg-file", "b"],
            "both --sched-cfg and --sched-cfg-file are given; give one of them",
        ),
        (["--hosts", "4", "-r", "host0"], "role 'host0' is not of the form HOST[,HOST...]:ROLE"),
    ],
)
def test_what_batsim_cannot_run_is_one_line(arguments: list[str], error: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(batsched_py, ["batsim", "-e", str(tmp_path / "out"), *arguments])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"batsched-py: error: {error}")


def first_request(*arguments: str | Path) -> SimpleNamespace:
    """What ``batsim`` says first when it is started with these arguments."""
    with SimpleSocket() as peer, start(["batsim", "-s", peer.endpoint, *arguments]) as process:
        try:
            (event,) = json.loads(peer.socket.recv())["events"]
        finally:
            process.kill()
    return SimpleNamespace(**event["data"])


def test_the_options_of_batsim_reach_the_decision_process(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("some text")
    begins = first_request(
        *scenario("rigid200_fcfs"),
        "-e",
        tmp_path / "out",
        "--mmax",
        "5",
        "--forward-profiles-on-submission",
        "--enable-dynamic-jobs",
        "--acknowledge-dynamic-jobs",
        "--enable-profile-reuse",
        "--sched-cfg-file",
        tmp_path / "config",
    )
    assert begins.nb_resources == 5
    assert begins.config["profiles-forwarded-on-submission"] is True
    assert begins.config["dynamic-jobs-enabled"] is True
    assert begins.config["dynamic-jobs-acknowledged"] is True
    assert begins.config["profile-reuse-enabled"] is True
    assert begins.config["sched-config"] == "some text"


def test_mmax_workload_keeps_what_the_workload_was_made_for(tmp_path: Path) -> None:
    path = tmp_path / "w.json"
    path.write_text('{"nb_res": 3, "jobs": [], "profiles": {}}')
    platform = next((GOLDEN / "rigid200_fcfs").glob("*.xml"))
    begins = first_request("-w", path, "-p", platform, "-e", tmp_path / "out", "--mmax-workload")
    assert begins.nb_compute_resources == 3


def test_the_execution_context_is_dumped_as_batsim_does() -> None:
    result = CliRunner().invoke(
        batsched_py, ["batsim", "--hosts", "4", "-e", "some/where", "--dump-execution-context"]
    )
    context = json.loads(result.stdout)
    assert context["socket_endpoint"] == "tcp://localhost:28000"
    assert context["export_prefix"] == "some/where"
    assert context["redis_enabled"] is False


def test_the_messages_can_be_logged(fcfs: Service, tmp_path: Path) -> None:
    code, _, err = call(
        [
            "batsim",
            "-s",
            fcfs.endpoint,
            "-e",
            tmp_path / "out",
            *scenario("rigid200_fcfs"),
            "-v",
            "network-only",
        ]
    )
    assert code == 0
    assert err.splitlines()[0].startswith('batsched-py: debug: sending b\'{"now":0.000000,')


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ["--on-failure", "kill"],
            "--on-failure kill needs jobs that are submitted from here: give their -w",
        ),
        (["--walltime", "max"], "--walltime is about the jobs of -w FILE"),
        (["--users", "rigid"], "--users submit the jobs of -w FILE"),
    ],
)
def test_what_is_about_jobs_of_users_is_refused_by_name_without_them(words: list[str], error: str) -> None:
    code, _, err = call_here(["serve", "-s", "easy", *words])
    assert (code, error in err) == (1, True)


LOG = """; MaxProcs: 16
1 0 -1 50 4 -1 -1 4 60 -1 1 1 1 1 -1 -1 -1 -1
2 5 -1 30 8 -1 -1 8 60 -1 1 1 1 1 -1 -1 -1 -1
3 7 -1 30 16 -1 -1 16 60 -1 1 1 1 1 -1 -1 -1 -1
"""
PLATFORM = Path(__file__).parents[1] / "data/batsim42/four_grid1000-3_conservative/platform.xml"
OUTAGE = """{"timestamp": 20, "type": "machine_unavailable", "resources": "0-5"}
{"timestamp": 60.5, "type": "machine_available", "resources": "0-5"}
"""


@pytest.mark.parametrize("rule", ["kill", "resubmit"])
def test_jobs_that_fail_are_killed_by_a_service_as_by_run(tmp_path: Path, rule: str) -> None:
    log, events = tmp_path / "log.swf", tmp_path / "events.txt"
    log.write_text(LOG)
    events.write_text(OUTAGE)
    with serving("-s", "easy", "-w", log, "--on-failure", rule) as service:
        batsim = [
            "batsim",
            "-s",
            service.endpoint,
            "--hosts",
            "16",
            "--events",
            events,
            "-e",
            tmp_path / "far",
        ]
        assert call_here([*batsim, "--enable-dynamic-jobs", "--enable-profile-reuse"])[0] == 0
    run = ["run", "-s", "easy", "-w", log, "--on-failure", rule, "-p", PLATFORM, "--events", events]
    assert call_here([*run, "-e", tmp_path / "near"])[0] == 0
    far, near = ((tmp_path / f"{name}_jobs.csv").read_text() for name in ("far", "near"))
    assert far == near
    assert ("restart=1" in far, "failed=0-3" in far) == (rule == "resubmit", True)
