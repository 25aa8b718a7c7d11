"""``python -m tests.mutants``: put faults into a copy of the checkout, and see which the tests notice."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from tests.mutants import __doc__ as about
from tests.mutants.faults import Fault, faults_in
from tests.mutants.order import in_order, put_probes, read_tests
from tests.mutants.reached import ORDER, WRITTEN, Test

ROOT = Path(__file__).resolve().parents[2]
UNNOTICED = Path(__file__).with_name("unnoticed.toml")

#: So many seconds of processor time may the tests of an area take without a fault.
PATIENCE = 3600

#: So many seconds by the clock beside it, for tests wait up to ten minutes and the machine may be busy.
WAITS = 900


@dataclass(frozen=True)
class Area:
    """Some code, and the tests that are to notice what is wrong in it."""

    code: Sequence[str]
    tests: Sequence[str]
    without: str = "-"
    """Files whose names contain this belong to another area."""


AREAS = {
    "schedulers": Area(
        ["batsched_py/schedulers"],
        [
            "tests/schedulers",
            "tests/malleable/test_reference.py",
            "tests/test_extensions.py::test_an_allocator_chooses_nodes_and_hosts_in_them",
        ],
    ),
    "ledger": Area(
        ["batsched_py/ledger"],
        [
            "tests/ledger",
            "tests/schedulers",
            "tests/nodes",
            "tests/dependencies/test_dependencies.py",
            "tests/outside/test_closures.py",
        ],
    ),
    "simulator": Area(["batsched_py/simulator"], ["tests/simulator", "tests/test_simulation.py"]),
    "validator": Area(
        ["batsched_py/analysis/validator"],
        [
            "tests/analysis/test_validator.py",
            "tests/analysis/test_planted_faults.py",
            "tests/cli/test_validate_command.py",
            "tests/dependencies/test_dependencies.py",
            "tests/malleable/test_rules.py",
            "tests/nodes/test_validator_on_nodes.py",
            "tests/nodes/test_moldable_on_nodes.py",
            "tests/outside/test_closures.py",
            "tests/schedulers/test_capped.py::test_the_validator_finds_a_job_that_exceeds_the_cap",
            "tests/schedulers/test_capped.py::test_the_validator_finds_jobs_that_run_when_the_cap_falls",
            "tests/schedulers/test_easy_moldable.py",
            "tests/workload/test_rules_of_logs.py",
        ],
    ),
    "campaigns": Area(["batsched_py/campaign"], ["tests/campaign", "tests/cli/test_campaign.py"]),
    "models": Area(["batsched_py/workload/models"], ["tests/workload/models"]),
    "slurm-policy": Area(["batsched_py/slurm/policy"], ["tests/slurm"]),
    "readers": Area(
        ["batsched_py/workload/sources", "batsched_py/workload/swf"],
        ["tests/workload/sources", "tests/workload/swf", "tests/workload/test_read.py"],
    ),
    "users": Area(["batsched_py/users"], ["tests/users", "tests/decision/test_users.py"]),
    "slurm-tools": Area(["batsched_py/slurm"], ["tests/slurm"], without="/policy/"),
    "native": Area(
        ["native"],
        [
            "tests/slurm/test_kernel.py",
            "tests/ledger",
            "tests/workload/swf/test_quick_reader.py",
            "tests/test_engines.py",
        ],
        without="binding",
    ),
}


def main() -> int:
    """Try the faults; 1 if in some area fewer than nine of ten are noticed."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--area", action="append", choices=AREAS)
    parser.add_argument("--faults", type=int, default=20, help="How many in each area.")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    areas = {name: AREAS[name] for name in options.area or AREAS}
    reasons = tomllib.loads(UNNOTICED.read_text(encoding="utf-8"))
    try:
        poor = too_little_noticed(ROOT, areas, options.faults, options.seed, reasons)
    except CopyFails as failure:
        print(failure)
        return 2
    if poor:
        print(f"too few are noticed in {', '.join(poor)}")
    return int(bool(poor))


class CopyFails(Exception):
    """Its tests do, without a fault: they would seem to notice every fault."""


def too_little_noticed(
    root: Path, areas: Mapping[str, Area], count: int, seed: int, reasons: Mapping[str, str]
) -> list[str]:
    """Put so many faults into each area of a copy; in which fewer than nine of ten are noticed."""
    poor = []
    with tempfile.TemporaryDirectory() as folder:
        copy = copied(root, Path(folder))
        for name, area in areas.items():
            chosen = drawn(copy, area, count, f"{seed} {name}")
            tests = all_tests(copy, name, area, chosen)
            noticed, excused = 0, 0
            for number, fault in enumerate(chosen):
                reason, first = reasons.get(fault.name), in_order(tests, number, fault.path.stem)
                others = [] if reason else [test for test in tests if test not in first]
                if is_noticed(fault, copy, first) or (others and is_noticed(fault, copy, others)):
                    noticed += 1
                elif reason:
                    excused += 1
                    print(f"  not noticed, because {reason}: {fault.name}", flush=True)
                else:
                    print(f"  NOT NOTICED: {fault.name}", flush=True)
            print(f"{name}: {noticed} of {len(chosen)} noticed, {excused} cannot be", flush=True)
            if noticed < 0.9 * (len(chosen) - excused):
                poor.append(name)
    return poor


def copied(root: Path, folder: Path) -> Path:
    """A copy of all files of a checkout, beside the same shared files."""
    copy = folder / "checkout"
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
    )
    for name in {*listed.stdout.splitlines(), *(str(path.relative_to(root)) for path in libraries(root))}:
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)
    for beside, name in ((root.parent, "shared"), (root, ".venv"), (root, ".venv5")):
        if (beside / name).exists():
            (folder / name if beside != root else copy / name).symlink_to((beside / name).resolve())
    return copy


def libraries(root: Path) -> list[Path]:
    """What was compiled in a checkout."""
    return list((root / "batsched_py").glob("_native*.so"))


def drawn(root: Path, area: Area, count: int, seed: str) -> list[Fault]:
    """So many faults, from any place of the code as likely as from any other.

    Each has a random number that only the seed and its own line decide: a change elsewhere leaves nearly all
    of them drawn.
    """
    files = sorted(
        path.relative_to(root)
        for folder in area.code
        for path in (root / folder).rglob("*")
        if path.suffix in (".py", ".hpp") and area.without not in f"/{path.relative_to(root)}"
    )
    names: Counter[str] = Counter()
    numbered = []
    for fault in (fault for path in files for fault in faults_in(root, path)):
        names[fault.name] += 1
        numbered.append((Random(f"{seed} {names[fault.name]} {fault.name}").random(), fault))
    return [fault for _, fault in sorted(numbered, key=lambda pair: pair[0])[:count]]


def all_tests(copy: Path, name: str, area: Area, chosen: Sequence[Fault]) -> list[Test]:
    """The tests of an area, which must pass, and which of the faults each reaches."""
    written = copy.parent / f"{name}.jsonl"
    contents = put_probes(copy, chosen)
    try:
        if wrong := first_failure(copy, area.tests, PATIENCE, {WRITTEN: str(written)}):
            raise CopyFails(f"{name}: its tests fail without any fault: {wrong}")
    finally:
        for path, content in contents.items():
            (copy / path).write_text(content, encoding="utf-8")
    return read_tests(written)


def is_noticed(fault: Fault, copy: Path, tests: Sequence[Test]) -> bool:
    """Whether one of the tests, which run in this order, fails with it or does not end."""
    names, patience = [test.name for test in tests], 60 + 5 * sum(test.seconds for test in tests)
    content = fault.into(copy)
    built = {path: path.read_bytes() for path in libraries(copy) if fault.path.suffix == ".hpp"}
    order = copy.parent / "order.json"
    order.write_bytes(msgspec.json.encode(names))
    try:
        if fault.path.suffix == ".hpp" and not _is_built(copy):
            return True
        files = dict.fromkeys(name.partition("::")[0] for name in names)
        return bool(first_failure(copy, list(files), patience, {ORDER: str(order)}))
    finally:
        (copy / fault.path).write_text(content, encoding="utf-8")
        for path, library in built.items():
            path.write_bytes(library)


def first_failure(copy: Path, tests: Sequence[str], patience: float, variables: Mapping[str, str]) -> str:
    """The first test that fails or what is wrong with all of them; empty if they pass."""
    path = os.pathsep.join((str(copy), str(Path(__file__).parent)))
    environment = os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **variables}
    plugins = ["-p", "no:cacheprovider", "-p", "reached"]
    command = [sys.executable, "-m", "pytest", "-x", "-q", *plugins, *tests]
    seconds = round(patience)
    try:
        done = subprocess.run(
            command,
            cwd=copy,
            env=environment,
            capture_output=True,
            timeout=patience + WAITS,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds)),
        )
    except subprocess.TimeoutExpired:
        return f"they have not ended after {patience + WAITS:.0f} s"
    if not done.returncode:
        return ""
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    return failed[0] if failed else f"pytest ended with {done.returncode}"


def _is_built(copy: Path) -> bool:
    """Whether the library can be compiled with the fault in it; soon, for how fast it is does not matter."""
    build = (
        "import hatch_build, sysconfig, pathlib, sys\n"
        "library = pathlib.Path('batsched_py', '_native' + sysconfig.get_config_var('EXT_SUFFIX'))\n"
        "sys.exit(hatch_build.build(pathlib.Path('.'), library, ('-O0',)) is not None)"
    )
    return subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
