"""Schedulers that are programs of their own: skeletons in five languages, and the faults that are found."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from batsched_py.errors import InputError
from batsched_py.testing.programs import Program, try_program
from tests.processes import PATIENCE, ROOT, call_here

SKELETONS = ROOT / "examples" / "any-language"
PLAIN = SKELETONS / "fcfs.py"
SAMPLE = ROOT / "workloads" / "sample.swf"

#: How each is built: what must be installed, and the command.
BUILT = {
    "fcfs.c": "cc -Wall -Wextra -Werror -o {program} {source} -lzmq",
    "fcfs.cpp": "c++ -std=c++17 -Wall -Wextra -Werror -o {program} {source} -lzmq",
    "fcfs.rs": "rustc -D warnings -o {program} {source}",
    "fcfs.go": "go build -o {program} {source}",
}

#: For each fault: what is replaced in the plain skeleton, by what, and what is told of it.
FAULTS = {
    "a job twice": ("queue.pop(0)", "queue[0]", "is running already|is not waiting"),
    "busy hosts": ("free[:size], free[size:]", "free[:size], free", "are busy"),
    "no answer": ("    now = m", "    while running: pass\n    now = m", "nothing came"),
    "wrong JSON": ('json.dumps({"now": now', 'str({"now": now', "not a message of Batsim's protocol"),
    "time going back": ('now = message["now"]', 'now = message["now"] / 2', "time goes back"),
    "a decision in the past": ('{"timestamp": now,', '{"timestamp": 0,', "time goes back"),
    "a decision in the future": ('{"timestamp": now,', '{"timestamp": now + 5,', "lies after its message"),
    "hosts that do not exist": ('host["id"] for', 'host["id"] + 4 for', "do not exist"),
    "too few hosts": ("map(str, running[job])", "map(str, running[job][1:])", "needs 2 hosts"),
    "a job is forgotten": (
        "queue.append((job, size))",
        "queue += [(job, size)] * ('b' not in job)",
        "deadlock",
    ),
    "it dies": ("    decisions = []", "    decisions = [1 / (machine == 0)]", "ended with exit code 1"),
    "an unknown decision": ('"EXECUTE_JOB"', '"START_JOB"', "START_JOB .*does not know"),
    "a wrong job": ('job, size = data["job_id"],', 'job, size = data["job_id"][3:],', "is unknown"),
    "killed jobs keep their hosts": (
        'elif kind == said["completed"]:',
        'elif kind == said["completed"] and data["job_state"] != "COMPLETED_KILLED":',
        "deadlock",
    ),
    "too large jobs are left waiting": ("if size > machine:", "if False:", "deadlock"),
    "jobs are rejected that fit": ("if size > machine:", "if size >= machine:", "is rejected, although"),
    "jobs overtake": ("queue.append((job, size))", "queue.insert(0, (job, size))", "fcfs"),
    "jobs start late": (
        "while queue and queue",
        "if queue and queue",
        "first come, first served at|deadlock",
    ),
    "two frames": ("    now = m", "    socket.send(b'', zmq.SNDMORE)\n    now = m", "in 2 frames"),
    "it does not end": ('ended |= kind == said["ends"]', "ended |= False", "it still runs"),
    "it ends badly": ("    now = m", "    sys.exitfunc = ended and exit_badly()\n    now = m", "exit code 7"),
}

#: What the last of them calls.
EXIT_BADLY = """
def exit_badly():
    import atexit, os
    atexit.register(lambda: (socket.context.destroy(linger=None), os._exit(7)))
"""


def built(source: Path, folder: Path) -> list[str]:
    """The command of a skeleton, which is built first; skipped without its compiler or libzmq."""
    if source == PLAIN:
        return [sys.executable, str(PLAIN)]
    build = BUILT[source.name].format(program=folder / "fcfs", source=source)
    compiler = shlex.split(build)[0]
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    if not any(Path(each, "zmq.h").exists() for each in ("/usr/include", "/usr/local/include")):
        pytest.skip("libzmq's headers are not installed (libzmq3-dev)")
    subprocess.run(shlex.split(build), check=True, timeout=PATIENCE, cwd=folder)
    return [str(folder / "fcfs")]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fcfs.py", *BUILT])
def test_a_skeleton_passes_all_cases_and_decides_as_ours(tmp_path: Path, name: str) -> None:
    program = built(SKELETONS / name, tmp_path)
    outcomes = list(try_program([*program, "{socket}"], ["4", "5"], "fcfs", PATIENCE))
    assert [str(outcome) for outcome in outcomes if outcome.faults] == []
    assert len(outcomes) == 22
    world = ["--hosts", "64", "-w", SAMPLE]
    assert call_here(["run", *world, "-s", "fcfs", "-e", tmp_path / "ours"])[0] == 0
    for protocol, file in (("4", "out_jobs.csv"), ("5", "outjobs.csv")):
        with Program([*program, "{socket}"], tmp_path, PATIENCE) as running:
            where = ["-s", running.endpoint, *([""] if protocol == "5" else [])]
            options = ["--protocol", protocol, *where, *world, "-e", tmp_path / "out"]
            assert call_here(["batsim", *options]) == (0, "", "")
            assert running.end() is None
        assert (tmp_path / file).read_bytes() == (tmp_path / "ours_jobs.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_the_plain_skeleton_is_found(tmp_path: Path, fault: str) -> None:
    right, wrong, told = FAULTS[fault]
    text = PLAIN.read_text()
    assert right in text
    program = tmp_path / "faulty.py"
    program.write_text(EXIT_BADLY + text.replace(right, wrong))
    patience = 5 if told in ("nothing came", "it still runs") else PATIENCE
    outcomes = try_program([sys.executable, str(program), "{socket}"], ["4"], "fcfs", patience)
    found = next(outcome for outcome in outcomes if outcome.faults)
    assert re.search(told, "\n".join(found.faults)), str(found)
    assert found.messages or fault == "it dies"


def test_what_is_wrong_is_told_with_the_last_messages_and_in_junit(tmp_path: Path) -> None:
    program, report = tmp_path / "nonsense.py", tmp_path / "report.xml"
    program.write_text(
        "import sys, zmq\nprint('here I am', flush=True)\nsocket = zmq.Context().socket(zmq.REP)\n"
        "socket.bind(sys.argv[1])\nsocket.recv()\nsocket.send(b'\\1 what?')\n"
    )
    command = ["check", "--junit", report, "--", sys.executable, program, "{socket}"]
    code, out, err = call_here(command)
    assert (code, err) == (1, "batsched-py: error: 11 of 11 cases failed\n")
    first = out.split("\nFAIL")[0]
    assert "not a message of Batsim's protocol" in first
    assert "batsim said:    {" in first and "SIMULATION_BEGINS" in first and "what?" in first
    assert "it printed: here I am" in first
    suite = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("11", "11")
    failure = suite[0].find("failure")
    assert failure is not None and "what?" in (failure.text or "")


def test_a_command_without_a_place_for_the_address_is_refused() -> None:
    with pytest.raises(InputError, match=r"Write \{socket\} where the address goes"):
        next(try_program(["./mine"], ["4"]))


def test_a_program_that_is_not_there_is_one_line() -> None:
    code, _, err = call_here(["check", "--", "./not-there", "{socket}"])
    assert (code, err) == (
        1,
        "batsched-py: error: ./not-there: cannot be started: No such file or directory\n",
    )
