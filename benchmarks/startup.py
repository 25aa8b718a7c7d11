"""How long it takes until a command does something: processor time of whole processes, the least of several.

python benchmarks/startup.py
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 10

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "batsched-py --version": ["-m", "batsched_py", "--version"],
    "batsched-py --help": ["-m", "batsched_py", "--help"],
    "batsched-py run --help": ["-m", "batsched_py", "run", "--help"],
    "import numpy": ["-c", "import numpy"],
    "import what run needs": ["-c", "import batsched_py.cli.run, batsched_py.experiment.run"],
    "run of the sample": "-m batsched_py run -w workloads/sample.swf -s easy -e {folder}/out".split(),
}


def main() -> None:
    """Print a line for each command."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        variables.pop("PYTHONDONTWRITEBYTECODE", None)
        least = dict.fromkeys(COMMANDS, float("inf"))
        for _ in range(ROUNDS):
            for name, arguments in COMMANDS.items():
                command = [sys.executable, *(argument.format(folder=folder) for argument in arguments)]
                least[name] = min(least[name], _seconds(command, variables))
    for name, seconds in least.items():
        print(f"{name:<28} {seconds:.3f} s")


def _seconds(command: list[str], variables: dict[str, str]) -> float:
    """The processor time of a process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=ROOT, env=variables, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
