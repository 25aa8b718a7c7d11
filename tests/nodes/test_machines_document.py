"""The examples of docs/machines.md: each is read or runs, and shows what comes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from batsched_py.ledger.nodes import NodeMachine
from batsched_py.protocol.requests import _Fields, read_request
from batsched_py.schedulers.node_choice import CHOICES
from batsched_py.simulator.machine_files import read_toml_machine, reader_of
from tests.processes import call_here

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "machines.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, flags=re.MULTILINE | re.DOTALL)


def named_in(section: str) -> list[str]:
    """What the first column of the table of a section names."""
    table = TEXT.split(f"# {section}\n", 1)[1].split("\n#", 1)[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")][2:]
    return [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def test_commands_show_what_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (example,) = blocks("console")
    command, _, shown = example.partition("\n")
    code, stdout, _ = call_here(command.removeprefix("$ batsched-py ").split())
    assert (code, stdout) == (0, shown)


def test_the_machine_in_toml_is_one(tmp_path: Path) -> None:
    path = tmp_path / "machine.toml"
    path.write_text(*blocks("toml"))
    machine = NodeMachine.of(read_toml_machine(path).as_protocol()[0])
    assert (len(machine.nodes), len(machine.switches), machine.licences) == (140, 7, {"matlab": 10})
    assert (machine.nodes[0].name, machine.nodes[119].name) == ("cpu000", "cpu119")


def test_the_platform_of_simgrid_has_a_node(tmp_path: Path) -> None:
    path = tmp_path / "platform.xml"
    hosts = "".join(['<host id="master_host" speed="1Gf"/>', *blocks("xml")])
    path.write_text(f"<platform version='4.1'><zone id='z' routing='None'>{hosts}</zone></platform>")
    code, stdout, stderr = call_here(["platform", path])
    assert code == 0, stderr
    assert "1 cores, 256 GB, 4 gpu, a100, fast" in stdout


def test_the_machine_of_accasim_is_one(tmp_path: Path) -> None:
    path = tmp_path / "system.config"
    path.write_text(*re.findall(r'^    (\{"groups".*)$', TEXT, flags=re.MULTILINE))
    reader = reader_of(str(path))
    assert reader is not None
    assert len(reader(str(path)).hosts) == 480


def test_the_request_is_what_the_text_says() -> None:
    request = read_request(32, json.loads(*blocks("json")))
    assert (request.tasks, request.cores, request.least_nodes, request.most_nodes) == (4, 8, 1, 2)
    assert request.per_task == (("gpu", 1), ("memory", 60 * 1024**2))


def test_all_fields_and_choices_are_there() -> None:
    assert set(named_in("What a job asks for")) == set(_Fields.__struct_fields__)
    assert named_in("Which nodes a job gets") == list(CHOICES)
