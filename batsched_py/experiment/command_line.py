"""An experiment as the options of our commands, which make the same value of them again.

What is not said is left out where the commands take it for granted.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from itertools import chain

from batsched_py.experiment.value import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.events import Settings


def run_command(experiment: Experiment, prefix: str) -> str:
    """What makes an experiment again, for a shell; its files will be ``PREFIX_jobs.csv`` and so on."""
    return shlex.join(["batsched-py", "run", *run_options(experiment), "-e", prefix])


def run_options(experiment: Experiment) -> list[str]:
    """What makes ``batsched-py run`` run an experiment."""
    return [
        *scenario_options(experiment.scenario),
        *_actor_options(experiment.actors),
        *_flag("--remarks", experiment.remarks),
    ]


def serve_options(experiment: Experiment) -> list[str]:
    """What makes ``batsched-py serve`` decide in an experiment."""
    actors = experiment.actors
    jobs = [] if actors.users is None else _workload_options(experiment.scenario.workloads)
    return [*_actor_options(actors), *jobs]


def scenario_options(scenario: Scenario) -> list[str]:
    """Those of the options that say what is simulated; they are Batsim's own, and a few more."""
    return [
        *_workload_options(scenario.workloads),
        *_machine_options(scenario.machine),
        *_settings_options(scenario.settings),
        *_flag("-E", scenario.energy),
        *_each("--events", scenario.events),
        *_flag("--ignore-communication", scenario.ignore_communication),
        *_flag("--enable-machine-state-tracing", scenario.machine_states is True),
        *_flag("--disable-machine-state-tracing", scenario.machine_states is False),
    ]


def _workload_options(workloads: Workloads) -> list[str]:
    usual = Workloads()
    return [
        *_each("-w", workloads.files),
        *_value("--walltime", workloads.walltime, usual.walltime),
        *_value("--walltime-factor", workloads.walltime_factor, usual.walltime_factor),
    ]


def _machine_options(machine: Machine) -> list[str]:
    usual = Machine()
    return [
        *_value("-p", machine.file, usual.file),
        *_value("--hosts", machine.hosts, usual.hosts),
        *_value("--speed", machine.speed, usual.speed),
        *_value("-m", machine.master_host, usual.master_host),
        *_each("-r", machine.roles),
        *_value("--mmax", machine.mmax, usual.mmax),
        *_flag("--mmax-workload", machine.mmax_workload),
    ]


def _settings_options(settings: Settings) -> list[str]:
    return [
        *_flag("--enable-dynamic-jobs", settings.dynamic_jobs),
        *_flag("--acknowledge-dynamic-jobs", settings.acknowledge_dynamic_jobs),
        *_flag("--enable-profile-reuse", settings.profile_reuse),
        *_flag("--forward-profiles-on-submission", settings.forward_profiles),
        *_flag("--forward-unknown-events", settings.forward_unknown_events),
        *_flag("--enable-compute-sharing", settings.compute_sharing),
        *_flag("--disable-storage-sharing", not settings.storage_sharing),
        *_value("--sched-cfg", settings.scheduler_config, ""),
    ]


def _actor_options(actors: Actors) -> list[str]:
    return [
        *_choice_options("-s", actors.scheduler, "-o"),
        *([] if actors.users is None else _choice_options("--users", actors.users, "-u")),
        *_value("--scheduling-delay", actors.scheduling_delay, 0.0),
    ]


def _choice_options(flag: str, choice: Choice, option_flag: str) -> list[str]:
    return [flag, choice.name, *_each(option_flag, (f"{key}={text}" for key, text in choice.options.items()))]


def _flag(flag: str, given: bool) -> list[str]:
    return [flag] if given else []


def _value(flag: str, value: object, usual: object) -> list[str]:
    return [] if value == usual else [flag, str(value)]


def _each(flag: str, values: Iterable[str]) -> list[str]:
    return list(chain.from_iterable((flag, value) for value in values))
