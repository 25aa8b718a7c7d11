"""When the waiting jobs of a live cluster will start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from batsched_py.slurm.forecast.squeue_table import read_live
from batsched_py.slurm.forecast.waiting import Placed, place
from batsched_py.slurm.reading import Findings
from batsched_py.slurm.sbatch import Submission
from tests.processes import call_here

CONF = """\
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
NodeName=n[1-4] CPUs=4 RealMemory=8000
PartitionName=batch Nodes=ALL Default=YES MaxTime=1-0 OverSubscribe=EXCLUSIVE
"""
PARAGRAPH = """\
JobId={id} JobName=a job
   UserId={user}(1000) GroupId=users(100) MCS_label=N/A
   Priority={priority} Nice=0 Account=physics QOS=normal
   JobState={state} Reason=None Dependency={dependency}
   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime={ran} TimeLimit={limit} TimeMin=N/A
   SubmitTime=2026-03-01T07:00:00 EligibleTime=2026-03-01T07:00:00
   AccrueTime=2026-03-01T07:00:00
   StartTime={start} EndTime=Unknown Deadline=N/A
   Partition=batch AllocNode:Sid=head:1
   ReqNodeList=(null) ExcNodeList=(null)
   NodeList={nodes}
   NumNodes={count}-{count} NumCPUs={count} NumTasks={count} CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu={count},mem=8000M,node={count},billing={count}
   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*
   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0
   Features=(null) DelayBoot=00:00:00
   OverSubscribe=NO Contiguous=0 Licenses=(null) Network=(null)
   Command=/home/ada/job.sh
   WorkDir=/home/ada

"""


def running(id: int, nodes: str, count: int, ran: str, limit: str, start: str) -> str:
    return PARAGRAPH.format(
        id=id, user="ada", priority=5, state="RUNNING", dependency="(null)", ran=ran, limit=limit,
        start=f"2026-03-01T{start}", nodes=nodes, count=count,
    )  # fmt: skip


def waiting(id: int, count: int, limit: str, priority: int, dependency: str = "(null)") -> str:
    return PARAGRAPH.format(
        id=id, user="bob", priority=priority, state="PENDING", dependency=dependency, ran="00:00:00",
        limit=limit, start="Unknown", nodes="(null)", count=count,
    )  # fmt: skip


#: At 8:00: nodes 3 and 4 are busy until 9:00, node 1 until 8:30; node 2 is free.
QUEUE = (
    running(1, "n[3-4]", 2, "01:00:00", "02:00:00", "07:00:00")
    + running(2, "n1", 1, "00:30:00", "01:00:00", "07:30:00")
    + waiting(3, 4, "01:00:00", 100)
    + waiting(4, 1, "00:30:00", 90)
    + waiting(5, 1, "02:00:00", 80)
    + waiting(6, 1, "00:10:00", 0)
    + waiting(7, 1, "00:10:00", 70, "afterok:4(unfulfilled),afterany:99(unfulfilled)")
)


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    (tmp_path / "slurm.conf").write_text(CONF)
    (tmp_path / "jobs.txt").write_text(QUEUE)
    return tmp_path


def forecast_of(folder: Path, *options: str | Path, listing: str = "jobs.txt") -> dict[str, Any]:
    arguments = ["slurm", "forecast", folder / "slurm.conf", folder / listing, *options, "--json"]
    code, out, err = call_here(arguments)
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def near(seconds: float, hours: float) -> bool:
    """Whether a start is at a time, up to the cadence of the loops."""
    return abs(seconds - hours * 3600) <= 120


def test_starts_by_limits(cluster: Path) -> None:
    found = forecast_of(cluster)
    assert (found["now"], found["running"], found["held"]) == ("2026-03-01 08:00:00", 2, 1)
    assert found["misplaced"] == 0 and found["repetitions"] == 0
    starts = {job["id"]: job["start"]["by_limits"] for job in found["jobs"]}
    assert starts.keys() == {"3", "4", "5", "7"}
    assert near(starts["3"], 1), "all four nodes are free at 9:00"
    assert near(starts["4"], 0), "it ends before that on the free node"
    assert near(starts["7"], 0.5), "when job 4 is over"
    assert near(starts["5"], 2), "it would be in the way of job 3"


def test_what_jobs_wait_for(cluster: Path) -> None:
    """At 8:00, before anything is started; job 8 is larger than the machine."""
    (cluster / "jobs.txt").write_text(QUEUE + waiting(8, 5, "00:10:00", 60))
    waits_for = {job["id"]: job["waits_for"] for job in forecast_of(cluster)["jobs"]}
    assert waits_for["3"] == "Resources: 1 idle nodes of 4 are free"
    assert waits_for["4"] == "", "it starts at once"
    assert waits_for["5"] == "Priority: there is room for it, which is kept for others"
    assert (waits_for["7"], waits_for["8"]) == ("Dependency", "BadConstraints")
    _, out, _ = call_here(["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt"])
    assert "waits for" in out and "BadConstraints" in out


def test_a_job_that_asks_for_less_starts_earlier(cluster: Path) -> None:
    found = forecast_of(cluster, "--job", "5", "--time", "20")
    assert found["instead"]["time_limit"] == 1200
    assert near(found["instead"]["start"]["by_limits"], 0.5)
    found = forecast_of(cluster, "--job", "3", "--nodes", "1")
    assert near(found["instead"]["start"]["by_limits"], 0)


def test_a_log_gives_likely_starts_and_intervals(cluster: Path) -> None:
    head = "JobID|User|Submit|Start|End|State|ElapsedRaw|Timelimit|AllocCPUS"
    rows = [
        f"{number}|ada|2026-02-01T00:00:00|2026-02-01T00:00:00|2026-02-01T01:00:00|COMPLETED|{elapsed}|01:00:00|1"
        for number, elapsed in enumerate([2000, 2700, 3600] * 11)
    ]
    (cluster / "log.sacct").write_text("\n".join([head, *rows]) + "\n")
    found = forecast_of(cluster, "--log", cluster / "log.sacct", "--seeds", "6")
    first = next(job["start"] for job in found["jobs"] if job["id"] == "3")
    assert found["repetitions"] == 6
    assert near(first["by_limits"], 1) and first["early"] < first["by_limits"]
    page = cluster / "page.html"
    call_here(["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt", "--output", page,
               "--log", cluster / "log.sacct", "--seeds", "1"])  # fmt: skip
    assert "they hold 80 % of the draws only" in page.read_text(), "nobody waited in this log"
    _, out, _ = call_here(["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt",
                           "--log", cluster / "log.sacct", "--seeds", "1"])  # fmt: skip
    assert "80 % of the draws only" in " ".join(out.split()), "beside the table, too"
    assert "80 % interval" not in page.read_text(), "they are intervals of draws"
    assert first["early"] <= first["median"] <= first["late"] <= first["by_limits"] + 120


SHARES = """\
Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.0|10000|1.0|
 physics||1|1.0|10000|1.0|
  physics|ada|1|0.5|{ada}|{ada}|0.5
  physics|bob|1|0.5|{bob}|{bob}|0.5
"""
ACCOUNTS = "Account|User|Share\nroot||1\nphysics||1\nphysics|ada|1\nphysics|bob|1\n"


def median_starts(folder: Path, *options: str | Path) -> dict[str, float]:
    found = forecast_of(folder, "--log", folder / "log.sacct", "--seeds", "2", *options)
    return {job["id"]: job["start"]["median"] for job in found["jobs"]}


@pytest.fixture
def with_log(cluster: Path) -> Path:
    """All jobs run as long as they may, so draws differ from forecasts by limits in priorities only."""
    row = "1|ada|2026-02-01T00:00:00|2026-02-01T00:00:00|2026-02-01T01:00:00|COMPLETED|3600|01:00:00|1"
    (cluster / "log.sacct").write_text(
        f"JobID|User|Submit|Start|End|State|ElapsedRaw|Timelimit|AllocCPUS\n{row}\n"
    )
    return cluster


def test_priorities_are_computed_again_by_usage(with_log: Path) -> None:
    """Ada had used nothing; while her job has all nodes for an hour, her next one falls behind bob's."""
    (with_log / "slurm.conf").write_text(
        CONF + "PriorityType=priority/multifactor\nPriorityWeightFairshare=10000\nPriorityCalcPeriod=1\n"
        "AccountingStorageType=accounting_storage/slurmdbd\n"
    )
    one = running(1, "n[1-4]", 4, "00:00:00", "01:00:00", "08:00:00")
    two = waiting(2, 4, "01:00:00", 3500).replace("bob", "ada")
    (with_log / "jobs.txt").write_text(one + two + waiting(3, 4, "01:00:00", 3400))
    (with_log / "assoc.txt").write_text(ACCOUNTS)
    (with_log / "shares.txt").write_text(SHARES.format(ada=1, bob=9999))
    accounts = ("--accounts", with_log / "assoc.txt")
    told = median_starts(with_log, *accounts, "--accounts", with_log / "shares.txt")
    assert near(told["3"], 1) and near(told["2"], 2)
    found = forecast_of(with_log, "--log", with_log / "log.sacct", "--seeds", "2", *accounts)
    starts = {job["id"]: job["start"] for job in found["jobs"]}
    assert near(starts["2"]["median"], 1), "nothing tells who used how much, so shares stay"
    assert near(starts["2"]["by_limits"], 1), "by limits, priorities stay as Slurm's plan has them"
    assert any("fair shares stay as they are" in line for line in found["not_modelled"])


def test_a_job_that_is_nice_stays_so(with_log: Path) -> None:
    conf = CONF + "PriorityType=priority/multifactor\nPriorityWeightJobSize=10000\nPriorityCalcPeriod=1\n"
    (with_log / "slurm.conf").write_text(conf)
    one = running(1, "n[1-4]", 4, "00:00:00", "01:00:00", "08:00:00")
    (with_log / "jobs.txt").write_text(one + waiting(3, 4, "01:00:00", 2000))
    starts = median_starts(with_log, "--submit", "-N 4 -t 1:00:00 --nice=9000")
    assert near(starts["3"], 1) and near(starts["new"], 2)


def test_priorities_stay_where_they_are_not_computed(with_log: Path) -> None:
    by_limits = {job["id"]: job["start"]["by_limits"] for job in forecast_of(with_log)["jobs"]}
    assert median_starts(with_log) == by_limits


def test_a_job_that_is_not_submitted_yet(cluster: Path) -> None:
    (cluster / "slurm.conf").write_text(CONF + "PartitionName=short Nodes=n[1-2] MaxTime=30 PriorityTier=5\n")
    found = forecast_of(cluster, "--submit", "-N 2 -t 1:00:00")
    (new,) = [job for job in found["jobs"] if job["id"] == "new"]
    assert (found["about"], found["misplaced"]) == ("new", 0), "those that run are not thrown off their nodes"
    assert near(new["start"]["by_limits"], 2), "after job 3, which needs all nodes"
    gains = {each["option"]: each["gain_by_limits"] for each in found["advice"]}
    assert list(gains.values()) == sorted(gains.values(), reverse=True)
    assert near(gains["--time=00:15:00"], 2 - 40 / 60), "it fits in before job 3, when job 7 is over"
    assert near(gains["--begin=now+6hours"], 2 - 6)
    assert "--partition=short" not in gains, "its limit is too long for that"
    found = forecast_of(cluster, "--submit", "-N 2 -t 10")
    (short,) = [each for each in found["advice"] if each["option"] == "--partition=short"]
    assert near(short["expected"]["start"]["by_limits"], 0.5), "node 1 is busy until 8:30"


def test_advice_for_a_waiting_job_by_qos(cluster: Path) -> None:
    conf = CONF + "PriorityType=priority/multifactor\nPriorityWeightQOS=1000\n"
    (cluster / "slurm.conf").write_text(conf)
    (cluster / "qos.txt").write_text("Name|Priority\nnormal|0\nhigh|10\n")
    found = forecast_of(cluster, "--job", "5", "--accounts", cluster / "qos.txt")
    (high,) = [each for each in found["advice"] if each["option"] == "--qos=high"]
    assert high["expected"]["priority"] == 80 + 1000 - 1, "the least priority is 1"
    assert near(high["gain_by_limits"], 2), "it is the first in the queue then"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("-N 9", "--submit: such a job never starts (BadConstraints)"),
        ("-p gone", "there is no partition gone"),
        ("-n 'x", "No closing quotation"),
        ("-N many", "--submit: --nodes: 'many' is not a number of nodes"),
    ],
)
def test_a_job_that_cannot_be_submitted(cluster: Path, options: str, words: str) -> None:
    arguments = ["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt", "--submit", options]
    code, _, err = call_here(arguments)
    assert code == 1 and words in err


def test_squeue_json_of_both_kinds_tells_the_same(cluster: Path) -> None:
    text = read_live(cluster / "jobs.txt", "UTC", Findings()).jobs

    def plain(job: Submission) -> dict[str, Any]:
        return {
            "job_id": int(job.id), "job_state": {"running": "RUNNING", "waiting": "PENDING"}[job.state],
            "user_name": job.user, "account": job.fields["account"], "qos": "normal", "partition": "batch",
            "priority": job.fields["priority"], "time_limit": int((job.time or 0) // 60),
            "start_time": job.started or 0, "nodes": job.fields.get("node_list", ""),
            "eligible_time": job.eligible, "node_count": job.nodes[0], "cpus": job.tasks, "tasks": job.tasks,
            "cpus_per_task": 1, "dependency": job.dependency, "shared": "none",
            "name": "a",
        }  # fmt: skip

    def wrapped(fields: dict[str, Any]) -> dict[str, Any]:
        numbers = {
            name: {"set": True, "infinite": False, "number": fields[name]}
            for name in ("priority", "time_limit", "start_time", "node_count", "cpus", "tasks")
        }
        return fields | numbers | {"job_state": [fields["job_state"]], "shared": ["none"]}

    jobs = [plain(job) for job in text]
    (cluster / "old.json").write_text(json.dumps({"jobs": jobs}))
    content = {"jobs": list(map(wrapped, jobs)), "last_update": {"set": True, "number": 1772352000}}
    (cluster / "new.json").write_text(json.dumps(content))
    expected = forecast_of(cluster)["jobs"]
    assert forecast_of(cluster, listing="new.json")["jobs"] == expected
    assert forecast_of(cluster, "--at", "2026-03-01T08:00:00", listing="old.json")["jobs"] == expected


def queue_of(root: Path, tmp_path: Path, name: str) -> dict[str, dict[str, Any]]:
    """The jobs in a listing of a real queue, with the fields that both kinds of listings tell."""
    data = root / "tests" / "data" / "slurm" / name
    if name == "new.json":  # as Slurm 23 prints what 22.05 had printed
        content = json.loads((root / "tests" / "data" / "slurm" / "queue.json").read_text())
        for job in content["jobs"]:
            for key, value in job.items():
                if isinstance(value, int) or value is None:
                    job[key] = {"set": value is not None, "infinite": False, "number": value or 0}
            job |= {"job_state": [job["job_state"]], "shared": [job["shared"]] if job["shared"] else []}
        data = tmp_path / name
        data.write_text(json.dumps(content))
    findings = Findings()
    jobs = read_live(data, "UTC", findings).jobs
    assert findings == Findings()
    found = {job.id: msgspec.structs.asdict(job) for job in jobs}
    for fields in found.values():
        del fields["where"], fields["one_switch"]
    del found["18"]["time"]  # that of its partition, which is none
    return found


def test_a_real_queue_is_read_alike_from_text_and_json(root: Path, tmp_path: Path) -> None:
    """Slurm 22.05.8 printed it: GPUs, licences, arrays, ranges of nodes, dependencies and odd names."""
    found = queue_of(root, tmp_path, "queue.txt")
    assert queue_of(root, tmp_path, "queue.json") == queue_of(root, tmp_path, "new.json") == found
    assert (found["3"]["resources_per_node"], found["17"]["resources_per_task"]) == (
        {"gpu": 3, "gpu:a100": 3},
        {"gpu": 2},
    )
    told = {name: fields["fields"] for name, fields in found.items()}
    assert (found["14"]["nodes"], found["18"]["nodes"][0]) == ((2, 3), 1)
    assert (found["2"]["tasks"], told["2"]["name"], told["18"]["name"]) == (8, "two words", "n=am e|x")
    assert (found["12"]["licences"], told["15"]["node_list"], told["15"]["exclude"]) == (
        {"matlab": 2},
        "n3",
        "n1",
    )
    assert found["18"]["partitions"] == ("all",)


def test_the_forecast_of_a_real_queue(root: Path, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\nDefMemPerCPU=100\n"
        "Licenses=matlab:4\nSchedulerParameters=bf_interval=10,bf_continue\n"
        "NodeName=n[1-4] CPUs=4 RealMemory=8000 Feature=fast\n"
        "NodeName=g[1-2] CPUs=8 RealMemory=16000 Gres=gpu:a100:4\n"
        "PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0\nPartitionName=gpu Nodes=g[1-2]\n"
        "PartitionName=short Nodes=n[1-2] MaxTime=15\nPartitionName=all Nodes=ALL\n"
    )
    (tmp_path / "jobs.txt").write_text((root / "tests" / "data" / "slurm" / "queue.txt").read_text())
    found = forecast_of(tmp_path)
    starts = {job["id"]: job["start"]["by_limits"] / 60 for job in found["jobs"]}
    assert (found["running"], found["held"], found["misplaced"]) == (5, 1, 0)
    assert starts["14"] == pytest.approx(59.7, abs=1), "as Slurm had planned it: when job 1 ends"
    assert starts["13"] == pytest.approx(89.7, abs=1), "when job 3 returns its GPUs"
    assert starts["20"] > starts["9_[1-20%3]"], "a singleton waits for its namesakes"


def test_jobs_that_end_and_jobs_that_wait_for_ever(cluster: Path) -> None:
    text = QUEUE.replace("JobState=RUNNING", "JobState=COMPLETING", 1)
    before, _, rest = text.rpartition("Reason=None")
    (cluster / "jobs.txt").write_text(f"{before}Reason=DependencyNeverSatisfied{rest}")
    found = forecast_of(cluster)
    assert found["held"] == 2
    starts = {job["id"]: job["start"]["by_limits"] for job in found["jobs"]}
    assert near(starts["3"], 0.5), "nodes 3 and 4 are free at once, and node 1 in half an hour"


@pytest.mark.parametrize(
    "total", ["gres/gpu=2,gres/gpu:a100=2", "gres/gpu:a100=2,gres/gpu=2", "gres/gpu:a100=2"]
)
def test_gpus_of_a_type_are_told_twice_and_count_once(cluster: Path, total: str) -> None:
    text = QUEUE.replace("TRES=cpu=", f"ReqTRES={total},cpu=")
    (cluster / "jobs.txt").write_text(text)
    jobs = {job.id: job for job in read_live(cluster / "jobs.txt", "UTC", Findings()).jobs}
    assert jobs["5"].resources_per_job == {"gpu": 2, "gpu:a100": 2}
    assert jobs["1"].resources_per_node == {"gpu": 1, "gpu:a100": 1}


def test_who_waits_for_a_held_job_has_no_start(cluster: Path) -> None:
    (cluster / "jobs.txt").write_text(
        QUEUE + waiting(8, 1, "00:10:00", 60, "afterany:6(unfulfilled)") + waiting(9, 1, "1", 50, "afterok:8")
    )
    starts = {job["id"]: job["start"]["by_limits"] for job in forecast_of(cluster)["jobs"]}
    assert starts["8"] is None and starts["9"] is None and starts["5"] is not None


def test_jobs_that_wait_for_a_start(cluster: Path) -> None:
    """Job 2 has run for half an hour, on a node of its own; job 6 is held."""
    (cluster / "jobs.txt").write_text(
        running(2, "n1", 1, "00:30:00", "01:00:00", "07:30:00")
        + waiting(6, 1, "00:10:00", 0)
        + waiting(8, 1, "00:10:00", 60, "after:2+6(unfulfilled)")
        + waiting(9, 1, "00:10:00", 50, "after:2+40(unfulfilled)")
        + waiting(10, 1, "00:10:00", 40, "after:9+20(unfulfilled)")
    )
    starts = {job["id"]: job["start"]["by_limits"] for job in forecast_of(cluster)["jobs"]}
    assert near(starts["8"], 0), "six minutes are over, and 6 is no job"
    assert near(starts["9"], 10 / 60), "40 minutes after the start of job 2"
    assert near(starts["10"], 30 / 60), "20 minutes after that"


def test_one_line_listings_and_waiting_arrays(cluster: Path) -> None:
    lines = [part.replace("\n   ", " ") for part in QUEUE.strip().split("\n\n")]
    array = waiting(20, 1, "00:05:00", 95).replace("JobId=20 ", "JobId=20 ArrayJobId=20 ArrayTaskId=4-6%2 ")
    (cluster / "lines.txt").write_text("\n".join([*lines, array.strip().replace("\n   ", " ")]) + "\n")
    found = forecast_of(cluster, listing="lines.txt")
    names = [job["id"] for job in found["jobs"]]
    assert "20_[4-6%2]" in names and len(names) == 5


def test_a_listing_with_details_tells_the_same(cluster: Path) -> None:
    """``scontrol -d show job`` adds what a job has on each node."""
    details = "   JOB_GRES=(null)\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES=\n   MinCPUsNode"
    (cluster / "details.txt").write_text(QUEUE.replace("   MinCPUsNode", details))
    assert forecast_of(cluster, listing="details.txt") == forecast_of(cluster)


def test_the_table_and_the_page(cluster: Path) -> None:
    arguments = ["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt"]
    code, out, _ = call_here([*arguments, "--job", "5", "--time", "20", "--output", cluster / "page.html"])
    assert code == 0
    assert "4 jobs wait, 2 run, 1 are held" in out and "instead" in out
    page = (cluster / "page.html").read_text()
    assert "When jobs will start" in page and 'data-figure="starts"' in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no job that waits or runs"),
        ("No jobs in the system\n", "there is no job that waits or runs"),
        ("hello\n", "not of the form Name=Value"),
        ("Priority=5\n", "stands before any JobId"),
        ("JobId=5 JobName=x\n", "line 1: tells no JobState"),
        (QUEUE + QUEUE, "there are two jobs 1"),
        (QUEUE.replace("TimeLimit=02:00:00", "TimeLimit=soon"), "line 1: job 1: 'soon' is not a time"),
        (QUEUE.replace("Partition=batch", "Partition=gone"), "there is no partition gone"),
        (waiting(1, 1, "10", 5), "give --at TIME"),
        ('{"jobs": [', "is not what squeue --json prints"),
        ('{"jobs": [{"job_id": 5}]}', "job 0: tells no job_state"),
        ('{"jobs": [{"job_id": 5, "job_state": "PENDING", "priority": "high"}]}', "priority: 'high'"),
        (
            QUEUE.replace("NodeList=n1\n", "NodeList=n[1-99999999]\n"),
            "line 22: job 2: the range '1-99999999'",
        ),
        (QUEUE.replace("NumCPUs=4", "NumCPUs=-4"), "line 43: job 3: NumCPUs='-4' is not a number"),
        (QUEUE.replace("Licenses=(null)", "Licenses=a:x", 1), "line 1: job 1: 'x' is not a whole number"),
        (QUEUE.replace("Features=(null)", "Features=a&(b"), "line 43: features 'a&(b'"),
    ],
)
def test_listings_that_are_wrong_or_cut_short_are_told_by_line(cluster: Path, text: str, words: str) -> None:
    (cluster / "jobs.txt").write_text(text)
    code, out, err = call_here(["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt"])
    assert (code, out) == (1, "") and words in err and "Traceback" not in err


def test_questions_that_make_no_sense(cluster: Path) -> None:
    arguments = ["slurm", "forecast", cluster / "slurm.conf", cluster / "jobs.txt"]
    for options, words in [
        (["--time", "5"], "give --job ID too"),
        (["--job", "5", "--submit", "-N 1"], "give --job or --submit, not both"),
        (["--job", "77", "--time", "5"], "there is no waiting job '77'"),
        (["--job", "5", "--time", "x"], "--time: 'x' is not a time"),
        (["--job", "6", "--time", "5"], "job '6' is held"),
        (["--at", "noon"], "--at: 'noon' is not a moment"),
    ]:
        code, _, err = call_here([*arguments, *options])
        assert code == 1 and words in err and len(err.splitlines()) == 1


def test_a_real_slurm_had_planned_the_same_starts(root: Path, tmp_path: Path) -> None:
    """The listings were printed by Slurm 22.05.8 with four emulated nodes."""
    data = root / "tests" / "data" / "slurm"
    (tmp_path / "slurm.conf").write_text(
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"
        "NodeName=n[1-4] CPUs=4 CoresPerSocket=4 RealMemory=8000 Features=fast\n"
        "PartitionName=batch Nodes=n[1-4] Default=YES MaxTime=1-0\n"
        "PartitionName=short Nodes=n[1-2] MaxTime=15\n"
    )
    live = read_live(data / "live_jobs.txt", "UTC", Findings())
    assert live.now is not None
    planned = {job.id: job.started - live.now for job in live.jobs if job.state == "waiting" and job.started}
    (tmp_path / "jobs.txt").write_text((data / "live_jobs.txt").read_text())
    found = forecast_of(tmp_path, "--reservations", data / "live_reservation.txt")
    starts = {job["id"]: job["start"]["by_limits"] for job in found["jobs"]}
    assert found["misplaced"] == 0 and starts.keys() == {"3", "4", "5", "6_[3-4%2]", "8", "9"}
    resolution, interval = (
        60,
        30,
    )  # plans begin on a grid, and a later cycle of the backfill loop starts the job
    for job in ("3", "4", "9"):
        assert -1 <= starts[job] - planned[job] <= resolution + interval, job


def test_running_jobs_are_not_held_back_by_limits(cluster: Path) -> None:
    """An account whose jobs run with twice what its limit allows: one that was lowered since."""
    (cluster / "slurm.conf").write_text(
        CONF + "AccountingStorageType=accounting_storage/slurmdbd\nAccountingStorageEnforce=limits\n"
    )
    (cluster / "assoc.txt").write_text("Account|User|GrpTRES|GrpJobs\nroot|||\nphysics||node=2|2\n")
    jobs = running(1, "n[3-4]", 2, "01:00:00", "02:00:00", "07:00:00")
    jobs += running(2, "n1", 1, "00:30:00", "01:00:00", "07:30:00") + waiting(3, 1, "00:10:00", 100)
    (cluster / "jobs.txt").write_text(jobs)
    found = forecast_of(cluster, "--accounts", cluster / "assoc.txt")
    assert found["misplaced"] == 0
    (third,) = found["jobs"]
    assert near(third["start"]["by_limits"], 1), "both of them count, though node 2 is free"


def test_running_jobs_have_what_fits_on_their_nodes() -> None:
    """The last two may have two processors of node 2 only if the first has one of it."""
    jobs = [Placed((0, 1, 2), 6), Placed((0, 3), 3), Placed((2,), 3), Placed((1, 2), 4), Placed((3,), 2)]
    place(jobs, [4, 4, 6, 4])
    assert all(sum(job.parts.values()) == job.cpus and min(job.parts.values()) >= 1 for job in jobs)
    taken = [sum(job.parts.get(node, 0) for job in jobs) for node in range(4)]
    assert all(count <= free for count, free in zip(taken, [4, 4, 6, 4], strict=True)), taken


def test_running_jobs_that_share_their_nodes_go_on_there(cluster: Path) -> None:
    """All nodes are full: job 1 has three processors of n1 and one of n2, job 2 three of n2."""
    (cluster / "slurm.conf").write_text(CONF.replace(" OverSubscribe=EXCLUSIVE", ""))

    def has(id: int, nodes: str, count: int, cpus: int) -> str:
        text = running(id, nodes, count, "00:30:00", "01:00:00" if id == 1 else "02:00:00", "07:30:00")
        return text.replace(f"NumCPUs={count} NumTasks={count}", f"NumCPUs={cpus} NumTasks={cpus}")

    queue = has(1, "n[1-2]", 2, 4) + has(2, "n2", 1, 3) + has(3, "n1", 1, 1) + has(4, "n[3-4]", 2, 8)
    queue += waiting(5, 1, "00:10:00", 90)
    (cluster / "jobs.txt").write_text(queue.replace("OverSubscribe=NO", "OverSubscribe=OK"))
    found = forecast_of(cluster)
    assert found["misplaced"] == 0
    assert near(found["jobs"][0]["start"]["by_limits"], 0.5), "nothing is free before job 1 ends"
