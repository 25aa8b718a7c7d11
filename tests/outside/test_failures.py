"""Failures: no job is lost, every kill is explained, lost work adds up, a seed gives the same bytes."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest

import batsched_py as bp
from batsched_py.errors import InputError
from batsched_py.outside.failures import Outage, RandomFailures, as_events, read_trace
from batsched_py.outside.tables import Units
from batsched_py.protocol.events import HostsAvailable
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import Host
from tests.processes import call_here, call_one_after_another

HOSTS = [Host(number, f"host{number}") for number in range(8)]
RULES = ("kill", "resubmit", "checkpoint")
NB_JOBS = 60
BETWEEN = 900
HORIZON = 2.0 * BETWEEN * NB_JOBS  # for failures: twice the last submission


def rows_of(prefix: Path) -> list[dict[str, str]]:
    with Path(f"{prefix}_jobs.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def note_of(row: dict[str, str]) -> dict[str, str]:
    return dict(fact.split("=", 1) for fact in row["metadata"].split())


def hosts_of(row: dict[str, str]) -> HostSet:
    return HostSet.parse(row["allocated_resources"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Jobs of 1 to 4 processors that run for up to four hours."""
    lines = [
        f"{n} {BETWEEN * n} -1 {1 + 977 * n % 14400} {1 + n % 4} -1 -1 {1 + n % 4} 14400 -1 1 {n % 5}"
        f" {'-1 ' * 6}"
        for n in range(1, NB_JOBS + 1)
    ]
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    return path


def run(log: Path, prefix: Path, rule: str, scheduler: str = "easy", **more: object) -> dict[str, float]:
    settings = {"failures": "exponential", "mtbf": 30000.0, "repair_time": 2000.0} | more
    if rule == "checkpoint":
        settings |= {"checkpoint_interval": 1000.0, "checkpoint_overhead": 20.0}
    result = bp.simulate(str(log), scheduler=scheduler, export=str(prefix), on_failure=rule, **settings)
    return dict(result.metrics)


def test_the_validator_finds_jobs_on_failed_hosts_and_kills_that_no_failure_explains(
    log: Path, tmp_path: Path
) -> None:
    run(log, tmp_path / "out", "resubmit")
    command = ["validate", tmp_path / "out_jobs.csv", "-w", log, "--hosts", "8"]
    assert call_here(command)[0] == 0
    absences = tmp_path / "out_absences.csv"
    told = absences.read_text().splitlines()
    killed = next(row for row in rows_of(tmp_path / "out") if "failed" in note_of(row))
    hosts, since = note_of(killed)["failed"].replace(",", " "), float(killed["finish_time"])
    absences.write_text("\n".join([*told, f"{hosts},away,{since - 10:.6f},{since:.6f}"]) + "\n")
    assert "away: 1" in call_here(command)[1]
    failures = [line for line in told if not line.startswith(f"{hosts},away,{since:.6f}")]
    assert len(failures) == len(told) - 1
    absences.write_text("\n".join(failures) + "\n")
    code, out, _ = call_here(command)
    assert code == 1
    assert f"is ended by a failure of hosts {hosts}, of which nothing is known" in out
    assert "failure: 1" in out


@pytest.mark.parametrize("scheduler", ["fcfs", "easy", "conservative"])
@pytest.mark.parametrize("rule", RULES)
def test_no_job_is_lost_and_lost_work_adds_up(log: Path, tmp_path: Path, rule: str, scheduler: str) -> None:
    metrics = run(log, tmp_path / "out", rule, scheduler)
    outages = all_of(RandomFailures("exponential", 30000.0, 2000.0), HOSTS, HORIZON)
    chains: defaultdict[int, list[dict[str, str]]] = defaultdict(list)
    for row in rows_of(tmp_path / "out"):
        chains[int(row["job_id"].partition("#")[0])].append(row)
    assert sorted(chains) == list(range(1, NB_JOBS + 1))
    lost = spent = useful = 0.0
    nb_failed = 0
    for number, chain in chains.items():
        chain.sort(key=lambda row: float(row["starting_time"]))
        work, saved = 1 + 977 * number % 14400, 0.0
        for place, row in enumerate(chain):
            ran, hosts, note = float(row["execution_time"]), hosts_of(row), note_of(row)
            start, end = float(row["starting_time"]), float(row["finish_time"])
            assert note.get("restart", "0") == str(place)
            hit = [o for o in outages if o.hosts & hosts and start < o.start < end]
            assert not hit
            spent += ran * len(hosts)
            if place < len(chain) - 1 or row["final_state"] != "COMPLETED_SUCCESSFULLY":
                nb_failed += 1
                assert row["final_state"] == "COMPLETED_KILLED"
                failed = HostSet.parse(note["failed"].replace(",", " "))
                assert failed & hosts == failed
                assert all(any(o.start == end and host in o.hosts for o in outages) for host in failed)
                kept = 1000.0 * int(ran // 1020) if rule == "checkpoint" else 0.0
                kept = min(kept, 1000.0 * max(-(-(work - saved) // 1000) - 1, 0))
                assert float(note.get("saved", 0)) == kept
                saved += kept
                lost += (ran - kept * 1.02) * len(hosts)
                useful += kept * len(hosts)
            else:
                left = work - saved
                overhead = 20.0 * max(-(-left // 1000) - 1, 0) if rule == "checkpoint" else 0.0
                assert ran == left + overhead
                useful += left * len(hosts)
    assert nb_failed > 5
    for chain in chains.values():
        assert (chain[-1]["success"] == "1") != (rule == "kill" and "failed" in note_of(chain[-1]))
    assert metrics["lost_work"] == pytest.approx(lost, rel=1e-12)
    assert metrics["lost_work"] + metrics["checkpoint_work"] + useful == pytest.approx(spent, rel=1e-12)
    assert metrics["goodput"] == pytest.approx(useful / (8 * metrics["makespan"]), rel=1e-12)
    assert metrics["nb_restarts"] == (0 if rule == "kill" else nb_failed)


@pytest.mark.parametrize("rule", RULES)
def test_the_validator_knows_restarts(log: Path, rule: str) -> None:
    result = bp.simulate(str(log), "easy", failures="exponential", mtbf=30000.0, on_failure=rule)
    assert result.validate() == []
    schedule = result._schedule
    planted = schedule.assign(metadata=schedule["metadata"].str.replace(r" ?failed=\S+", "", regex=True))
    result.__dict__["_schedule"] = planted
    again = schedule["job_id"].str.contains("#").sum()
    assert [violation.rule for violation in result.validate()] == ["invented"] * again
    assert (again > 0) == (rule != "kill")


def test_users_hear_of_the_last_end_only(log: Path, tmp_path: Path) -> None:
    """Who thinks after a job has ended does not think after a failure, and every job is submitted."""
    run(log, tmp_path / "out", "resubmit", users="think-time", sessions="arrival:60")
    rows = rows_of(tmp_path / "out")
    assert {int(row["job_id"].partition("#")[0]) for row in rows} == set(range(1, NB_JOBS + 1))
    ends = {row["job_id"]: row["finish_time"] for row in rows}
    again = [row for row in rows if "#" in row["job_id"]]
    assert again
    for row in again:
        name, _, number = row["job_id"].partition("#")
        before = name if number == "1" else f"{name}#{int(number) - 1}"
        assert row["submission_time"] == ends[before]


def test_a_seed_gives_the_same_bytes(log: Path, tmp_path: Path) -> None:
    written = []
    for hash_seed, seeds in (("0", "1"), ("77", "12")):
        commands = [
            f"run -w {log} -s easy -e {tmp_path / seed} --failures weibull --mtbf 40000 "
            f"--failure-seed {seed} --on-failure checkpoint"
            for seed in seeds
        ]
        call_one_after_another([command.split() for command in commands], PYTHONHASHSEED=hash_seed)
        written += [(tmp_path / f"{seed}_jobs.csv").read_bytes() for seed in seeds]
    assert written[0] == written[1] != written[2]


def all_of(rule: RandomFailures, hosts: Sequence[Host], until: float) -> list[Outage]:
    """The outages of all nodes, node by node."""
    return [outage for node in rule.outages(Units(hosts), until) for outage in node]


def test_events_are_made_as_they_are_asked_for() -> None:
    rule = RandomFailures("exponential", 1.0, 5.0)
    events = as_events(rule.outages(Units(HOSTS), 1e7))
    first = [next(events) for _ in range(5)]
    whole = all_of(rule, HOSTS, 100.0)
    assert first[0].time == min(outage.start for outage in whole)
    assert [event.time for event in first] == sorted(event.time for event in first)


def test_means_are_those_that_were_asked_for() -> None:
    for law, shape in (("exponential", 0.7), ("weibull", 0.7), ("weibull", 2.0)):
        rule = RandomFailures(law, 5000.0, 500.0, shape, seed=3)
        outages = all_of(rule, HOSTS, 4e6)
        repairs = [outage.end - outage.start for outage in outages]
        worked = 8 * 4e6 - sum(repairs)
        assert worked / len(outages) == pytest.approx(5000, rel=0.05)
        assert sum(repairs) / len(repairs) == pytest.approx(500, rel=0.05)


def test_one_node_more_leaves_the_others_as_they_are() -> None:
    rule = RandomFailures("weibull", 5000.0, 500.0)
    few, more = all_of(rule, HOSTS[:4], 1e5), all_of(rule, HOSTS, 1e5)
    assert [o for o in more if o.hosts & HostSet.range(4)] == few


def test_a_trace(log: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("# ours\nhosts,down,up\n0-3 host5,2000,3000\nall,5000,6000\n")
    assert [str(o.hosts) for o in read_trace(str(trace), Units(HOSTS))] == ["0-3 5", "0-7"]
    run(log, tmp_path / "out", "resubmit", failures=None, mtbf=None, failure_trace=str(trace))
    failed = {row["finish_time"] for row in rows_of(tmp_path / "out") if "failed" in note_of(row)}
    assert failed == {"2000.000000", "5000.000000"}


def test_hosts_that_fail_again_when_they_come_back_stay_away(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_text("hosts,down,up\n0,10,20\n0,20,30\n1,5,20\n")
    events = as_events([outage] for outage in read_trace(str(trace), Units(HOSTS)))
    told = [(event.time, type(event) is HostsAvailable, str(event.hosts)) for event in events]
    assert told == [(5, False, "1"), (10, False, "0"), (20, True, "1"), (30, True, "0")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("hosts,down\n", "line 1: has no column 'up'"),
        ("hosts,down,up\n9,1,2\n", "line 2: hosts 9 do not exist"),
        ("hosts,down,up\nn9,1,2\n", "line 2: 'n9' is no node, no partition and no number of a host"),
        ("hosts,down,up\n1,2,2\n", "line 2: up 2 is not after down 2"),
        ("hosts,down,up\n1,nan,2\n", "line 2: down must be a number, not 'nan'"),
        ("hosts,down,up\n1,1,5\n1,4,6\n", "host 1 fails at 4 while it is down already"),
        ("", "is empty"),
    ],
)
def test_a_fault_in_a_trace_is_named(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "trace.csv").write_text(text)
    with pytest.raises(InputError, match=fault):
        read_trace(str(tmp_path / "trace.csv"), Units(HOSTS))


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"failures": "exponential"}, "--failures needs --mtbf"),
        ({"failures": "exponential", "mtbf": 0.0}, "--mtbf must be a second at least, not 0"),
        ({"failures": "weibull", "mtbf": 9.0, "failures_until": float("inf")}, "a time that comes, not inf"),
        ({"mtbf": 5.0}, "--mtbf is for failures at random"),
        ({"failures": "weibull", "mtbf": 5.0, "failure_trace": "x.csv"}, "give one of them"),
    ],
)
def test_settings_that_do_not_go_together(log: Path, settings: dict[str, object], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        bp.simulate(str(log), scheduler="fcfs", **settings)
