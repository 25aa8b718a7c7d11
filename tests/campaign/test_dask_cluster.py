"""The same plan on a real Dask cluster, and on batch systems whose commands are played by shell scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from batsched_py.campaign import dask_cluster
from batsched_py.campaign.run import Run
from batsched_py.errors import InputError
from tests.campaigns import conducted, manifests, results, wait_until
from tests.processes import PATIENCE, PROGRESS, call, environment, start

pytest.importorskip("distributed")

PLAN = """
repetitions = 2

[logs]
small = { file = "small.swf" }

[platforms]
full = { hosts = 64 }
half = { hosts = 32 }

[schedulers]
slow = { name = "policies.py:Slow" }
easy = {}
"""


@contextmanager
def dask(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A part of a Dask cluster as a process."""
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers on loopback: the address, and the three processes."""
    file = folder / "scheduler.json"
    scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    worker = ("distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")
    file.unlink(missing_ok=True)
    with (
        dask(folder, *scheduler, "--scheduler-file", str(file)) as head,
        dask(folder, *worker, "--no-dashboard") as first,
        dask(folder, *worker, "--no-dashboard") as second,
    ):
        wait_until(lambda: file.is_file() and "address" in file.read_text(), "the Dask scheduler listens")
        yield json.loads(file.read_text())["address"], [head, first, second]


def arguments(folder: Path, results: str, *more: str) -> list[str]:
    return ["campaign", "run", str(folder / "plan.toml"), "-d", str(folder / results), *more]


def test_a_dask_cluster_gives_the_same_results_even_if_a_worker_is_killed(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN)
    with cluster(folder) as (address, (_, worker, _)):
        run = arguments(folder, "dask", "--executor", "dask", "--address", address)
        with start(run) as campaign:
            wait_until(lambda: list((folder / "dask" / "runs").glob("*")), "a run is finished")
            worker.kill()
            _, err = campaign.communicate(timeout=PATIENCE)
    assert campaign.returncode == 0, err
    assert "open to everyone who reaches it: they can run code as you" in err
    assert len(manifests(folder / "dask")) == 6
    conducted(folder, results="here")
    assert results(folder / "dask") == results(folder / "here")


@pytest.mark.slow
def test_a_campaign_goes_on_with_another_scheduler_when_one_is_killed(folder: Path) -> None:
    (folder / "plan.toml").write_text(PLAN)
    with cluster(folder) as (address, (head, *_)):
        run = arguments(folder, "dask", "--executor", "dask", "--address", address)
        with start(run) as campaign:
            wait_until(lambda: list((folder / "dask" / "runs").glob("*")), "a run is finished")
            head.kill()
            _, err = campaign.communicate(timeout=PATIENCE)
    assert campaign.returncode == 1
    _, line = PROGRESS.sub("", err).splitlines()
    assert line == "batsched-py: error: the Dask cluster is gone; what is finished stays, run again to go on"
    with cluster(folder) as (address, _):
        code, _, err = call(arguments(folder, "dask", "--executor", "dask", "--address", address))
    assert code == 0, err
    assert len(manifests(folder / "dask")) == 6
    conducted(folder, results="here")
    assert results(folder / "dask") == results(folder / "here")


SEARCH = """
objectives = ["mean_bounded_slowdown"]
trials = 6
batch = 3
parts = "4d"
search_parts = [2, 3]
held_out_parts = [4, 5]

[logs]
sample = { file = "sample.swf" }

[platforms]
full = { file = "platform.xml" }

[schedulers]
today = { name = "easy" }
candidate = { name = "easy", options = { order = "-wait / size**{a}" } }

[search]
a = { from = 0.0, to = 4.0 }
"""


def test_a_search_on_a_dask_cluster_finds_the_same(root: Path, folder: Path) -> None:
    """The command names files from another folder than that of the workers."""
    pytest.importorskip("optuna")
    (folder / "search.toml").write_text(SEARCH)
    (folder / "sample.swf").write_bytes((root / "workloads" / "sample.swf").read_bytes())
    (folder / "platform.xml").write_bytes((root / "platforms" / "cluster64.xml").read_bytes())
    place = folder / "elsewhere"
    place.mkdir()
    with cluster(folder) as (address, _):
        where = ("--executor", "dask", "--address", address)
        code, _, err = call(["tune", "../search.toml", "-d", "dask", *where], cwd=place)
    assert code == 0, err
    code, _, err = call(["tune", "../search.toml", "-d", "here", "-j", "1"], cwd=place)
    assert code == 0, err
    names = sorted(path.relative_to(place / "here") for path in (place / "here").rglob("*.json"))
    assert len(names) == 6 + 1 + 2 + 1
    for name in names:
        assert (place / "dask" / name).read_bytes() == (place / "here" / name).read_bytes()


def test_a_cluster_that_is_not_there(first_run: Callable[[], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "PATIENCE", 0.1)
    with pytest.raises(InputError, match=r"there is no Dask cluster at tcp://127\.0\.0\.1:9: "):
        list(dask_cluster.DaskCluster("tcp://127.0.0.1:9").run([first_run()]))


def test_an_address_is_needed(folder: Path) -> None:
    code, _, err = call(arguments(folder, "r", "--executor", "dask"))
    assert (code, err) == (
        1,
        "batsched-py: error: --executor dask needs the --address of a Dask scheduler, such as tls://host:8786\n",
    )


#: How each batch system is asked for a job, what it answers, and how a job is taken back.
BATCH_SYSTEMS = {
    "slurm": ("sbatch", 'bash -c "$script"', "Submitted batch job $!", "scancel"),
    "pbs": ("qsub", 'bash -c "$script"', "$!.server", "qdel"),
    "oar": ("oarsub", 'bash -c "${@: -1}"', "OAR_JOB_ID=$!", "oardel"),
}


@pytest.mark.parametrize(
    "system",
    ["slurm", *(pytest.param(name, marks=pytest.mark.slow) for name in BATCH_SYSTEMS if name != "slurm")],
)
def test_a_batch_system_starts_the_workers(folder: Path, system: str) -> None:
    pytest.importorskip("dask_jobqueue")
    submit, job, answer, cancel = BATCH_SYSTEMS[system]
    taken = 'test -f "$1" && script=$(cat "$1")'  # who submits a script may remove it at once
    programs = folder / "bin"
    programs.mkdir()
    for name, script in (
        (submit, f'{taken}\n{job} >>"{folder}/jobs.log" 2>&1 &\necho "{answer}"'),
        (cancel, 'kill "${1%%.*}" 2>/dev/null; exit 0'),
    ):
        (programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (programs / name).chmod(0o755)
    run = arguments(folder, "batch", "--executor", system, "-j", "2" if system == "slurm" else "1")
    code, _, err = call(run, cwd=folder, PATH=f"{programs}:{os.environ['PATH']}")
    assert code == 0, err
    assert len(manifests(folder / "batch")) == 4
    assert (folder / "jobs.log").is_file()
    assert "Traceback" not in err and "Exception ignored" not in err
    assert "tls://" in (folder / "jobs.log").read_text()
    assert not list(folder.rglob("key")), "the keys are removed with the cluster"


#: The cluster of a batch system, and strangers who try to talk to it.
STRANGERS = """
import sys
from pathlib import Path

import distributed

from batsched_py.campaign import dask_cluster

distributed.utils.get_ip = lambda: "127.0.0.1"
keys = Path(sys.argv[1])
with dask_cluster.BatchSystem("slurm", 1).cluster(keys) as cluster:
    address = cluster.scheduler_address
    print(address.rpartition(":")[0], cluster.scheduler.http_server.address)
    print({oct(file.stat().st_mode) for file in keys.iterdir()}, oct(keys.stat().st_mode))
    with distributed.Client(cluster, timeout=60, set_as_default=False) as owner:
        print(owner.status)
    for stranger, security in (
        (address.replace("tls://", "tcp://"), None),
        (address, None),
        (address, distributed.Security.temporary()),
    ):
        try:
            distributed.Client(stranger, timeout=10, set_as_default=False, security=security)
        except (OSError, TypeError):
            print("refused")
    print([name for name in cluster.scheduler.clients if name != "fire-and-forget"])
"""


def test_a_stranger_is_refused_by_the_cluster_of_a_batch_system(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    pytest.importorskip("cryptography")
    done = subprocess.run(
        [sys.executable, "-c", STRANGERS, str(tmp_path)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.stdout.splitlines() == [
        "tls://127.0.0.1 127.0.0.1",
        "{'0o100600'} 0o40700",
        "running",
        *("refused", "refused", "refused"),
        "[]",
    ], done.stderr


def test_keys_in_a_folder_that_a_script_cannot_name(tmp_path: Path) -> None:
    pytest.importorskip("dask_jobqueue")
    with pytest.raises(InputError, match=r"scripts of jobs cannot name .*my results, where the keys"):
        dask_cluster.BatchSystem("slurm", 1).cluster(tmp_path / "my results")


def test_a_cluster_without_workers_is_told(
    first_run: Callable[[], Run],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The runs wait, and are done by the first worker that comes."""
    monkeypatch.setattr(dask_cluster, "SECONDS_WITHOUT_WORKERS", 0.1)
    file, run = tmp_path / "scheduler.json", first_run()
    scheduler = ("distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
    worker = ("distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny")
    with dask(tmp_path, *scheduler, "--scheduler-file", str(file)):
        wait_until(lambda: file.is_file() and "address" in file.read_text(), "the Dask scheduler listens")
        address = json.loads(file.read_text())["address"]
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(lambda: list(dask_cluster.DaskCluster(address).run([run])))
            wait_until(
                lambda: "has had no worker for 0.1 s" in caplog.text, "it is said that no worker comes"
            )
            with dask(tmp_path, *worker, "--no-dashboard"):
                assert [result.error for result in done.result(PATIENCE)] == [None]
