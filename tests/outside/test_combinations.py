"""Everything together at random: nodes, requests, dependencies, sizes, failures, closures, power, users."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.processes import call_here

MACHINE = """
[[nodes]]
count = 3
name = "a"
cores = 4
memory = "8 GB"
gpu = 2
features = ["a100", "fast"]
partitions = ["gpu", "all"]
nodes_per_switch = 2
idle_watts = 100
full_watts = 300
sleep_watts = 10
switch_on_seconds = 5
switch_off_seconds = 3

[[nodes]]
count = 3
name = "b"
cores = 6
memory = "16 GB"
features = ["old"]
partitions = ["cpu", "all"]
idle_watts = 80
full_watts = 200
sleep_watts = 8
switch_on_seconds = 5
switch_off_seconds = 3

[licences]
matlab = 2
"""
INNER = ("fcfs", "easy", "conservative", "sjf", "easy-sjbf", "easy-moldable", "malleable-easy", "user-aware")
AFTER = (
    "afterok:{0}",
    "afterany:{0}+7s",
    "afternotok:{0}",
    "singleton",
    "afterok:{0}?singleton",
    "afterany:{0}:{1}",
)
PROFILES = {
    "sleep": {"type": "delay", "delay": 30},
    "each": {"type": "parallel_homogeneous", "cpu": 6e10, "com": 0},
    "total": {"type": "parallel_homogeneous_total", "cpu": 1.2e11, "com": 0},
}


def request(random: Random, size: int) -> dict[str, Any]:
    """What a job may ask of the nodes; up to two things beside its cores."""
    ways: dict[str, list[Any]] = {
        "per_task": [{"memory": "1 GB"}, {"gpu": 1}, {"memory": "500 MB", "gpu": 1}],
        "per_node": [{"memory": "2 GB"}, {"gpu": 1}],
        "per_core": [{"memory": "300 MB"}],
        "per_job": [{"memory": "4 GB"}],
        "nodes": [1, [1, 2], [1, 3]],
        "tasks_per_node": [1, 2, 4],
        "exclusive": [True],
        "features": ["a100", "!old", "a100 | old", "fast & a100", "old & !a100"],
        "partitions": [["gpu"], ["cpu"], ["gpu", "cpu"], ["all"]],
        "one_switch": [True],
        "licences": [{"matlab": 1}, {"matlab": 2}],
    }
    chosen = random.sample(sorted(ways), random.choice((0, 1, 1, 2)))
    cores = random.choice([each for each in (1, 1, 2, 3) if size % each == 0])
    return {"cores": cores} | {name: random.choice(ways[name]) for name in chosen}


def workload(random: Random, kinds: list[str]) -> dict[str, Any]:
    """Thirty jobs, of which some are of these kinds."""
    jobs, time = [], 0
    for number in range(30):
        time += random.choice((0, 0, 5, 20, 60))
        size = random.choice((1, 1, 2, 2, 3, 4, 6))
        job: dict[str, Any] = {
            "id": f"{number:02}",
            "subtime": time,
            "res": size,
            "walltime": random.randint(60, 300),
            "profile": random.choice(sorted(PROFILES)),
            "user": random.choice("ab"),
            "name": random.choice("xy"),
            "recorded_finish": time + random.randint(30, 200),
        }
        if random.random() < 0.8:
            job["request"] = request(random, size)
        match random.choice(["", *kinds]):
            case "after" if number:
                others = [f"{random.randrange(number):02}" for _ in range(2)]
                job["after"] = random.choice(AFTER).format(*others)
            case "array":
                job["array"] = "sweep%2"
            case "sizes":
                job |= {"profile": "total", "sizes": {str(size): 60, str(2 * size): 30}, "request": {}}
            case "malleable":
                job["malleable"] = {"min": max(1, size // 2), "max": size + 4, "sequential": 0.1}
        jobs.append(job)
    return {"nb_res": 30, "jobs": jobs, "profiles": PROFILES}


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def power(random: Random, folder: Path, policy: str) -> tuple[list[str | Path], list[str | Path]]:
    """A policy around another, its settings, and what the validator is to know of them."""
    prices = written(folder, "prices.csv", "time,value\n0,1\n100,3\n200,2\n")
    around: list[tuple[str, list[str | Path], list[str | Path]]] = [
        ("{}", [], []),
        ("sleeping({})", ["--energy", "-o", "after=20"], []),
        ("capped({})", ["--energy", "-o", "watts=1100"], ["--power-cap", "1100"]),
        ("capped(sleeping({}))", ["--energy", "-o", "watts=1300", "-o", "after=20"], ["--power-cap", "1300"]),
        ("deferring({})", ["--price", prices, "--outside-period", "300", "-o", "most=150"], []),
        ("cooled({})", ["--temperature", written(folder, "t.csv", "time,value\n0,20\n150,35\n250,20\n")], []),
    ]
    name, settings, known = random.choice(around)
    return ["-s", name.format(policy), *settings], known


def outside(random: Random, folder: Path, kinds: list[str]) -> tuple[list[str | Path], list[str | Path]]:
    """Users, closures and failures, and what the validator is to know of them."""
    settings: list[str | Path] = []
    known: list[str | Path] = []
    if random.random() < 0.5:
        settings += ["--users", random.choice(["rigid", "think-time", "patience", "adjusted", "fluid"])]
    if random.random() < 0.4:
        lines = ["start,end,hosts,users"]
        for hosts in random.sample(["a0 a1", "cpu", "b2", "all", "0-3"], 2):
            start = random.randint(0, 500)
            lines.append(f"{start},{start + random.randint(10, 90)},{hosts},{random.choice(('', 'a'))}")
        known = ["--closures", written(folder, "closures.csv", "\n".join(lines) + "\n")]
    if random.random() < 0.4:
        settings += ["--failures", random.choice(["exponential", "weibull"]), "--mtbf", "600"]
        settings += ["--repair-time", "60", "--failures-until", "900"]
        rules = ["kill", "resubmit"] if "malleable" in kinds else ["kill", "resubmit", "checkpoint"]
        settings += ["--on-failure", (rule := random.choice(rules))]
        settings += ["--checkpoint-interval", "20"] if rule == "checkpoint" else []
    return [*settings, *known], known


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 120))]
)
def test_any_combination_runs_to_its_end_and_breaks_no_rule(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    kinds = random.sample(["after", "array", "sizes", "malleable"], random.randint(0, 4))
    machine = written(tmp_path, "machine.toml", MACHINE)
    jobs = written(tmp_path, "jobs.json", json.dumps(workload(random, kinds)))
    policy, known = power(random, tmp_path, random.choice(INNER))
    settings, more = outside(random, tmp_path, kinds)
    nodes = random.choice(["first-fit", "best-fit", "worst-fit", "spread", "consolidate", "fewest-switches"])
    given = ["-w", jobs, "-p", machine]
    code, _, err = call_here(
        ["run", *given, *policy, *settings, "-o", f"nodes={nodes}", "-e", tmp_path / "out"]
    )
    assert code == 0, err
    code, out, err = call_here(["validate", tmp_path / "out_jobs.csv", *given, *known, *more])
    assert code == 0, out + err
