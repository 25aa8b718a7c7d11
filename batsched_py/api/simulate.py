"""``batsched_py.simulate``: a whole simulation in one process, in the words of ``batsched-py run``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec.structs import replace

from batsched_py.analysis.windows import Window
from batsched_py.api import lazy
from batsched_py.api.result import Result
from batsched_py.api.simulating import simulate_experiment
from batsched_py.api.terminal import somebody_looks
from batsched_py.decision.observers import DATA, MONITORS, AdditionalData, Monitor
from batsched_py.errors import InputError
from batsched_py.experiment import Choice, Experiment
from batsched_py.experiment.build import Given
from batsched_py.plugins import Registry
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.settings import settings_of, struct_from
from batsched_py.users import USERS, Behaviour

Plugin = TypeVar("Plugin")
Function = TypeVar("Function", bound=Callable[..., Any])

#: Names, classes or objects, one or several.
Observers: TypeAlias = str | type[Plugin] | Plugin | Sequence[str | type[Plugin] | Plugin]

#: Options of a scheduler or of users, as texts or as what they are.
Options = Mapping[str, Any]

_WORDS = {setting.option.word: setting for setting in settings_of(Experiment)}


def _explaining_settings(function: Function) -> Function:
    """Put all settings into the signature and the docstring of a function, in place of its ``**settings``."""
    signature = inspect.signature(function)
    own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
    settings = {word: setting for word, setting in _WORDS.items() if word not in signature.parameters}
    parameters = [
        inspect.Parameter(
            word,
            inspect.Parameter.KEYWORD_ONLY,
            default=False if setting.turns_off else setting.default,
            annotation=setting.annotation,
        )
        for word, setting in settings.items()
    ]
    lines = [f"    {word}: {setting.option.help}" for word, setting in settings.items()]
    function.__doc__ = "\n".join([inspect.cleandoc(function.__doc__ or ""), "", "The settings:", "", *lines])
    function.__signature__ = signature.replace(parameters=[*own, *parameters])  # type: ignore[attr-defined]
    return function


@_explaining_settings
def simulate(
    workload: lazy.log.Log | lazy.log.FileName | Sequence[lazy.log.Log | lazy.log.FileName],
    scheduler: str | type[Scheduler] | Scheduler,
    *,
    options: Options | None = None,
    users: str | type[Behaviour] | Behaviour | None = None,
    sessions: str | None = None,
    user_options: Options | None = None,
    monitor: Observers[Monitor] = (),
    data: Observers[AdditionalData] = (),
    export: lazy.log.FileName | None = None,
    measure: str | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> Result:
    """Simulate a workload on a machine under a scheduler.

    The ``workload`` is a log, the name of a file (a log, or a Batsim workload), or several that are played
    together. The ``scheduler`` and the ``users`` are names, classes or objects; ``options`` and
    ``user_options`` go with names and classes. An object is used as it is, with everything that it remembers
    of a simulation before. ``sessions`` is short for the user option of this name. Each ``monitor`` hears
    what happens, all ``data`` is computed over time: both are names, classes or objects, one or several.

    Results are kept in memory, unless ``export`` says where Batsim's files go, as ``-e`` does. Progress is
    shown on terminals and in notebooks, or as ``progress`` says. All is simulated, and ``measure`` says which
    window is measured, such as ``"7d:300d"``: the jobs that are submitted then.

    The settings are the options of `batsched-py run`, which the page of settings explains.
    """
    experiment, logs, given = experiment_of(
        several(workload), scheduler, options, users, _with(sessions, user_options), settings
    )
    (listening, heard), (computing, computed) = _observers(MONITORS, monitor), _observers(DATA, data)
    actors = replace(
        experiment.actors, monitors=heard, outside=replace(experiment.actors.outside, data=computed)
    )
    experiment = replace(experiment, actors=actors)
    return simulate_experiment(
        experiment,
        export=None if export is None else os.fspath(export),
        progress=somebody_looks() if progress is None else progress,
        logs=logs,
        window=None if measure is None else Window.parse(measure),
        given=Given(given.policy, given.behaviour, listening, computing),
    )


def experiment_of(
    played: Sequence[lazy.log.Log | lazy.log.FileName],
    scheduler: str | type[Scheduler] | Scheduler,
    options: Options | None,
    users: str | type[Behaviour] | Behaviour | None,
    user_options: Options | None,
    settings: Mapping[str, Any],
) -> tuple[Experiment, dict[int, lazy.swf_log.SwfLog], Given]:
    """What a program asks for: an experiment, its logs in memory, and its actors that are objects."""
    policy, chosen = _actor(SCHEDULERS, scheduler, options)
    behaviour, who = (None, None) if users is None else _actor(USERS, users, user_options)
    if users is None and user_options:
        raise InputError("there are options for users, but no users; give users=NAME")
    files, logs = _files_and_logs(played)
    values = dict(_named(word, given) for word, given in settings.items())
    values |= {"files": files, "scheduler": chosen, "users": who}
    return struct_from(Experiment, values), logs, Given(policy, behaviour)


def _named(word: str, given: Any) -> tuple[str, Any]:
    """The name and the value of the setting that Python calls by a word."""
    setting = _WORDS.get(word)
    if setting is None:
        from difflib import get_close_matches

        near = get_close_matches(word, inspect.signature(simulate).parameters)
        hint = f"did you mean {' or '.join(near)}?" if near else "help(batsched_py.simulate) lists all"
        raise InputError(f"simulate has no setting {word!r}; {hint}")
    if setting.is_several:
        return setting.name, tuple(map(os.fspath, several(given)))
    if setting.option.names_files and given is not None:
        return setting.name, os.fspath(given)
    return setting.name, not given if setting.turns_off else given


def several(given: Any) -> list[Any]:
    """One thing or several, as a list."""
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _files_and_logs(played: Sequence[Any]) -> tuple[tuple[str, ...], dict[int, lazy.swf_log.SwfLog]]:
    """How the workloads are called, and those of them that are in memory, by their places."""
    files, logs = [], {}
    for place, each in enumerate(played):
        if not isinstance(each, str | os.PathLike) and isinstance(each, lazy.log.Log):
            logs[place] = each.columns
            files.append(each.columns.path if each.is_as_read else each.name)
        else:
            files.append(os.fspath(each))
    return tuple(files), logs


def _with(sessions: str | None, options: Options | None) -> Options:
    """The options of users, among which sessions have a word of their own."""
    if sessions is None:
        return options or {}
    if "sessions" in (options or {}):
        raise InputError("sessions are given twice, also among the user_options; give one of them")
    return {**(options or {}), "sessions": sessions}


def _observers(registry: Registry[Plugin], given: Any) -> tuple[tuple[Plugin, ...], tuple[str, ...]]:
    """The objects among what is given, one of each class, and the names."""
    each = several(given)
    objects = tuple(registry.instance(one) for one in each if not isinstance(one, str))
    return objects, tuple(name for name in each if isinstance(name, str))


def _actor(registry: Registry[Plugin], given: Any, options: Options | None) -> tuple[Any, Choice]:
    """Who acts, unless that is to be found by a name, and what stands for it in the experiment."""
    if isinstance(given, str):
        return None, Choice.of(given, options or {})
    cls = given if inspect.isclass(given) else type(given)
    if not issubclass(cls, registry.base):
        raise InputError(f"{given!r} is neither the name of a {registry.kind} nor a {registry.base.__name__}")
    name = str(getattr(cls, "name", cls.__name__))
    if cls is not given:
        if options:
            raise InputError(f"the {registry.kind} {name!r} is made already, so it takes no options")
        return given, Choice(name)
    choice = Choice.of(name, options or {})
    return (None if registry.knows(cls) else registry.make(cls, name, options or {})), choice
