"""What several commands ask for in the same words: the parts of an experiment, each handed on whole."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, get_args

import click

from batsched_py.cli.pairs import parse_pairs
from batsched_py.errors import InputError
from batsched_py.experiment import Actors, Choice, Experiment, Machine, Scenario, Workloads
from batsched_py.protocol.events import Settings
from batsched_py.workload.model import WalltimeRule

Command = TypeVar("Command", bound=Callable[..., Any])

#: What gives a command an option, or several.
Decorator = Callable[[Command], Command]

#: A time in seconds.
SECONDS = click.FloatRange(min=0, min_open=True, max=1e6)

#: A file, by the very name that was given for it.
FILE = click.Path()


def gathered(name: str, gather: Callable[..., Any], *options: Decorator[Any]) -> Decorator[Any]:
    """Give a command some options, and hand it, as ``name``, what ``gather`` makes of their values.

    An option goes to the parameter of ``gather`` that has its name.
    """
    parts = list(inspect.signature(gather).parameters)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(command)
        def with_value(*arguments: Any, **values: Any) -> Any:
            value = gather(**{part: values.pop(part) for part in parts})
            return command(*arguments, **values, **{name: value})

        decorated: Callable[..., Any] = with_value
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


# --- who acts ------------------------------------------------------------------------------------


def scheduler_options(required: bool) -> Decorator[Any]:
    """``-s`` and ``-o``, handed on as ``scheduler``."""
    return gathered(
        "scheduler",
        _scheduler,
        click.option(
            "-s",
            "--scheduler",
            "scheduler_name",
            metavar="NAME",
            required=required,
            help="One that `batsched-py schedulers` lists, path/to/file.py:ClassName, or one of "
            "PyBatsim's as pybatsim:NAME or pybatsim:path/to/file.py.",
        ),
        click.option(
            "-o",
            "--option",
            "scheduler_settings",
            metavar="KEY=VALUE",
            multiple=True,
            callback=parse_pairs,
            help="An option of the scheduler; may be given several times.",
        ),
    )


def _scheduler(scheduler_name: str | None, scheduler_settings: dict[str, str]) -> Choice | None:
    return None if scheduler_name is None else Choice(scheduler_name, scheduler_settings)


def _users(users_name: str | None, sessions: str | None, user_settings: dict[str, str]) -> Choice | None:
    options = dict(user_settings)
    if sessions is not None:
        if "sessions" in options:
            raise InputError("both --sessions and -u sessions=... are given; give one of them")
        options["sessions"] = sessions
    if users_name is not None:
        return Choice(users_name, options)
    if options:
        raise InputError(f"{' and '.join(options)}: options for users, but no --users were given")
    return None


#: ``--users``, ``--sessions`` and ``-u``, handed on as ``users``.
user_options = gathered(
    "users",
    _users,
    click.option(
        "--users",
        "users_name",
        metavar="NAME",
        help="Who submits the jobs while the simulation runs: one that `batsched-py users` lists, "
        "or path/to/file.py:ClassName.",
    ),
    click.option(
        "--sessions",
        metavar="RULE:MINUTES",
        help="How users' jobs are cut into sessions, like arrival:60; short for -u sessions=...",
    ),
    click.option(
        "-u",
        "--user-option",
        "user_settings",
        metavar="KEY=VALUE",
        multiple=True,
        callback=parse_pairs,
        help="An option of the users; may be given several times.",
    ),
)

#: All that a decision process needs to know, handed on as ``actors``.
actor_options = gathered(
    "actors",
    Actors,
    scheduler_options(required=True),
    user_options,
    click.option(
        "--scheduling-delay",
        metavar="S",
        type=click.FloatRange(min=0, max=1e9),
        default=0.0,
        help="Simulate a scheduler that needs S seconds for each reply: what it decides takes effect then, "
        "and what happens meanwhile it hears afterwards.",
    ),
)


# --- what is simulated ---------------------------------------------------------------------------


def workload_options(required: bool) -> Decorator[Any]:
    """``-w`` and how walltimes are made of an SWF log, handed on as ``workloads``."""
    return gathered(
        "workloads",
        Workloads,
        click.option(
            "-w",
            "--workload",
            "files",
            metavar="FILE",
            type=FILE,
            multiple=True,
            required=required,
            help="An SWF log (.swf, .swf.gz) or a Batsim workload (.json); several are played together.",
        ),
        click.option(
            "--walltime-factor",
            metavar="F",
            type=float,
            default=Workloads().walltime_factor,
            show_default=True,
            help="The multiple of the run time in --walltime max.",
        ),
        click.option(
            "--walltime",
            type=click.Choice(get_args(WalltimeRule)),
            default=Workloads().walltime,
            show_default=True,
            help="Walltime of the jobs of an SWF log: the requested time, but never less than the run time, "
            "so that none is killed; the larger one of the requested time and a multiple of the run time; "
            "or the requested time alone.",
        ),
    )


#: Which hosts there are, handed on as ``machine``.
machine_options = gathered(
    "machine",
    Machine,
    click.option(
        "-p",
        "--platform",
        "file",
        metavar="FILE",
        type=FILE,
        help="A platform of SimGrid (.xml).",
    ),
    click.option(
        "--hosts",
        metavar="N",
        type=int,
        help="A machine of N equal hosts.  [default, without -p: as large as the log says its own was]",
    ),
    click.option(
        "--speed",
        metavar="X",
        type=float,
        help="Speed of the --hosts, relative to the machine of the log.  [default: 1]",
    ),
    click.option(
        "-m",
        "--master-host",
        metavar="NAME",
        default=Machine().master_host,
        show_default=True,
        help="The host of the platform that is left out.",
    ),
    click.option(
        "-r",
        "--add-role-to-hosts",
        "roles",
        metavar="HOST[,HOST...]:ROLE",
        multiple=True,
        help="Give hosts of the platform a role: master, compute_node or storage.",
    ),
    click.option(
        "--mmax", metavar="N", type=click.IntRange(0), default=0, help="Keep the first N hosts only."
    ),
    click.option(
        "--mmax-workload", is_flag=True, help="Keep as many hosts as the largest workload was made for."
    ),
)


def _settings(
    enable_dynamic_jobs: bool,
    acknowledge_dynamic_jobs: bool,
    enable_profile_reuse: bool,
    forward_profiles_on_submission: bool,
    forward_unknown_events: bool,
    enable_compute_sharing: bool,
    disable_storage_sharing: bool,
    sched_cfg: str,
    sched_cfg_file: Path | None,
) -> Settings:
    return Settings(
        dynamic_jobs=enable_dynamic_jobs,
        acknowledge_dynamic_jobs=acknowledge_dynamic_jobs,
        profile_reuse=enable_profile_reuse,
        forward_profiles=forward_profiles_on_submission,
        forward_unknown_events=forward_unknown_events,
        compute_sharing=enable_compute_sharing,
        storage_sharing=not disable_storage_sharing,
        scheduler_config=_scheduler_config(sched_cfg, sched_cfg_file),
    )


def _scheduler_config(text: str, file: Path | None) -> str:
    if file is None:
        return text
    if text:
        raise InputError("both --sched-cfg and --sched-cfg-file are given; give one of them")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


#: What the simulator allows and promises, handed on as ``settings``.
settings_options = gathered(
    "settings",
    _settings,
    click.option(
        "--forward-unknown-events",
        is_flag=True,
        help="Pass on events of other types than these to the decision process; otherwise they are refused.",
    ),
    click.option(
        "--enable-compute-sharing", is_flag=True, help="Let several jobs run on a host, which they share."
    ),
    click.option(
        "--disable-storage-sharing", is_flag=True, help="Let no more than one job use a storage host."
    ),
    click.option(
        "--forward-profiles-on-submission", is_flag=True, help="Send each job's profile with its submission."
    ),
    click.option("--enable-dynamic-jobs", is_flag=True, help="Let the decision process register jobs."),
    click.option("--acknowledge-dynamic-jobs", is_flag=True, help="Announce registered jobs as submitted."),
    click.option("--enable-profile-reuse", is_flag=True, help="Keep the profiles of jobs that are over."),
    click.option("--sched-cfg", metavar="TEXT", default="", help="A text for the decision process."),
    click.option(
        "--sched-cfg-file", metavar="FILE", type=click.Path(path_type=Path), help="The same, from a file."
    ),
)


def scenario_options(workload_required: bool, machine_states: bool | None) -> Decorator[Any]:
    """Batsim's options that say what is simulated, handed on as ``scenario``.

    Unless told otherwise, the states of machines are traced or not as ``machine_states`` says; when it says
    nothing, they are with ``--energy``.
    """
    return gathered(
        "scenario",
        Scenario,
        workload_options(workload_required),
        machine_options,
        click.option(
            "-E",
            "--energy",
            is_flag=True,
            help="Account for the energy that hosts draw, and let their power states be changed. The "
            "platform file must say what each host draws.",
        ),
        click.option(
            "--events",
            "--external-events",
            "events",
            metavar="FILE",
            type=FILE,
            multiple=True,
            help="When machines become unavailable and available, as a JSON object a line; may be repeated.",
        ),
        settings_options,
        click.option(
            "--ignore-communication",
            is_flag=True,
            help="Run jobs that send bytes as if sending took no time; otherwise they are refused.",
        ),
        click.option(
            "--enable-machine-state-tracing/--disable-machine-state-tracing",
            "machine_states",
            default=machine_states,
            help="Whether to write PREFIX_machine_states.csv.  "
            f"[default: {'with --energy' if machine_states is None else 'enabled'}]",
        ),
    )


#: A whole simulation, handed on as ``experiment``.
experiment_options = gathered(
    "experiment",
    Experiment,
    actor_options,
    scenario_options(workload_required=True, machine_states=None),
    click.option(
        "--remarks", is_flag=True, help="Write what the scheduler remarks on jobs to PREFIX_remarks.csv."
    ),
)
