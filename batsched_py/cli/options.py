"""What several commands ask for in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from batsched_py.cli.pairs import parse_pairs
from batsched_py.errors import InputError
from batsched_py.simulator.platform import Platform, read_platform
from batsched_py.users import USERS, Behaviour
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from batsched_py.workload.swf import WalltimeRule

Command = TypeVar("Command", bound=Callable[..., Any])

#: A time in seconds.
SECONDS = click.FloatRange(min=0, min_open=True, max=1e6)


def scheduler_options(required: bool) -> Callable[[Command], Command]:
    """``-s`` and ``-o``."""

    def decorate(command: Command) -> Command:
        for option in (
            click.option(
                "-o",
                "--option",
                "scheduler_settings",
                metavar="KEY=VALUE",
                multiple=True,
                callback=parse_pairs,
                help="An option of the scheduler; may be given several times.",
            ),
            click.option(
                "-s",
                "--scheduler",
                metavar="NAME",
                required=required,
                help="One that `batsched-py schedulers` lists, path/to/file.py:ClassName, or one of "
                "PyBatsim's as pybatsim:NAME or pybatsim:path/to/file.py.",
            ),
        ):
            command = option(command)
        return command

    return decorate


def user_options(command: Command) -> Command:
    """``--users``, ``--sessions`` and ``-u``; :func:`choose_behaviour` understands them."""
    for option in (
        click.option(
            "-u",
            "--user-option",
            "user_settings",
            metavar="KEY=VALUE",
            multiple=True,
            callback=parse_pairs,
            help="An option of the users; may be given several times.",
        ),
        click.option(
            "--sessions",
            metavar="RULE:MINUTES",
            help="How users' jobs are cut into sessions, like arrival:60; short for -u sessions=...",
        ),
        click.option(
            "--users",
            metavar="NAME",
            help="Who submits the jobs while the simulation runs: one that `batsched-py users` lists, "
            "or path/to/file.py:ClassName.",
        ),
    ):
        command = option(command)
    return command


def choose_behaviour(
    users: str | None, sessions: str | None, settings: Mapping[str, str]
) -> Behaviour | None:
    """How the users shall behave, if there shall be some."""
    options = dict(settings)
    if sessions is not None:
        if "sessions" in options:
            raise InputError("both --sessions and -u sessions=... are given; give one of them")
        options["sessions"] = sessions
    if users is not None:
        return USERS.create(users, options)
    if options:
        raise InputError(f"{' and '.join(options)}: options for users, but no --users were given")
    return None


def workload_options(required: bool) -> Callable[[Command], Command]:
    """``-w`` and how walltimes are made of an SWF log."""

    def decorate(command: Command) -> Command:
        for option in (
            click.option(
                "--walltime",
                "walltime_rule",
                type=click.Choice(["max", "requested"]),
                default="max",
                show_default=True,
                help="Walltime of the jobs of an SWF log: the larger one of the requested time and a "
                "multiple of the run time, or the requested time alone.",
            ),
            click.option(
                "--walltime-factor",
                metavar="F",
                type=float,
                default=2.0,
                show_default=True,
                help="The multiple of the run time in --walltime max.",
            ),
            click.option(
                "-w",
                "--workload",
                "workload_files",
                metavar="FILE",
                type=click.Path(path_type=Path),
                multiple=True,
                required=required,
                help="An SWF log (.swf, .swf.gz) or a Batsim workload (.json); several are played together.",
            ),
        ):
            command = option(command)
        return command

    return decorate


def read_workloads(files: Sequence[Path], factor: float, rule: WalltimeRule) -> list[Workload]:
    """The workloads in the files, named ``w0``, ``w1``, ... as Batsim does."""
    return [read_workload(file, f"w{number}", factor, rule) for number, file in enumerate(files)]


def platform_options(command: Command) -> Command:
    """``-p``, or ``--hosts`` and ``--speed``."""
    for option in (
        click.option(
            "--speed",
            metavar="X",
            type=float,
            help="Speed of the --hosts, relative to the machine of the log.  [default: 1]",
        ),
        click.option("--hosts", metavar="N", type=int, help="A machine of N equal hosts."),
        click.option(
            "-p",
            "--platform",
            "platform_file",
            metavar="FILE",
            type=click.Path(path_type=Path),
            help="A platform of SimGrid (.xml).",
        ),
    ):
        command = option(command)
    return command


def choose_platform(
    file: Path | None,
    hosts: int | None,
    speed: float | None,
    master_host: str = "master_host",
    roles: Mapping[str, str] | None = None,
    mmax: int | None = None,
) -> Platform | None:
    """The platform that was asked for, if any was."""
    if file is not None and hosts is not None:
        raise InputError("both --hosts and -p say what the machine is; give one of them")
    if speed is not None and hosts is None:
        raise InputError("--speed is for the hosts of --hosts; those of a platform file have their own")
    if file is not None:
        return read_platform(file, master_host, dict(roles or {}), mmax)
    if hosts is not None:
        if mmax:
            hosts = min(hosts, mmax)
        return Platform.homogeneous(hosts, 1.0 if speed is None else speed)
    return None


def communication_option(command: Command) -> Command:
    """``--ignore-communication``."""
    return click.option(
        "--ignore-communication",
        is_flag=True,
        help="Run jobs that send bytes as if sending took no time; otherwise they are refused.",
    )(command)


def sharing_option(command: Command) -> Command:
    """``--enable-compute-sharing``."""
    return click.option(
        "--enable-compute-sharing", is_flag=True, help="Let several jobs run on a host, which they share."
    )(command)


def delay_option(command: Command) -> Command:
    """``--scheduling-delay``."""
    return click.option(
        "--scheduling-delay",
        metavar="S",
        type=click.FloatRange(min=0, max=1e9),
        default=0.0,
        help="Simulate a scheduler that needs S seconds for each reply: what it decides takes effect then, "
        "and what happens meanwhile it hears afterwards.",
    )(command)


def energy_option(command: Command) -> Command:
    """``--energy``."""
    return click.option(
        "-E",
        "--energy",
        is_flag=True,
        help="Account for the energy that hosts draw, and let their power states be changed. The platform "
        "file must say what each host draws.",
    )(command)


def events_options(command: Command) -> Command:
    """``--events`` and ``--forward-unknown-events``."""
    command = click.option(
        "--forward-unknown-events",
        is_flag=True,
        help="Pass on events of other types than these to the decision process; otherwise they are refused.",
    )(command)
    return click.option(
        "--events",
        "event_files",
        metavar="FILE",
        type=click.Path(path_type=Path),
        multiple=True,
        help="When machines become unavailable and available, as a JSON object a line; may be repeated.",
    )(command)
