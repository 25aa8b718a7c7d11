"""The use of a cluster: a log of five jobs, with figures that were worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest import approx

from batsched_py.slurm.usage import Asked, Usage, usage_of
from tests.processes import call_here

CONF = """
NodeName=n[1-4] CPUs=4 RealMemory=16000
PartitionName=p Nodes=n[1-4] Default=YES
"""
LOG = """\
JobID|User|Account|Partition|QOS|Submit|Eligible|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|NNodes|NodeList|ReqMem|MaxRSS|ConsumedEnergyRaw
1|ada|bio|p|std|2026-01-31T20:00:00|2026-01-31T20:00:00|2026-01-31T20:00:00|2026-02-01T04:00:00|COMPLETED|28800|16:00:00|8|8|2|n[1-2]|4G||
2|bob|phys|p|std|2026-01-31T21:30:00|2026-01-31T22:00:00|2026-02-01T00:00:00|2026-02-01T02:00:00|NODE_FAIL|7200|04:00:00|4|4|1|n3|8G||3600000
2.batch||phys|||2026-02-01T00:00:00|||2026-02-01T02:00:00|NODE_FAIL|7200|||4|1|n3||2G|
3|bob|bio|p|long|2026-02-01T02:00:00|2026-02-01T02:00:00|2026-02-01T02:00:00|2026-02-01T04:00:00|FAILED|7200|UNLIMITED|4|4|1|n3|4G||0
4|ada|bio|p|std|2026-02-01T03:00:00|2026-02-01T03:00:00|Unknown|2026-02-01T09:00:00|CANCELLED|0|01:00:00|4|0|1||4G||
5|ada|bio|p|std|2026-02-01T03:00:00|2026-02-01T03:00:00|2026-02-01T03:00:00|Unknown|RUNNING|3600|01:00:00|4|4|1|n4|4G||
"""
EVENTS = """\
Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User
toy||2026-01-01T00:00:00|Unknown||Cluster Registered TRES|
toy|n4|2026-02-01T01:00:00|2026-02-01T02:00:00|DOWN|broken|root
"""
RESERVATIONS = """\
ReservationName=class StartTime=2026-01-31T21:00:00 EndTime=2026-01-31T23:00:00 Duration=02:00:00
   Nodes=n4 NodeCnt=1 CoreCnt=4 Users=ada Accounts=(null) State=INACTIVE
"""
ZONE = "Europe/Paris"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """The log, and what else tells about the cluster."""
    for name, text in {
        "jobs.sacct": LOG,
        "slurm.conf": CONF,
        "events.txt": EVENTS,
        "reservations.txt": RESERVATIONS,
    }.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def told(files: Path, **more: object) -> Usage:
    """The use, with all that tells about it."""
    asked = Asked(
        zone=ZONE,
        conf=files / "slurm.conf",
        events=files / "events.txt",
        reservations=(files / "reservations.txt",),
        **more,
    )
    return usage_of(files / "jobs.sacct", asked)


def test_hours_belong_to_the_month_in_which_they_were_used(files: Path) -> None:
    found = told(files)
    assert {name: use.core_hours for name, use in found.months.items()} == {"2026-01": 32, "2026-02": 48}
    assert found.all.core_hours == 80
    assert {name: use.core_hours for name, use in found.groups["account"].items()} == {"bio": 72, "phys": 8}
    assert {name: use.core_hours for name, use in found.groups["qos"].items()} == {"std": 72, "long": 8}
    assert [name for name, use in found.groups["user"].items()] == ["ada", "bob"]
    assert (found.begin, found.end) == ("2026-01-31 20:00", "2026-02-01 04:00"), (
        "not when job 4 was cancelled"
    )


def test_waits_belong_to_the_month_of_the_submission(files: Path) -> None:
    """Job 2 is eligible half an hour after its submission, and waits two hours; the others do not wait."""
    found = told(files)
    january, february = found.months.values()
    assert (january.jobs, january.mean_wait, january.median_wait, january.p95_wait) == (2, 3600, 3600, 6840)
    assert (february.jobs, february.mean_wait) == (2, 0)
    assert (january.median_slowdown, january.p95_slowdown) == (1.5, approx(1.95))
    assert found.all.mean_wait == 2400


def test_what_was_asked_for_and_what_was_used(files: Path) -> None:
    """Of the jobs with a limit, 72 of 144 core hours; of the job that tells its memory, 2 of 8 GiB."""
    found = told(files, carbon_intensity=300.0)
    assert found.all.time_used == 0.5
    assert found.groups["user"]["bob"].memory_used == 0.25
    assert found.groups["user"]["ada"].memory_used is None
    assert (found.all.failed_hours, found.all.lost_hours) == (8, 8)
    assert (found.all.energy, found.all.energy_jobs) == (1.0, 1), "a 0 was not measured"


def test_what_became_of_the_machine_adds_up(files: Path) -> None:
    found = told(files)
    january, february = found.month_capacity.values()
    assert january.core_hours == february.core_hours == 64
    shares = ("used", "down", "reserved", "idle_while_jobs_waited", "idle")
    assert [getattr(january, name) for name in shares] == [0.5, 0, 0.125, 0.1875, 0.1875]
    assert [getattr(february, name) for name in shares] == [0.75, 0.0625, 0, 0, 0.1875]
    assert sum(getattr(found.capacity, name) for name in shares) == approx(1)


def test_a_job_on_reserved_nodes_uses_them(files: Path) -> None:
    (files / "reservations.txt").write_text(RESERVATIONS.replace("Nodes=n4", "Nodes=n[2-3]"))
    january = told(files).month_capacity["2026-01"]
    assert january.reserved == 0.125, "job 1 has the cores of n2, and n3 is idle"


def test_a_node_that_is_told_twice_is_away_once(files: Path) -> None:
    once = told(files).month_capacity
    (files / "reservations.txt").write_text(RESERVATIONS + RESERVATIONS.replace("=class", "=again"))
    (files / "events.txt").write_text(EVENTS + EVENTS.splitlines()[-1].replace("01:00:00", "01:30:00") + "\n")
    assert told(files).month_capacity == once


def test_what_is_told_of_no_node_of_the_machine_is_left_out_and_said(files: Path) -> None:
    (files / "reservations.txt").write_text(RESERVATIONS.replace("Nodes=n4", "Nodes=(null)"))
    (files / "events.txt").write_text(EVENTS.replace("|n4|", "|x[1-3]|"))
    found = told(files)
    assert (found.capacity.down, found.capacity.reserved) == (0, 0)
    assert "left out: reservation that does not name its nodes (1 x)" in found.remarks
    assert "left out: a down node that slurm.conf does not have (3 nodes)" in found.remarks


def test_what_nothing_tells_is_unknown(files: Path) -> None:
    found = usage_of(files / "jobs.sacct", Asked(zone=ZONE))
    assert (found.cores, found.cores_told) == (12, False)
    assert found.capacity.down is None
    assert found.capacity.reserved is None
    assert any("job is running" in remark for remark in found.remarks)
    assert any("no time limit" in remark for remark in found.remarks)


def test_months_are_those_of_the_zone(files: Path) -> None:
    (files / "jobs.sacct").write_text(
        LOG.replace(":00|", ":00+0100|").replace("RUNNING|3600|01:00:00+0100", "RUNNING|3600|01:00:00")
    )
    assert usage_of(files / "jobs.sacct", Asked(zone=ZONE)).months.keys() == {"2026-01", "2026-02"}
    honolulu = usage_of(files / "jobs.sacct", Asked(zone="Pacific/Honolulu"))
    assert honolulu.months.keys() == {"2026-01"}
    assert honolulu.all.core_hours == 80


def test_waits_of_a_simulation_stand_beside(files: Path) -> None:
    (files / "simulated.csv").write_text(
        "number,submit,eligible,start,end,state,nodes\n"
        "1,0,0,0,28800,COMPLETED,n[1-2]\n2,5400,7200,10800,18000,COMPLETED,n3\n"
    )
    found = told(files, beside=files / "simulated.csv")
    assert found.months["2026-01"].simulated_mean_wait == 1800
    assert found.months["2026-02"].simulated_mean_wait is None
    assert "1 jobs of the log did not run when simulated" in found.remarks


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--events", "events.txt"], "give --conf, too"),
        (
            ["--conf", "slurm.conf", "--events", "jobs.sacct"],
            "has no columns NodeName, TimeStart and TimeEnd",
        ),
        (["--conf", "slurm.conf", "--beside", "other.csv"], "none of its jobs is called as one of the log"),
    ],
)
def test_mistakes_are_told_in_a_line(
    files: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(files)
    Path("other.csv").write_text("number,submit,eligible,start,end,state,nodes\nx,0,0,0,9,COMPLETED,n1\n")
    code, _, err = call_here(["slurm", "usage", "jobs.sacct", *arguments])
    assert code == 1
    assert words in err
    assert err.count("\n") == 1


def test_the_command_prints_tables_and_json(files: Path) -> None:
    log = str(files / "jobs.sacct")
    code, out, _ = call_here(["slurm", "usage", log, "--zone", ZONE, "--conf", str(files / "slurm.conf")])
    assert code == 0
    assert "Without --events and --reservations, such hours are among the idle ones." in " ".join(out.split())
    code, out, _ = call_here(["slurm", "usage", log, "--zone", ZONE, "--json"])
    assert json.loads(out)["all"]["core_hours"] == 80


@pytest.mark.parametrize("recorded", ["dept-1", "maint-2"])
def test_hours_of_a_real_slurm_are_those_of_its_own_columns(shared: Path, recorded: str) -> None:
    """``CPUTimeRAW`` of sacct is what Slurm itself counts, in core seconds."""
    folder = shared / "slurm" / recorded
    path = folder / "sacct" / "recorded-a.sacct"
    head, *lines = (line.split("|") for line in path.read_text().splitlines())
    rows = [dict(zip(head, line, strict=False)) for line in lines]
    own = sum(int(row["CPUTimeRAW"]) for row in rows if "." not in row["JobID"]) / 3600
    found = usage_of(path, Asked(conf=folder / "slurm.conf"))
    assert found.all.core_hours == approx(own)
    assert sum(use.core_hours for use in found.groups["account"].values()) == approx(own)
