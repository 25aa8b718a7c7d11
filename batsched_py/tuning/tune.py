"""``bp.tune`` and ``batsched-py tune``: search settings, and tell whether they hold."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from batsched_py.api.log import FileName
from batsched_py.api.terminal import shown, somebody_looks
from batsched_py.campaign.executors import executor_of
from batsched_py.campaign.plan import PlanText, PlanWords
from batsched_py.errors import InputError
from batsched_py.experiment.run import run_command
from batsched_py.output_files import write_file
from batsched_py.tuning.held_out import Compared, Group, compared, groups_of, warnings_of
from batsched_py.tuning.plan import TuningPlan
from batsched_py.tuning.search import Executor, Workers, front, search, working
from batsched_py.tuning.space import Settings
from batsched_py.tuning.trials import Divided, Task, Trial

#: So many settings of a front are compared with today's on the parts that are held out.
MOST_FINALISTS = 5


class Finalist(Struct, frozen=True, kw_only=True):
    """Settings that are the best of the search, by one objective or among several."""

    trial: int
    settings: Settings
    command: str
    """What simulates the log with them."""
    compared: list[Compared]
    """With today's settings, by each objective."""
    groups: list[Group]
    """Who gains and who loses."""

    @property
    def holds(self) -> bool:
        """Whether it is shown that they are better by an objective, and they are worse by none."""
        return any(each.holds for each in self.compared) and all(each.is_better for each in self.compared)


class Point(Struct, frozen=True):
    """A trial as the page shows it."""

    number: int
    state: str
    settings: Settings
    means: list[float | None]


class Tuned(Struct, frozen=True, kw_only=True):
    """What a search has found."""

    name: str
    title: str
    objectives: list[str]
    signs: list[float]
    today: list[float]
    """Each objective with today's settings, in the mean over the parts of the search."""
    trials: list[Point]
    finalists: list[Finalist]
    """The best settings, or those of the Pareto front, in the order of the first objective."""
    importance: dict[str, float]
    """The share of each setting in what the first objective comes to."""
    search_parts: list[int]
    held_out_parts: list[int]
    warnings: list[str]
    """What a reader must know first."""

    @property
    def best(self) -> Finalist | None:
        """The settings that were found best; none if nothing is shown to hold."""
        return next((each for each in self.finalists if each.holds), None)


def tune(
    plan: FileName | Mapping[str, Any],
    directory: FileName | None = None,
    *,
    workers: int | None = None,
    executor: str = "processes",
    address: str | None = None,
    log_folders: Sequence[FileName] = (),
    trust: bool = False,
    progress: bool | None = None,
) -> Tuned:
    """Search the settings of a plan: the name of a file, or what stands in one.

    Trials are kept in the ``directory`` as they end, by default in ``out/NAME``. A search that was
    interrupted goes on with them, and finds the same. So many ``workers`` do trials, one for each core unless
    told otherwise: processes of this machine, or those of another ``executor`` of campaigns, such as "dask"
    with the ``address`` of its scheduler. See the documentation, "Tune your scheduler in ten minutes".
    """
    where = executor_of(executor, address, workers)
    read, text = read_plan(plan, directory, log_folders, trust)
    return tuned(read, text, where, somebody_looks() if progress is None else progress)


def read_plan(
    plan: FileName | Mapping[str, Any],
    directory: FileName | None,
    log_folders: Sequence[FileName] = (),
    trust: bool = False,
) -> tuple[TuningPlan, str]:
    """A plan without mistakes, and its text."""
    text = (
        PlanWords(dict(plan), str(plan.get("name", "tuning")))
        if isinstance(plan, Mapping)
        else PlanText.read(Path(plan))
    )
    folder = Path("out") / text.name if directory is None else Path(directory)
    return TuningPlan(text, folder, [Path(each) for each in log_folders], trust), text.text


def tuned(plan: TuningPlan, text: str, where: Executor, progress: bool) -> Tuned:
    """Do the trials of a plan that are not done yet, and compare the best settings with today's."""
    parts = plan.divided()
    write_file(plan.folder / "plan.toml", text)
    with working(plan, parts, where) as pool:
        bar = shown("trials", lambda: (pool.done, plan.trials + 1)) if progress else nullcontext()
        with bar:
            found = _found(plan, parts, pool)
    write_file(plan.folder / "result.json", msgspec.json.format(msgspec.json.encode(found)))
    if found.finalists:
        settings = (found.best or found.finalists[0]).settings
        write_file(plan.folder / "best.toml", plan.plan_of_best(settings, found.search_parts))
    return found


def _found(plan: TuningPlan, parts: Divided, pool: Workers) -> Tuned:
    today = _done(pool, [_task(plan, "today", {}, False)])[0]
    trials, importance = search(plan, parts, pool)
    numbers = _spread(front(trials, plan.objectives))
    best = [trials[number] for number in numbers]
    tasks = [_task(plan, "today", {}, True)]
    tasks += [_task(plan, f"{number:05}", trials[number].settings, True) for number in numbers]
    kept, *finals = _done(pool, tasks)
    rows = compared(plan.objectives, kept, finals, today, best)
    finalists = [
        Finalist(
            trial=number,
            settings=trials[number].settings,
            command=run_command(plan.experiments(trials[number].settings)[0], "out/best"),
            compared=row,
            groups=groups_of(kept, final),
        )
        for number, row, final in zip(numbers, rows, finals, strict=True)
    ]
    points = [
        Point(
            number,
            each.state,
            each.settings,
            [_known(value) for value in each.means()] if each.values else [],
        )
        for number, each in enumerate(trials)
    ]
    return Tuned(
        name=plan.name,
        title=plan.title,
        objectives=[each.text for each in plan.objectives],
        signs=[each.sign for each in plan.objectives],
        today=today.means(),
        trials=points,
        finalists=finalists,
        importance=importance,
        search_parts=[part.number for part in parts.search],
        held_out_parts=[part.number for part in parts.held_out],
        warnings=warnings_of(rows),
    )


def _known(value: float) -> float | None:
    return None if value != value else value


def _done(pool: Workers, tasks: Sequence[Task]) -> list[Trial]:
    """Trials that must succeed."""
    trials = pool.run(tasks)
    for task, trial in zip(tasks, trials, strict=True):
        if trial.state == "failed":
            raise InputError(f"{task.file.stem}: {trial.error}")
    return trials


def _task(plan: TuningPlan, name: str, settings: Settings, held_out: bool) -> Task:
    experiments = plan.experiments(settings) if settings else plan.today
    place = "held-out" if held_out else "trials"
    return Task(
        file=plan.source.folder / place / f"{name}.json",
        study=plan.study,
        settings=settings,
        experiments=experiments,
        objectives=plan.objectives,
        held_out=held_out,
    )


def _spread(numbers: Sequence[int]) -> list[int]:
    """A few of a front, from its one end to the other."""
    last, most = len(numbers) - 1, MOST_FINALISTS
    if len(numbers) <= most:
        return list(numbers)
    return [numbers[round(place * last / (most - 1))] for place in range(most)]
