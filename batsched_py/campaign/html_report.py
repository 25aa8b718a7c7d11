"""The page of a campaign: which logs its runs replay, how their users' sessions are delimited, and notes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from batsched_py.analysis.plots.runs import first_hosts, read_run
from batsched_py.analysis.report import LogFile, Report, recorded_subject, replaying_subject, write_report
from batsched_py.analysis.report.figures import Subject
from batsched_py.analysis.runs.aggregate import repetitions
from batsched_py.campaign.executors import usable_cores
from batsched_py.campaign.files import digest_of_file
from batsched_py.campaign.review import review
from batsched_py.campaign.review.facts import of_campaign
from batsched_py.campaign.run import Manifest, RunResult, RunWindow, State
from batsched_py.campaign.store import Campaign, is_population
from batsched_py.experiment import Experiment
from batsched_py.experiment.build import read_machine
from batsched_py.trust import distrusting, is_trusted_import, trusting
from batsched_py.users import USERS
from batsched_py.users.think_time import ThinkTime

#: From so many bytes of jobs on it pays to start processes.
WORTH_PROCESSES = 20_000_000

#: The logs that runs replay, by their files, where what was recorded is still there.
Logs = dict[tuple[str, ...], LogFile]


def write_html(
    path: Path, campaign: Campaign, on_row: Callable[[int, int], None] | None = None, trust: bool = False
) -> None:
    """Write the page; of repetitions, which differ in part or seed only, the first stands in the figures.

    Code that a manifest names is executed only with ``trust``. Without it, no file outside the folder of a
    campaign that was imported is read either.
    """
    results, wanted = campaign.results(), campaign.wanted
    finished = [result for result in results if result.state is State.DONE]
    if not finished:
        raise campaign.nothing_finished("report")
    trust = trust or is_trusted_import(campaign.folder)
    reads = trust or not campaign.is_distrusted
    logs = _recorded_logs(finished) if reads else {}
    notes = [_note(finished, len(results), logs, trust), *campaign.remarks]
    if wanted.figures and not reads:
        notes.append(f"Figures need --trust, for they are drawn by code: {', '.join(wanted.figures)}.")
    drawn = [group.runs[0] for group in repetitions(finished)]
    windows = campaign.measured()
    report = Report(
        title=wanted.title or wanted.name,
        plan=campaign.plan_text,
        metrics=campaign.columns,
        runs=windows,
        listed=finished,
        read=partial(_subject, campaign, logs, trust),
        recorded=_recorded(drawn, logs),
        failed=[result for result in results if result.state is State.FAILED],
        note=" ".join(notes),
        baseline=wanted.baseline,
        own=wanted.own,
        unit=wanted.units,
        window=wanted.window,
        review=[str(check) for check in review(of_campaign(campaign))],
        figures=_figures(campaign, drawn) if reads else {},
    )
    size = sum(run.jobs_file.stat().st_size for run in drawn)
    write_report(path, report, on_row, usable_cores() if size > WORTH_PROCESSES else 1)


def _recorded(drawn: Sequence[RunResult], logs: Logs) -> dict[str, Callable[[], Subject]]:
    """What was recorded in the logs that are replayed as they are, by their names."""
    return {
        run.axes["log"]: partial(recorded_subject, logs[_files(run)])
        for run in drawn
        if run.axes.get("load", "1") == "1" and _files(run) in logs
    }


def _figures(campaign: Campaign, drawn: Sequence[RunResult]) -> dict[str, str]:
    """The figures that the plan names, of the runs that are drawn or of the table, with what they show."""
    if not campaign.wanted.figures:
        return {}
    from batsched_py.analysis.plots.figures import KINDS, RunsKind, draw, summary_of

    runs = [read_run(run.jobs_file, run.name) for run in drawn if run.metrics.get("nb_jobs_finished")]
    figures = {}
    with trusting():
        for name in campaign.wanted.figures:
            kind = KINDS.create(campaign.located(name), {})
            shown = draw(kind, runs if isinstance(kind, RunsKind) else campaign.table())
            figures[summary_of(type(kind))] = shown.as_svg()
    return figures


def _files(run: RunResult) -> tuple[str, ...]:
    """The logs that a run replays."""
    return run.manifest.experiment.scenario.workloads.files


def _recorded_logs(runs: Sequence[RunResult]) -> Logs:
    """The logs that runs replay, as far as they are still what and where they were.

    Where several are played together, none of them is what was recorded.
    """
    logs: Logs = {}
    for files, run in {_files(run): run for run in runs}.items():
        is_log = len(files) == 1 and files[0].lower().endswith((".swf", ".swf.gz"))
        if is_log and run.manifest.still_has(files):
            logs[files] = LogFile(Path(files[0]), digest_of_file(files[0]))
    return logs


def _subject(campaign: Campaign, logs: Logs, trust: bool, window: RunWindow) -> Subject | None:
    """What is drawn of a run, which is all of it; nothing when all its jobs were rejected."""
    run = window.run
    if run.metrics.get("nb_jobs_finished") == 0:
        return None
    experiment = run.manifest.experiment.renamed(partial(_located, campaign, run.manifest))
    reads = trust or not campaign.is_distrusted
    schedule = replace(read_run(run.jobs_file, run.name), nodes=_nodes(experiment, run.manifest, reads))
    log = logs.get(_files(run))
    with trusting() if trust else distrusting("give --trust to execute what the manifest of a run names"):
        if log is None or is_population(experiment):
            return Subject(schedule)
        return replaying_subject(schedule, log, _delimiter(experiment, trust))


def _nodes(experiment: Experiment, manifest: Manifest, reads_outside: bool) -> dict[str, int]:
    """The first host of each node of a run's machine, if it has nodes.

    Its file is the campaign's copy, or one outside that may be read and is still what it was.
    """
    file = experiment.scenario.machine.file
    if file is None:
        return {}
    is_copy = file != manifest.experiment.scenario.machine.file
    if not is_copy and not (reads_outside and manifest.still_has([file])):
        return {}
    machine = read_machine(experiment.scenario.machine, ()).as_nodes()
    return {} if machine is None else first_hosts(machine)


def _located(campaign: Campaign, manifest: Manifest, file: str) -> str:
    """A file that a run was made of: the campaign's copy, which is there on other machines too."""
    digest = next((each.sha256 for each in manifest.inputs if each.path == file), "")
    return str(campaign.kept_copy(digest) or file)


def _delimiter(experiment: Experiment, trust: bool) -> str | None:
    """How the users' sessions are cut, if they have any and may be asked."""
    users = experiment.actors.users
    if users is None or (users.files and not trust):
        return None
    behaviour = USERS.create(users.name, users.options)
    return behaviour.sessions if isinstance(behaviour, ThinkTime) else None


def _note(finished: Sequence[RunResult], planned: int, known: Logs, trust: bool) -> str:
    """What a reader should know first."""
    parts = [f"{len(finished)} of {planned} runs are finished."]
    unknown = dict.fromkeys(run.axes["log"] for run in finished if _files(run) not in known)
    if unknown:
        parts.append(
            f"Not drawn, for want of the log {', '.join(unknown)}: what was recorded, submissions by "
            "week and hour, session graphs."
        )
    rules = dict.fromkeys(run.manifest.experiment.scenario.workloads.walltime_rule for run in finished)
    parts.append(f"Walltimes: {'; '.join(rules)}.")
    behaviours = [run.manifest.experiment.actors.users for run in finished]
    untrusted = sorted({file for each in behaviours if each is not None for file in each.files})
    if untrusted and not trust:
        parts.append(f"Session graphs of {', '.join(untrusted)} need --trust, for they use these files.")
    return " ".join(parts)
