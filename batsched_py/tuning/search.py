"""The search: trials in batches of a fixed size, so that nothing depends on which of them ends first.

Optuna's sampler, a tree-structured Parzen estimator (Bergstra et al. 2011), proposes the settings of a batch
from what came of all batches before. When a search goes on after it was interrupted, the sampler proposes
the same again, and trials that are kept are not done again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from math import isnan
from statistics import median
from typing import Any

from batsched_py.errors import InputError
from batsched_py.tuning.objectives import Objective
from batsched_py.tuning.parts import Divided
from batsched_py.tuning.plan import TuningPlan
from batsched_py.tuning.trials import Stop, Task, Trial
from batsched_py.tuning.workers import Workers

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
