"""Checks of what is simulated and measured: steady state, window, estimates, log, control, generated logs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from batsched_py.analysis.windows import Window
from batsched_py.campaign.review import Check, LogFacts, Looks, StudiedRun, Study, Verdict

#: Policies that never look at how long jobs will run.
WITHOUT_ESTIMATES: Final = frozenset({"fcfs", "filler", "random", "reject-all", "ljf"})

#: A larger share of jobs than this matters.
MANY: Final = 0.05

#: A mean that changes by more than this without both ends of a run depends on them.
MUCH: Final = 0.10

#: Metrics that are about the last jobs of a run where users react.
OF_THE_TAIL: Final = frozenset({"makespan", "utilization", "throughput", "mean_queue_length"})

#: A generated log whose load differs by more than this, in points, is not like the log that it is made like.
SAME_LOAD: Final = 0.05


def steady_state(study: Study) -> Iterator[Check]:
    """Whether runs have a steady state."""
    known = [run for run in study.runs if run.steadiness is not None]
    if not known:
        return
    unstable = [run for run in known if run.steadiness is not None and not run.steadiness.is_steady]
    if unstable:
        worst = max(unstable, key=lambda run: run.steadiness.offered if run.steadiness else 0.0)
        yield Check(
            "steady state",
            "fail",
            f"{len(unstable)} of {len(known)} runs have none ({worst.name}: {worst.steadiness})",
            "lower the load, or say that the machine is saturated and show no means of these runs",
        )
    else:
        offered = max(run.steadiness.offered for run in known if run.steadiness is not None)
        yield Check(
            "steady state", "ok", f"all {len(known)} runs have one, at offered loads up to {offered:.0%}"
        )


def window(study: Study) -> Iterator[Check]:
    """Whether what is measured depends on the empty machine at the begin and at the end."""
    remedy = "measure windows of a longer run: `parts` or `measure` in the plan, --measure FROM:TO of `run`"
    from_empty = [
        run for run in study.runs if not run.windows or min(map(_begin, run.windows.values())) == 0.0
    ]
    if not from_empty:
        yield Check("window", "ok", f"{_counted(study.runs)} measured after a lead-in")
        return
    cut = [run for run in from_empty if run.log and any(each.startswith("part ") for each in run.log.changes)]
    changed = [(abs(change), change, run) for run in from_empty if (change := _change(run)) is not None]
    if cut:
        text = f"the log of {cut[0].name} is a part that begins on an empty machine ({len(cut)} runs)"
        yield Check("window", "fail", text, remedy)
    elif changed:
        size, change, run = max(changed, key=lambda each: each[0])
        text = f"mean wait is {change:+.0%} without the first and last tenth of the time ({run.name})"
        yield Check("window", "fail" if size > MUCH else "ok", text, remedy)
    elif study.is_campaign and not study.has_run:
        yield Check("window", "warn", f"{len(from_empty)} runs are measured from an empty machine on", remedy)


def _begin(window: Window) -> float:
    return window.begin


def _counted(runs: object) -> str:
    return f"{len(runs)} runs are" if isinstance(runs, list | tuple) and len(runs) != 1 else "the run is"


def _change(run: StudiedRun) -> float | None:
    """How the mean wait changes without the first and the last tenth of the time."""
    if run.outcome is None:
        return None
    jobs = run.outcome().executed
    submitted = jobs["submission_time"]
    if len(jobs) < 200 or submitted.max() <= submitted.min():
        return None
    share = (submitted - submitted.min()) / (submitted.max() - submitted.min())
    whole, middle = jobs["waiting_time"].mean(), jobs.loc[share.between(0.1, 0.9), "waiting_time"].mean()
    return None if not whole > 0 or middle != middle else float(middle / whole - 1)


def estimates(study: Study) -> Iterator[Check]:
    """Whether policies know run times that nobody knew."""
    found: list[tuple[float, str, str, Verdict]] = []
    for run in study.runs:
        if run.log is None or run.experiment is None or run.scheduler in WITHOUT_ESTIMATES:
            continue
        rule = run.experiment.scenario.workloads.walltime
        if rule not in ("requested", "estimate"):
            name = run.axes.get("log", run.name)
            found.append((run.log.unrequested, name, "have no requested time", "fail"))
            found.append((run.log.raised, name, "requested less than they ran", "warn"))
    remedy = "make estimates (change `estimates`), or use policies that need none"
    told = "so the policy is told their run time"
    many = [each for each in found if each[0] > MANY]
    for share, name, what, verdict in dict.fromkeys(many):
        yield Check("estimates", verdict, f"{share:.0%} of the jobs of {name} {what}, {told}", remedy)
    if found and not many:
        share, name, what, _ = max(found)
        yield Check("estimates", "ok", f"at most {share:.0%} of the jobs of a log ({name}) {what}, {told}")


def log(study: Study) -> Iterator[Check]:
    """Whether the logs are what they are taken for."""
    logs = {run.axes.get("log", run.name): run.log for run in study.runs if run.log is not None}
    for name, facts in logs.items():
        yield from _of_log(name, facts)
    for run in study.runs:
        lost = [each.metrics.get("nb_jobs_rejected") or 0 for each in run.measured]
        jobs = sum(each.metrics.get("nb_jobs") or 0 for each in run.measured)
        if jobs and sum(lost) > 0.01 * jobs:
            text = f"{sum(lost) / jobs:.0%} of the jobs of {run.name} are rejected, and in no mean"
            yield Check("log", "fail", text, "leave them out of the log (change `sizes`), and say so")
            break


def _of_log(name: str, facts: LogFacts) -> Iterator[Check]:
    problems: list[tuple[Verdict, str, str]] = [
        ("fail", f"{doubt} ({name})", "read the log with other options") for doubt in facts.doubts
    ]
    if facts.flurries > MANY:
        text = f"{facts.flurries:.0%} of the jobs of {name} are in flurries of single users"
        problems.append(("fail", text, "use the cleaned log, or the change `flurries`"))
    if facts.partitions > 1:
        text = f"{name} has {facts.partitions} partitions, which are simulated as one machine"
        problems.append(("warn", text, "simulate one of them (change `partitions`), or say so"))
    if facts.cancelled > MANY:
        text = f"{facts.cancelled:.0%} of the records of {name}, cancelled while they waited, are left out"
        problems.append(("warn", text, "submit and withdraw them: `cancelled` of the log"))
    for verdict, text, remedy in problems:
        yield Check("log", verdict, text, remedy)
    if not problems:
        yield Check("log", "ok", f"nothing stands out in {name} ({facts.jobs:,} jobs)")


def control(study: Study) -> Iterator[Check]:
    """Whether there is something to compare users on another machine with."""
    reacting = [run for run in study.runs if run.users]
    if not reacting:
        return
    changed = [run for run in reacting if _is_other_machine(run)]
    if changed and len(changed) == len(reacting):
        text = f"users react to a machine of {changed[0].hosts} hosts, and none to the log's own"
        yield Check("control", "fail", text, "simulate the log's own machine with the same users, too")
    else:
        yield Check(
            "control", "ok", f"{len(reacting) - len(changed)} runs with users on the log's own machine"
        )
    loaded = [run for run in reacting if _is_scaled(run)]
    if loaded:
        text = (
            f"the load of {loaded[0].name} is made by other times between arrivals, which makes other users"
        )
        yield Check("control", "fail", text, "more or fewer users of the same kind: users = resample")
    tail = [metric for metric in study.metrics if metric in OF_THE_TAIL]
    whole = [run for run in reacting if not run.windows]
    if tail and whole:
        text = f"{' and '.join(tail)} of whole runs with users tell of the last users to be ready"
        yield Check("control", "fail", text, "measure windows, or metrics of jobs")


def _is_other_machine(run: StudiedRun) -> bool:
    return run.log is not None and None not in (run.log.machine, run.hosts) and run.hosts != run.log.machine


def _is_scaled(run: StudiedRun) -> bool:
    changes = () if run.log is None else run.log.changes
    return any(each.startswith("load ") and ("by=" not in each or "by=arrivals" in each) for each in changes)


def generated(study: Study) -> Iterator[Check]:
    """Whether generated logs have the load of the logs beside them."""
    logs = {run.axes.get("log", run.name): run.log for run in study.runs if run.log is not None}
    models = {name: facts for name, facts in logs.items() if facts.model}
    loads = [facts.load for facts in logs.values() if not facts.model and facts.load is not None]
    for name, facts in models.items():
        if not loads:
            text = f"{name} is generated by the model {facts.model}, and no recorded log is in the study"
            yield Check("generated logs", "fail", text, "show the same on the log that the model learnt from")
        elif facts.load is not None and min(abs(facts.load - load) for load in loads) > SAME_LOAD:
            others = ", ".join(f"{load:.0%}" for load in loads)
            text = f"{name} has a load of {facts.load:.0%}, the recorded logs {others}"
            yield Check(
                "generated logs", "fail", text, "give the model the load, or change it (change `load`)"
            )
        else:
            yield Check(
                "generated logs", "ok", f"{name} has the load of a recorded log ({facts.load or 0:.0%})"
            )


def completeness(study: Study) -> Iterator[Check]:
    """Whether all that was planned was done."""
    if study.nb_missing:
        text = f"{study.nb_missing} planned runs failed or were not done"
        yield Check("completeness", "fail", text, "run the campaign again, or exclude them and say why")
    elif study.is_campaign and study.has_run:
        yield Check("completeness", "ok", f"all {len(study.runs)} runs of the plan are done")


CHECKS: Final[tuple[Looks, ...]] = (
    steady_state,
    window,
    estimates,
    log,
    control,
    generated,
    completeness,
)
