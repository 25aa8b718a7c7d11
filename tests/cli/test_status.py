"""``batsched-py status``: another process asks a simulation how far it is."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import pytest

from batsched_py import native
from batsched_py.errors import InputError
from batsched_py.watch.status_socket import answering, ask
from tests.processes import PATIENCE, call_here, start

ROOT = Path(__file__).parents[2]

POLICY = '''
import time
from pathlib import Path
from batsched_py.schedulers import Cluster, Scheduler


class Held(Scheduler):
    """First come, first served; holds the simulation up at some time until it may go on."""

    name = "held"

    def schedule(self, cluster: Cluster) -> None:
        for job in cluster.fitting():
            cluster.start(job)
        if cluster.now >= 250 and not Path("go-on").exists():
            Path("held").touch()
            for _ in range(6000):
                if Path("go-on").exists():
                    break
                time.sleep(0.1)
'''

MACHINE = '[[nodes]]\nname = "n"\ncount = 3\ncores = 2\nmemory = "4 GB"\n'


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


@contextmanager
def held_up(folder: Path, *options: str, pure: str) -> Iterator[None]:
    """A simulation in another process that is held up at 300 s, and goes on to its end afterwards."""
    (folder / "held.py").write_text(POLICY)
    (folder / "machine.toml").write_text(MACHINE)
    request = {"per_core": {"memory": "1 GB"}}
    jobs = [
        {"id": str(each), "subtime": 100 * each, "res": 2, "profile": "p", "request": request}
        for each in range(6)
    ]
    profiles = {"p": {"type": "delay", "delay": 1000}}
    (folder / "w.json").write_text(json.dumps({"nb_res": 6, "jobs": jobs, "profiles": profiles}))
    run = ["run", "-w", "w.json", "-p", "machine.toml", "-s", "held.py:Held", *options]
    with start(run, cwd=folder, **{native.PURE: pure}) as process:
        try:
            give_up = time.monotonic() + PATIENCE
            while not (folder / "held").exists():
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < give_up
                time.sleep(0.02)
            yield
            (folder / "go-on").touch()
            out, err = process.communicate(timeout=PATIENCE)
            assert process.returncode == 0, err
            assert "makespan" in out
        finally:
            process.kill()


@pytest.mark.parametrize("pure", [pytest.param("", marks=pytest.mark.slow), "1"])
def test_another_process_is_told_how_far_a_simulation_is(tmp_path: Path, pure: str) -> None:
    """At the socket of a file, and at a port."""
    given, address = ([], tmp_path / "out_status.sock") if pure else ([free_port()], "localhost:{}")
    with held_up(tmp_path, "--status", *given, pure=pure):
        code, out, _ = call_here(["status", str(address).format(*given)])
        assert not pure or Path(address).stat().st_mode & 0o077 == 0
    assert code == 0
    status = json.loads(out)
    assert status["engine"] == ("python" if pure or native.library is None else "native")
    assert (status["now"], status["scheduler"], status["workloads"]) == (300, "held.py:Held", ["w.json"])
    assert status["jobs"] == {"total": 6, "waiting": 1, "running": 3, "ended": 0}
    assert status["hosts"] == {"total": 6, "used": 6}
    assert status["resources"]["memory"] == {"total": 3 * 4 * 1024**2, "used": 6 * 1024**2}
    assert status["share_done"] == 0
    assert status["processor_seconds"] > 0 < status["memory_bytes"]
    assert not (tmp_path / "out_status.sock").exists(), "it is gone with the simulation"


def test_where_nobody_answers(tmp_path: Path) -> None:
    code, _, err = call_here(["status", tmp_path / "none.sock"])
    assert code == 1
    assert "no simulation answers at" in err
    assert err.count("\n") == 1
    assert "on its own machine only" in call_here(["status", "example.org:80"])[2]
    assert "there is no such port" in call_here(["status", "70000"])[2]


def test_the_socket_of_a_killed_process_is_replaced_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    with answering(str(path), lambda: b"1"):
        assert ask(str(path)) == b"1\n"
        with pytest.raises(InputError, match="another simulation answers there"), answering(str(path), bytes):
            pass
        assert ask(str(path)) == b"1\n"
    path.write_text("mine")
    with pytest.raises(InputError, match="is a file"), answering(str(path), bytes):
        pass
    assert path.read_text() == "mine"
    with (
        pytest.raises(InputError, match="cannot answer there"),
        answering(str(tmp_path / ("x" * 200)), bytes),
    ):
        pass


def test_somebody_else_who_answers_is_no_simulation(tmp_path: Path) -> None:
    with answering(str(tmp_path / "s"), lambda: b"hello"):
        code, _, err = call_here(["status", tmp_path / "s"])
    assert (code, "is no simulation of ours" in err) == (1, True)


def test_many_ask_while_a_simulation_runs_and_its_files_stay_the_same(tmp_path: Path) -> None:
    """With the Python engine, in which a thread that looked too closely could lose jobs."""
    log, address = ROOT / "workloads" / "sample.swf", str(tmp_path / "s")
    over, answers = Event(), 0

    def keep_asking() -> None:
        nonlocal answers
        while not over.is_set():
            try:
                answers += json.loads(ask(address))["jobs"]["total"] == 3000
            except InputError:
                time.sleep(0.001)

    thread = Thread(target=keep_asking)
    thread.start()
    try:
        before, native.library = native.library, None
        options = ["run", "-w", str(log), "-s", "easy"]
        assert call_here([*options, "--status", address, "-e", str(tmp_path / "a")])[0] == 0
        assert call_here([*options, "-e", str(tmp_path / "b")])[0] == 0
    finally:
        native.library = before
        over.set()
        thread.join()
    assert answers > 0
    assert (tmp_path / "a_jobs.csv").read_bytes() == (tmp_path / "b_jobs.csv").read_bytes()
