"""The twin beside a live Slurm: with commands that print what is in files, and with a real slurmctld."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.request import urlopen

import pytest

from batsched_py.slurm.forecast.forecast import Expected, Forecast, Start
from batsched_py.slurm.forecast.proof import stretched
from batsched_py.slurm.shadow import asking
from batsched_py.slurm.shadow.board import Board, serving
from batsched_py.slurm.shadow.memory import Foreseen, Memory
from batsched_py.slurm.shadow.shadow import Shadow, Watch
from tests.processes import call_here
from tests.slurm.test_forecast import CONF, QUEUE, running

#: 8:00 of 1 March 2026 in UTC.
NOW = 1772352000


class Toy:
    """Commands of Slurm that print files."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        commands = folder / "bin"
        commands.mkdir()
        for name in ("scontrol", "squeue", "sdiag", "sacct"):
            command = commands / name
            what = '"$3-$2"' if name == "scontrol" else '""'
            command.write_text(
                f'#!/bin/sh\necho "{name} $*" >> {folder}/asked\n'
                f"[ -e {folder}/{name}.txt ] || {{ echo 'no answer' >&2; exit 1; }}\n"
                f"case {what} in *node*|*reservation*) exit 0;; esac\ncat {folder}/{name}.txt\n"
            )
            command.chmod(0o755)
        monkeypatch.setenv("PATH", f"{commands}:{os.environ['PATH']}")
        (folder / "slurm.conf").write_text(CONF)
        self.tell("sacct", "")

    def tell(self, name: str, text: str) -> None:
        (self._folder / f"{name}.txt").write_text(text)

    def at(self, minutes: int, jobs: str, queue: dict[str, str]) -> None:
        """What is told so many minutes after 8:00."""
        self.tell("sdiag", f"sdiag output at Sun Mar 01 08:00:00 2026 ({NOW + 60 * minutes})\n")
        self.tell("scontrol", jobs)
        self.tell("squeue", "".join(f"{name}|{state}\n" for name, state in queue.items()))

    def is_silent(self) -> None:
        (self._folder / "scontrol.txt").unlink()


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Toy:
    return Toy(tmp_path, monkeypatch)


FIRST = {"1": "RUNNING", "2": "RUNNING", **dict.fromkeys("34567", "PENDING")}


@pytest.fixture
def shadowing(tmp_path: Path) -> Iterator[Callable[..., tuple[Shadow, Board]]]:
    opened: list[Memory] = []

    def new(*changes: str) -> tuple[Shadow, Board]:
        watch = Watch(
            conf=tmp_path / "slurm.conf",
            folder=tmp_path,
            every=60,
            port=0,
            polls=None,
            repetitions=3,
            changes=changes,
            accounting=(),
            log=None,
        )
        opened.append(Memory(tmp_path / "shadow.sqlite"))
        board = Board(tmp_path)
        return Shadow(watch, opened[-1], board), board

    yield new
    for memory in opened:
        memory.close()


def test_it_keeps_in_step_and_keeps_score(
    toy: Toy, shadowing: Callable[..., tuple[Shadow, Board]], tmp_path: Path
) -> None:
    twin, board = shadowing()
    toy.at(0, QUEUE, FIRST)
    twin.poll()
    assert (board.trouble, board.drift) == ("", 0)
    assert board.counts == {"PENDING": 5, "RUNNING": 2}
    assert board.forecast is not None and len(board.forecast.jobs) == 4
    assert board.kept.forecasts == 0
    # half an hour later both jobs on one node have ended, as sacct knows of one of them, and job 4 runs
    toy.at(30, running(4, "n2", 1, "00:25:00", "00:30:00", "08:05:00"), {"4": "RUNNING"})
    toy.tell("sacct", "1|COMPLETED|2026-03-01T07:00:00\n3|CANCELLED by 1000|Unknown\n")
    twin, board = shadowing()  # the shadow was started anew meanwhile
    twin.poll()
    assert board.counts == {"CANCELLED": 1, "COMPLETED": 1, "RUNNING": 1, "UNKNOWN": 4}
    assert board.kept.forecasts == 1
    assert board.kept.median_error_by_limits == pytest.approx(300, abs=70), "it was to start at once"
    asked = (tmp_path / "asked").read_text()
    assert "sacct -P -n -X -o JobID,State,Start -j 1,2,3,5,6,7" in asked
    assert all(
        line.startswith(("scontrol show ", "scontrol -o show ", "squeue ", "sdiag", "sacct "))
        for line in asked.splitlines()
    ), "nothing else is ever run"


def test_intervals_are_as_long_as_earlier_ones_should_have_been(tmp_path: Path) -> None:
    """Jobs of nine hours were to start after ten minutes, and did so after fifty: intervals learn of it."""
    job = Expected(
        id="x", user="", account="", partition="", nodes=1, cpus=1, time_limit=60, priority=1,
        start=Start(by_limits=600, median=600, early=500, late=700),
    )  # fmt: skip
    found = Forecast(now="", running=0, held=0, repetitions=5, jobs=[job])
    with closing(Memory(tmp_path / "shadow.sqlite")) as memory:
        for hour in range(9):
            now = NOW + 3600 * hour
            names = [f"{hour}_{number}" for number in range(10)]
            foreseen = Foreseen(
                early=now + 500, median=now + 600, late=now + 700, by_limits=None, by_plan=None
            )
            (shown,) = stretched(found, memory.stretch(now), now).jobs
            assert shown.start.early is not None and shown.start.late is not None
            intervals = dict.fromkeys(names, (now + shown.start.early, now + shown.start.late))
            memory.foresee(now, dict.fromkeys(names, foreseen), intervals)
            memory.note(now, dict.fromkeys(names, "RUNNING"), dict.fromkeys(names, now + 3000))
        kept = memory.kept()
    assert (kept.forecasts, kept.covered_as_drawn) == (90, 0)
    assert kept.covered == pytest.approx(6 / 9), "those of three hours were there to learn from"
    assert shown.start.late >= 3000 >= shown.start.early, "and they have moved there"
    assert shown.start.median == pytest.approx(3000, abs=20), "the median lies in the interval"


def test_silence_is_told_and_survived(toy: Toy, shadowing: Callable[..., tuple[Shadow, Board]]) -> None:
    twin, board = shadowing()
    toy.at(0, QUEUE, FIRST)
    twin.poll()
    toy.is_silent()
    twin.poll()
    assert board.trouble == "scontrol: no answer" and board.counts["RUNNING"] == 2
    assert "batsched_shadow_up 0\n" in board.metrics()
    toy.at(1, QUEUE, FIRST)
    twin.poll()
    assert "batsched_shadow_up 1\n" in board.metrics() and board.failures == 1


def test_what_squeue_tells_otherwise_is_counted(
    toy: Toy, shadowing: Callable[..., tuple[Shadow, Board]]
) -> None:
    twin, board = shadowing()
    toy.at(0, QUEUE, {**FIRST, "3": "RUNNING", "99": "PENDING"})
    twin.poll()
    assert board.drift == 2


def test_changes_are_tried_on_the_present_queue(
    toy: Toy, shadowing: Callable[..., tuple[Shadow, Board]]
) -> None:
    twin, board = shadowing("PartitionName=batch MaxNodes=2", "SchedulerParameters=bf_window=600")
    toy.at(0, QUEUE, FIRST)
    twin.poll()
    fewer, window = board.tried
    assert (fewer.no_more, fewer.earlier) == (1, 1), "job 3 needs four nodes; job 5 need not wait for it"
    assert window.no_more == 0
    assert 'what_if_after_seconds{change="PartitionName=batch MaxNodes=2"}' in board.metrics()


def test_it_is_served_on_loopback(toy: Toy, shadowing: Callable[..., tuple[Shadow, Board]]) -> None:
    twin, board = shadowing()
    toy.at(0, QUEUE, FIRST)
    twin.poll()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serving(board, port):
        address = f"http://127.0.0.1:{port}"
        page = urlopen(f"{address}/").read().decode()
        assert "A twin beside Slurm" in page and "<td>5</td>" in page
        metrics = urlopen(f"{address}/metrics").read().decode()
        assert re.search(r'^batsched_shadow_jobs\{state="PENDING"\} 5$', metrics, re.M)
        assert b'"running":2' in urlopen(f"{address}/forecast.json").read()
        with pytest.raises(urllib.error.HTTPError):
            urlopen(f"{address}/../jobs.txt")


def test_mistakes_in_options_are_one_line(toy: Toy, tmp_path: Path) -> None:
    arguments = ["slurm", "shadow", tmp_path / "slurm.conf", tmp_path, "--polls", "1", "--port", "0"]
    code, _, err = call_here([*arguments, "--what-if", "MaxTime"])
    assert code == 1 and "is not of the form Name=Value" in err and "Traceback" not in err


REAL = """\
ClusterName=toy
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
SlurmctldPort={port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=5
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-2] CPUs=2 NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] State=UNKNOWN
PartitionName=batch Nodes=ALL Default=YES MaxTime=60 State=UP
"""


def _free_ports(count: int) -> int:
    for base in range(21000, 60000, 50):
        with suppress(OSError):
            for port in range(base, base + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return base
    raise AssertionError("no free ports")


class RealSlurm:
    """A slurmctld with two emulated nodes."""

    def __init__(self, folder: Path) -> None:
        self.conf, self._folder = folder / "slurm.conf", folder
        port = _free_ports(3)
        (folder / "state").mkdir()
        self.conf.write_text(
            REAL.format(host=socket.gethostname(), folder=folder, port=port, first=port + 1, last=port + 2)
        )

    def run(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def start_controller(self, *options: str) -> None:
        self.run("slurmctld", *options, "-f", str(self.conf))

    def start_nodes(self) -> None:
        for node in ("n1", "n2"):
            self.run("slurmd", "-N", node, "-f", str(self.conf))
        self.wait_for(lambda: len(self.run("sinfo", "-h", "-N", "-t", "idle").splitlines()) == 2)

    def stop(self, *names: str) -> None:
        for name in names:
            with suppress(OSError, ValueError):
                os.kill(int((self._folder / f"{name}.pid").read_text()), signal.SIGTERM)

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        for _ in range(2400):
            with suppress(subprocess.CalledProcessError):
                if is_so():
                    return
            time.sleep(0.25)
        raise AssertionError("it did not become so within ten minutes")


@pytest.fixture
def real_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RealSlurm]:
    if shutil.which("slurmctld") is None or os.geteuid() or not sys.platform.startswith("linux"):
        pytest.skip("needs slurmctld and slurmd, and root")
    slurm = RealSlurm(tmp_path)
    monkeypatch.setenv("SLURM_CONF", str(slurm.conf))
    try:
        slurm.start_controller("-c")
        slurm.start_nodes()
        yield slurm
    finally:
        slurm.stop("slurmd-n1", "slurmd-n2", "slurmctld")


@pytest.mark.slow
def test_beside_a_real_slurm(
    real_slurm: RealSlurm, shadowing: Callable[..., tuple[Shadow, Board]], tmp_path: Path
) -> None:
    """Every job is known in its state after each poll, also when the controller was away for a while."""
    for _ in range(3):
        real_slurm.run("sbatch", "-o", "/dev/null", "-n", "4", "-t", "1", "--wrap", "sleep 2")
    real_slurm.run("sbatch", "-o", "/dev/null", "-a", "1-3", "-n", "2", "-t", "1", "--wrap", "true")
    real_slurm.run("sbatch", "-o", "/dev/null", "-H", "-n", "1", "-t", "1", "--wrap", "true")
    twin, board = shadowing()
    twin.poll()
    assert board.trouble == "" and board.drift == 0
    assert sum(board.counts.values()) == 7, "each task of the array is a job"
    assert board.forecast is not None and board.forecast.held == 1
    real_slurm.stop("slurmctld")
    real_slurm.wait_for(lambda: not (tmp_path / "slurmctld.pid").exists())
    asking_patience, asking.PATIENCE = asking.PATIENCE, 2.0
    twin.poll()
    asking.PATIENCE = asking_patience
    assert board.trouble and sum(board.counts.values()) == 7
    real_slurm.start_controller()
    twin, board = shadowing()

    def only_the_held_one_waits() -> bool:
        twin.poll()
        assert board.drift == 0
        return board.counts.get("COMPLETED") == 6 and board.counts.get("PENDING") == 1

    real_slurm.wait_for(only_the_held_one_waits)
    assert board.kept.forecasts >= 3
