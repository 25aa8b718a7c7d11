"""The samples that ship with the project."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import asdict

from batsched_py.simulator.simgrid_xml import declared_hosts
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf.reader import read_swf


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_the_generator_writes_the_same_bytes_again(root: Path, tmp_path: Path, hash_seed: str) -> None:
    subprocess.run(
        [sys.executable, root / "workloads" / "make_sample.py", tmp_path],
        check=True,
        env={"PYTHONPATH": str(root), "PYTHONHASHSEED": hash_seed},
    )
    for name in ("sample.swf", "sample.json"):
        assert (tmp_path / name).read_bytes() == (root / "workloads" / name).read_bytes()


def test_the_log_and_the_batsim_workload_hold_the_same_jobs(root: Path) -> None:
    log = read_workload(root / "workloads" / "sample.swf", "w0", walltime="max")
    workload = read_workload(root / "workloads" / "sample.json", "w0")
    assert [asdict(job) for job in log.jobs] == [asdict(job) for job in workload.jobs]
    assert log.profiles == workload.profiles


def test_the_log_is_what_its_description_says(root: Path) -> None:
    log = read_swf(root / "workloads" / "sample.swf")
    finish = log.submit + log.wait + log.run_time
    span = finish.max() - log.submit.min()
    assert (len(log), len(set(log.user.tolist())), log.machine_size) == (3000, 50, 64)
    assert round((log.processors * log.run_time).sum() / (64 * span), 2) == 0.71
    assert span // 86400 == 58
    assert (log.processors.min(), log.processors.max()) == (1, 64)
    assert (log.run_time.min(), log.run_time.max()) == (1, 36 * 3600)
    assert (log.requested_time >= log.run_time).all()


def test_the_recorded_schedule_never_uses_more_hosts_than_there_are(root: Path) -> None:
    log = read_swf(root / "workloads" / "sample.swf")
    start = log.submit + log.wait
    changes = sorted(
        [(time, int(size)) for time, size in zip(start, log.processors, strict=True)]
        + [(time, -int(size)) for time, size in zip(start + log.run_time, log.processors, strict=True)]
    )
    used = 0
    for _, change in changes:
        used += change
        assert used <= 64


@pytest.mark.parametrize(
    ("name", "speeds"),
    [("cluster64", {1e9: 64}), ("uneven8", {1e9: 4, 2e9: 4}), ("power16", {1e9: 16}), ("power64", {1e9: 64})],
)
def test_platforms_have_the_hosts_they_are_named_after(
    root: Path, name: str, speeds: dict[float, int]
) -> None:
    hosts = [
        h for h in declared_hosts(root / "platforms" / f"{name}.xml") if not h.name.startswith("master_host")
    ]
    fastest = [host.speeds[0] for host in hosts]
    assert {speed: fastest.count(speed) for speed in fastest} == speeds


def test_the_larger_power_platform_is_made_as_the_readme_says(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (recipe,) = re.findall(r"```python\n(.*?)```", (root / "platforms" / "README.md").read_text(), re.DOTALL)
    (tmp_path / "power16.xml").write_bytes((root / "platforms" / "power16.xml").read_bytes())
    monkeypatch.chdir(tmp_path)
    exec(recipe, {})
    assert (tmp_path / "power64.xml").read_bytes() == (root / "platforms" / "power64.xml").read_bytes()
