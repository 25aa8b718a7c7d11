"""Machines of nodes over protocol 4 and 5: what leaves is something that a real Batsim accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from threading import Thread
from typing import Any

import pytest
import zmq

from batsched_py.simulator.simgrid_xml import simgrid_lines
from batsched_py.workload.batsim_json import write_batsim_json
from tests.nodes.test_machine_files import TOML
from tests.nodes.test_reference import as_platform, as_workload, random_jobs, random_machine
from tests.processes import PATIENCE, call_here, serving


def hosts_in(version: str, event: dict[str, Any]) -> str | None:
    """The hosts on which an event starts a job, if it does; it says nothing else."""
    match version, event:
        case "4", {"type": "EXECUTE_JOB", "data": {"job_id": str(), "alloc": str(hosts), **others}}:
            assert not others
            return hosts
        case "5", {
            "event_type": "ExecuteJobEvent",
            "event": {"job_id": str(), "allocation": given, **others},
        }:
            assert others == {"profile_allocation_override": [], "storage_placement": []}
            hosts = given.pop("host_allocation")
            assert given == {
                "executor_placement_type": "PredefinedExecutorPlacementStrategyWrapper",
                "executor_placement": {"strategy": "SpreadOverHostsFirst"},
            }
            return str(hosts)
    return None


@contextmanager
def between(endpoint: str, heard: list[tuple[bytes, bytes]]) -> Iterator[str]:
    """Somebody in the middle, who passes messages on and keeps them."""
    context = zmq.Context()
    front, back = context.socket(zmq.REP), context.socket(zmq.REQ)
    for socket in (front, back):
        socket.linger = 0
        socket.rcvtimeo = PATIENCE * 1000
    back.connect(endpoint)

    def answer(request: bytes) -> bytes:
        back.send(request)
        heard.append((request, back.recv()))
        return heard[-1][1]

    with _answering(front, answer) as address:
        yield address
    context.destroy(linger=0)


@contextmanager
def parrot(replies: list[bytes]) -> Iterator[str]:
    """A decision process that says what another one has said, whatever it hears."""
    context, left = zmq.Context(), iter(replies)
    front = context.socket(zmq.REP)
    front.linger = 0
    front.rcvtimeo = PATIENCE * 1000
    with _answering(front, lambda request: next(left)) as address:
        yield address
    context.destroy(linger=0)


@contextmanager
def _answering(front: Any, answer: Any) -> Iterator[str]:
    port = front.bind_to_random_port("tcp://127.0.0.1")

    def talk() -> None:
        while True:
            request = front.recv()
            if request == b"over":
                return
            front.send(answer(request))

    thread = Thread(target=talk)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{port}"
    finally:
        with zmq.Context() as context, context.socket(zmq.REQ) as last:
            last.linger = 0
            last.connect(f"tcp://127.0.0.1:{port}")
            last.send(b"over")
            thread.join(PATIENCE)


def scenario(folder: Path, seed: int) -> tuple[Path, Path, int]:
    """A workload with requests, a machine as SimGrid writes it, and its number of hosts."""
    random = Random(seed)
    nodes, licences = random_machine(random)
    platform = as_platform(nodes, licences)
    workload, machine = folder / "jobs.json", folder / "machine.xml"
    write_batsim_json(workload, as_workload(random_jobs(random, 40), len(platform.hosts)))
    machine.write_text("\n".join(simgrid_lines(platform)))
    return workload, machine, len(platform.hosts)


def batsim(version: str, endpoint: str, folder: Path, *inputs: object) -> list[list[str]]:
    """The rows of the built-in Batsim's jobs.csv, which decides nothing."""
    prefix = f"{folder}/" if version == "5" else folder / "out"
    ask = ["--protocol", "5", "-s", endpoint, ""] if version == "5" else ["-s", endpoint]
    words = ["batsim", *ask, "-e", prefix, "--timeout", str(PATIENCE), *inputs]
    code, _, err = call_here(words)
    assert (code, err) == (0, "")
    return rows(folder / ("jobs.csv" if version == "5" else "out_jobs.csv"))


def rows(file: Path) -> list[list[str]]:
    """When and where each job ran."""
    header, *lines = (line.split(",") for line in file.read_text().splitlines())
    kept = [header.index(name) for name in ("job_id", "final_state", "starting_time", "allocated_resources")]
    return sorted([line[place] for place in kept] for line in lines)


def talk_about(folder: Path, policy: str, seed: int) -> None:
    workload, machine, nb_hosts = scenario(folder, seed)
    run = ["run", "-s", policy, "-w", workload, "-p", machine, "-e", folder / "one"]
    code, _, err = call_here(run)
    assert code == 0, err
    expected = rows(folder / "one_jobs.csv")
    assert any(row[1] == "REJECTED" for row in expected) or seed
    with serving("-s", policy, "--keep-alive") as service:
        for version in ("4", "5"):
            heard: list[tuple[bytes, bytes]] = []
            (folder / version).mkdir()
            with between(service.endpoint, heard) as endpoint:
                assert batsim(version, endpoint, folder / version, "-w", workload, "-p", machine) == expected
            replies = [reply for _, reply in heard]
            events = [
                event for reply in replies if reply[:1] == b"{" for event in json.loads(reply)["events"]
            ]
            started = [hosts for event in events if (hosts := hosts_in(version, event)) is not None]
            assert len(started) == sum(row[1] != "REJECTED" for row in expected)
            assert all(re.fullmatch(r"\d+(-\d+)?([ ,]\d+(-\d+)?)*", hosts) for hosts in started)
            (folder / f"plain{version}").mkdir()
            with parrot(replies) as endpoint:
                plain = batsim(
                    version, endpoint, folder / f"plain{version}", "-w", workload, "--hosts", str(nb_hosts)
                )
            assert plain == expected


def test_that_both_protocols_carry_the_schedule_of_run_as_plain_hosts(tmp_path: Path) -> None:
    """A simulator that knows nothing of nodes carries out the same decisions."""
    talk_about(tmp_path, "conservative", 0)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["fcfs", "easy", "easy-sjbf", "sjf"])
@pytest.mark.parametrize("seed", [1, 3, 6])
def test_that_other_policies_do_so_too(tmp_path: Path, policy: str, seed: int) -> None:
    talk_about(tmp_path, policy, seed)


def test_that_the_file_of_the_command_is_the_machine_itself(tmp_path: Path) -> None:
    """What ``platform --output`` writes gives the schedule of the file that it was made of."""
    machine, file = tmp_path / "m.toml", tmp_path / "m.xml"
    machine.write_text(TOML)
    assert call_here(["platform", machine, "--output", file])[0] == 0
    workload, *_ = scenario(tmp_path, 3)
    for name, platform in (("one", machine), ("two", file)):
        code, _, err = call_here(["run", "-s", "easy", "-w", workload, "-p", platform, "-e", tmp_path / name])
        assert code == 0, err
    assert (tmp_path / "one_jobs.csv").read_bytes() == (tmp_path / "two_jobs.csv").read_bytes()
