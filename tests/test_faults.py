"""Full devices, too few descriptors, signals, nests without end: one line each, and nothing is left."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from random import Random
from threading import Thread

import pytest

from batsched_py.campaign.executors import _check_descriptors
from batsched_py.errors import InputError
from batsched_py.wire.sockets import AnsweringEnd
from tests.kills import kills
from tests.processes import COMMAND, PATIENCE, call_here, environment, start

ROOT = Path(__file__).resolve().parents[1]
SAMPLE = ROOT / "workloads" / "sample.swf"


def run(arguments: str, shell: str = "") -> tuple[int, str]:
    """The exit code of a command, and what it wrote to stderr."""
    line = f"{shell}exec {' '.join(COMMAND)} {arguments}"
    done = subprocess.run(
        ["bash", "-c", line], env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("arguments", ["--help", "schedulers"])
def test_a_full_device_behind_stdout_is_told_in_one_line(arguments: str) -> None:
    assert run(f"{arguments} > /dev/full") == (1, "batsched-py: error: No space left on device\n")


@pytest.mark.parametrize(
    ("output", "arguments"),
    [
        ("log.swf", f"convert {SAMPLE} {{file}}"),
        ("log.json", f"convert {SAMPLE} {{file}}"),
        ("log.csv", f"convert {SAMPLE} {{file}}"),
        ("made.swf", "generate lublin -n 200 --seed 1 --output {file}"),
        ("platform.xml", f"platform {ROOT}/platforms/cluster.toml --output {{file}}"),
        ("page.html", f"describe {SAMPLE} --output {{file}}"),
    ],
)
def test_on_a_full_disk_a_file_stays_what_it_was(
    output: str, arguments: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # Python would keep a hundred bytes of a module
    file = tmp_path / output
    file.write_text("old")
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limit[1]))
    try:
        code, _, error = call_here(arguments.format(file=file).split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)
    assert (code, error.count("\n")) == (1, 1)
    assert "File too large" in error
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {output: "old"}


def test_too_few_descriptors_are_told_in_one_line(tmp_path: Path) -> None:
    code, error = run(f"serve -s easy --endpoint ipc://{tmp_path}/socket", "ulimit -n 11; ")
    assert (code, error.count("\n")) == (1, 1)
    assert "may have only 11 files open here" in error
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1000, hard))
        with pytest.raises(InputError, match="500 workers need 2024: give fewer by -j"):
            _check_descriptors(500)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_the_socket_in_a_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with AnsweringEnd(f"ipc://{tmp_path}/socket"):
            assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o600
        (tmp_path / "other").touch()
        assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o644
    finally:
        os.umask(before)


@pytest.mark.parametrize("arguments", ["campaign plan {file}", "platform {file}"])
def test_a_deep_nest_is_told_in_one_line(arguments: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.toml"
    file.write_text("x = " + "[\n" * 1499 + "]\n" * 1499)
    code, _, error = call_here(arguments.format(file=file).split())
    assert (code, error.count("\n")) == (1, 1)
    assert error.endswith("maximum recursion depth exceeded\n")


def test_a_status_that_is_a_deep_nest_is_told_in_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"[" * 100_000 + b"]" * 100_000 + b"\n")

        thread = Thread(target=answer)
        thread.start()
        port = server.getsockname()[1]
        code, _, error = call_here(["status", str(port)])
        thread.join()
    assert (code, error) == (1, f"batsched-py: error: what answers at {port} is no simulation of ours\n")


@pytest.mark.parametrize("arguments", ["plot gantt {file} --output {figure}", "diff {file} {file}"])
def test_jobs_that_ran_nowhere_are_told_in_one_line(arguments: str, tmp_path: Path) -> None:
    assert call_here(["run", "-w", str(SAMPLE), "-s", "easy", "-e", str(tmp_path / "out")])[0] == 0
    file = tmp_path / "out_jobs.csv"
    header, *rows = file.read_text().splitlines()
    place = header.split(",").index("allocated_resources")
    cells = [row.split(",") for row in rows[:5]]
    file.write_text(
        "\n".join([header, *(",".join([*each[:place], "", *each[place + 1 :]]) for each in cells)])
    )
    code, _, error = call_here(arguments.format(file=file, figure=tmp_path / "figure.png").split())
    assert (code, error.count("\n")) == (1, 1)
    assert "no executed job has hosts" in error


ENDLESS = """
from batsched_py.schedulers.easy import Easy


class Endless(Easy):
    def begin(self, cluster):
        print("begun", flush=True)
        while True:
            pass
"""


@pytest.mark.parametrize(
    ("number", "word"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")]
)
def test_a_signal_stops_a_run_and_nothing_is_left(number: signal.Signals, word: str, tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(ENDLESS)
    policy = f"{tmp_path / 'endless.py'}:Endless"
    with start(["run", "-w", SAMPLE, "-s", policy, "-e", tmp_path / "out" / "x"]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        _, error = process.communicate(timeout=PATIENCE)
    assert (process.returncode, error) == (128 + number, f"batsched-py: stopped by {word}\n")
    assert list((tmp_path / "out").iterdir()) == []


def test_nohup_is_respected(tmp_path: Path) -> None:
    code = "import os, signal; from batsched_py.cli.main import batsched_py as run\n" + (
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\nrun(['schedulers'], standalone_mode=False)\n"
        "assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_commands_that_are_stopped_at_any_moment_leave_nothing_behind() -> None:
    """A sample of what ``make kills`` does."""
    assert list(kills(18, Random(2))) == []


INTERRUPTS_AN_IMPORT = """
import os, signal, sys

class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name == "click":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupts())
signal.signal(signal.SIGINT, signal.default_int_handler)
from batsched_py.__main__ import main
main()
"""


def test_ctrl_c_while_it_is_loaded_ends_it_silently() -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTS_AN_IMPORT],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_nothing_is_loaded_before_ctrl_c_is_heard() -> None:
    """What is built into Python takes no time."""
    code = "import sys; before = {*sys.modules}; import batsched_py.__main__; print({*sys.modules} - before)"
    loaded = subprocess.check_output([sys.executable, "-S", "-c", code], env=environment(), text=True)
    assert eval(loaded) - {*sys.builtin_module_names} == {"batsched_py", "batsched_py.__main__"}


def test_an_agent_does_not_act_by_halves() -> None:
    tasks = pytest.importorskip("batsched_py.gym.tasks")
    task = tasks.PickJob(slots=4)
    assert task.as_action(1) == 1
    with pytest.raises(Exception, match=r"the agent's action is 1\.5, which is no whole number"):
        task.as_action(1.5)


def test_an_array_that_names_tasks_again_and_again_has_them_once(tmp_path: Path) -> None:
    header = "JobID|User|Submit|Start|End|State|AllocCPUS|ReqCPUS|Timelimit"
    array = "5_[" + ",".join(["0-999"] * 1000) + "]"
    row = f"{array}|ada|2026-01-01T00:00:00|None|2026-01-01T01:00:00|CANCELLED|0|1|01:00:00"
    (tmp_path / "a.txt").write_text(f"{header}\n{row}\n")
    code, _, error = call_here(
        ["convert", str(tmp_path / "a.txt"), str(tmp_path / "a.swf"), "--from", "sacct"]
    )
    assert code == 0, error
    lines = (tmp_path / "a.swf").read_text().splitlines()
    assert sum(not line.startswith(";") for line in lines) == 1000


def test_more_failures_than_would_ever_happen_are_refused() -> None:
    failing = "--failures exponential --mtbf 1 --failures-until 1e12 --on-failure kill".split()
    code, _, error = call_here(["run", "-w", str(SAMPLE), "-s", "easy", *failing])
    assert (code, error.count("\n")) == (1, 1)
    assert "so many failures would never end: about 1.78e+10 until 1e+12 s, 100,000,000 at most" in error


def test_a_population_of_a_log_with_an_absurd_submission_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.swf").write_text(
        "; MaxProcs: 4\n"
        "1 0 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"
        "2 1000000000000 0 10 1 -1 -1 1 10 -1 1 1 1 1 1 -1 -1 -1\n"
    )
    code, _, error = call_here(["run", "-w", str(tmp_path / "log.swf"), "-s", "easy", "--users", "resample"])
    assert (code, error.count("\n")) == (1, 1)
    assert "the jobs are submitted over 1,653,440 weeks" in error
