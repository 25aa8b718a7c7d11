"""Train a small agent on the first weeks of a log, and compare it with known policies on the others.

The agent is a network of 80 numbers that gives each waiting job a score. It is trained by evolution
strategies: T. Salimans et al., "Evolution Strategies as a Scalable Alternative to Reinforcement Learning",
2017. Each generation plays one window of the log with many small changes of the network, and moves it towards
those that did well. Nothing is needed but numpy and gymnasium::

    python examples/train_agent.py --generations 100 --output out/agent.npy
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import gymnasium
import numpy as np
from agent import SIZE, Agent, Weights, pick

import batsched_py as bp
from batsched_py.gym import PickJob, Windows
from batsched_py.schedulers import Cluster, Scheduler
from batsched_py.schedulers.easy import Easy
from batsched_py.schedulers.fcfs import Fcfs
from batsched_py.schedulers.filler import Filler
from batsched_py.schedulers.orders import f1, f1_of_queue
from batsched_py.schedulers.sjf import Sjf

SAMPLE = Path(__file__).parents[1] / "workloads" / "sample.swf"

#: Student's t for an interval of 95 % confidence, by the number of values.
TIMES = {2: 12.71, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571, 7: 2.447, 8: 2.365}

#: How far the changes of a generation are from the network, and how far it then moves.
SIGMA, STEP = 0.3, 0.3


@dataclass
class F1(Fcfs):
    """The job with the lowest score F1 goes next, and all wait until it fits."""

    name = "f1"
    of_queue: bool = False
    """Whether its times count from the oldest waiting job, and not from the begin of the log."""

    def begin(self, cluster: Cluster) -> None:
        """Put the queue into its order."""
        cluster.order_queue(f1_of_queue if self.of_queue else f1)


def play(env: gymnasium.Env, weights: Weights, seed: int) -> float:
    """The negative mean bounded slowdown of the window that belongs to the seed."""
    observation, _ = env.reset(seed=seed)
    total, over = 0.0, False
    while not over:
        observation, reward, over, _, _ = env.step(pick(weights, observation))
        total += reward
    return total


def train(
    env: gymnasium.Env, weights: Weights, generations: int, pairs: int, random: np.random.Generator
) -> Weights:
    """The network after so many generations, each of so many pairs of opposite changes."""
    began = time.perf_counter()
    for generation in range(1, generations + 1):
        half = random.normal(size=(pairs, SIZE))
        changes = np.concatenate([half, -half])
        window = int(random.integers(2**31))
        returns = np.array([play(env, weights + SIGMA * change, window) for change in changes])
        ranks = returns.argsort().argsort() / (len(returns) - 1) - 0.5
        weights = weights + STEP * ranks @ changes / len(changes)
        if generation % 10 == 0 or generation == generations:
            print(
                f"generation {generation}: mean bounded slowdown {-returns.mean():.1f} in its window, "
                f"{time.perf_counter() - began:.0f} s",
                flush=True,
            )
    return weights


def policies(untrained: str, trained: str) -> dict[str, Scheduler]:
    """Who is compared: without backfilling, and with it."""
    return {
        "FCFS": Fcfs(),
        "SJF": Sjf(),
        "F1": F1(),
        "F1 of the queue": F1(of_queue=True),
        "first fit": Filler(),
        "agent before training": Agent(weights_file=untrained),
        "agent": Agent(weights_file=trained),
        "EASY": Easy(),
        "EASY in SJF order": Easy(order="shortest", backfill="shortest"),
        "EASY in F1 order": Easy(order="f1", backfill="f1"),
        "EASY in F1 order of the queue": Easy(order="f1-queue", backfill="f1-queue"),
        "agent with backfilling": Agent(weights_file=trained, backfilling=True),
    }


def compare(policies: dict[str, Scheduler], log: bp.Log, seen: int, hosts: int) -> None:
    """Print how policies do in the weeks that come after those that were seen.

    Each simulates the whole log, so that weeks begin with what the week before has left. The jobs that are
    submitted in a week are measured: their mean bounded slowdown, the difference to EASY with its interval of
    95 % confidence (Student's t, weeks being the repetitions), and the longest wait.
    """
    weeks = log.parts("week")[seen:]
    titles = " | ".join(f"week {seen + number}" for number in range(1, len(weeks) + 1))
    print(f"| mean bounded slowdown | {titles} | all | against EASY | longest wait |")
    print(f"|---|{'---:|' * (len(weeks) + 3)}")
    found = {name: measure(log, policy, weeks, hosts) for name, policy in policies.items()}
    for name, (means, whole, longest) in found.items():
        cells = [f"{mean:.1f}" for mean in (*means, whole)]
        difference = means - found["EASY"][0]
        against = "-"
        if name != "EASY" and len(weeks) in TIMES:
            half = TIMES[len(weeks)] * difference.std(ddof=1) / len(weeks) ** 0.5
            against = f"{difference.mean():+.1f} ± {half:.1f}"
        print(f"| {name} | {' | '.join(cells)} | {against} | {longest / 3600:.1f} h |")


def measure(
    log: bp.Log, policy: Scheduler, weeks: Sequence[bp.Log], hosts: int
) -> tuple[Weights, float, float]:
    """The mean bounded slowdown of each week and of all together, and the longest wait."""
    jobs = bp.simulate(log, policy, hosts=hosts, progress=False).jobs.set_index("job_id")
    jobs["slowdown"] = jobs["turnaround_time"] / jobs["execution_time"].clip(lower=10.0)
    parts = [jobs.loc[week.columns.job_number.astype(str)] for week in weeks]
    means = np.array([part["slowdown"].clip(lower=1.0).mean() for part in parts])
    sizes = np.array([len(part) for part in parts])
    return means, means @ sizes / sizes.sum(), max(part["waiting_time"].max() for part in parts)


def main() -> None:
    """Train, save, compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--log", type=Path, default=SAMPLE)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--weeks", type=int, default=5, help="train on so many, compare on the others")
    parser.add_argument("--generations", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=256, help="of a window")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, default=Path("out/agent.npy"))
    options = parser.parse_args()

    log = bp.read_log(options.log)
    weeks = log.parts("week")
    seen = log.first(sum(len(week) for week in weeks[: options.weeks]))
    env = gymnasium.make(
        "batsched_py/PickJob-v0", task=PickJob(), episodes=Windows(seen, options.jobs), hosts=options.hosts
    )
    random = np.random.default_rng(options.seed)
    untrained = random.normal(0.0, 0.5, SIZE)
    trained = train(env, untrained, options.generations, options.pairs, random)
    files = [options.output.with_stem(f"{options.output.stem}-untrained"), options.output]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    for file, weights in zip(files, (untrained, trained), strict=True):
        np.save(file, weights)
    compare(policies(*map(str, files)), log, options.weeks, options.hosts)


if __name__ == "__main__":
    main()
