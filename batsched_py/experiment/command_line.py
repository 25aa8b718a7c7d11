"""An experiment as the options of our commands, which make the same experiment of them again."""

from __future__ import annotations

import shlex
from itertools import chain
from typing import Any

from msgspec import Struct

from batsched_py.experiment.choice import Choice
from batsched_py.experiment.value import Experiment
from batsched_py.settings import Setting, settings_of, values_of


def run_command(experiment: Experiment, prefix: str) -> str:
    """The command that makes an experiment again, for a shell; it writes ``PREFIX_jobs.csv`` and so on."""
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
