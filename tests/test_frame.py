"""The layout of the house: which room may use which, and what may not be loaded to start quickly."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from textwrap import indent

import pytest

from batsched_py.cli.main import COMMANDS

#: For each room the rooms that it may use. The package itself, with what stands in no room, is the roof.
_DECIDING = {"schedulers", "users", "ledger", "workload", "wire", "outside", "protocol"}
ROOMS_BELOW = {
    "protocol": set(),
    "outside": {"protocol"},
    "wire": {"protocol"},
    "ledger": {"outside", "protocol"},
    "workload": {"protocol"},
    "schedulers": {"ledger", "workload", "outside", "protocol"},
    "users": {"workload", "protocol"},
    "decision": _DECIDING,
    "simulator": {"ledger", "workload", "wire", "outside", "protocol"},
    "analysis": _DECIDING - {"wire"},
    "engines": {"simulator", "decision", *_DECIDING},
    "experiment": {"engines", "simulator", "decision", *_DECIDING},
    "campaign": {"analysis", "experiment", "engines", "simulator", "decision", *_DECIDING},
    "testing": {"analysis", "engines", "simulator", "decision", *_DECIDING},
    "api": {"testing", "campaign", "analysis", "experiment", "engines", "simulator", "decision", *_DECIDING},
    "watch": {"api", "engines", "simulator", "decision", *_DECIDING},
    "gym": {"api", "experiment", "engines", "simulator", "decision", *_DECIDING},
    "cli": {
        "watch",
        "testing",
        "api",
        "campaign",
        "analysis",
        "experiment",
        "engines",
        "simulator",
        "decision",
        *_DECIDING,
    },
    "slurm": {
        "cli",
        "api",
        "campaign",
        "analysis",
        "experiment",
        "engines",
        "simulator",
        "decision",
        *_DECIDING,
    },
    "benchmark": {
        "testing",
        "cli",
        "api",
        "campaign",
        "analysis",
        "experiment",
        "engines",
        "simulator",
        "decision",
        *_DECIDING,
    },
    "tuning": {"slurm", "cli", "api", "campaign", "analysis", "experiment", *_DECIDING},
}

#: What stands in no room: for each module the rooms that it may use, and why it is where it is.
WITHOUT_A_ROOM = {
    "__init__": {
        "api",
        "campaign",
        "schedulers",
        "tuning",
        "users",
    },  # the public names, imported when asked for
    "__main__": {"cli"},
    "blame": {"protocol"},  # rooms that call policies and users name the line that failed by it
    "native": set(),  # the library of the native engine, if it was built
    "errors": set(),  # every room raises them
    "input_files": set(),  # every room that reads files opens them by it
    "output_files": set(),  # every room that writes files does it by it
    "settings": set(),  # rooms declare settings by it, others read them
    "plugins": set(),  # schedulers and users are both found by it
    "trust": set(),  # which code plugins may execute; campaigns say whom the user trusts
}


#: What a function and the package may have at most.
MOST_LINES, MOST_COMPLEXITY, MOST_FILES = 60, 20, 420

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def look_through(source: Path) -> tuple[set[str], dict[str, tuple[int, int]]]:
    """The modules that a file imports, wherever in it, and the lines and the complexity of its functions."""
    modules, functions = set(), {}
    for node in ast.walk(ast.parse(source.read_text())):
        match node:
            case ast.Import():
                modules.update(alias.name for alias in node.names)
            case ast.ImportFrom():
                modules.add(node.module or "")
                modules.update(f"{node.module}.{alias.name}" for alias in node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                lines = (node.end_lineno or 0) - node.lineno + 1
                functions[f"{source.name}:{node.lineno} {node.name}"] = lines, complexity(node)
    return modules, functions


def imported_modules(source: Path) -> set[str]:
    """The modules that a file imports."""
    return look_through(source)[0]


def rooms_used(sources: Iterable[Path]) -> dict[str, str]:
    """The rooms that files import something from, each with one of the files that do."""
    return {
        module.split(".")[1]: source.name
        for source in sources
        for module in imported_modules(source)
        if module.startswith("batsched_py.") and module.split(".")[1] in ROOMS_BELOW
    }


@pytest.mark.parametrize("room", ROOMS_BELOW)
def test_dependencies_point_one_way(root: Path, room: str) -> None:
    used = rooms_used((root / "batsched_py" / room).rglob("*.py"))
    assert {other: file for other, file in used.items() if other not in ROOMS_BELOW[room] | {room}} == {}


def test_the_validator_shares_no_code_with_what_it_checks(root: Path) -> None:
    """Neither it nor anything that it imports is of the rooms that make schedules."""
    used, met = list((root / "batsched_py" / "analysis" / "validator").glob("*.py")), set[Path]()
    while used:
        source = used.pop()
        met.add(source)
        for module in imported_modules(source):
            path = root.joinpath(*module.split("."))
            found = {path.with_suffix(".py"), path / "__init__.py"} - met
            used += [each for each in found if module.startswith("batsched_py.") and each.is_file()]
    rooms = {source.relative_to(root / "batsched_py").parts[0] for source in met}
    assert rooms & ROOMS_BELOW.keys() == {"analysis", "outside", "protocol", "workload"}


def test_commands_are_found_by_name_and_alone_use_the_command_line(root: Path) -> None:
    """The command line names the modules of other rooms' commands, which use its options; it imports none."""
    package = root / "batsched_py"
    outside = [path for path in package.rglob("*.py") if path.relative_to(package).parts[0] != "cli"]
    users = {str(path.relative_to(package)) for path in outside if "cli" in rooms_used([path])}
    named = {f"{module.replace('.', '/')}.py" for module, _ in COMMANDS.values()}
    assert users - {"__main__.py"} == {name for name in named if not name.startswith("cli/")}
    assert {name for name in users if "/" in name and not name.endswith("/commands.py")} == set()


def complexity(function: Function) -> int:
    """The cyclomatic complexity, counted as radon counts it: without functions and classes inside."""
    found, left = 1, list[ast.AST](function.body)
    while left:
        node = left.pop()
        if isinstance(node, Function | ast.ClassDef):
            continue
        match node:
            case ast.Assert():
                found += 1
                continue
            case ast.If() | ast.IfExp():
                found += 1
            case ast.For() | ast.AsyncFor() | ast.While():
                found += 1 + bool(node.orelse)
            case ast.Try() | ast.TryStar():
                found += len(node.handlers) + bool(node.orelse)
            case ast.BoolOp():
                found += len(node.values) - 1
            case ast.comprehension():
                found += 1 + len(node.ifs)
            case ast.Match():
                found += sum(not is_all_else(case.pattern) for case in node.cases)
        left += ast.iter_child_nodes(node)
    return found


def is_all_else(pattern: ast.pattern) -> bool:
    """Whether a pattern is that of all that no other one matches."""
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("return a", 1),
        ("return [b for b in c if b and d] if a else None", 5),
        ("for a in b:\n  if a: break\nelse:\n  assert a and b", 5),
        ("try: a()\nexcept B: c()\nexcept D: e()\nelse: f()\nfinally: g()", 4),
        ("match a:\n  case 1: b()\n  case 2: c()\n  case _: d()", 3),
        ("def g():\n  return a or b or c\nwith a: return lambda: b or c", 2),
    ],
)
def test_complexity_is_that_of_radon(source: str, expected: int) -> None:
    """Of radon 6.0.1, with which the figures of larger functions were compared, too."""
    (function,) = ast.parse("def f():\n" + indent(source, "  ")).body
    assert isinstance(function, ast.FunctionDef)
    assert complexity(function) == expected


def test_functions_are_short_and_simple_and_files_few(root: Path) -> None:
    """A long or branching function is several; many small files are hard to read, too."""
    sources = list((root / "batsched_py").rglob("*.py"))
    found = [each for source in sources for each in look_through(source)[1].items()]
    assert len(found) > 5_000
    assert [name for name, (lines, _) in found if lines > MOST_LINES] == []
    assert [name for name, (_, branches) in found if branches > MOST_COMPLEXITY] == []
    assert len(sources) <= MOST_FILES


def test_the_architecture_has_every_room(root: Path) -> None:
    """The table of rooms, and nothing in it that is none."""
    text = (root / "docs" / "architecture.md").read_text().split("## The rooms\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert sorted(re.findall(r"`(\w+)/`", " ".join(rows))) == sorted(ROOMS_BELOW)


@pytest.mark.parametrize("module", WITHOUT_A_ROOM)
def test_what_stands_in_no_room_uses_what_it_may(root: Path, module: str) -> None:
    assert rooms_used([root / "batsched_py" / f"{module}.py"]).keys() <= WITHOUT_A_ROOM[module]


def test_every_module_of_the_package_is_in_the_plan(root: Path) -> None:
    sources = {path.relative_to(root / "batsched_py") for path in (root / "batsched_py").rglob("*.py")}
    planned = ROOMS_BELOW.keys() | {f"{module}.py" for module in WITHOUT_A_ROOM}
    assert {path.parts[0] for path in sources} == planned


def test_no_room_knows_which_dialect_is_spoken(root: Path) -> None:
    """Whoever speaks is given a dialect, or takes the usual one from the list of them."""
    protocol = root / "batsched_py" / "protocol"
    listing = protocol / "dialects.py"
    modules = tuple(m for m in imported_modules(listing) if m.startswith("batsched_py.protocol.batsim"))
    assert len({module.split(".")[2] for module in modules}) == 2
    wrong = {
        f"{source.name} imports {module}"
        for source in (root / "batsched_py").rglob("*.py")
        for module in imported_modules(source)
        if module.startswith(modules) and not source.is_relative_to(protocol)
    }
    assert not wrong


def test_the_neutral_model_does_not_know_any_dialect(root: Path) -> None:
    model = [
        root / "batsched_py" / "protocol" / f"{name}.py" for name in ("events", "jobs", "profiles", "hosts")
    ]
    modules = {module for source in model for module in imported_modules(source)}
    assert not {module for module in modules if "dialect" in module or ".batsim" in module}


def test_the_policy_of_slurm_is_a_policy_like_others(root: Path) -> None:
    """It stands in the room of Slurm, and uses no more of the house than policies may."""
    used = rooms_used((root / "batsched_py" / "slurm" / "policy").rglob("*.py"))
    assert used.keys() <= ROOMS_BELOW["schedulers"] | {"schedulers", "slurm"}
    inside = {
        module
        for source in (root / "batsched_py" / "slurm" / "policy").rglob("*.py")
        for module in imported_modules(source)
        if module.startswith("batsched_py.slurm")
    }
    assert all(module.startswith("batsched_py.slurm.policy") for module in inside)


def test_reading_a_workload_does_not_load_the_slow_libraries(root: Path) -> None:
    code = (
        "import sys; from batsched_py.workload.read import read_workload; "
        "read_workload('workloads/sample.swf', 'w0'); "
        "print(*sorted({'pandas', 'networkx', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=root, check=True, capture_output=True, text=True)
    assert run.stdout.strip() == ""


def test_the_library_of_the_native_engine_knows_nothing_of_python(root: Path) -> None:
    """Only the binding does, and it imports no module of the package."""
    headers = list((root / "native").glob("*.hpp"))
    assert len(headers) > 10
    for header in headers:
        included = {
            line.split()[1] for line in header.read_text().splitlines() if line.startswith("#include")
        }
        ours = {f'"{other.name}"' for other in headers}
        assert all(name in ours or name.startswith("<") for name in included), header.name
        assert not {name for name in included if "Python" in name or "nanobind" in name}, header.name
        assert "PyObject" not in header.read_text(), header.name
    for binding in (root / "native" / "binding").iterdir():
        assert "PyImport" not in binding.read_text() and "import_(" not in binding.read_text(), binding.name


def test_the_library_is_reached_through_few_doors(root: Path) -> None:
    package = root / "batsched_py"
    users = {
        str(source.relative_to(package))
        for source in package.rglob("*.py")
        if {"batsched_py.native", "batsched_py._native"} & imported_modules(source)
    }
    assert users == {
        "analysis/job_rows.py",
        "engines/__init__.py",
        "engines/native.py",
        "slurm/policy/plan.py",
        "workload/swf/quick_reader.py",
        "campaign/finished.py",
        "campaign/run.py",
        "cli/main.py",
    }
