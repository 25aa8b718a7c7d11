"""What jobs that communicate cost: against SimGrid itself, and on small and large machines.

python -m benchmarks.network
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.line import HERE, cpu_seconds

SIMGRID = "/usr/bin/python3"
TASKS = 10_000

PLATFORM = """<?xml version="1.0"?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="all" routing="Full">
<cluster id="c" prefix="n" suffix="" radical="0-{last}" speed="1Gf" bw="125MBps" lat="24us"{more}/>
<zone id="m" routing="Full"><host id="master_host" speed="1Gf"/></zone>
<link id="out" bandwidth="125MBps" latency="24us"/>
<zoneRoute src="c" dst="m" gw_src="nc_router" gw_dst="master_host"><link_ctn id="out"/></zoneRoute>
</zone></platform>
"""


def platform(path: Path, hosts: int, more: str = "") -> Path:
    """Hosts behind one switch."""
    path.write_text(PLATFORM.format(last=hosts - 1, more=more))
    return path


def workload(path: Path, jobs: int, seconds_apart: float, sent: float) -> Path:
    """Jobs on four hosts that compute for a second, and send bytes to each other meanwhile."""
    listed = [
        {"id": str(number), "subtime": seconds_apart * number, "res": 4, "profile": "p"}
        for number in range(jobs)
    ]
    profile = {"type": "parallel_homogeneous", "cpu": 1e9, "com": sent}
    path.write_text(json.dumps({"nb_res": 64, "jobs": listed, "profiles": {"p": profile}}))
    return path


def run(machine: Path, jobs: Path, folder: Path) -> list[str]:
    """The command that simulates jobs on a machine."""
    return [
        *(sys.executable, "-m", "batsched_py", "run", "-s", "fcfs"),
        *("-p", str(machine), "-w", str(jobs), "-e", str(folder / "out")),
    ]


def against_simgrid() -> None:
    """Print the processor time of both, as whole processes; SimGrid reads no workload and writes nothing."""
    found = Path(SIMGRID).exists() and subprocess.run([SIMGRID, "-c", "import simgrid"], capture_output=True)
    if not found or found.returncode:
        print("  SimGrid for Debian's Python is not installed (apt-get install python3-simgrid)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        jobs = workload(folder / "jobs.json", TASKS, 0.0, 1e7)
        for what, more in (("one switch", ""), ("a backbone", ' bb_bw="1GBps" bb_lat="50us"')):
            machine = platform(folder / "platform.xml", 64, more)
            ours = min(cpu_seconds(run(machine, jobs, folder)) for _ in range(3))
            command = [SIMGRID, str(HERE / "simgrid_tasks.py"), str(machine), str(TASKS)]
            theirs = min(cpu_seconds(command) for _ in range(3))
            print(
                f"  {TASKS:,} tasks on 4 of 64 hosts, {what}: {ours:.2f} s, {ours / theirs:.2f} times "
                f"SimGrid's Python binding ({theirs:.2f} s)"
            )


def machine_sizes() -> None:
    """Print what a task costs on few hosts and on many, when as many tasks are under way."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def cost(hosts: int) -> float:
            machine = platform(folder / "platform.xml", hosts)
            one, all_of_them = (
                min(
                    cpu_seconds(run(machine, workload(folder / "jobs.json", jobs, 0.1, 1e7), folder))
                    for _ in range(3)
                )
                for jobs in (1, TASKS)
            )
            return 1e6 * (all_of_them - one) / TASKS

        few, many = cost(1_000), cost(10_000)
    print(f"  {few:.0f} us a task on 1,000 hosts, {many:.0f} on 10,000, ratio {many / few:.2f}")


def main() -> None:
    """Run both."""
    against_simgrid()
    machine_sizes()


if __name__ == "__main__":
    main()
