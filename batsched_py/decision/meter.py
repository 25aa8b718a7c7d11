"""What decisions cost: processor time and memory, each time that the policy is asked.

Such figures are never the same twice. So they go into a file of their own, which is written only if somebody
asks for it; all other files stay as they are.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from time import thread_time

from batsched_py.decision.process import Ask
from batsched_py.schedulers.cluster import Cluster

#: How a file of measurements begins.
HEADER = "time,queue,decision_seconds,other_seconds,memory_bytes\n"


def measuring(write: Callable[[str], object], ask: Ask) -> Ask:
    """Ask a policy as before, and write what each decision takes, a line each.

    The line has the simulated time, how many jobs waited then, the processor seconds of the decision, those
    of all else since the decision before, and the bytes of memory that the process has afterwards.
    """
    last = thread_time()

    def measured(cluster: Cluster) -> None:
        nonlocal last
        waiting = len(cluster.queue)
        begin = thread_time()
        try:
            ask(cluster)
        finally:
            end = thread_time()
            seconds = f"{end - begin:.9f},{begin - last:.9f}"
            write(f"{cluster.now:.6f},{waiting},{seconds},{memory_in_use()}\n")
            last = thread_time()

    return measured


def memory_in_use() -> int:
    """The bytes of memory that this process has; where no system tells, the most that it ever had."""
    try:
        with open("/proc/self/statm", "rb", buffering=0) as file:
            return int(file.read(200).split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
