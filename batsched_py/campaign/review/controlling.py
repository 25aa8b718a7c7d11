"""Making the controls of a campaign: which runs need one, what fits a log best, and the difference.

Lateness compares a simulation with the log, and so has a part that is due to what is not simulated. Where
users react to another machine or to an unusual policy, the same users are simulated on the machine of their
log, too, under the policy whose waits there are nearest to the recorded ones. Both are campaigns below the
folder ``control``, so what is done once is not done again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from batsched_py.analysis.calibration import calibration, nearest
from batsched_py.analysis.outcome import Outcome
from batsched_py.campaign.controls import CONTROL_FILE, CONTROL_FOLDER, Controlled, Controls, LogControl
from batsched_py.campaign.plan import BUILT_IN, CONTROL_POLICIES, PLAN_FILE, PlanText, to_toml
from batsched_py.campaign.plan_entries import as_list
from batsched_py.campaign.review.facts import facts_of_files, hosts_of
from batsched_py.campaign.review.thorough import Shown, conducted, folders_of_logs
from batsched_py.campaign.run import RunResult
from batsched_py.campaign.store import Campaign, Executor, is_population
from batsched_py.errors import InputError, RunsFailed
from batsched_py.output_files import write_file
from batsched_py.workload.swf.reader import read_swf

#: The axes on which a run and its control are the same.
_SAME = ("log", "load", "users", "seed")

#: What a control has of a plan besides its logs and users.
_KEPT = ("parts", "measure", "loads", "load_by")


def make_controls(
    campaign: Campaign,
    executor: Executor,
    log_folders: Sequence[Path] = (),
    trust: bool = False,
    shown: Shown = lambda results, total: results,
) -> Controls:
    """Simulate the controls that runs need, unless the plan wants none, and write what they say."""
    text = PlanText.read(campaign.folder / PLAN_FILE)
    wanted = campaign.wanted.simulator == BUILT_IN and text.content.get("control", True)
    wanted = wanted and (trust or not campaign.is_distrusted)
    needed = _needed(campaign.finished()) if wanted else {}
    if not needed:
        return Controls.read(campaign.folder)
    folders = list(dict.fromkeys([*log_folders, *folders_of_logs(campaign)]))

    def done(name: str, content: dict[str, Any]) -> Campaign:
        content = {"name": campaign.wanted.name, **content}
        varied = PlanText(text.file, to_toml(content), content)
        folder = campaign.folder / CONTROL_FOLDER / name
        return conducted(varied, folder, folders, trust, executor, shown)

    try:
        told = _controls(campaign, text.content, needed, done)
    except (InputError, RunsFailed) as error:
        told = Controls(without=[f"no control was made: {error}"])
    write_file(campaign.folder / CONTROL_FILE, msgspec.json.format(msgspec.json.encode(told)))
    return told


def _controls(
    campaign: Campaign,
    content: Mapping[str, Any],
    needed: Mapping[str, Sequence[RunResult]],
    done: Callable[[str, dict[str, Any]], Campaign],
) -> Controls:
    """What the controls say, of which ``done`` does the runs."""
    logs = {log: content["logs"][log] for log in needed}
    calibrated = done("calibration", {"logs": logs, "schedulers": {name: {} for name in CONTROL_POLICIES}})
    fits = {
        log: _best_fit([run for run in calibrated.finished() if run.axes["log"] == log]) for log in needed
    }
    found: dict[str, Controlled] = {}
    for log, runs in needed.items():
        planned = {"logs": {log: logs[log]}, "schedulers": {fits[log].scheduler: {}}}
        controls = {_place(run): run for run in done(log, planned | _of_users(content, runs)).finished()}
        for run in campaign.finished():
            control = controls.get(_place(run)) or controls.get((*_place(run)[:-1], ""))
            if run.axes["log"] == log and control is not None:
                found[run.name] = Controlled(run.run.identity, dict(_beside(run, control)))
    return Controls(fits, found)


def _of_users(content: Mapping[str, Any], runs: Sequence[RunResult]) -> dict[str, Any]:
    """What a plan says of the users of some runs, and of what is measured of them."""
    names = list(dict.fromkeys(run.axes["users"] for run in runs))
    entries = {
        key: entry
        for key, entry in content["users"].items()
        if key in names or any(name.startswith(f"{key}-") for name in names)
    }
    drawn = any("seed" in run.manifest.experiment.actors.users.options for run in runs)  # type: ignore[union-attr]
    drawn &= any("seed" not in entry.get("options", {}) for entry in entries.values())
    left = {key: content[key] for key in _KEPT if key in content}
    left |= {key: content[key] for key in ("seeds", "repetitions") if key in content and drawn}
    excluded = []
    for rule in as_list(content.get("exclude")):
        users = [name for name in as_list(rule.get("users")) if name in names]
        if rule.keys() == {"users", "load"} and users:
            excluded.append({"users": users, "load": rule["load"]})
    return left | {"users": entries} | ({"exclude": excluded} if excluded else {})


def _best_fit(runs: Sequence[RunResult]) -> LogControl:
    """The policy whose mean wait is nearest to that of the log; EASY if that is not known."""
    log = read_swf(runs[0].manifest.experiment.scenario.workloads.files[0])
    fits = [
        calibration(
            log,
            Outcome.read(run.jobs_file).schedule,
            hosts_of(run) or 0,
            run.manifest.experiment.actors.scheduler.name,
        )
        for run in runs
    ]
    best = nearest(fits)
    return LogControl(best.scheduler, best.hosts, best.verdict.trust, best.verdict.words)


def _beside(run: RunResult, control: RunResult) -> Iterator[tuple[str, dict[str, float]]]:
    """For each window of a run, the lateness of its control, and how much later jobs come than in that."""
    mine, its = (Outcome.read(each.jobs_file) for each in (run, control))
    times = pd.Series(its.schedule["submission_time"].to_numpy(), index=its.schedule["job_id"].astype(str))
    lateness = {window.part: window.metrics.get("mean_lateness") for window in control.windows}
    for window in run.windows:
        bounds = run.measurement.windows.get(window.part)
        jobs = (mine if bounds is None else mine.within(bounds)).schedule
        later = jobs["submission_time"].to_numpy() - times.reindex(jobs["job_id"].astype(str)).to_numpy()
        known, late = later[~np.isnan(later)], lateness.get(window.part)
        if len(known) and late is not None:
            yield window.part, {"control_lateness": late, "later_than_control": float(known.mean())}


def _place(run: RunResult) -> tuple[str, ...]:
    return tuple(run.axes.get(axis, "") for axis in _SAME)


def _needed(runs: Sequence[RunResult]) -> dict[str, list[RunResult]]:
    """The runs of each log whose users react to another machine, or to an unusual policy."""
    needed: dict[str, list[RunResult]] = {}
    for run in runs:
        experiment = run.manifest.experiment
        users, machine = experiment.actors.users, experiment.scenario.machine
        replays = users is not None and users.name != "rigid" and not is_population(experiment)
        if not replays or run.windows[0].metrics.get("mean_lateness") is None:
            continue
        files = experiment.scenario.workloads.files
        facts = facts_of_files(files) if run.manifest.still_has(files) else None
        if facts is None or facts.machine is None:
            continue
        is_other = hosts_of(run) != facts.machine or machine.speed not in (None, 1.0)
        if is_other or experiment.actors.scheduler.name not in CONTROL_POLICIES:
            needed.setdefault(run.axes["log"], []).append(run)
    return needed
