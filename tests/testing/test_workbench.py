"""A cluster by hand: what happens goes in, what a policy decides comes out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from batsched_py.outside.closures import Closure
from batsched_py.protocol.hosts import HostSet
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.testing import Decisions, Workbench, job

DOCUMENT = Path(__file__).parents[2] / "docs" / "testing-a-policy.md"


def test_time_passes_and_a_policy_is_asked_again() -> None:
    bench = Workbench(4, "fcfs")
    a, head = job("a", size=3, walltime=10), job("head", size=4, walltime=5)
    bench.submit(a, head)
    assert bench.decide() == Decisions(started=["a"])
    bench.now = 10.0
    bench.end(a)
    assert bench.decide() == Decisions(started=["head"])
    assert [(one.job.name, one.start) for one in bench.cluster.running] == [("head", 10.0)]


def test_hosts_that_are_away_are_not_given_to_jobs() -> None:
    bench = Workbench(4, "filler")
    bench.take_away("0-1")
    bench.submit(job("wide", size=3), job("narrow", size=2))
    assert bench.decide().started == ["narrow"]
    assert [str(one.hosts) for one in bench.cluster.running] == ["2-3"]
    bench.give_back("0-1")
    bench.end(*[one.job for one in bench.cluster.running])
    assert bench.decide().started == ["wide"]


class Everything(Scheduler):
    """Decides something of each kind."""

    name = "everything"

    def schedule(self, cluster: Cluster) -> None:
        for running in list(cluster.running):
            cluster.kill(running.job)
        cluster.reject(cluster.queue.head)
        cluster.call_at(cluster.now + 7)


def test_decisions_of_each_kind_come_out() -> None:
    bench = Workbench(2, Everything, now=3.0)
    bench.start(job("runs"))
    bench.submit(job("waits"))
    assert bench.decide() == Decisions(rejected=["waits"], killed=["runs"], calls=[10.0])


def test_a_job_that_can_never_run_is_rejected_without_the_policy() -> None:
    bench = Workbench(2, "fcfs")
    bench.submit(job("wide", size=3))
    assert bench.decide() == Decisions(rejected=["wide"])


def test_what_the_document_shows_holds() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), flags=re.MULTILINE | re.DOTALL)
    by_hand = [block for block in blocks if "my_policy.py" not in block]
    assert len(by_hand) == 3
    for block in by_hand:
        names: dict[str, Any] = {}
        exec(block, names)
        for name, test in names.items():
            if name.startswith("test_"):
                test()


def test_hosts_may_be_closed_and_jobs_may_wait_for_others() -> None:
    bench = Workbench(4, "fcfs", closures=[Closure(10.0, 20.0, HostSet.of([2, 3]))])
    wide, after = job("wide", size=4, walltime=15), job("after", walltime=5, fields={"after": "afterok:wide"})
    bench.submit(wide, after)
    assert bench.decide() == Decisions(calls=[20.0])
    bench.now = 20.0
    assert bench.decide().started == ["wide"]
    bench.now = 30.0
    bench.end(wide)
    assert bench.decide().started == ["after"]
