"""What happens between the end of a job and the next start there, and how often the main loop looks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.slurm.policy.settings import Configuration, Scheduling, Selection
from batsched_py.slurm.scenario import Sources, read_scenario
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import Twin

PLATFORM = platform_of([NodeKind(["n1", "n2"], 4, {})], {}, "test")


def starts(scheduling: Scheduling, *jobs: tuple[float, int, float]) -> dict[str, float]:
    """When jobs start that are told by submission, cores and run time."""
    made = [
        Job(f"w0!{number}", at, cores, 6000.0, str(length))
        for number, (at, cores, length) in enumerate(jobs, start=1)
    ]
    profiles = {str(length): Delay(length) for _, _, length in jobs}
    configuration = Configuration(scheduling=scheduling, selection=Selection(type="cons_tres"))
    rows = rows_of(DecisionProcess(Twin(configuration)), Workload("w0", made, profiles, 8), PLATFORM)
    return {row["job_id"]: float(row["starting_time"]) for row in rows}


def test_nodes_are_clean_when_the_epilog_is_over_and_tell_that_at_once() -> None:
    jobs = (0.0, 8, 500.0), (10.0, 8, 500.0)
    usual = starts(Scheduling(), *jobs)
    later = starts(Scheduling(epilog_time=20.0), *jobs)
    end = usual["1"] + 500
    assert end + 0.1 < usual["2"] < end + 2
    assert later["2"] == pytest.approx(end + 20.1, abs=0.01)
    assert end + 20.1 < starts(Scheduling(epilog_time=20.0, defer=True), *jobs)["2"] < end + 22


def test_nobody_starts_anywhere_while_a_job_completes_but_not_for_ever() -> None:
    """A job ends at 100 s and takes 40 s to be cleaned up; another comes at 110 s for the node beside."""
    jobs = (0.0, 4, 30.0), (0.0, 4, 100.0), (110.0, 4, 50.0)
    first = starts(Scheduling(epilog_time=40.0), *jobs)
    end = first["2"] + 100
    assert 110 <= first["3"] < 115
    waits = starts(Scheduling(epilog_time=40.0, complete_wait=100.0), *jobs)
    assert waits["3"] == pytest.approx(end + 40.1, abs=0.01)
    gives_up = starts(Scheduling(epilog_time=40.0, complete_wait=20.0), *jobs)
    assert int(end) + 21 <= gives_up["3"] < end + 40, "the backfill loop looks once a second"


def test_the_main_loop_rests_for_a_while() -> None:
    """Each job can start at once; each look at the queue starts those that have come since."""
    jobs = [(4.0 * number, 1, 5.0) for number in range(10)]
    no_cycles = Scheduling(bf_interval=10000.0)
    usual = starts(no_cycles, *jobs)
    assert all(usual[str(number + 1)] - at < 4.5 for number, (at, _, _) in enumerate(jobs))
    rests = sorted(starts(Scheduling(bf_interval=10000.0, sched_min_interval=15.0), *jobs).values())
    looks = sorted(set(rests))
    assert len(looks) < 5
    assert all(later - sooner >= 15 for sooner, later in pairwise(looks))


def test_the_importer_asks_how_long_the_epilog_takes(tmp_path: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.write_text("Epilog=/etc/e\nProlog=/etc/p\nCompleteWait=8\nSchedulerParameters=defer,sched_min_interval=2000000\n"
                    "NodeName=n1 CPUs=4\nPartitionName=all Nodes=n1\n")  # fmt: skip
    scenario = read_scenario(Sources(conf=conf))
    assert scenario.configuration.scheduling == Scheduling(
        defer=True, sched_min_interval=2.0, complete_wait=8.0
    )
    assert [each.what.partition(":")[0] for each in scenario.findings.unmodelled] == ["Epilog"]
