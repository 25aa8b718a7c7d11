"""Limits on what is used over time: it grows as jobs run, decays, and is reset; jobs wait, or are killed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from batsched_py.decision.process import DecisionProcess
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay
from batsched_py.simulator.machine_files import NodeKind, platform_of
from batsched_py.slurm.policy.settings import (
    Association,
    Configuration,
    Enforced,
    Partition,
    Priority,
    Qos,
    Selection,
)
from batsched_py.slurm.policy.setup import Setup
from batsched_py.slurm.scenario import Sources, read_scenario
from batsched_py.testing.runs import rows_of
from batsched_py.workload.model import Workload
from tests.slurm.scenario import Twin

DAY = 86400.0
LIMITS: tuple[Enforced, ...] = ("associations", "limits", "qos")
SAFE: tuple[Enforced, ...] = (*LIMITS, "safe")


def run(
    *jobs: tuple[float, float, float, str],
    qos: tuple[Qos, ...] = (Qos(name="normal"),),
    of_account: dict[str, Any] | None = None,
    enforce: tuple[Enforced, ...] = SAFE,
    priority: Priority | None = None,
    **more: Any,
) -> dict[str, tuple[float, float, str]]:
    """When jobs of a core start and end that are told by submission, run time, limit and QOS, and why not."""
    configuration = Configuration(
        enforce=enforce,
        selection=Selection(type="cons_tres"),
        priority=priority or Priority(type="multifactor", decay_half_life=0.0),
        qos=qos,
        associations=(
            Association(account="phys", **(of_account or {})),
            Association(account="phys", user="ann"),
        ),
        **more,
    )
    platform = platform_of([NodeKind(["n1", "n2"], 4, {})], {}, "test")
    made = [
        Job(f"w0!{number}", float(at), 1, limit + 600.0, f"{length}",
            {"user": "ann", "slurm": {"account": "phys", "qos": of, "time_limit": limit}})
        for number, (at, length, limit, of) in enumerate(jobs, start=1)
    ]  # fmt: skip
    profiles = {f"{length}": Delay(float(length)) for _, length, _, _ in jobs}
    rows = rows_of(DecisionProcess(Twin(configuration)), Workload("w0", made, profiles, 8), platform)
    return {
        row["job_id"]: (
            float(row["starting_time"] or -1),
            float(row["finish_time"] or -1),
            row["metadata"].removeprefix("pending="),
        )
        for row in rows
    }


HOUR = 3600.0


def test_a_job_waits_for_ever_if_the_minutes_of_its_account_do_not_suffice() -> None:
    """The account has 100 minutes. With the first job's 60 there are too few for another until its limit."""
    found = run((0, HOUR, HOUR, "normal"), (10, 60, HOUR, "normal"), (20, 60, 600, "normal"),
                of_account={"grp_tres_seconds": {"cpu": 6000.0}})  # fmt: skip
    assert found["1"][0] < 10
    assert found["2"][0] == -1
    assert found["2"][2] == "AssocGrpCPUMinutesLimit"
    assert found["3"][0] < 100, "shorter ones still run"


def test_what_jobs_did_not_use_is_given_back_when_they_end() -> None:
    found = run((0, 600, HOUR, "normal"), (10, 60, HOUR, "normal"),
                of_account={"grp_tres_seconds": {"cpu": 6000.0}})  # fmt: skip
    assert 600 <= found["2"][0] < 700


def test_usage_decays_until_a_job_may_start() -> None:
    """600 minutes were used of 500. After a half-life of a day there are 300; a job of 60 needs 440."""
    of_account = {"grp_tres_seconds": {"cpu": 30000.0}, "usage_tres": {"cpu": 36000.0}}
    found = run((0, 60, HOUR, "normal"), of_account=of_account,
                priority=Priority(type="multifactor", decay_half_life=DAY))  # fmt: skip
    # 600 * (1 - 0.693 / 86400) ** s < 441, as whole minutes count
    assert found["1"][0] == pytest.approx(38386, abs=400)
    assert run((0, 60, HOUR, "normal"), of_account=of_account)["1"][2] == "AssocGrpCPUMinutesLimit"


def test_usage_of_a_qos_that_has_no_decay_stays() -> None:
    def start(*flags: Any) -> float:
        qos = Qos(name="normal", grp_tres_seconds={"cpu": 30000.0}, usage_tres={"cpu": 36000.0}, flags=flags)
        priority = Priority(type="multifactor", decay_half_life=DAY)
        return run((0, 60, HOUR, "normal"), qos=(qos,), priority=priority)["1"][0]

    assert start() > 0
    assert start("no_decay") == -1


@pytest.mark.parametrize(("period", "day"), [("daily", 1), ("weekly", 4), ("now", 0), ("none", None)])
def test_usage_is_reset_by_the_calendar(period: Any, day: int | None) -> None:
    """Time begins on Wednesday, the 7th of January 2026, at six in the morning."""
    found = run(
        (0, 60, HOUR, "normal"),
        start="2026-01-07T06:00:00Z",
        of_account={"grp_tres_seconds": {"cpu": 30000.0}, "usage_tres": {"cpu": 36000.0}},
        priority=Priority(type="multifactor", decay_half_life=0.0, usage_reset_period=period),
    )
    if day is None:
        assert found["1"][0] == -1
    else:
        assert found["1"][0] - (day * DAY - 6 * HOUR if day else 0) == pytest.approx(60, abs=350)


def test_a_wall_limit_counts_the_time_that_jobs_run() -> None:
    qos = Qos(name="normal", grp_wall=2 * HOUR)
    found = run((0, HOUR, HOUR, "normal"), (10, HOUR, HOUR, "normal"), (8000, 60, HOUR, "normal"), qos=(qos,))
    assert found["2"][0] < 100, "what runs does not count until it is computed, even if limits are safe"
    assert found["3"][2] == "QOSGrpWallLimit"


def test_jobs_are_killed_when_all_is_used_unless_limits_are_safe() -> None:
    """Two jobs use 50 minutes until 1500 s; Slurm looks at that each 300 s, and kills each 30 s."""
    jobs = (0.0, HOUR, HOUR, "normal"), (0.0, HOUR, HOUR, "normal"), (2000.0, 60.0, 600.0, "normal")
    of_account = {"grp_tres_seconds": {"cpu": 3000.0}}
    found = run(*jobs, of_account=of_account, enforce=LIMITS)
    assert all(1500 <= found[number][1] <= 1900 for number in "12")
    assert found["3"][2] == "AssocGrpCPUMinutesLimit"
    safe = run(*jobs, of_account=of_account)
    assert [number for number in "123" if safe[number][0] >= 0] == ["3"], "no job of 60 minutes begins"


def test_the_usage_factor_makes_limits_tighter_only_where_it_is_told() -> None:
    """A job of 30 minutes counts as one of 60 with a factor of 2 and UsageFactorSafe."""

    def start(**more: Any) -> float:
        qos = Qos(name="normal", usage_factor=2.0, **more)
        return run((0, 60, 1800, "normal"), qos=(qos,), of_account={"grp_tres_seconds": {"cpu": 3000.0}})[
            "1"
        ][0]

    assert start() >= 0
    assert start(flags=("usage_factor_safe",)) == -1

    def starts(factor: float) -> list[float]:
        qos = Qos(name="normal", usage_factor=factor)
        found = run((0, 1800, 1800, "normal"), (3000, 60, 1800, "normal"), qos=(qos,),
                    of_account={"grp_tres_seconds": {"cpu": 3600.0}})  # fmt: skip
        return [start for start, *_ in found.values()]

    assert starts(1.0)[1] >= 3000
    assert starts(2.0)[1] == -1, "the first job has used twice as much"
    assert starts(0.0)[1] >= 3000


def test_the_qos_of_the_partition_is_charged_too() -> None:
    qos = (Qos(name="normal"), Qos(name="of-part", grp_tres_seconds={"cpu": 3600.0}))
    found = run((0, 1800, 1800, "normal"), (2000, 60, 2400, "normal"), qos=qos,
                partitions=(Partition(name="all", qos="of-part"),))  # fmt: skip
    assert found["1"][0] < 100
    assert found["2"][2] == "QOSGrpCPUMinutesLimit"


def test_a_qos_takes_away_the_limit_of_the_same_resource_only() -> None:
    qos = (Qos(name="normal", grp_tres={"node": 8.0}),)
    found = run((0, 60, 600, "normal"), qos=qos, of_account={"grp_tres": {"cpu": 0.0}})
    assert found["1"][2] == "AssocGrpCpuLimit"


def test_usage_in_the_twin_is_that_of_slurms_formulas() -> None:
    """A job of 2 cores for 450 s, computed at 300 and 600 s, with a half-life of an hour."""
    priority = Priority(type="multifactor", decay_half_life=HOUR)
    configuration = Configuration(
        enforce=LIMITS, selection=Selection(type="cons_tres"), priority=priority,
        qos=(Qos(name="normal", grp_wall=1e9),), associations=(Association(account="phys", user="ann"),),
    )  # fmt: skip
    setup = Setup(configuration, platform_of([NodeKind(["n1"], 4, {})], {}, "test").as_protocol()[0])
    state = setup.state()
    job = Job("w0!1", 0.0, 2, HOUR, "run", {"user": "ann", "slurm": {"account": "phys"}})
    (record,) = setup.records(job, 0.0)[0]
    state.add([record])
    share = state.selector.select(record.asked, state.up, state.usage)
    assert share is not None
    running = state.start(record, share, 0)
    state.limits.advance(300.0, [running])
    state.ended(running, 450)
    state.limits.advance(600.0, [])
    decay = 1 - 0.693 / HOUR
    used = state.limits.spent.of["qos", "normal"]
    assert used.wall == pytest.approx((300 * decay**300 + 150 * decay**150) * decay**300)
    assert used.tres["cpu"] == pytest.approx(2 * used.wall)
    assert used.left["cpu"] == 0


def test_sshare_tells_what_was_used_and_nothing_else_is_taken_for_granted(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("NodeName=n1 CPUs=4\nPartitionName=all Nodes=n1\n")
    (tmp_path / "assoc").write_text(
        "Account|User|GrpTRESMins|GrpWall\nroot|||\n phys||cpu=90|\n phys|ann||60\n"
    )
    (tmp_path / "shares").write_text("Account|User|RawShares|RawUsage|GrpTRESRaw\n phys||1|70|cpu=5,mem=6\n")
    (tmp_path / "qos").write_text("Name|GrpTRESMins|Flags\nnormal|cpu=7|NoDecay,UsageFactorSafe\n")
    files = tuple(tmp_path / name for name in ("assoc", "shares", "qos"))
    scenario = read_scenario(Sources(conf=tmp_path / "slurm.conf", accounting=files))
    phys = next(each for each in scenario.configuration.associations if each.account == "phys")
    assert phys.usage_tres == {"cpu": 300.0, "mem": 360.0}
    assert scenario.configuration.qos[0].flags == ("no_decay", "usage_factor_safe")
    told = " is not told, and taken to be nothing"
    assert [(each.where, each.what) for each in scenario.findings.unmodelled] == [
        ("user ann", f"how much of GrpWall was used before{told}"),
        ("QOS normal", f"how much of GrpTRESMins was used before{told}"),
    ]


def test_a_real_one_lets_time_pass_and_kills_at_the_same_moments() -> None:
    """What a Slurm 22.05 did with a database, ``PriorityCalcPeriod=5`` and two limits.

    A job of 55 minutes may start when one of 60 minutes has 45 left, by GrpTRESRunMins=cpu=100: that is so
    after 900 s, and was computed at 1136 s. A job of four processors was killed at 536 s, by
    GrpTRESMins=cpu=30: it had used these at 471 s. Usage had been computed at 236 s before.
    """
    found = run(
        (0, 1600, HOUR, "rm"),
        (10, 100, 3300, "rm"),
        qos=(Qos(name="rm", grp_tres_run_seconds={"cpu": 6000.0}), Qos(name="normal")),
        enforce=LIMITS,
        priority=Priority(type="multifactor", decay_half_life=14 * DAY),
    )
    assert found["2"][0] == pytest.approx(1136, abs=2)
    killed = run(
        *[(20, 3000, HOUR, "normal")] * 4,
        of_account={"grp_tres_seconds": {"cpu": 1800.0}},
        enforce=LIMITS,
        priority=Priority(type="multifactor", decay_half_life=14 * DAY),
    )
    assert all(end == pytest.approx(536, abs=30) for _, end, _ in killed.values())
