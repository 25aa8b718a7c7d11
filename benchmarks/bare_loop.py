"""The least that scheduling a log costs in plain Python: EASY on counts of hosts, and nothing else.

No hosts, no events, no messages, no files, no checks: a yardstick for the real thing.

python benchmarks/bare_loop.py LOG.swf.gz HOSTS
"""

from __future__ import annotations

import gzip
import sys
from bisect import insort
from heapq import heappop, heappush
from math import inf

#: Submission, size, run time, walltime.
BareJob = tuple[float, int, float, float]


def easy(jobs: list[BareJob], hosts: int) -> list[float]:
    """Start times under EASY of jobs that are given in submission order."""
    starts = [0.0] * len(jobs)
    entries: list[tuple[float, int, int]] = [(0.0, 0, 0)] * len(jobs)
    queue: list[int] = []
    ends: list[tuple[float, int]] = []
    expected: list[tuple[float, int, int]] = []
    free = hosts
    arrived = started = 0

    def start(job: int) -> None:
        nonlocal free, started
        _, size, run_time, walltime = jobs[job]
        free -= size
        started += 1
        starts[job] = now
        entries[job] = (now + walltime, started, size)
        insort(expected, entries[job])
        heappush(ends, (now + min(run_time, walltime), job))

    while arrived < len(jobs) or ends:
        now = jobs[arrived][0] if arrived < len(jobs) else ends[0][0]
        if ends and ends[0][0] < now:
            now = ends[0][0]
        while ends and ends[0][0] == now:
            _, done = heappop(ends)
            free += jobs[done][1]
            expected.remove(entries[done])
        while arrived < len(jobs) and jobs[arrived][0] == now:
            if jobs[arrived][1] <= hosts:
                queue.append(arrived)
            arrived += 1

        heads = 0
        while heads < len(queue) and jobs[queue[heads]][1] <= free:
            start(queue[heads])
            heads += 1
        del queue[:heads]
        if len(queue) < 2 or not free:
            continue
        available, needed = free, jobs[queue[0]][1]
        for shadow_time, _, size in expected:  # noqa: B007
            available += size
            if available >= needed:
                break
        extra = available - needed
        waiting = []
        for job in queue:
            _, size, _, walltime = jobs[job]
            if size <= free and (now + walltime <= shadow_time or size <= extra):
                if now + walltime > shadow_time:
                    extra -= size
                start(job)
            else:
                waiting.append(job)
        queue = waiting
    return starts


def read(log: str) -> list[BareJob]:
    """The jobs of an SWF log without a bad line, with the walltimes that ``batsched-py run`` gives them."""
    jobs = []
    with gzip.open(log, "rt") if log.endswith(".gz") else open(log) as lines:
        for line in lines:
            if not line.startswith(";") and (fields := line.split()):
                size, run_time = int(fields[4]), float(fields[3])
                if size <= 0:
                    size = int(fields[7])
                if size > 0:
                    walltime = max(float(fields[8]), 2 * run_time) or inf
                    jobs.append((float(fields[1]), size, run_time, walltime))
    jobs.sort(key=lambda job: job[0])
    return jobs


if __name__ == "__main__":
    print(sum(easy(read(sys.argv[1]), int(sys.argv[2]))))
