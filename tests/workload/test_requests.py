"""What logs of each kind say that their jobs ask for."""

from __future__ import annotations

import csv
import json
import logging
from pathlib import Path
from typing import Any

import pytest

from batsched_py.errors import InputError
from batsched_py.experiment import Machine
from batsched_py.experiment.build import words_of
from batsched_py.protocol.requests import MOST, read_request
from batsched_py.workload.read import read_workload
from batsched_py.workload.requests import NodeWords
from batsched_py.workload.sources import read_log, write_log
from tests.processes import call_here

ROOT = Path(__file__).parents[2]
WORDS = NodeWords(
    frozenset({"memory", "gpu"}),
    frozenset({"batch", "gpu", "long"}),
    frozenset({"a100", "ib", "rack1", "rack2"}),
)
SWF = """\
; MaxProcs: 16
; Partition: 1 batch
; Partition: 2 elsewhere
; Queue: 7 long
1 0 0 60 4 -1 -1 4 120 1024 1 1 1 1 -1 1 -1 -1
2 1 0 60 8 -1 -1 2 120 4096 1 1 1 1 -1 1 -1 -1
3 2 0 60 2 -1 -1 2 120 -1 1 1 1 1 7 2 -1 -1
4 3 0 60 2 -1 -1 2 120 -1 1 1 1 1 -1 2 -1 -1
5 4 0 60 2 -1 -1 2 120 0 1 1 1 1 -1 -1 -1 -1
"""
FIELDS = (
    "JobID|Submit|Start|End|State|ReqCPUS|AllocCPUS|ReqMem|ReqTRES|AllocTRES|Partition|Constraints|NNodes|"
    "NTasks"
)
TIMES = "2026-05-01T08:00:00|2026-05-01T08:10:00|2026-05-01T09:10:00|COMPLETED"


def requests(path: Path, words: NodeWords | None = WORDS) -> list[Any]:
    return [job.extra.get("request") for job in read_workload(path, "w0", words=words).jobs]


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def sacct(folder: Path, *records: str) -> Path:
    lines = [f"{number}|{TIMES}|{record}" for number, record in enumerate(records, start=1)]
    return written(folder / "jobs.sacct", "\n".join([FIELDS, *lines]) + "\n")


def test_swf_says_memory_partition_and_queue(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Memory that was asked for on fewer processors is shared out among those that the job had."""
    log = written(tmp_path / "log.swf", SWF)
    assert requests(log) == [
        {"per_core": {"memory": "1024 kB"}, "partitions": ["batch"]},
        {"per_core": {"memory": "1024 kB"}, "partitions": ["batch"]},
        {"partitions": ["long"]},
        None,
        None,
    ]
    assert "the machine has no partition elsewhere; not asked for by 1 of 5 jobs" in caplog.text


def test_what_the_machine_does_not_have_is_not_asked_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = written(tmp_path / "log.swf", SWF)
    caplog.set_level(logging.WARNING)
    assert requests(log, NodeWords()) == [None] * 5
    assert "the machine has no memory; not asked for by 2 of 5 jobs" in caplog.text
    assert "partition" not in caplog.text


def test_plain_machines_get_no_requests(tmp_path: Path) -> None:
    assert requests(written(tmp_path / "log.swf", SWF), None) == [None] * 5
    assert words_of(Machine(hosts=4)) is None
    assert words_of(Machine(file=str(ROOT / "platforms" / "cluster64.xml"))) is None


@pytest.mark.parametrize(
    ("record", "made"),
    [
        ("4|4|2Gc|||batch|||", {"per_core": {"memory": "2097152 kB"}, "partitions": ["batch"]}),
        ("4|4|8Gn||||||", {"per_core": {"memory": "2097152 kB"}}),
        ("4|4|8G||||||", {"per_core": {"memory": "2097152 kB"}}),
        ("1|4|8G||||||", {"per_core": {"memory": "2097152 kB"}}),
        ("4|4||cpu=4,mem=8G,node=1|||||", {"per_core": {"memory": "2097152 kB"}}),
        ("4|4|0|cpu=4|cpu=4,mem=8G||||", {"per_core": {"memory": "2097152 kB"}}),
        ("8|8||cpu=8,node=2||gpu,batch|||", {"nodes": [2, 8], "partitions": ["gpu", "batch"]}),
        ("8|8||||||2|", {"nodes": [2, 8]}),
        ("8|8||||||2|4", {"tasks": 4, "cores": 2, "nodes": [2, 4]}),
        ("8|8|||||||3", None),
        ("8|8|||cpu=8,gres/gpu=4,gres/gpu:a100=4|gpu||2|",
         {"nodes": 2, "per_node": {"gpu": 2}, "partitions": ["gpu"]}),
        ("8|8||cpu=8,gres/gpu=3|||||", {"per_job": {"gpu": 3}}),
        ("8|8|||||a100&ib*2||", {"features": "a100&ib"}),
        ("8|8|||||[rack1*2&rack2*2]||", {"features": "(rack1&rack2)"}),
        ("8|8|||||!ib||", {"features": "!ib"}),
        ("8|8|||||v100||", None),
        ("8|8|||||a100&&ib||", None),
        ("2|2||||||5|", {"nodes": [2, 2]}),
    ],
)  # fmt: skip
def test_sacct_says_much(record: str, made: Any, tmp_path: Path) -> None:
    assert requests(sacct(tmp_path, record)) == [made]


def test_what_is_unknown_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    records = [f"1|1||||p{number}|{feature}||" for number in range(7) for feature in ("v100", "\x1b[2J")]
    assert requests(sacct(tmp_path, *records)) == [None] * 14
    assert (
        "the machine has no partition p0, p1, p2, p3, p4 and 2 others; not asked for by 14 of 14"
        in caplog.text
    )
    assert "the machine has no feature v100; not asked for by 7 of 14" in caplog.text
    assert "the machine has no features like '\\x1b(2J'; not asked for by 7 of 14" in caplog.text


def test_memory_beyond_all_bounds_is_only_too_much(tmp_path: Path) -> None:
    (request,) = requests(sacct(tmp_path, "4|4|9999999999P||||||"))
    assert read_request(4, request).per_task[0][1] == MOST // 4


def test_tables_say_what_their_columns_say(tmp_path: Path) -> None:
    table = written(
        tmp_path / "jobs.csv",
        "submit,run_time,requested_processors,requested_memory,partition,gpus,nodes,features,exclusive\n"
        "0,60,8,1024,gpu,2,1,a100,1\n"
        "1,60,8,-1,,,,,\n"
        "2,60,8,-1,,0,2,,0\n",
    )
    workload = read_workload(table, "w0", words=WORDS)
    assert [job.extra.get("request") for job in workload.jobs] == [
        {
            "per_core": {"memory": "1024 kB"},
            "nodes": 1,
            "per_node": {"gpu": 2},
            "exclusive": True,
            "features": "a100",
            "partitions": ["gpu"],
        },
        None,
        {"nodes": [2, 8]},
    ]


def test_a_written_request_is_meant_as_it_is(tmp_path: Path) -> None:
    """A table may have whole requests, and so does a workload of Batsim that became a log and one again."""
    request = {"cores": 2, "per_task": {"memory": "4 GB"}, "features": "new"}
    jobs = [
        {"id": "1", "subtime": 0, "res": 8, "profile": "p", "walltime": 9, "request": request},
        {"id": "2", "subtime": 1, "res": 4, "profile": "p", "walltime": 9},
    ]
    source = tmp_path / "one.json"
    source.write_text(
        json.dumps({"nb_res": 8, "jobs": jobs, "profiles": {"p": {"type": "delay", "delay": 5}}})
    )
    log = read_log(source)
    write_log(tmp_path / "jobs.csv", log)
    assert requests(tmp_path / "jobs.csv") == [request, None]
    assert write_log(tmp_path / "two.json", read_log(tmp_path / "jobs.csv")) == {}
    assert requests(tmp_path / "two.json") == [request, None]


def test_a_bad_request_is_refused_with_its_job(tmp_path: Path) -> None:
    table = written(
        tmp_path / "jobs.csv",
        'submit,run_time,requested_processors,request\n0,60,8,\n1,60,8,"{""cores"": 3}"\n',
    )
    with pytest.raises(
        InputError, match=r"jobs.csv: job 2: request: 2 tasks of 3 cores do not make the 8 hosts"
    ):
        requests(table)


def test_a_log_on_a_machine_of_nodes(tmp_path: Path) -> None:
    """A core needs 6 GB, so that a node of 32 GB has room for five of them, although it has eight."""
    log = sacct(tmp_path, "4|4|24G|||cpu|||", "4|4|24G|||cpu|||", "4|4|300G|||cpu|||")
    machine = written(
        tmp_path / "slurm.conf",
        "NodeName=n[1-2] CPUs=8 RealMemory=32768\nPartitionName=cpu Nodes=ALL\n",
    )
    code, stdout, stderr = call_here(
        ["run", "-w", log, "-p", machine, "-s", "easy", "-e", tmp_path / "out", "--remarks", "--json"]
    )
    assert code == 0, stderr
    assert json.loads(stdout)["refused"] == {"memory of a node": 1}
    with (tmp_path / "out_jobs.csv").open() as file:
        hosts = {row["job_id"]: row["allocated_resources"] for row in csv.DictReader(file)}
    assert (hosts["1"], hosts["2"]) == ("0-3", "4 8-10")
