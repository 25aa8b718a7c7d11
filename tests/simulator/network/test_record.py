"""What is recorded of links, hosts and storages, and what follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import batsched_py as bp
from batsched_py.analysis.conditions import carried_beside
from batsched_py.engines.python import Batsim
from batsched_py.errors import InputError
from batsched_py.protocol import events as ev
from batsched_py.protocol.hosts import HostSet
from batsched_py.simulator.network.routing import SimpleNetwork
from batsched_py.simulator.outputs import Outputs
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.simulator.setup import Setup
from batsched_py.workload.read import read_workload
from tests.drive import Drive, execute, workload
from tests.processes import PATIENCE, call_here, serving
from tests.simulator.network.test_execution import MEGA, STORAGE, homogeneous, machine

TREE = {"hosts": 16, "bandwidth": "1Gbps", "latency": "10us", "fat_tree": "2;4,4;1,2;1,1"}


def write(path: Path, jobs: int = 40, seed: int = 1) -> Path:
    """Jobs of 1 to 8 hosts that compute and send for some seconds, one after another in some of them."""
    random = Random(seed)
    profiles: dict[str, Any] = {
        f"p{number}": homogeneous(random.uniform(1, 200) * MEGA, random.uniform(0.1, 2) * 1e9)
        for number in range(5)
    }
    profiles["two"] = {"type": "composed", "repeat": 1, "seq": ["p0", "p1"]}
    listed = [
        {
            "id": str(number),
            "subtime": random.uniform(0, 10),
            "res": random.choice((1, 2, 4, 8)),
            "profile": random.choice(list(profiles)),
            "walltime": random.choice((2.0, 100.0)),
        }
        for number in range(jobs)
    ]
    path.write_text(json.dumps({"nb_res": 16, "jobs": listed, "profiles": profiles}))
    return path


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("jobs") / "jobs.json")


@pytest.fixture(scope="module")
def crowded(jobs: Path) -> bp.Result:
    return bp.simulate(jobs, "easy", options={"selection": "spread"}, links=True, **TREE)


def recorded(
    tmp_path: Path, platform: Platform, profile: dict[str, Any], *sizes: int, **settings: bool
) -> Drive:
    """Jobs a, b, ... of these sizes, which wait, in a simulation that is recorded."""
    jobs = [{"id": name, "res": size, "profile": "p"} for name, size in zip("abcdef", sizes, strict=False)]
    setup = Setup(platform, [workload(*jobs, profiles={"p": profile})], ev.Settings(**settings))
    conversation = Drive(Batsim(setup, Outputs(str(tmp_path / "out"), links=True)))
    conversation.reply()
    return conversation


def test_a_record_changes_nothing_and_is_made_only_where_it_is_asked_for(jobs: Path, tmp_path: Path) -> None:
    for name, links in (("with", True), ("without", False)):
        bp.simulate(jobs, "easy", links=links, export=str(tmp_path / name), **TREE)
    for file in ("jobs", "schedule"):
        assert (tmp_path / f"with_{file}.csv").read_bytes() == (tmp_path / f"without_{file}.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.glob("with_*")) == [
        "with_jobs.csv",
        "with_rates.csv",
        "with_schedule.csv",
        "with_uses.csv",
    ]
    assert len(list(tmp_path.glob("without_*"))) == 2


def test_the_time_alone_is_that_of_a_simulation_of_the_job_alone(crowded: bp.Result, jobs: Path) -> None:
    """Each job once more, on the same hosts, with nobody else on the machine."""
    given = read_workload(jobs, "w0")
    slowed = 0
    for row in crowded.jobs.itertuples():
        if row.success:
            job = next(job for job in given.jobs if job.name == row.job_id)
            network = SimpleNetwork(TREE["bandwidth"], TREE["latency"], fat_tree=TREE["fat_tree"])
            single = type(given)(name="w0", jobs=[job], profiles=given.profiles)
            conversation = Drive(Batsim(Setup(Platform.homogeneous(16, network=network), [single])))
            conversation.reply()
            start = conversation.now
            conversation.reply(ev.ExecuteJob(job.id, HostSet.parse(row.allocated_resources)))
            conversation.finish()
            (end,) = conversation.all(ev.JobCompleted)
            lost = crowded.carried.lost.get(job.id, 0.0)
            # The scheduler hears of an end some microseconds later, by a message.
            assert row.execution_time - lost == pytest.approx(end.time - start, abs=1e-4), job.id
            slowed += lost > 0.1
    assert slowed > 5


def test_a_link_carries_what_was_sent_and_never_more_than_its_bandwidth(crowded: bp.Result) -> None:
    carried = crowded.carried
    links = carried.totals[carried.totals["kind"] == "link"]
    assert (links["load"] <= 1 + 1e-9).all()
    killed = set("w0!" + crowded.jobs.loc[crowded.jobs["success"] == 0, "job_id"])
    for name in links["name"].head(10):
        used = carried.uses[carried.uses["name"] == name]
        if not killed & set(used["job_id"]):
            row = links[links["name"] == name].iloc[0]
            assert row["carried"] == pytest.approx(used["amount"].sum(), rel=1e-6)
        flow = carried.mean_flow("link", name, np.linspace(0, carried.end, 500))
        assert flow.max() <= 125e6 * (1 + 1e-9)


def test_who_shared_the_backbone_is_told(tmp_path: Path) -> None:
    conversation = recorded(tmp_path, machine(backbone="100MBps"), homogeneous(100 * MEGA), 2, 2, 2, 2)
    together = execute("a", "0-1"), execute("b", "2-3"), execute("c", "4-5")
    conversation.until(ev.JobCompleted, *together)
    conversation.reply(execute("d", "6-7"))
    conversation.finish()
    carried = carried_beside(tmp_path / "out_jobs.csv")
    assert carried is not None
    found = carried.contention("w0!a", 6.0)
    assert found is not None
    assert (found.times, found.kind, found.name) == (3.0, "link", "backbone")
    assert found.others == ["w0!b", "w0!c"]
    assert carried.contention("w0!d", 2.0) is None
    ((name, load, lost),) = carried.most_loaded("link", 1)[["name", "load", "lost"]].to_numpy().tolist()
    assert (name, load, lost) == ("backbone", pytest.approx(1.0), pytest.approx(12.0))
    halves = carried.mean_flow("link", "network_link_0_UP", np.array([0.0, 6.0, 8.0])) / MEGA
    assert halves == pytest.approx([100 / 6, 0.0])


def test_hosts_that_jobs_share_are_in_the_record(tmp_path: Path) -> None:
    platform = Platform.homogeneous(1)
    profile = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}
    conversation = recorded(tmp_path, platform, profile, 1, 1, compute_sharing=True)
    conversation.reply(execute("a", "0"), execute("b", "0"))
    conversation.finish()
    carried = carried_beside(tmp_path / "out_jobs.csv")
    assert carried is not None
    found = carried.contention("w0!b", 2.0)
    assert found is not None
    assert (found.times, found.kind, found.others) == (2.0, "host", ["w0!a"])


def test_storages_count_what_they_send_and_receive(tmp_path: Path) -> None:
    (tmp_path / "platform.xml").write_text(STORAGE)
    platform = read_platform(tmp_path / "platform.xml")
    profile = {
        "type": "parallel_homogeneous_pfs",
        "bytes_to_read": 1e8,
        "bytes_to_write": 5e7,
        "storage": "pfs",
    }
    conversation = recorded(tmp_path, platform, profile, 2)
    conversation.reply(ev.ExecuteJob("w0!a", HostSet.parse("0-1"), storage_mapping={"pfs": 2}))
    conversation.finish()
    carried = carried_beside(tmp_path / "out_jobs.csv")
    assert carried is not None
    assert carried.most_loaded("storage", 9)[["name", "carried"]].to_numpy().tolist() == [["pfs", 3e8]]
    assert carried.mean_flow("storage", "pfs", np.array([0.0, 1.0, 3.0])) == pytest.approx([1e8, 1e8])


def test_staging_loads_both_storages(tmp_path: Path) -> None:
    (tmp_path / "platform.xml").write_text(STORAGE)
    platform = read_platform(tmp_path / "platform.xml")
    profile = {"type": "data_staging", "nb_bytes": 1e8, "from": "pfs", "to": "ssd"}
    conversation = recorded(tmp_path, platform, profile, 1)
    conversation.reply(execute("a", "0"))
    conversation.finish()
    carried = carried_beside(tmp_path / "out_jobs.csv")
    assert carried is not None
    totals = carried.most_loaded("storage", 9)
    assert dict(zip(totals["name"], totals["carried"], strict=True)) == {"pfs": 1e8, "ssd": 1e8}


def test_metrics_and_explanations_tell_of_contention(crowded: bp.Result, jobs: Path) -> None:
    ran = crowded.jobs.set_index("job_id")["execution_time"]
    lost = crowded.carried.lost.rename(lambda name: name.removeprefix("w0!")).reindex(ran.index, fill_value=0)
    times = ran / (ran - lost)
    assert crowded.metrics["mean_slowdown_by_contention"] == pytest.approx(times.mean(), rel=1e-4)
    assert crowded.metrics["max_slowdown_by_contention"] == pytest.approx(times.max(), rel=1e-4)
    told = str(crowded.explain(times.idxmax()))
    assert f"it ran {times.max():.1f} times longer than alone: it shared `network_" in told
    unrecorded = bp.simulate(jobs, "easy", **TREE)
    assert "mean_slowdown_by_contention" not in unrecorded.metrics
    assert "than alone" not in str(unrecorded.explain(times.idxmax()))
    with pytest.raises(InputError, match="simulate with links=True"):
        _ = unrecorded.carried


def test_where_jobs_share_nothing_there_is_nothing_to_record(tmp_path: Path) -> None:
    path = tmp_path / "jobs.json"
    path.write_text('{"nb_res": 1, "jobs": [], "profiles": {}}')
    with pytest.raises(InputError, match="they share nothing"):
        bp.simulate(path, "easy", hosts=4, links=True)


def test_a_file_that_is_no_record_is_named(tmp_path: Path) -> None:
    (tmp_path / "out_uses.csv").write_text("a,b\n1,2\n")
    (tmp_path / "out_rates.csv").write_text("time,task,rate,rate_alone,kind,name\n")
    with pytest.raises(InputError, match=r"out_uses.csv: is not what a simulation with --links writes"):
        carried_beside(tmp_path / "out_jobs.csv")


@pytest.mark.parametrize(("protocol", "mark"), [("4", "_"), ("5", "/")])
def test_a_decision_process_elsewhere_gives_the_same_record(
    protocol: str, mark: str, jobs: Path, tmp_path: Path
) -> None:
    options = ["-w", jobs, "--hosts", "16", "--bandwidth", "1Gbps", "--backbone", "1Gbps", "--links"]
    code, _, err = call_here(["run", "-s", "fcfs", "-e", tmp_path / "one", *options])
    assert code == 0, err
    prefix = f"{tmp_path / 'two'}{'/' if protocol == '5' else ''}"
    with serving("-s", "fcfs") as service:
        wire = ["--timeout", str(PATIENCE), "--protocol", protocol]
        if protocol == "5":
            wire += ["--edc-socket-str", service.endpoint, ""]
        else:
            wire += ["-s", service.endpoint]
        code, _, err = call_here(["batsim", *wire, "-e", prefix, *options])
        assert code == 0, err
    for name in ("uses.csv", "rates.csv"):
        assert (tmp_path / f"one_{name}").read_bytes() == (tmp_path / f"two{mark}{name}").read_bytes()


@pytest.mark.parametrize("protocol", ["4", "5"])
def test_a_decision_process_elsewhere_cannot_choose_by_switches(
    protocol: str, jobs: Path, tmp_path: Path
) -> None:
    with serving("-s", "fcfs", "-o", "selection=fewest-switches") as service:
        wire = ["--timeout", str(PATIENCE), "--protocol", protocol]
        if protocol == "5":
            wire += ["--edc-socket-str", service.endpoint, ""]
        else:
            wire += ["-s", service.endpoint]
        code, _, err = call_here(
            ["batsim", *wire, "-e", tmp_path / "out", "-w", jobs, "--hosts", "16", "--bandwidth", "1Gbps"]
        )
        _, said = service.end()
    assert code == 1
    assert any("the switches of the hosts are unknown" in line for line in said), (said, err)
