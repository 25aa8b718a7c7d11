"""The least that scheduling a log costs in plain Python: EASY on counts of hosts, and nothing else.

No hosts, no events, no messages, no files, no checks: a yardstick for the real thing.
"""

from __future__ import annotations

from bisect import insort
from heapq import heappop, heappush

#: Submission, size, run time, walltime.
BareJob = tuple[float, int, float, float]


def easy(jobs: list[BareJob], hosts: int) -> list[float]:
    """Start times under EASY of jobs that are given in submission order."""
    starts = [0.0] * len(jobs)
    queue: list[int] = []
    ends: list[tuple[float, int]] = []
    expected: list[tuple[float, int, int]] = []
    free = hosts
    arrived = 0
    while arrived < len(jobs) or ends:
        now = jobs[arrived][0] if arrived < len(jobs) else ends[0][0]
        if ends and ends[0][0] < now:
            now = ends[0][0]
        while ends and ends[0][0] == now:
            _, done = heappop(ends)
            free += jobs[done][1]
            expected.remove((starts[done] + jobs[done][3], done, jobs[done][1]))
        while arrived < len(jobs) and jobs[arrived][0] == now:
            if jobs[arrived][1] <= hosts:
                queue.append(arrived)
            arrived += 1

        chosen = 0
        while chosen < len(queue) and jobs[queue[chosen]][1] <= free:
            free -= jobs[queue[chosen]][1]
            _start(jobs, queue[chosen], now, starts, ends, expected)
            chosen += 1
        del queue[:chosen]
        if len(queue) < 2 or not free:
            continue
        available, shadow, needed = free, float("inf"), jobs[queue[0]][1]
        for end, _, size in expected:
            if end > shadow:
                break
            available += size
            if available >= needed and shadow == float("inf"):
                shadow = end
        extra = available - needed
        waiting = []
        for job in queue:
            _, size, _, walltime = jobs[job]
            if size <= free and (now + walltime <= shadow or size <= extra):
                if now + walltime > shadow:
                    extra -= size
                free -= size
                _start(jobs, job, now, starts, ends, expected)
            else:
                waiting.append(job)
        queue = waiting
    return starts


def _start(
    jobs: list[BareJob],
    job: int,
    now: float,
    starts: list[float],
    ends: list[tuple[float, int]],
    expected: list[tuple[float, int, int]],
) -> None:
    _, size, run_time, walltime = jobs[job]
    starts[job] = now
    heappush(ends, (now + min(run_time, walltime), job))
    insort(expected, (now + walltime, job, size))
