"""Checks of what is simulated and measured: steady state, window, estimates, log, control, generated logs."""

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from batsched_py.analysis.runs.aggregate import Baseline
from batsched_py.analysis.runs.comparisons import DECIDING
from batsched_py.analysis.windows import Window
from batsched_py.campaign.review import Check, LogFacts, Looks, StudiedRun, Study, Verdict

#: Policies that never look at how long jobs will run.
WITHOUT_ESTIMATES: Final = frozenset({"fcfs", "filler", "random", "reject-all", "ljf"})

#: A larger share of jobs than this matters.
MANY: Final = 0.05

#: A mean that changes by more than this without both ends of a run depends on them.
MUCH: Final = 0.10

#: Mean waits below so many seconds are none that depend on anything.
NO_WAIT: Final = 60.0

#: A lead-in must last as long as this share of the jobs, from submission to end.
LATE: Final = 0.95

#: Less of a run than this is a piece that somebody has chosen.
PIECE: Final = 0.10

#: Where fewer jobs than this wait in every run, policies have nothing to decide.
FEW_WAIT: Final = 0.05

#: Two runs that differ by a larger share of their jobs are about other jobs.
FEW: Final = 0.001

#: Metrics that are about the last jobs of a run where users react.
OF_THE_TAIL: Final = frozenset({"makespan"})

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
    yield from _too_short(study.runs)
    if not from_empty:
        yield Check("window", "ok", f"{_counted(study.runs)} measured after a lead-in")
        return
    cut = [run for run in from_empty if run.log and any(each.startswith("part ") for each in run.log.changes)]
    changed = [change for runs in _by_place(from_empty).values() if (change := _change(runs)) is not None]
    if cut:
        text = f"the log of {cut[0].name} is a part that begins on an empty machine ({len(cut)} runs)"
        yield Check("window", "fail", text, remedy)
    elif changed:
        yield _of_changes(changed, remedy)
    elif study.is_campaign and not study.has_run:
        yield Check("window", "warn", f"{len(from_empty)} runs are measured from an empty machine on", remedy)


def _too_short(runs: Sequence[StudiedRun]) -> Iterator[Check]:
    """Whether a lead-in is over before the machine is in use, or a window is a small piece of the run."""
    for run in runs:
        is_steady = run.steadiness is None or run.steadiness.is_steady
        if not run.windows or run.outcome is None or not is_steady:
            continue
        jobs = run.outcome().executed
        begin = min(map(_begin, run.windows.values()))
        there = float(jobs["turnaround_time"].quantile(LATE)) if len(jobs) else 0.0
        if 0 < begin < there:
            text = (
                f"{run.name} is measured from {begin / 3600:.3g} h after its begin on, when the machine "
                f"still fills: {1 - LATE:.0%} of the jobs are there for more than {there / 3600:.3g} h"
            )
            yield Check("window", "fail", text, "a longer lead-in")
            return
        span = float(jobs["submission_time"].max() - jobs["submission_time"].min()) if len(jobs) else 0.0
        measured = sum((span if each.end is None else each.end) - each.begin for each in run.windows.values())
        if measured < PIECE * span:
            text = f"{measured / span:.0%} of the time of {run.name} is measured: the rest may say otherwise"
            yield Check("window", "fail", text, "measure windows all over the run (`parts`)")
            return


def _begin(window: Window) -> float:
    return window.begin


def _counted(runs: object) -> str:
    return f"{len(runs)} runs are" if isinstance(runs, list | tuple) and len(runs) != 1 else "the run is"


class _Change(NamedTuple):
    """How a mean wait changes without the first and the last tenth of the time."""

    where: str
    whole: float
    middle: float

    @property
    def share(self) -> float:
        return self.middle / self.whole - 1


def _of_changes(changes: Sequence[_Change], remedy: str) -> Check:
    """What the largest change of waits that are worth a word tells."""
    long = [change for change in changes if max(change.whole, change.middle) >= NO_WAIT]
    if not long:
        text = f"mean waits are below {NO_WAIT:.0f} s, also without the first and last tenth of the time"
        return Check("window", "ok", text, remedy)
    worst = max(long, key=lambda each: abs(each.share))
    text = f"mean wait is {worst.share:+.0%} without the first and last tenth of the time ({worst.where})"
    return Check("window", "fail" if abs(worst.share) > MUCH else "ok", text, remedy)


def _by_place(runs: Sequence[StudiedRun]) -> dict[tuple[str, ...], list[StudiedRun]]:
    """Runs that differ in their seeds only are together: the more there are, the less is due to chance."""
    found: dict[tuple[str, ...], list[StudiedRun]] = {}
    for run in runs:
        found.setdefault(tuple(_names(run)), []).append(run)
    return found


def _change(runs: Sequence[StudiedRun]) -> _Change | None:
    """The means over the seeds of one place; one of few jobs, or without waits, changes in no way."""
    means = [found for run in runs if (found := _mean_waits(run)) is not None]
    if not means or not any(whole > 0 for whole, _ in means):
        return None
    where = runs[0].name if len(runs) == 1 else f"{', '.join(_names(runs[0]))}, mean of {len(means)} seeds"
    return _Change(where, fmean(whole for whole, _ in means), fmean(middle for _, middle in means))


def _names(run: StudiedRun) -> list[str]:
    return [name for axis, name in run.axes.items() if axis != "seed"]


def _mean_waits(run: StudiedRun) -> tuple[float, float] | None:
    """The mean wait of a run, and that without the first and the last tenth of the time."""
    if run.outcome is None:
        return None
    jobs = run.outcome().executed
    submitted = jobs["submission_time"]
    if len(jobs) < 200 or submitted.max() <= submitted.min():
        return None
    share = (submitted - submitted.min()) / (submitted.max() - submitted.min())
    whole, middle = jobs["waiting_time"].mean(), jobs.loc[share.between(0.1, 0.9), "waiting_time"].mean()
    return None if middle != middle else (float(whole), float(middle))


def contention(study: Study) -> Iterator[Check]:
    """Whether jobs wait at all: if not, policies have nothing to decide."""
    shares = {
        run.name: float((run.outcome().column("waiting_time") > 1.0).mean())
        for run in study.runs
        if run.outcome is not None and len(run.outcome().executed)
    }
    if not shares or not study.is_campaign:
        return
    name, most = max(shares.items(), key=lambda each: each[1])
    if most < FEW_WAIT:
        text = f"at most {most:.1%} of the jobs wait ({name}), so policies have nothing to decide"
        yield Check("contention", "fail", text, "more load, or a smaller machine; no conclusion on policies")
    else:
        yield Check("contention", "ok", f"up to {most:.0%} of the jobs wait ({name})")


def estimates(study: Study) -> Iterator[Check]:
    """Whether policies know run times that nobody knew."""
    found: list[tuple[float, str, str, Verdict]] = []
    for run in study.runs:
        if run.log is None or run.experiment is None or run.scheduler in WITHOUT_ESTIMATES:
            continue
        rule = run.experiment.scenario.workloads.walltime
        if rule not in ("requested", "estimate"):
            name = run.axes.get("log", run.name)
            if rule != "modelled":
                found.append((run.log.unrequested, name, "have no requested time", "fail"))
            found.append((run.log.raised, name, "requested less than they ran", "warn"))
    told = "so the policy is told their run time"
    many = [each for each in found if each[0] > MANY]
    for share, name, what, verdict in dict.fromkeys(many):
        yield Check("estimates", verdict, f"{share:.0%} of the jobs of {name} {what}, {told}", _MADE[verdict])
    if found and not many:
        share, name, what, _ = max(found)
        yield Check("estimates", "ok", f"at most {share:.0%} of the jobs of a log ({name}) {what}, {told}")


#: How jobs without a request get estimates, and how those do that ran for longer than they requested.
_MADE: Final[dict[Verdict, str]] = {
    "fail": "make estimates (walltime = 'modelled'), or use policies that need none",
    "warn": "make other estimates (change `estimates`), or use policies that need none",
}


def log(study: Study) -> Iterator[Check]:
    """Whether the logs are what they are taken for."""
    logs = {run.axes.get("log", run.name): run.log for run in study.runs if run.log is not None}
    if not study.is_campaign and all(run.experiment is None for run in study.runs):
        text = "no log is known, and so no estimates and no users"
        yield Check("log", "warn", text, "say what `run` was given: -w LOG -s NAME --users NAME")
    for name, facts in logs.items():
        yield from _of_log(name, facts)
    yield from _lost(study.runs)


#: What may happen to jobs so that they are in no mean, or in it with less than their work.
_LOST: Final = (
    ("nb_jobs_rejected", 0.01, "rejected, and in no mean", "leave them out of the log (change `sizes`)"),
    ("nb_jobs_killed", 0.05, "killed, and count as shorter than they are", "walltime = 'estimate'"),
)


def _lost(runs: Sequence[StudiedRun]) -> Iterator[Check]:
    """Whether some run leaves out jobs, or cuts them off."""
    for metric, most, what, remedy in _LOST:
        shares = {}
        for run in runs:
            jobs = sum(each.metrics.get("nb_jobs") or 0 for each in run.measured)
            lost = sum(each.metrics.get(metric) or 0 for each in run.measured)
            shares[run.name] = lost / jobs if jobs else 0.0
        name, share = max(shares.items(), key=lambda each: each[1], default=("", 0.0))
        if share > most:
            text = f"{share:.0%} of the jobs of {name} are {what}"
            yield Check("log", "fail", text, f"{remedy}, and say so")


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


def calibration(study: Study) -> Iterator[Check]:
    """Whether simulated waits are like recorded ones, so that they may be read as those of the machine."""
    known = {run.axes.get("log", run.name): run for run in study.runs if run.calibrated is not None}
    for name, run in sorted(known.items()):
        found = run.calibrated() if run.calibrated is not None else None
        if found is None or found.trust == "unknown":
            continue
        text = f"{run.scheduler} fits {name}: {found.trust}; {found.reasons[0]}"
        remedy = "say that waits are not those of the recorded machine; `batsched-py calibrate` tells why"
        yield Check("calibration", "ok" if found.trust == "good" else "warn", text, remedy)


def control(study: Study) -> Iterator[Check]:
    """Whether there is something to compare users on another machine with."""
    reacting = [run for run in study.runs if run.users]
    if not reacting:
        yield from _ignored(study.runs)
        return
    changed = [run for run in reacting if _is_other_machine(run)]
    controlled = [run for run in changed if run.control]
    if controlled:
        yield Check("control", "ok", f"the same users were simulated under {controlled[0].control}, too")
    elif changed and len(changed) == len(reacting):
        text = f"users react to a machine of {_machine(changed[0])}, and none to the log's own"
        remedy = "simulate the log's own machine with the same users, too (as `run` does)"
        yield Check("control", "fail", text, remedy)
    else:
        yield Check(
            "control", "ok", f"{len(reacting) - len(changed)} runs with users on the log's own machine"
        )
    yield from _of_loads_and_tails(study, reacting)


def _of_loads_and_tails(study: Study, reacting: Sequence[StudiedRun]) -> Iterator[Check]:
    """Whether the load is made by users, and nothing is measured that the last of them decides."""
    loaded = [run for run in reacting if run.log is not None and run.log.scaled]
    if loaded:
        text = (
            f"the load of {loaded[0].name} is made by other times between arrivals, which makes other users "
            f"({len(loaded)} runs)"
        )
        yield Check("control", "fail", text, "more or fewer users of the same kind: users = resample")
    tail = [metric for metric in study.metrics if metric in OF_THE_TAIL]
    whole = [run for run in reacting if not run.windows]
    if tail and whole:
        text = f"{' and '.join(tail)} of {len(whole)} whole runs with users is when the last user is ready"
        yield Check("control", "fail", text, "measure windows, or metrics of jobs")


def _ignored(runs: Sequence[StudiedRun]) -> Iterator[Check]:
    """Whether users submit to another machine as they did to that of the log."""
    other = [run for run in runs if _is_other_machine(run)]
    if other:
        size = other[0].log.machine if other[0].log else None
        text = (
            f"{other[0].name} has {_machine(other[0])} and not the {size} of the log, and its users submit "
            "as if nothing had changed"
        )
        yield Check("control", "warn", text, "simulate users who react, too (users = think-time)")


def _is_other_machine(run: StudiedRun) -> bool:
    if run.log is None:
        return False
    has_other_size = None not in (run.log.machine, run.hosts) and run.hosts != run.log.machine
    return has_other_size or _speed(run) != 1


def _speed(run: StudiedRun) -> float:
    """How many times as fast as the machine of the log, as far as that is known."""
    return 1.0 if run.experiment is None else run.experiment.scenario.machine.speed or 1.0


def _machine(run: StudiedRun) -> str:
    """How large it is, and how fast if that is another speed."""
    return f"{run.hosts} hosts{'' if _speed(run) == 1 else f' of speed {_speed(run):g}'}"


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
    elif alone := _without_partner(study):
        text = f"{alone} has no {study.baseline} under the same conditions to be compared with"
        yield Check("completeness", "fail", text, "exclude no runs of the baseline")
    elif study.is_campaign and study.has_run:
        yield Check("completeness", "ok", f"all {len(study.runs)} runs of the plan are done")
    yield from _other_jobs(study)


def _without_partner(study: Study) -> str:
    """A run for which the plan has no run of the baseline in the same place."""
    baseline = Baseline.parse(study.baseline)
    if baseline is None:
        return ""
    apart = (baseline.axis, "seed", "part")

    def place(run: StudiedRun) -> frozenset[tuple[str, str]]:
        return frozenset((axis, name) for axis, name in run.axes.items() if axis not in apart)

    known = {place(run) for run in study.runs if run.axes.get(baseline.axis) == baseline.name}
    return next((run.name for run in study.runs if place(run) not in known), "")


def _other_jobs(study: Study) -> Iterator[Check]:
    """Whether policies are compared that did not do the same jobs."""
    done: dict[tuple[tuple[str, str], ...], dict[str, int]] = {}
    for run in study.runs:
        if run.outcome is not None and not run.users and study.is_campaign:
            place = tuple(item for item in run.axes.items() if item[0] not in (*DECIDING, "seed"))
            done.setdefault(place, {})[run.name] = len(run.outcome().executed)
    for counts in done.values():
        (least, fewer), (most, all_of_them) = (
            f(counts.items(), key=lambda each: each[1]) for f in (min, max)
        )
        if fewer < all_of_them * (1 - FEW):
            text = f"{least} does {fewer:,} jobs and {most} {all_of_them:,}: their means are of other jobs"
            yield Check("same jobs", "fail", text, "compare over the jobs that all do")
            return


CHECKS: Final[tuple[Looks, ...]] = (
    steady_state,
    window,
    contention,
    estimates,
    log,
    calibration,
    control,
    generated,
    completeness,
)
