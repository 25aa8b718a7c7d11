"""``batsched-py batsim``: the built-in Batsim as a process of its own; ``platform``: its machines."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from batsched_py import __version__
from batsched_py.api import lazy
from batsched_py.cli.options import (
    FOLDER,
    PATH,
    option,
    output_option,
    struct_options,
    text_in,
    timeout_option,
)
from batsched_py.errors import InputError
from batsched_py.experiment import Machine, Scenario
from batsched_py.output_files import write_file, writing_text
from batsched_py.protocol.events import Settings

#: Where a decision process is looked for, as Batsim does it.
DEFAULT_ENDPOINT = "tcp://localhost:28000"

#: After so many seconds without an answer it is told that one is waited for.
_PATIENCE = 5.0

#: What each of Batsim's levels lets through here; the messages themselves are the client's debug lines.
_LEVELS = {
    "quiet": {"batsched_py": logging.ERROR},
    "network-only": {"batsched_py.simulator.decision_side": logging.DEBUG},
    "information": {},
    "info": {},
    "debug": {"batsched_py": logging.DEBUG},
}

#: Options of Batsim 5 that have another name here, or another one in Batsim 4.
_NAMES = {
    "-s": "--edc-socket-str",
    "-S": "--edc-socket-file",
    "--ee": "--external-events",
    "--energy-host": "--energy",
    "--trace-machine-state": "--enable-machine-state-tracing",
}

#: Batsim's options for what is not here, each with what is said when it is given.
_MEANS_NOTHING = {
    "--workflow-jobs-limit N": "has no effect: there are no workflows",
    "--ignore-beyond-last-workflow": "has no effect: there are no workflows, and all jobs are simulated",
    "--sg-cfg OPTION:VALUE": "has no effect: the built-in Batsim does without SimGrid",
    "--sg-log OPTION": "has no effect: the built-in Batsim does without SimGrid; -v says what is logged",
}
_NO_WORKFLOWS = "workflows are not simulated; write their jobs as a workload, for -w"
_NO_REDIS = "there is no Redis; jobs and profiles are in the messages"
_REFUSED = {
    "-W, --workflow FILE": _NO_WORKFLOWS,
    "--WS, --workflow-start FILE@TIME": _NO_WORKFLOWS,
    "--no-sched": "somebody has to decide; batsched-py run -s fcfs needs no decision process",
    "--enable-redis": _NO_REDIS,
    "--redis-hostname HOST": _NO_REDIS,
    "--redis-port PORT": _NO_REDIS,
    "--redis-prefix PREFIX": _NO_REDIS,
}

_log = logging.getLogger(__name__)

#: How a program that was made by ``--install`` begins.
_SHEBANG = "#!/bin/sh\n# The built-in Batsim of batsched-py"


class _EitherBatsim(click.Command):
    """A command whose options are those of the Batsim which is asked for.

    Batsim 5's ``-s`` and ``-r`` take two words. It traces machine states only when it is told to, and has no
    Paje trace.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options."""
        asked = "--protocol=5" in args or ["--protocol", "5"] in [args[n : n + 2] for n in range(len(args))]
        if asked or not {"--edc-socket-str", "--edc-socket-file"}.isdisjoint(args):
            args = [_NAMES.get(argument, argument) for argument in args]
            while (place := next(filter(args.__contains__, ("-r", "--add-role")), None)) is not None:
                at = args.index(place)
                args[at : at + 3] = [f"--add-role-to-hosts={':'.join(args[at + 1 : at + 3])}"]
            args = ["--disable-machine-state-tracing", "--disable-schedule-tracing", *args]
        return super().parse_args(ctx, args)


def _answer(ctx: click.Context, param: click.Parameter, value: object) -> None:
    """Say what an option of Batsim means here, or refuse it."""
    if not value:
        return
    answers = _MEANS_NOTHING | _REFUSED
    name = next(name for name in answers if param.opts[-1] in name.replace(",", "").split())
    text = f"{param.opts[-1]}: {answers[name]}"
    if name in _REFUSED:
        raise InputError(text)
    click.echo(text, err=True)


def _answered(command: Callable[..., None]) -> Callable[..., None]:
    """A command that takes options of Batsim for what is not here."""
    for name, text in (_MEANS_NOTHING | _REFUSED).items():
        verb = "Refused" if name in _REFUSED else "Accepted"
        several: dict[str, Any] = {"multiple": True} if name[-1].isupper() else {}
        help_text = f"{verb}: {text}."
        command = option(name, help_text, expose_value=False, callback=_answer, **several)(command)
    return command


def _print_simgrid(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo("none: the built-in Batsim does without SimGrid")
        ctx.exit()


@click.command("batsim", cls=_EitherBatsim)
@struct_options("scenario", Scenario, machine_states=True, schedule_trace=True)
@option(
    "--protocol",
    "Which Batsim to be: its protocol, its options, its output files.  "
    "[default: 4, or 5 with --edc-socket-str or --edc-socket-file]",
    type=click.Choice(["4", "5"]),
)
@option(
    "-e, --export PREFIX",
    "Where results go: PREFIX_jobs.csv and so on, of Batsim 5 PREFIXjobs.csv.  [default: out, or out/]",
    name="prefix",
)
@option(
    "--edc-socket-str",
    "Batsim 5's -s: where the decision process listens, and a text for it.",
    name="edc_text",
    metavar="ENDPOINT TEXT",
    nargs=2,
)
@option(
    "--edc-socket-file",
    "Batsim 5's -S: the same, with the text in a file.",
    name="edc_file",
    metavar="ENDPOINT FILE",
    nargs=2,
)
@option(
    "-s, --socket-endpoint ENDPOINT",
    "Where the decision process listens.",
    name="endpoint",
    default=DEFAULT_ENDPOINT,
)
@timeout_option("the decision process")
@option(
    "--trace-pstate-changes",
    "Batsim 5's. No effect: changes of power states are always traced where energy is accounted for.",
)
@option("--dump-execution-context", "Print the endpoint and the prefix as JSON, and exit.")
@option(
    "-v, --verbosity",
    "What is logged; network-only logs the messages.",
    type=click.Choice(list(_LEVELS)),
    default="information",
)
@option("-q, --quiet", "The same as -v quiet.")
@option(
    "--install DIR",
    "Write an executable DIR/batsim that is this command, and exit.",
    type=FOLDER,
    expose_value=False,
    is_eager=True,
    callback=lambda ctx, param, folder: _install(ctx, folder),
)
@option(
    "--simgrid-version",
    "Say that there is no SimGrid, and exit.",
    expose_value=False,
    is_eager=True,
    callback=_print_simgrid,
)
@_answered
@click.version_option(__version__, prog_name="batsched-py batsim")
def batsim_command(
    scenario: Scenario,
    protocol: str | None,
    prefix: str | None,
    edc_text: tuple[str, str] | None,
    edc_file: tuple[str, str] | None,
    endpoint: str,
    timeout: float | None,
    trace_pstate_changes: bool,
    dump_execution_context: bool,
    verbosity: str,
    quiet: bool,
) -> None:
    """Simulate workloads on a machine, and ask a decision process over ZeroMQ what to do.

    Takes the options of Batsim 4, so a script that calls `batsim` can call `batsched-py batsim` instead, or
    with --protocol 5 those of Batsim 5, where the decision process says itself what it needs to be enabled.
    Where Batsim aborts, this says which rule was broken by which decision, and exits with code 1.

    \b
    Example, with a decision process in a second terminal:
      batsched-py serve -s easy
      batsched-py batsim -p platform.xml -w workload.json -e out
      batsched-py batsim --protocol 5 -s tcp://localhost:28000 "" -p platform.xml -w workload.json -e out/

    \b
    For scripts that call `batsim` by its name:
      batsched-py batsim --install ~/.local/bin
    """
    config = scenario.settings.scheduler_config
    if edc_text is not None or edc_file is not None:
        endpoint, config = _edc_socket(protocol, edc_text, edc_file)
        protocol = "5"
    is_batsim5 = protocol == "5"
    prefix = prefix or ("out/" if is_batsim5 else "out")
    if dump_execution_context:
        context = {
            "socket_endpoint": endpoint,
            "redis_enabled": False,
            "redis_hostname": "127.0.0.1",
            "redis_port": 6379,
            "redis_prefix": "default",
            "export_prefix": prefix,
            "external_scheduler": True,
        }
        return click.echo(msgspec.json.encode(context))
    for name, level in _LEVELS["quiet" if quiet else verbosity].items():
        logging.getLogger(name).setLevel(level)
    workloads, platform = lazy.build.read_inputs(scenario)
    for workload in workloads:
        lazy.sizes.refuse_in_messages(workload.jobs)
    with lazy.sockets.AskingEnd(endpoint, timeout, _say_that_it_waits(endpoint)) as end:
        process = lazy.decision_side.RemoteProcess(end, lazy.dialects.VERSIONS[protocol or "4"])
        outputs = lazy.outputs.Outputs
        if is_batsim5:
            scenario, outputs = _as_asked(scenario, process, config), lazy.outputs.Batsim5Outputs
        batsim = lazy.build.new_batsim(scenario, platform, workloads, prefix, outputs, is_batsim5)
        lazy.python_engine.simulate(batsim, process)


def _say_that_it_waits(endpoint: str) -> Callable[[float], None]:
    """Tell once, after a while, that no decision process has answered yet."""
    told = False

    def meanwhile(waited: float) -> None:
        nonlocal told
        if waited >= _PATIENCE and not told:
            told = True
            _log.warning(
                "waiting for the decision process at %s; if it does not run yet, start it "
                "(one of ours: batsched-py serve -s easy --endpoint %s)",
                endpoint,
                endpoint,
            )

    return meanwhile


def _install(ctx: click.Context, folder: Path | None) -> None:
    """Write a program of Batsim's name; it needs no virtual environment to be active."""
    if folder is None:
        return
    program = folder / "batsim"
    python = shlex.quote(str(Path(sys.executable).absolute()))
    text = f'{_SHEBANG}\nexec {python} -m batsched_py batsim "$@"\n'
    try:
        if program.exists() and not program.read_bytes().startswith(_SHEBANG.encode()):
            raise InputError(f"{program}: is there already, and is another Batsim; choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        write_file(program, text)
        program.chmod(0o755)
    except OSError as error:
        raise InputError(f"{program}: cannot be written: {error.strerror}") from None
    click.echo(program)
    if str(folder.absolute()) not in os.environ.get("PATH", "").split(os.pathsep):
        click.echo(f"Add {folder} to PATH, so that it is found.", err=True)
    ctx.exit()


def _edc_socket(
    protocol: str | None, text: tuple[str, str] | None, file: tuple[str, str] | None
) -> tuple[str, str]:
    """Where the decision process of a Batsim 5 listens, and the text for it."""
    if protocol == "4":
        raise InputError("--edc-socket-str and --edc-socket-file are Batsim 5's; with --protocol 4 use -s")
    if text is not None and file is not None:
        raise InputError("both --edc-socket-str and --edc-socket-file are given; give one of them")
    if file is not None:
        return file[0], text_in(file[1])
    assert text is not None
    return text


def _as_asked(scenario: Scenario, process: lazy.decision_side.RemoteProcess, config: str) -> Scenario:
    """What is to be simulated, with all enabled for which the decision process asks in its greeting."""
    given = scenario.settings
    sharing = {"compute_sharing": given.compute_sharing, "storage_sharing": given.storage_sharing}
    if given != Settings(**sharing, scheduler_config=given.scheduler_config):
        raise InputError(
            "in protocol 5 the decision process says what is to be enabled; leave these options out"
        )
    asked = process.open(config)
    assert asked is not None
    return replace(scenario, settings=replace(asked, **sharing))


@click.command("platform")
@click.argument("file", metavar="FILE", type=PATH)
@output_option("PLATFORM.xml", "Write it as a platform of SimGrid, for a real Batsim.", type=PATH)
def platform_command(file: Path, output: Path | None) -> None:
    """Show the nodes of a machine: their cores, memory, GPUs, features and partitions.

    FILE is a machine in TOML, a slurm.conf, a system configuration of AccaSim (.config or .json), or a
    platform of SimGrid (.xml). docs/machines.md describes them all.

    \b
    Examples:
      batsched-py platform platforms/cluster.toml
      batsched-py platform slurm.conf
      batsched-py platform slurm.conf --output cluster.xml
    """
    platform = lazy.build.read_machine(Machine(file=str(file)), ())
    machine = lazy.nodes.NodeMachine.of(platform.as_protocol()[0])
    click.echo(f"{len(machine.nodes)} nodes, {len(platform.hosts)} cores")
    alike: dict[str, list[str]] = {}
    for node in machine.nodes:
        alike.setdefault(_text(node), []).append(node.name)
    for kind, names in alike.items():
        example = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        click.echo(f"  {len(names):>6} x {kind}   ({example})")
    partitions = Counter(partition for node in machine.nodes for partition in node.partitions)
    for partition, count in partitions.items():
        cores = sum(node.cores for node in machine.nodes if partition in node.partitions)
        click.echo(f"partition {partition}: {count} nodes, {cores} cores")
    if machine.licences:
        click.echo("licences " + ", ".join(f"{name} {count}" for name, count in machine.licences.items()))
    if output is not None:
        try:
            with writing_text(output) as written:
                written.writelines(f"{line}\n" for line in lazy.simgrid_xml.simgrid_lines(platform))
        except OSError as error:
            raise InputError(f"{output}: cannot write this file ({error.strerror})") from None
        click.echo(f"\n{output}")


def _text(node: lazy.nodes.Node) -> str:
    """What a node has."""
    parts = [f"{node.cores} cores"]
    for name, count in node.resources.items():
        parts.append(f"{count / 1024**2:.4g} GB" if name == "memory" else f"{count} {name}")
    return ", ".join([*parts, *sorted(node.features)])
