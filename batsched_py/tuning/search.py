"""The search: trials in batches of a fixed size, so that nothing depends on which of them ends first.

Optuna's sampler, a tree-structured Parzen estimator (Bergstra et al. 2011), proposes the settings of a batch
from what came of all batches before. When a search goes on after it was interrupted, the sampler proposes
the same again, and trials that are kept are not done again.

Trials are done in processes of this machine, which are forked, so that the log is read once, and are gone
when their parent is gone; or on a Dask cluster, whose workers read the log when they are given a first trial.
"""

from __future__ import annotations

import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import lru_cache, partial
from math import isnan
from multiprocessing import connection as connections
from multiprocessing import get_context, parent_process
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

from msgspec.structs import replace

import batsched_py
from batsched_py.campaign.dask_cluster import BatchSystem, Connection, DaskCluster
from batsched_py.campaign.executors import Processes
from batsched_py.errors import BatschedError, InputError
from batsched_py.tuning.plan import Source, TuningPlan
from batsched_py.tuning.space import Objective
from batsched_py.tuning.trials import Divided, Stop, Stretch, Task, Trial

#: After these shares of the stretches a trial is compared with the median of those before.
CHECKED_AT = (0.25, 0.5)


def search(plan: TuningPlan, parts: Divided, workers: Workers) -> tuple[list[Trial], dict[str, float]]:
    """All trials, in their order, and how important each setting was for the first objective."""
    optuna = _optuna()
    distributions = {name: dimension.distribution() for name, dimension in plan.search.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=plan.seed, multivariate=True, constant_liar=True, n_startup_trials=max(10, plan.batch)
        )
    directions = ["minimize" if each.sign > 0 else "maximize" for each in plan.objectives]
    study = optuna.create_study(sampler=sampler, directions=directions)
    found: list[Trial] = []
    while len(found) < plan.trials:
        asked = [study.ask(distributions) for _ in range(min(plan.batch, plan.trials - len(found)))]
        stops = _stops(plan, parts, found)
        tasks = [_task(plan, each.number, each.params, stops) for each in asked]
        for one, trial in zip(asked, workers.run(tasks), strict=True):
            _tell(study, one, trial, optuna.trial.TrialState)
            found.append(trial)
        if all(trial.state == "failed" for trial in found):
            raise InputError(f"all trials failed, the first of them: {found[0].error}")
    return found, _importance(optuna, study, distributions)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise InputError("a search needs Optuna: pip install batsched-py[tune]") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def _task(plan: TuningPlan, number: int, settings: dict[str, Any], stops: list[Stop]) -> Task:
    error = ""
    try:
        experiments = plan.experiments(settings)
    except InputError as fault:
        experiments, error = [], str(fault)
    file = plan.source.folder / "trials" / f"{number:05}.json"
    return Task(
        file=file,
        study=plan.study,
        settings=settings,
        experiments=experiments,
        objectives=plan.objectives,
        stops=stops,
        error=error,
    )


def _stops(plan: TuningPlan, parts: Divided, found: Sequence[Trial]) -> list[Stop]:
    """The median rule: where a trial is worse than half of the whole ones of former batches, it ends."""
    whole = [trial for trial in found if trial.state == "whole"]
    number = len(parts.searched)
    if not plan.stops or len(whole) < plan.batch:
        return []
    stops = []
    for after in sorted({int(number * share) for share in CHECKED_AT} - {0, number}):
        names = [name for stretch in parts.searched[:after] for name in stretch.windows]
        values = [value for value in (trial.means(names)[0] for trial in whole) if not isnan(value)]
        stops += [Stop(after, median(values))] if values else []
    return stops


def _tell(study: Any, one: Any, trial: Trial, states: Any) -> None:
    means = trial.means() if trial.values else []
    if trial.state == "failed" or any(map(isnan, means)):
        study.tell(one, state=states.FAIL)
    elif trial.state == "stopped":
        one.report(means[0], step=len(trial.values))
        study.tell(one, state=states.PRUNED)
    else:
        study.tell(one, means)


def _importance(optuna: Any, study: Any, distributions: dict[str, Any]) -> dict[str, float]:
    """The share of each setting, by PED-ANOVA (Watanabe et al. 2023); nothing of too few trials."""
    several = len(study.directions) > 1
    target: Callable[[Any], float] | None = (lambda trial: float(trial.values[0])) if several else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            evaluator = optuna.importance.PedAnovaImportanceEvaluator()
            shares = optuna.importance.get_param_importances(study, evaluator=evaluator, target=target)
        except (ValueError, RuntimeError, ZeroDivisionError):
            return {}
    return {name: float(share) for name, share in shares.items() if not isnan(share)}


def front(trials: Sequence[Trial], objectives: Sequence[Objective]) -> list[int]:
    """The numbers of the whole trials that no other is better than in all objectives, the best one first.

    Of one objective it is the best trial alone, the first of those that are equal.
    """
    points = {
        number: [each.sign * value for each, value in zip(objectives, trial.means(), strict=True)]
        for number, trial in enumerate(trials)
        if trial.state == "whole" and not any(map(isnan, trial.means()))
    }
    best: list[int] = []
    for number in sorted(points, key=lambda number: (points[number], number)):
        mine = points[number]
        if not any(all(its <= own for its, own in zip(points[other], mine, strict=True)) for other in best):
            best.append(number)
    return best


#: Where trials can be done.
Executor = Processes | DaskCluster | BatchSystem

#: What trials are done on: the stretches that are searched, under False, and those that are held out.
Stretches = Mapping[bool, Sequence[Stretch]]

_stretches: Stretches = {}


#: Does tasks, and gives the trials in their order.
Doing = Callable[[Sequence[Task]], Iterator[Trial]]


class Workers:
    """Does tasks, and counts them."""

    def __init__(self, doing: Doing) -> None:
        self._doing = doing
        self.done = 0
        """How many tasks are done."""

    def run(self, tasks: Sequence[Task]) -> list[Trial]:
        """What comes of tasks, in their order; those that were done before are not done again."""
        return list(self._counted(tasks))

    def _counted(self, tasks: Sequence[Task]) -> Iterator[Trial]:
        for trial in self._doing(tasks):
            self.done += 1
            yield trial


@contextmanager
def working(plan: TuningPlan, parts: Divided, where: Executor) -> Iterator[Workers]:
    """The workers of an executor of campaigns; a single one of this machine is this process."""
    global _stretches
    if not isinstance(where, Processes):
        with where.connected(plan.folder, plan.batch) as connection:
            yield Workers(partial(_on_dask, connection, plan.source))
        return
    _stretches = stretches_of(parts)
    try:
        if where.workers == 1:
            yield Workers(partial(map, _do))
            return
        pool = ProcessPoolExecutor(where.workers, get_context("fork"), _begin)
        try:
            yield Workers(partial(_in_processes, pool))
        finally:
            pool.shutdown(cancel_futures=True)
    finally:
        _stretches = {}


def stretches_of(parts: Divided) -> Stretches:
    """What trials of the search, and those on held-out parts, are done on."""
    return {False: parts.searched, True: parts.kept}


def _in_processes(pool: ProcessPoolExecutor, tasks: Sequence[Task]) -> Iterator[Trial]:
    try:
        yield from pool.map(_do, tasks)
    except BrokenProcessPool:
        raise InputError(
            "a process that did a trial was killed; the trials that are done are kept, and the same "
            "command goes on with them"
        ) from None


def _on_dask(connection: Connection, source: Source, tasks: Sequence[Task]) -> Iterator[Trial]:
    """Trials come in any order, and are told of in that of their tasks."""
    done: dict[Path, Trial] = {}
    waiting = deque(tasks)
    for task, trial in connection.each(partial(do_far_away, source), tasks):
        if isinstance(trial, BatschedError):
            raise trial
        if isinstance(trial, Exception):
            raise InputError(f"{task.file.stem}, on its Dask worker: {trial}")
        done[task.file] = trial
        while waiting and waiting[0].file in done:
            yield done[waiting.popleft().file]


def do_far_away(source: Source, task: Task) -> Trial:
    """Do a task in a process that knows nothing of its plan yet."""
    plan, stretches = _known(source)
    if plan.study != task.study:
        raise InputError(
            "the code, the plan or a log is not what it is where the search was started (batsched_py "
            f"{batsched_py.__version__} of this worker is in {Path(batsched_py.__file__).parent})"
        )
    # Files may have been named from another working directory.
    experiments = [] if task.error else plan.experiments(task.settings) if task.settings else plan.today
    return replace(task, experiments=experiments).done(stretches[task.held_out])


@lru_cache(maxsize=1)
def _known(source: Source) -> tuple[TuningPlan, Stretches]:
    plan = source.read()
    return plan, stretches_of(plan.divided())


def _do(task: Task) -> Trial:
    return task.done(_stretches[task.held_out])


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    """A process whose parent was killed would wait for ever."""
    parent = parent_process()
    assert parent is not None
    connections.wait([parent.sentinel])
    os.kill(os.getpid(), signal.SIGKILL)
