"""What is fed, and with what it begins: messages of both dialects, and every kind of file that is read."""

from __future__ import annotations

import gzip
import hashlib
import io
import shutil
import socket
import tempfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

import msgspec
from click.testing import CliRunner

from batsched_py.analysis.outcome import read_summary
from batsched_py.analysis.plots.runs import read_run
from batsched_py.analysis.schedule import host_sets, read_schedule
from batsched_py.campaign.archive import import_campaign
from batsched_py.campaign.plan_file import read_plan
from batsched_py.campaign.run import FileDigest, Manifest, Run
from batsched_py.campaign.store import Campaign, Wanted
from batsched_py.cli.main import batsched_py
from batsched_py.decision.process import DecisionProcess
from batsched_py.engines.python import Batsim
from batsched_py.errors import BatschedError
from batsched_py.experiment import Actors, Choice, Experiment, Scenario, Workloads
from batsched_py.protocol import events as ev
from batsched_py.protocol.dialect import Dialect
from batsched_py.protocol.dialects import BATSIM4, BATSIM5
from batsched_py.protocol.jobs import Job
from batsched_py.schedulers.easy import Easy
from batsched_py.simulator.agenda import read_events
from batsched_py.simulator.machine_files import read_toml_machine
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.slurm.scenario import Sources, read_scenario
from batsched_py.users import USERS
from batsched_py.wire.conversation import read_conversation
from batsched_py.workload.model import Workload
from batsched_py.workload.models import MODELS, LearningModel
from batsched_py.workload.read import read_workload
from batsched_py.workload.recipe import load_model, save_model
from batsched_py.workload.sources import read_log
from batsched_py.workload.swf.log import start_of, zone_of
from tests.slurm.files import write_cluster

ROOT = Path(__file__).resolve().parents[2]
_SAMPLE = ROOT / "workloads" / "sample.swf"
GOLDEN = ROOT / "tests" / "data" / "golden"


class Target(NamedTuple):
    """Something that reads, and good inputs for it."""

    feed: Callable[[bytes, Path], object]
    """Is given an input and a folder of its own."""
    seeds: Callable[[], list[bytes]]
    is_message: bool = False


# --- messages ------------------------------------------------------------------------------------

#: Recorded conversations in which every kind of event occurs.
_CONVERSATIONS = ("dyn_ack", "power60_energy_bf", "small12_killer", "outage_filler", "kinds120_easy_bf")

#: So much of each.
_FIRST = 60


@cache
def _recorded() -> list[tuple[ev.Message, ev.Message]]:
    codec = BATSIM4.codec()
    talks = [read_conversation(GOLDEN / name / "conversation.jsonl")[:_FIRST] for name in _CONVERSATIONS]
    return [
        (codec.decode_request(exchange.request), codec.decode_reply(exchange.reply))
        for talk in talks
        for exchange in talk
        if exchange.reply is not None
    ]


def _requests(dialect: Dialect) -> list[bytes]:
    """What Batsim said, as far as the dialect can say it."""
    spoken = []
    for request, _ in _recorded():
        with suppress(BatschedError):
            spoken.append(dialect.codec().encode_request(request))
    return list(dict.fromkeys(spoken))


def _replies(dialect: Dialect) -> list[bytes]:
    """What was decided, as far as the dialect can say it and something was."""
    spoken = []
    for _, reply in _recorded():
        with suppress(BatschedError):
            if reply.events:
                spoken.append(dialect.codec().encode_reply(reply))
    return list(dict.fromkeys(spoken))


@cache
def _opening() -> list[ev.Message]:
    """A beginning and a few submissions, so that some jobs run and some wait."""
    return [request for request, _ in _recorded()[:5]]


def _react(text: bytes, dialect: Dialect, process: DecisionProcess) -> None:
    """A request to a decision process that has begun, unless this is what begins; then one that is good."""
    codec = dialect.codec()
    if codec.answer(text, process.needs) is not None:
        return
    request = codec.decode_request(text)
    begins = any(isinstance(event, ev.SimulationBegins) for event in request.events)
    if not begins:
        for message in _opening():
            process.react(message)
    codec.encode_reply(process.react(request))
    if not process.finished:
        job = Job("w0!after", request.now, 1, 60.0, "delay")
        after = ev.JobSubmitted(job, time=request.now)
        codec.encode_reply(process.react(ev.Message(request.now, [after])))


def _requested(dialect: Dialect) -> Target:
    """A request to a policy, which is read as a reply as well."""

    def feed(text: bytes, folder: Path) -> None:
        with suppress(BatschedError):
            dialect.codec().decode_reply(text)
        _react(text, dialect, DecisionProcess(Easy()))

    return Target(feed, lambda: _requests(dialect), is_message=True)


def _requested_of_users() -> Target:
    """A request to a policy and users, whose jobs are those of the conversation."""

    def feed(text: bytes, folder: Path) -> None:
        users = list(USERS.create("think-time", {}).users(_sessions()))
        _react(text, BATSIM4, DecisionProcess(Easy(), users))

    return Target(feed, lambda: _requests(BATSIM4), is_message=True)


@cache
def _sessions() -> Workload:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "small.swf"
        path.write_bytes(_content(_SAMPLE))
        return read_workload(path, "w0")


@cache
def _small_workload() -> Workload:
    return read_workload(GOLDEN / "small12_killer" / "small12.json", "w0")


@cache
def _small_platform() -> Platform:
    return read_platform(GOLDEN / "power60_energy_bf" / "power8.xml")


def _replied(dialect: Dialect) -> Target:
    """A reply to the built-in Batsim at the beginning and after the first submission, then silence."""

    def feed(text: bytes, folder: Path) -> None:
        settings = ev.Settings(dynamic_jobs=True, profile_reuse=True)
        for turn in range(2):
            codec = dialect.codec()
            reply = codec.decode_reply(text)
            batsim = Batsim(Setup(_small_platform(), [_small_workload()], settings, energy=True))
            request: ev.Message | None = batsim.begin()
            for step in range(4):
                if request is not None:
                    codec.encode_request(request)
                    said = reply if step == turn else ev.Message(request.now, [])
                    request = batsim.advance(said)

    return Target(feed, lambda: _replies(dialect), is_message=True)


# --- files ---------------------------------------------------------------------------------------


def _file(name: str, read: Callable[[Path], object], *seeds: Path | bytes | Callable[[], bytes]) -> Target:
    """A file of this name."""

    def feed(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        read(path)

    def contents() -> list[bytes]:
        return [_content(seed) for seed in seeds]

    return Target(feed, contents)


#: Of these files the first lines will do.
_TABLES = (".swf", ".csv", ".jsonl")


def _content(seed: Path | bytes | Callable[[], bytes]) -> bytes:
    match seed:
        case bytes():
            return seed
        case Path():
            content = seed.read_bytes()
            return b"".join(content.splitlines(keepends=True)[:30]) if seed.suffix in _TABLES else content
        case _:
            return seed()


def _batsim5() -> bytes:
    """Every type of profile that Batsim 5 has."""
    each, spread = "DefinedAmountsUsedForEachValue", "DefinedAmountsSpreadUniformly"
    profiles = f"""
"a":{{"type":"DelayProfile","delay":20.25,"extra_data":"{{\\"user\\":\\"ann\\"}}","ret":1}},
"b":{{"type":"ParallelTaskProfile","cpu":[1,2],"com":[0,1,2,3]}},
"c":{{"type":"ParallelTaskHomogeneousProfile","cpu":1e6,"com":0,"generation_strategy":"{each}"}},
"d":{{"type":"ParallelTaskHomogeneousProfile","cpu":1e6,"com":5,"generation_strategy":"{spread}"}},
"e":{{"type":"SequentialCompositionProfile","repeat":4,"seq":["a","b"]}},
"f":{{"type":"ParallelTaskOnStorageHomogeneousProfile","bytes_to_read":1,"bytes_to_write":2,"storage":"x"}},
"g":{{"type":"ParallelTaskDataStagingBetweenStoragesProfile","nb_bytes":9,"from":"x","to":"y"}},
"h":{{"type":"TraceReplayProfile","filename":"a.txt","trace_type":"SMPI"}}"""
    jobs = ",\n".join(
        f'{{"id":"{number}","subtime":{number}.5,"res":2,"walltime":100,"profile":"{name}","extra_data":"x"}}'
        for number, name in enumerate("abcdefgh")
    )
    return f'{{"nb_res":4,"jobs":[{jobs}],"profiles":{{{profiles}}}}}'.encode()


_SACCT = b"""\
JobID|User|Group|JobName|Partition|Submit|Start|End|State|ElapsedRaw|Timelimit|ReqCPUS|AllocCPUS|ReqMem|MaxRSS
100|al|ph|sim|b|2023-05-01T08:00:00|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|02:00:00|8|8|16G|
100.0|||a.out||2023-05-01T08:10:00|2023-05-01T08:10:00|2023-05-01T09:10:00|COMPLETED|3600|||8||1G
101_1|bo|ch|arr|b|2023-05-01T06:01:00Z|2023-05-01T06:05:00Z|2023-05-01T06:06:00Z|FAILED|60|1-00:00:00|1|1|4Gc|
101_[3,5-6%1]|bo|ch|arr|b|2023-05-01T08:01:00|Unknown|2023-05-01T08:30:00|CANCELLED by 1|0|UNLIMITED|1|0|4Gc|
104|ca|bi|big|b|1682935200|1682935260|1682935320|OUT_OF_MEMORY|60|05:00|2|2|1M|
"""

_PBS = b"""\
05/01/2023 06:00:00;Q;1.srv;queue=batch
05/01/2023 07:10:00;E;1.srv;user=al group=ph jobname=s queue=b ctime=1682920800 qtime=1682920800 \
start=1682921400 exec_host=n1/0*4+n2/0*4 Resource_List.select=2:ncpus=4:ngpus=1 \
Resource_List.walltime=02:00:00 Resource_List.mem=8gb end=1682925000 Exit_status=0 \
resources_used.cput=06:00:00 resources_used.mem=4194304kb
05/01/2023 06:03:00;E;2.srv;user=bo qtime=1682920860 start=1682920920 exec_host=n3/0+n3/1 \
Resource_List.nodes=1:ppn=2 end=1682920980 Exit_status=271 resources_used.walltime=00:01:01
"""

_TABLE = b"""\
user,submit,start,end,run_time,requested_processors,allocated_processors,requested_time,status
bob,20,25,30,5,2,2,60,1
alice,2024-01-01 08:00,2024-01-01 08:01,2024-01-01 08:11,600,16,16,3600,0
"""

_PLAN = b"""\
title = "x"
metrics = ["makespan", "mean_waiting_time"]
repetitions = 2

[logs]
small = { file = "w.json" }

[platforms]
full = { hosts = 64, speed = 2.0 }
half = { hosts = 32, energy = false }

[schedulers]
random = {}
conservative = { options = { selection = "random" } }
sleep-1h = { name = "sleeper", options = { idle_time = 3600 } }

[users]
rigid = {}
"""

_MODEL = b"""{"format":"batsched-py model","version":1,"model":"naive","options":{},"parameters":\
{"source":"sample.swf","machine":64,"interarrival":120.5,"longest":3600.0,"largest":32}}
"""

_CSV = b"""\
nb_computing_machines,nb_jobs,makespan,consumed_joules
64,200,12345.678900,0.000000
"""


@cache
def _fitted() -> bytes:
    """A model with parameters of many kinds."""
    model = MODELS.create("slots", {})
    assert isinstance(model, LearningModel)
    model.fit(read_log(_SAMPLE))
    with tempfile.TemporaryDirectory() as folder:
        save_model(Path(folder) / "model", model)
        return (Path(folder) / "model").read_bytes()


@cache
def _campaign() -> dict[str, bytes]:
    """The files of a campaign with one run that is done."""
    results = {
        "metrics.json": b'{"mean_waiting_time":12.5,"makespan":null}',
        "out_jobs.csv": _content(GOLDEN / "dyn_ack" / "jobs.csv"),
    }
    manifest = Manifest(
        run="r",
        identity="i",
        axes={"log": "small", "scheduler": "easy"},
        experiment=Experiment(
            scenario=Scenario(workloads=Workloads(files=("w.swf",))), actors=Actors(scheduler=Choice("easy"))
        ),
        command="batsched-py run",
        simulator="batsched-py",
        code="c",
        inputs=[],
        results=[
            FileDigest(name, hashlib.sha256(content).hexdigest(), len(content))
            for name, content in results.items()
        ],
        versions={"python": "3.11"},
        host={"cores": "2"},
        started="2024-01-01",
        seconds={"simulate": 1.5},
    )
    wanted = Wanted(name="x", runs=[Run(name="r", identity="i", axes=manifest.axes)])
    return {
        "plan.toml": b"[logs]\n",
        "campaign.json": msgspec.json.encode(wanted),
        "metrics.csv": b"run\nr\n",
        "runs/r/manifest.json": msgspec.json.encode(manifest),
        **{f"runs/r/{name}": content for name, content in results.items()},
    }


def _campaign_file(name: str) -> Target:
    """One file of a campaign."""

    def feed(content: bytes, folder: Path) -> None:
        (folder / "runs" / "r").mkdir(parents=True, exist_ok=True)
        for each, good in _campaign().items():
            (folder / each).write_bytes(content if each == name else good)
        campaign = Campaign.open(folder)
        campaign.finished()

    return Target(feed, lambda: [_campaign()[name]])


def _archive() -> bytes:
    """What is exported of it."""
    files = _campaign()
    contents = {"campaign": "x", "sha256": {name: hashlib.sha256(files[name]).hexdigest() for name in files}}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, "contents.json": msgspec.json.encode(contents)}.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _import(path: Path) -> None:
    target = path.with_name("again")
    shutil.rmtree(target, ignore_errors=True)
    import_campaign(path, target).finished()


def _parquet() -> bytes:
    import pandas as pd

    table = pd.DataFrame(
        {"submit": [1, 2], "run_time": [3.5, 4.0], "user": ["ann", "bob"], "requested_processors": [1, 2]}
    )
    buffer = io.BytesIO()
    table.to_parquet(buffer)
    return buffer.getvalue()


def _packed() -> bytes:
    return gzip.compress(_content(_SAMPLE), mtime=0)


def _summary(name: str, *seeds: bytes) -> Target:
    return _file(name, lambda path: read_summary(path.with_name("out_jobs.csv")), *seeds)


def _plan_beside_a_log(path: Path) -> object:
    path.with_name("w.json").write_bytes(b'{"nb_res":4,"jobs":[],"profiles":{}}')
    return read_plan(path)


def _log_of(kind: str, **options: str) -> Callable[[Path], object]:
    def read(path: Path) -> object:
        log = read_log(path, kind, options)
        return log.machine_size, start_of(log), zone_of(log)

    return read


def _as_workload(path: Path) -> object:
    return read_workload(path, "w0")


#: By name; what is found in one of them is saved under that.
#: What the tools of a Slurm print, and how each is handed to the import.
_SLURM_TEXTS = {
    "slurm.conf": "conf",
    "dump.cfg": "accounting",
    "qos.txt": "accounting",
    "shares.txt": "accounting",
    "reservations.txt": "reservations",
    "jobs.sacct": "jobs",
}


def _slurm_text(name: str) -> Target:
    """One file of a Slurm cluster, beside good ones."""

    def feed(content: bytes, folder: Path) -> None:
        write_cluster(folder)
        (folder / name).write_bytes(content)
        kind = _SLURM_TEXTS[name]
        given: dict[str, Any] = {"conf": folder / "slurm.conf", "jobs": folder / "jobs.sacct"}
        given[kind] = (folder / name,) if kind in ("accounting", "reservations") else folder / name
        read_scenario(Sources(**given))

    def seeds() -> list[bytes]:
        with tempfile.TemporaryDirectory() as folder:
            return [(write_cluster(Path(folder)) / name).read_bytes()]

    return Target(feed, seeds)


def _ask_status(content: bytes, folder: Path) -> None:
    """What anything may answer that is asked how far it is."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(content + b"\n")

        thread = Thread(target=answer)
        thread.start()
        result = CliRunner().invoke(batsched_py, ["status", str(server.getsockname()[1])])
        thread.join()
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception


TARGETS: dict[str, Target] = {
    "message": _requested(BATSIM4),
    "message5": _requested(BATSIM5),
    "users": _requested_of_users(),
    "reply": _replied(BATSIM4),
    "reply5": _replied(BATSIM5),
    "workload": _file(
        "w.json",
        _as_workload,
        GOLDEN / "dyn_ack" / "small12.json",
        GOLDEN / "probe_cont2" / "probe.json",
    ),
    "workload5": _file("w.json", _as_workload, _batsim5),
    "jobs": _file("w.json", _log_of("batsim"), GOLDEN / "dyn_ack" / "small12.json", _batsim5),
    "log": _file("w.swf", _as_workload, _SAMPLE),
    "swf": _file("w.swf", _log_of("swf"), _SAMPLE),
    "packed": _file("w.swf.gz", _as_workload, _packed),
    "sacct": _file("w.sacct", _log_of("sacct", zone="Europe/Paris"), _SACCT),
    "pbs": _file("w.pbs", _log_of("pbs"), _PBS),
    "table": _file("w.csv", _log_of("csv", zone="UTC"), _TABLE),
    "parquet": _file("w.parquet", _log_of("parquet"), _parquet),
    "model": _file("m.json", load_model, _MODEL, _fitted),
    "platform": _file("p.xml", read_platform, *sorted((ROOT / "platforms").glob("*.xml"))),
    "events": _file("e.txt", lambda path: read_events(path, True), GOLDEN / "outage_filler" / "outage.txt"),
    "plan": _file("plan.toml", _plan_beside_a_log, _PLAN),
    "conversation": _file("t.jsonl", read_conversation, GOLDEN / "probe_cont2" / "conversation.jsonl"),
    "schedule": _file(
        "out_jobs.csv", lambda path: host_sets(read_schedule(path)), GOLDEN / "dyn_ack" / "jobs.csv"
    ),
    "summary": _summary("out_schedule.csv", _CSV),
    "summary5": _summary("out_schedule.json", b'{"nb_computing_machines":64,"consumed_joules":null}'),
    "campaign": _campaign_file("campaign.json"),
    "manifest": _campaign_file("runs/r/manifest.json"),
    "metrics": _campaign_file("runs/r/metrics.json"),
    "archive": _file("x.zip", _import, _archive),
    "machine": _file("m.toml", read_toml_machine, *sorted((ROOT / "platforms").glob("*.toml"))),
    "result": _file("out_jobs.csv", lambda path: read_run(path, "x"), GOLDEN / "dyn_ack" / "jobs.csv"),
    "status": Target(_ask_status, lambda: [b'{"now":12.5,"waiting":3,"hosts":{"busy":[1,2]}}']),
    **{f"slurm_{Path(name).stem}": _slurm_text(name) for name in _SLURM_TEXTS},
}
