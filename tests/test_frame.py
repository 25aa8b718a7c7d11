"""The layout of the house: which room may use which, and what may not be loaded to start quickly."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOMS_BELOW = {
    "protocol": set(),
    "workload": {"protocol"},
    "schedulers": {"workload", "protocol"},
    "users": {"workload", "protocol"},
    "decision": {"schedulers", "users", "workload", "protocol"},
    "simulator": {"workload", "protocol"},
    "analysis": {"schedulers", "users", "workload", "protocol"},
    "experiment": {"simulator", "decision", "schedulers", "users", "workload", "protocol"},
    "campaign": {
        *("analysis", "experiment", "simulator", "decision", "schedulers", "users", "workload", "protocol")
    },
    "cli": {
        *("campaign", "analysis", "experiment", "simulator", "decision"),
        *("schedulers", "users", "workload", "protocol"),
    },
}


def imported_modules(source: Path) -> set[str]:
    """The modules that a file imports, wherever in it."""
    modules = set()
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
            modules.update(f"{node.module}.{alias.name}" for alias in node.names)
    return modules


@pytest.mark.parametrize("room", ROOMS_BELOW)
def test_dependencies_point_one_way(root: Path, room: str) -> None:
    forbidden = tuple(
        f"batsched_py.{other}" for other in ROOMS_BELOW if other != room and other not in ROOMS_BELOW[room]
    )
    wrong = {
        f"{source.name} imports {module}"
        for source in (root / "batsched_py" / room).rglob("*.py")
        for module in imported_modules(source)
        if module.startswith(forbidden)
    }
    assert not wrong


def test_every_folder_of_the_package_is_a_known_room(root: Path) -> None:
    folders = {path.parent.name for path in (root / "batsched_py").glob("*/__init__.py")}
    assert folders == set(ROOMS_BELOW)


def test_reading_a_workload_does_not_load_the_slow_libraries(root: Path) -> None:
    code = (
        "import sys; from batsched_py.workload.read import read_workload; "
        "read_workload('workloads/sample.swf', 'w0'); "
        "print(*sorted({'pandas', 'networkx', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == ""
