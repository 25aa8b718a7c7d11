"""The table of docs/tune.md: EASY's order, searched on four weeks of five logs, compared on all others.

    nice .venv/bin/python benchmarks/tuning.py ../shared/logs
    nice .venv/bin/python benchmarks/tuning.py ../shared/logs --load 0.9

The four weeks lie evenly in the whole weeks of each log. With a load, all jobs of a log run longer or shorter
by one factor, so that the whole log offers this load in the same weeks. Results are kept in ``out/tuning``,
and are the same with any number of workers.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from math import fsum
from pathlib import Path

import batsched_py as bp
from batsched_py.analysis.runs import SIGNIFICANT, holm
from batsched_py.api.many import LogInPeriods
from batsched_py.api.simulate import experiment_of
from batsched_py.campaign.files import read_json
from batsched_py.tuning.page import settings_text
from batsched_py.tuning.trials import Trial
from batsched_py.tuning.tune import Tuned

LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
    "SDSC-DS": "SDSC-DS-2004-2.1-cln.swf.gz",
    "LLNL-Thunder": "LLNL-Thunder-2007-1.1-cln.swf.gz",
    "NASA-iPSC": "NASA-iPSC-1993-3.1-cln.swf.gz",
}
WEEK = 7 * 86400.0
SEARCHED = 4

TRIALS = 200

#: On the four weeks of this log as it was recorded no job waits, so there is nothing to search.
WITHOUT_WAITS, FEW_TRIALS = "LLNL-Thunder", 10

ORDER = "-(wait / walltime)**{a} / size**{b} - {c} * wait"
SEARCH = {
    "a": {"from": 0.0, "to": 4.0},
    "b": {"from": -2.0, "to": 2.0},
    "c": {"from": 1e-7, "to": 1e-2, "log": True},
}


def weeks_of(file: Path) -> list[int]:
    """The weeks that are searched: evenly among all whole ones but the first."""
    experiment, _, _ = experiment_of([str(file)], "easy", {}, None, {}, {})
    count = int(LogInPeriods(experiment).span / WEEK) - 1
    return [2 + int((place + 0.5) * count / SEARCHED) for place in range(SEARCHED)]


def at_load(file: Path, load: float, changed: Path) -> Path:
    """The log with other run times, so that it offers this load from its first to its last submission."""
    log = bp.read_log(file)
    jobs = log.columns
    ran = jobs.select((jobs.processors > 0) & (jobs.run_time >= 0) & ~jobs.never_started)
    span = float(ran.submit.max() - ran.submit.min())
    assert log.hosts is not None
    offered = fsum((ran.run_time * ran.processors).tolist()) / (log.hosts * span)
    log.load(load / offered, by="run-times").save(changed)
    return changed


def tuned(name: str, file: Path, trials: int, folder: Path) -> Tuned:
    """What is found on a log."""
    plan = {
        "name": name,
        "objectives": ["mean_bounded_slowdown"],
        "trials": trials,
        "search_parts": weeks_of(file),
        "logs": {name: {"file": str(file.resolve())}},
        "schedulers": {"today": {"name": "easy"}, "candidate": {"name": "easy", "options": {"order": ORDER}}},
        "search": SEARCH,
    }
    return bp.tune(plan, folder / name, workers=1)


def weeks_with_waits(folder: Path) -> int:
    """In how many weeks held out the mean bounded slowdown under EASY is not 1.00, the least there is."""
    trials = [read_json(file, Trial) for file in (folder / "held-out").iterdir()]
    (today,) = (trial for trial in trials if not trial.settings)
    return sum(row[0] is not None and row[0] >= 1.005 for row in today.values.values())


def main(logs: Path, load: float | None) -> None:
    """Print the table, and the processor time of each log."""
    rows, p_values = [], []
    folder = Path("out/tuning") if load is None else Path(f"out/tuning-{load:g}")
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in LOGS.items():
        began = time.process_time()
        log = logs / file if load is None else at_load(logs / file, load, folder / f"{name}.swf")
        trials = FEW_TRIALS if load is None and name == WITHOUT_WAITS else TRIALS
        found = tuned(name, log, trials, folder)
        (best,) = found.finalists
        (each,) = best.compared
        assert each.gain is not None and each.p_value is not None
        print(f"{name}: {time.process_time() - began:.0f} s of CPU", file=sys.stderr, flush=True)
        p_values.append(each.p_value)
        rows.append((name, each, best))
    print(
        "| log | weeks held out | of these not at 1.00 | EASY | found | better by (95 % interval) "
        "| p (Holm, 5 logs) | holds | settings |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |")
    for (name, each, best), p_value in zip(rows, holm(p_values), strict=True):
        holds = "yes" if each.is_better and p_value < SIGNIFICANT else "no"
        gain = f"{each.gain:.1%} [{each.low:.1%}, {each.high:.1%}]"
        print(
            f"| {name} | {each.nb_parts} | {weeks_with_waits(folder / name)} | {each.today:.2f} "
            f"| {each.found:.2f} | {gain} | {p_value:.1g} | {holds} | {settings_text(best.settings)} |"
        )


if __name__ == "__main__":
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("logs", type=Path, help="The folder of the logs.")
    parser.add_argument("--load", type=float, help="The load that each log offers; as recorded unless told.")
    options = parser.parse_args()
    main(options.logs, options.load)
