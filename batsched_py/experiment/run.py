"""Running one experiment from its beginning to its end, and the options of the command that does the same."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from batsched_py.engines import Simulation, new_simulation
from batsched_py.experiment.build import NOTHING_GIVEN, Given, build
from batsched_py.experiment.choice import Choice
from batsched_py.experiment.value import Experiment
from batsched_py.settings import Setting, settings_of, values_of
from batsched_py.simulator.outputs import NewFile, OutputFile
from batsched_py.workload.model import Workload

if TYPE_CHECKING:
    from batsched_py.decision.process import DecisionProcess
    from batsched_py.decision.pybatsim import PyBatsimProcess
    from batsched_py.engines.python import Batsim


#: Goes through a simulation that is ready to begin; the number is that of its jobs, 0 if it is unknown.
GoThrough: TypeAlias = "Callable[[Batsim, DecisionProcess | PyBatsimProcess, int], None]"

#: The number of new objects after which Python looks for garbage.
_RARELY = 20_000

#: What simulations of so many jobs left behind is looked for. Each leaves as much as so many jobs more.
_MANY_JOBS, _EACH = 200_000, 1000


def run_experiment(
    experiment: Experiment,
    workloads: Sequence[Workload],
    prefix: str,
    *,
    new_file: NewFile = OutputFile,
    given: Given = NOTHING_GIVEN,
    watched: GoThrough | None = None,
    meanwhile: Callable[[Simulation], AbstractContextManager[Any]] = nullcontext,
) -> Simulation:
    """Run an experiment on workloads that were read; the files will be ``PREFIX_jobs.csv`` and so on.

    ``watched`` goes through the simulation, by the Python engine, in place of the usual loop. ``meanwhile``
    gets the simulation, and is entered while it runs. If it fails, or cannot even begin, its files are gone.
    """
    _left_behind.make_room(sum(len(workload.jobs) for workload in workloads))
    setup, process, outputs = build(experiment, workloads, prefix, new_file, given)
    try:
        if watched is None:
            simulation = new_simulation(setup, process, outputs)
            go_through: Callable[[], object] = simulation.run
        else:
            from batsched_py.engines.python import Batsim, PythonSimulation

            batsim = Batsim(setup, outputs)
            simulation = PythonSimulation(batsim, process)
            nb_jobs = sum(len(workload.jobs) for workload in workloads)
            go_through = partial(watched, batsim, process, nb_jobs)
        with rare_garbage_collection, meanwhile(simulation):
            go_through()
        return simulation
    except BaseException:
        outputs.abandon()
        raise


class _RareGarbageCollection:
    """Leave what was read out of the search for garbage, and search rarely: a simulation makes hardly any.

    Simulations may go on at the same time, in threads: the first begins this, and the last ends it.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._nb_inside = 0
        self._thresholds: tuple[int, int, int] | None = None

    def __enter__(self) -> None:
        with self._lock:
            self._nb_inside += 1
            if self._nb_inside > 1 or gc.get_freeze_count():  # which goes through all that is left out
                return
            self._thresholds = often, *others = gc.get_threshold()
            gc.freeze()
            if often:
                gc.set_threshold(max(often, _RARELY), *others)

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._nb_inside -= 1
            if not self._nb_inside and self._thresholds is not None:
                gc.unfreeze()
                gc.set_threshold(*self._thresholds)
                self._thresholds = None


rare_garbage_collection = _RareGarbageCollection()


class _LeftBehind:
    """What simulations leave behind: objects that refer to each other, with all jobs of the native engine.

    They are few, so Python would hardly ever look for them, however much memory they hold.
    """

    def __init__(self) -> None:
        self._nb_jobs = 0

    def make_room(self, nb_jobs: int) -> None:
        """A simulation of so many jobs is about to begin."""
        if self._nb_jobs > _MANY_JOBS:
            self._nb_jobs = 0
            gc.collect()
        self._nb_jobs += nb_jobs + _EACH


_left_behind = _LeftBehind()


def run_command(experiment: Experiment, prefix: str) -> str:
    """The command that makes an experiment again, for a shell; it writes ``PREFIX_jobs.csv`` and so on."""
    import shlex

    return shlex.join(["batsched-py", "run", *options_of(experiment), "-e", prefix])


def serve_options(experiment: Experiment) -> list[str]:
    """The options with which ``batsched-py serve`` decides in an experiment."""
    jobs = [] if experiment.actors.users is None else options_of(experiment.scenario.workloads)
    return [*options_of(experiment.actors), *jobs]


def options_of(part: Struct) -> list[str]:
    """An experiment or a part of it as options; those that would give a default are left out."""
    values = values_of(part)
    spelled = (_spelled(setting, values[setting.name]) for setting in settings_of(type(part)))
    return list(chain.from_iterable(spelled))


def _spelled(setting: Setting, value: Any) -> list[str]:
    flag = setting.option.flags[0]
    if value == setting.default:
        return []
    if isinstance(value, Choice):
        assert setting.option.pairs is not None
        pairs = [f"{key}={text}" for key, text in value.options.items()]
        return [flag, value.name, *_each(setting.option.pairs.flags[0], pairs)]
    if isinstance(value, bool):
        return [setting.option.off if setting.option.off and not value else flag]
    return _each(flag, value if setting.is_several else [str(value)])


def _each(flag: str, values: list[str]) -> list[str]:
    return list(chain.from_iterable((flag, value) for value in values))
