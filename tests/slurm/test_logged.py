"""A log of sacct becomes the jobs that were submitted, as far as its commands and its columns tell."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from batsched_py.errors import InputError
from batsched_py.protocol.jobs import Job
from batsched_py.slurm.comparison import read_jobs
from batsched_py.slurm.prepared import Prepared, spread, spread_of_phases
from batsched_py.slurm.scenario import Scenario, Sources, read_scenario, write_scenario
from batsched_py.slurm.worth import worth_of
from batsched_py.workload.batsim_json import read_batsim_json
from tests.processes import call_here
from tests.slurm.scenario import RECORDED, SHARED
from tests.slurm.test_fidelity import needs_shared

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
Licenses=ansys:4
AccountingStorageType=accounting_storage/slurmdbd
NodeName=n[1-4] CPUs=8 RealMemory=8000 Feature=old
NodeName=m[1-4] CPUs=8 RealMemory=8000 Feature=new
PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0
PartitionName=new Nodes=m[1-4] MaxTime=1-0
"""
HEAD = (
    "JobID|Submit|Eligible|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|ReqTRES|NodeList|Partition|"
    "User|Reservation|Constraints|SubmitLine"
)


def line(number: int, command: str, *, cpus: int = 1, had: int = 1, nodes: int = 1, **given: str) -> str:
    """A job that was submitted at ten seconds past a minute of its number, and ran for a minute."""
    values = {
        "end": f"2026-05-01T08:{number:02}:10",
        "start": f"2026-05-01T08:{number:02}:10",
        "state": "COMPLETED",
        "hosts": "n1",
        "partition": "batch",
        "reservation": "",
        "features": "",
        **given,
    }
    at = f"2026-05-01T08:{number:02}:10"
    tres = f"cpu={cpus},mem=8000M,node={nodes},billing={cpus}"
    cells = (
        number, at, at, values["start"], values["end"], values["state"], 60, "00:10:00", cpus, had, tres,
        values["hosts"], values["partition"], "ada", values["reservation"], values["features"], command,
    )  # fmt: skip
    return "|".join(map(str, cells))


def imported(folder: Path, *lines: str, reservations: str = "", conf: str = CONF) -> Scenario:
    (folder / "slurm.conf").write_text(conf)
    (folder / "jobs.sacct").write_text("\n".join([HEAD, *lines]) + "\n")
    (folder / "reservations.txt").write_text(reservations)
    listed = (folder / "reservations.txt",) if reservations else ()
    return read_scenario(Sources(conf=folder / "slurm.conf", jobs=folder / "jobs.sacct", reservations=listed))


def request(job: Job) -> dict[str, Any]:
    found: dict[str, Any] = job.extra["request"]
    return found


def test_a_command_without_a_script_tells_all(tmp_path: Path) -> None:
    command = "sbatch -N 2 --exclusive -p batch,new -L ansys:2 --nice=5 --wrap sleep 60"
    (job,) = imported(tmp_path, line(1, command, cpus=2, had=16, nodes=2, hosts="n[1-2]")).jobs
    assert (job.size, request(job)["nodes"], request(job)["exclusive"]) == (2, 2, True)
    assert request(job)["licences"] == {"ansys": 2}
    assert request(job)["partitions"] == ["batch", "new"], "the column has only the one that it ran in"
    assert job.extra["slurm"]["nice"] == 5
    assert "per_core" not in request(job), "CR_Core does not give out memory, whatever ReqTRES says"


def test_columns_count_where_a_script_asked_for_more(tmp_path: Path) -> None:
    scenario = imported(tmp_path, line(1, "sbatch -N 1 --nice=5 job.sh", cpus=6, had=6))
    (job,) = scenario.jobs
    assert (job.size, job.extra["slurm"]["nice"]) == (6, 5)
    assert any("its columns count" in each.what for each in scenario.findings.unmodelled)


def test_a_job_that_had_more_than_it_asked_for_had_whole_nodes(tmp_path: Path) -> None:
    some, whole = imported(tmp_path, line(1, "sbatch a.sh"), line(2, "sbatch a.sh", had=8)).jobs
    assert "exclusive" not in request(some) and request(whole)["exclusive"] is True


def test_processors_and_memory_of_each_gpu_are_those_of_the_job(tmp_path: Path) -> None:
    conf = CONF.replace("CR_Core", "CR_Core_Memory") + "GresTypes=gpu\n"
    conf = conf.replace("RealMemory=8000 Feature=old", "RealMemory=80000 Gres=gpu:4 Feature=old")
    command = "sbatch --gpus=2 --cpus-per-gpu=4 --mem-per-gpu=8G"
    tres = "cpu=8,mem=16384M,node=1,billing=8,gres/gpu=2"
    lines = [
        line(number, command + end, cpus=8, had=8).replace("cpu=8,mem=8000M,node=1,billing=8", tres)
        for number, end in enumerate((" --wrap x", " job.sh"), 1)
    ]
    of_wrap, of_script = imported(tmp_path, *lines, conf=conf).jobs
    assert of_wrap.size == of_script.size == 8
    assert request(of_wrap)["per_node"] == request(of_script)["per_node"] == {"gpu": 2, "memory": 2 * 8192}


def test_a_command_with_an_option_that_is_not_modelled_does_not_tell_all(tmp_path: Path) -> None:
    """What --ntasks-per-socket and --sockets-per-node come to, only the columns tell."""
    command = "sbatch --ntasks-per-socket=4 --sockets-per-node=2 --wrap x"
    (job,) = imported(tmp_path, line(1, command, cpus=8, had=8)).jobs
    assert job.size == 8


def test_a_log_that_begins_while_the_cluster_is_at_work(tmp_path: Path) -> None:
    """At 8:30, job 1 runs on all nodes since 8:20, and job 2 waits; who was before job 1 is not told."""
    ran = {"start": "2026-05-01T08:20:10", "end": "2026-05-01T08:40:10", "hosts": "n[1-4]"}
    then = {"start": "2026-05-01T08:40:11", "end": "2026-05-01T08:41:11"}
    rows = [
        line(1, "sbatch -n 32 --wrap x", cpus=32, had=32, nodes=4, **ran).replace("|60|00:10", "|1200|01:00"),
        line(2, "sbatch -n 8 --wrap x", cpus=8, had=8, **then),
        line(35, "sbatch -n 8 --wrap x", cpus=8, had=8, **then),
    ]
    whole = imported(tmp_path, *rows)
    assert any("give --since (1 x)" in each.what for each in whole.findings.unmodelled)
    options = ["--jobs", tmp_path / "jobs.sacct", "--since", "2026-05-01T08:30:00"]
    code, _, err = call_here(["slurm", "import", tmp_path / "slurm.conf", tmp_path / "twin", *options])
    assert (code, err) == (0, "")
    jobs = {job.name: job for job in read_batsim_json(tmp_path / "twin" / "workload.json", "w0").jobs}
    assert [jobs[name].submission_time for name in "12"] == [1140, 60], "seconds after 8:01:10"
    assert jobs["1"].extra["slurm"]["runs"] is True
    assert jobs["2"].extra["slurm"]["not_before"] == 1670
    table = json.loads((tmp_path / "twin" / "worth.json").read_text())["all"]
    assert table["waits"]["jobs"] == 1, "the third"
    assert table["start_difference"] < 120, "it waits for job 1, which simulated runs until 8:40, too"


def test_a_job_whose_reservation_is_not_listed_runs_without(tmp_path: Path) -> None:
    table = "Name|TimeStart|TimeEnd|NodeName|Flags\ncourse|2026-05-01T08:00:10|2026-05-01T08:02:10|n1|\n"
    rows = line(1, "sbatch a.sh", reservation="course"), line(1, "sbatch a.sh", reservation="exam")
    one, other = imported(tmp_path, *rows, reservations=table).jobs
    assert one.extra["slurm"]["reservation"] == "course" and "reservation" not in other.extra["slurm"]


def test_a_daily_reservation_is_one_of_each_day_of_the_log(tmp_path: Path) -> None:
    """The listing is of a later day; the log goes from 8:01:10 on to the day after the next."""
    daily = (
        "ReservationName=course StartTime=2026-05-09T08:00:10 EndTime=2026-05-09T09:00:10 Nodes=n1\n"
        "   Users=ada Flags=DAILY,SPEC_NODES\n"
    )
    late = line(2, "sbatch a.sh", reservation="course").replace("2026-05-01", "2026-05-03")
    scenario = imported(tmp_path, line(1, "sbatch a.sh", reservation="course"), late, reservations=daily)
    found = [(each.name, each.start, each.end) for each in scenario.configuration.reservations]
    day = 86400
    assert found == [
        ("course", -60, 3540),
        ("course#2", day - 60, day + 3540),
        ("course#3", 2 * day - 60, 2 * day + 3540),
    ]
    assert [job.extra["slurm"]["reservation"] for job in scenario.jobs] == ["course", "course#3"]
    assert not any("DAILY" in each.what for each in scenario.findings.unmodelled)


def test_what_is_not_done_is_told_with_its_name(tmp_path: Path) -> None:
    table = "Name|TimeStart|TimeEnd|NodeName|Flags\n"
    table += "course|2026-05-01T08:00:10|2026-05-01T08:02:10|n[3-6]|\n"
    rows = [line(1, "sbatch -n 1 : -n 2 a.sh").replace("1|", "1+0|", 1)]
    rows += [line(1, "sbatch -n 1 : -n 2 a.sh").replace("1|", "1+1|", 1)]
    rows += [line(2, "sbatch --exclusive=user --wrap x")]
    scenario = imported(tmp_path, *rows, reservations=table)
    told = [each.what for each in scenario.findings.unmodelled]
    assert "reservation 'course' has node 'n5' and 1 more, which no NodeName has" in told
    assert not any("heterogeneous" in each for each in told)
    assert [job.extra["slurm"].get("het_size") for job in scenario.jobs] == [2, 2, None]
    assert "--exclusive=user is not modelled (1 x)" in told


def test_the_verdict_counts_the_jobs_of_one_draw(tmp_path: Path) -> None:
    rows = [line(number, "sbatch -n 1 --wrap x") for number in range(1, 41)]
    scenario = imported(tmp_path, *rows)
    write_scenario(scenario, tmp_path / "twin")
    found = worth_of(tmp_path / "twin", tmp_path / "jobs.sacct", "UTC", [])
    assert found.all.waits.jobs == 40
    assert found.verdict.reasons == ["40 jobs can be compared; 100 are needed"]


def test_a_separator_inside_of_a_value(tmp_path: Path) -> None:
    command = "sbatch -C old|new -n 2 --wrap sleep 60"
    (job,) = imported(tmp_path, line(1, command, cpus=2, had=2, features="old|new")).jobs
    assert (request(job)["features"], job.size) == ("old|new", 2)


def test_a_line_that_can_be_read_in_two_ways_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"line 2: 18 fields instead of 17.*--delimiter"):
        imported(tmp_path, line(1, "sbatch a|b", features="x"))


def test_a_job_that_was_cancelled_holds_its_place_until_then(tmp_path: Path) -> None:
    gone = line(1, "sbatch -n 4 --wrap x", cpus=4, had=4, start="None", state="CANCELLED by 0", hosts="")
    gone = gone.replace("|60|00:10:00|", "|0|00:10:00|").replace("T08:01:10|CANC", "T08:06:10|CANC")
    job, _ = imported(tmp_path, gone, line(2, "sbatch a.sh")).jobs
    assert job.extra["cancelled_after"] == 300


def test_past_reservations_of_the_database(tmp_path: Path) -> None:
    table = (
        "Name|TimeStart|TimeEnd|NodeName|Flags\n"
        "course|2026-05-01T08:00:10|2026-05-01T08:02:10|n1|SPEC_NODES,DAILY\n"
        "course|2026-05-01T09:00:10|2026-05-01T09:02:10|n1|SPEC_NODES\n"
    )
    jobs = line(1, "sbatch a.sh", reservation="course"), line(5, "sbatch a.sh", reservation="course")
    scenario = imported(tmp_path, *jobs, reservations=table)
    first, second = scenario.configuration.reservations
    assert (first.start, first.end, first.users) == (-60, 60, ("ada",))
    assert [job.extra["slurm"]["reservation"] for job in scenario.jobs] == [first.name, second.name]


def test_past_reservations_of_the_log_of_a_controller(tmp_path: Path) -> None:
    made = (
        "[2026-05-01T08:00:00.218] sched: Created reservation=course users=ada nodes=n[1-2] cores=16 "
        "licenses=(null) tres=cpu=16 watts=4294967294 start=2026-05-01T08:02:10 end=2026-05-01T08:04:10\n"
    )
    (found,) = imported(tmp_path, line(1, "sbatch a.sh"), reservations=made).configuration.reservations
    assert (found.nodes, found.start, found.end, found.users) == ("n[1-2]", 60, 180, ("ada",))
    assert found.created == pytest.approx(-69.782, abs=0.001)


def test_a_log_of_a_controller_may_tell_of_no_reservation(tmp_path: Path) -> None:
    made = "[2026-05-01T08:00:00.218] slurmctld version 22.05.8 started on cluster toy\n"
    assert not imported(tmp_path, line(1, "sbatch a.sh"), reservations=made).configuration.reservations


#: Scenarios that were recorded with a database; the first ones come with the project's material.
GIVEN = ("dept-1", "gpusite-1", "maint-2")
OWN = ("campus-1", "gpumix-1", "scavenge-1")


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(pytest.param(name, marks=needs_shared) for name in GIVEN), *OWN])
def test_the_way_from_sacct(tmp_path: Path, name: str) -> None:
    """Over the recordings of a scenario, each with its own log, mean waits are within 5 %."""
    place = SHARED / name if name in GIVEN else RECORDED / name
    waits = []
    for log in sorted((place / "sacct").glob("*.sacct")):
        found = spread_of_phases([read_jobs(log, "UTC")], twin_of(log, place, tmp_path / log.stem), 6)
        waits.append((found.recorded_wait.mean, found.wait.mean))
    recorded, simulated = (fmean(each) for each in zip(*waits, strict=True))
    assert abs(simulated / recorded - 1) < 0.05


def test_priorities_are_computed_when_the_controller_was_started_and_in_each_period_from_then_on(
    tmp_path: Path,
) -> None:
    """A third recording, of the first jobs of bigmem-1, tells when: all three begin in the same way."""
    log = RECORDED / "bigmem-1" / "sacct" / "recorded-b.sacct"
    scenario = Prepared.of(twin_of(log, log.parents[1], tmp_path / "twin"), (), tmp_path / "room")
    found = scenario.table(scenario.simulated("rigid", {}, {"started": "87.35"}))["start"]
    recorded = read_jobs(log, "UTC")["start"]
    first = recorded[recorded < 1800].index
    assert len(first) == 34
    assert (found[first] - recorded[first]).abs().max() <= 3


def test_in_the_phase_that_its_log_tells_the_twin_hits_a_recording_that_other_phases_miss(
    tmp_path: Path,
) -> None:
    """The controller was started 140.2 s before the first job; two recordings are 125 to 168 s apart."""
    log = RECORDED / "bigmem-1" / "sacct" / "recorded-c.sacct"
    scenario = Prepared.of(twin_of(log, log.parents[1], tmp_path / "twin"), (), tmp_path / "room")
    simulated = scenario.table(scenario.simulated("rigid", {}, {"started": "140.2"}))
    found = spread([read_jobs(log, "UTC")], [simulated])
    assert found.deviation is not None and abs(found.deviation) < 0.05
    assert found.starts_apart.mean < 125


def twin_of(log: Path, place: Path, folder: Path) -> Path:
    """The twin of a log and of what was printed beside it; a controller's log may tell of reservations."""
    accounting = tuple(log.with_suffix(suffix) for suffix in (".assoc", ".qos"))
    listed = log.with_suffix(".reservations"), log.with_suffix(".slurmctld.log")
    reservations = tuple(path for path in listed if path.exists() and _has_reservations(path))
    sources = Sources(conf=place / "slurm.conf", jobs=log, accounting=accounting, reservations=reservations)
    write_scenario(read_scenario(sources), folder)
    return folder


def _has_reservations(path: Path) -> bool:
    return path.suffix == ".reservations" or "Created reservation" in path.read_text()
