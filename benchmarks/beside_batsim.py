"""What deciding beside a real Batsim costs: ``serve`` and C++ batsched, with the same Batsim and jobs.

    python benchmarks/beside_batsim.py BATSIM BATSCHED [FOLDER OF ANOTHER VERSION]

Both programs are those of the Batsim project, version 4 and its decision process, as they are installed. The
figures are processor times of the decision process alone, the least of several in turn.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.synthetic import write_log  # noqa: E402

JOBS = 20_000
ROUNDS = 2

#: The variants of batsched, and our policies that decide by the same rule or nearly.
PAIRS = (("fcfs", "fcfs"), ("filler", "filler"), ("easy_bf", "easy"))


def main(batsim: str, batsched: str, *others: str) -> None:
    """Print seconds and ratios for each pair of policies."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        workload = folder / "jobs.json"
        log = write_log(folder / "log.swf", 64, JOBS, load=0.8)
        convert = [sys.executable, "-m", "batsched_py", "convert", log, workload]
        subprocess.run(convert, check=True, capture_output=True, cwd=ROOT)
        for variant, policy in PAIRS:
            ours = [ROOT, *map(Path, others)]
            times: dict[str, list[float]] = {}
            for _ in range(ROUNDS):
                command = [batsched, "-v", variant, "-s", "{}", "--verbosity", "silent"]
                times.setdefault("C++", []).append(seconds(batsim, command, workload, folder))
                for root in ours:
                    command = [sys.executable, "-m", "batsched_py", "serve", "-s", policy, "--endpoint", "{}"]
                    times.setdefault(str(root), []).append(seconds(batsim, command, workload, folder, root))
            least = {who: min(found) for who, found in times.items()}
            for who, found in least.items():
                label = f"batsched {variant}" if who == "C++" else f"serve -s {policy}, {Path(who).name}"
                print(f"{label:40} {found:6.2f} s {found / least['C++']:6.2f}")


def seconds(batsim: str, command: list[str], workload: Path, folder: Path, root: Path = ROOT) -> float:
    """The processor time of a decision process that is asked by a Batsim until all jobs are done."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    environment = os.environ | {"PYTHONPATH": str(root)}
    words = [word.format(endpoint) for word in command]
    decider = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peer = [
        batsim,
        "-p",
        ROOT / "platforms/cluster64.xml",
        "-w",
        workload,
        "-e",
        folder / "out",
        "-s",
        endpoint,
    ]
    peer += ["--disable-schedule-tracing", "--disable-machine-state-tracing", "-q"]
    simulated = subprocess.Popen(peer, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(decider.pid, 0)
    decider.returncode = os.waitstatus_to_exitcode(status)
    if decider.returncode:
        simulated.kill()
    if simulated.wait() or decider.returncode:
        raise SystemExit(f"{words[0]} ended with {decider.returncode}, Batsim with {simulated.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
