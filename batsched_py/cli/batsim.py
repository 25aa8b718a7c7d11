"""``batsched-py batsim``: the built-in Batsim as a process of its own; ``platform``: its machines."""

from __future__ import annotations

import logging
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from msgspec.structs import replace

from batsched_py import __version__
from batsched_py.cli.options import FOLDER, PATH, option, struct_options, text_in, timeout_option
from batsched_py.errors import InputError
from batsched_py.experiment import Machine, Scenario
from batsched_py.protocol.events import Settings

if TYPE_CHECKING:
    from batsched_py.ledger.nodes import Node
    from batsched_py.simulator.decision_side import RemoteProcess
    from batsched_py.simulator.platform import Platform


#: Where a decision process is looked for, as Batsim does it.
DEFAULT_ENDPOINT = "tcp://localhost:28000"

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
    from batsched_py.engines.python import simulate
    from batsched_py.experiment.build import new_batsim, read_machine, read_workloads, words_of
    from batsched_py.protocol.dialects import VERSIONS
    from batsched_py.protocol.sizes import refuse_in_messages
    from batsched_py.simulator.decision_side import RemoteProcess
    from batsched_py.simulator.outputs import Batsim5Outputs, Outputs
    from batsched_py.wire.sockets import AskingEnd

    config = scenario.settings.scheduler_config
    if edc_text is not None or edc_file is not None:
        endpoint, config = _edc_socket(protocol, edc_text, edc_file)
        protocol = "5"
    protocol = protocol or "4"
    prefix = prefix or ("out/" if protocol == "5" else "out")
    if dump_execution_context:
        click.echo(msgspec.json.encode(_execution_context(endpoint, prefix)))
        return
    for name, level in _LEVELS["quiet" if quiet else verbosity].items():
        logging.getLogger(name).setLevel(level)
    workloads = read_workloads(scenario.workloads, words=words_of(scenario.machine))
    platform = read_machine(scenario.machine, workloads)
    for workload in workloads:
        refuse_in_messages(workload.jobs)
    with AskingEnd(endpoint, timeout) as end:
        process = RemoteProcess(end, VERSIONS[protocol])
        if protocol == "4":
            batsim = new_batsim(scenario, platform, workloads, prefix, Outputs)
        else:
            scenario = _as_asked(scenario, process, config)
            batsim = new_batsim(scenario, platform, workloads, prefix, Batsim5Outputs, generic_events=True)
        simulate(batsim, process)


def _execution_context(endpoint: str, prefix: str) -> dict[str, object]:
    """What Batsim tells of its conversation and its files."""
    return {
        "socket_endpoint": endpoint,
        "redis_enabled": False,
        "redis_hostname": "127.0.0.1",
        "redis_port": 6379,
        "redis_prefix": "default",
        "export_prefix": prefix,
        "external_scheduler": True,
    }


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
        program.write_text(text, encoding="utf-8")
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
    if text is not None:
        return text
    assert file is not None
    return file[0], text_in(file[1])


def _as_asked(scenario: Scenario, process: RemoteProcess, config: str) -> Scenario:
    """What is to be simulated, with all enabled for which the decision process asks in its greeting."""
    given = scenario.settings
    usual = Settings(
        compute_sharing=given.compute_sharing,
        storage_sharing=given.storage_sharing,
        scheduler_config=given.scheduler_config,
    )
    if given != usual:
        raise InputError(
            "in protocol 5 the decision process says what is to be enabled; leave these options out"
        )
    asked = process.open(config)
    assert asked is not None
    settings = replace(asked, compute_sharing=given.compute_sharing, storage_sharing=given.storage_sharing)
    return replace(scenario, settings=settings)


@click.command("platform")
@click.argument("file", metavar="FILE", type=PATH)
@option("-o, --output PLATFORM.xml", "Write it as a platform of SimGrid, for a real Batsim.", type=PATH)
def platform_command(file: Path, output: Path | None) -> None:
    """Show the nodes of a machine: their cores, memory, GPUs, features and partitions.

    FILE is a machine in TOML, a slurm.conf, a system configuration of AccaSim (.config or .json), or a
    platform of SimGrid (.xml). docs/machines.md describes them all.

    \b
    Examples:
      batsched-py platform platforms/cluster.toml
      batsched-py platform slurm.conf
      batsched-py platform slurm.conf -o cluster.xml
    """
    from batsched_py.experiment.build import read_machine
    from batsched_py.ledger.nodes import NodeMachine

    platform = read_machine(Machine(file=str(file)), ())
    machine = NodeMachine.of(platform.as_protocol()[0])
    click.echo(f"{len(machine.nodes)} nodes, {len(platform.hosts)} cores")
    for (kind, count), example in _kinds(machine.nodes).items():
        click.echo(f"  {count:>6} x {kind}   ({example})")
    partitions = Counter(partition for node in machine.nodes for partition in node.partitions)
    for partition, count in partitions.items():
        cores = sum(node.cores for node in machine.nodes if partition in node.partitions)
        click.echo(f"partition {partition}: {count} nodes, {cores} cores")
    if machine.licences:
        click.echo("licences " + ", ".join(f"{name} {count}" for name, count in machine.licences.items()))
    if output is not None:
        _write(output, platform)
        click.echo(f"\n{output}")


def _kinds(nodes: Sequence[Node]) -> dict[tuple[str, int], str]:
    """What nodes have that are alike, how many there are, and the names of the first and the last one."""
    alike: dict[str, list[str]] = {}
    for node in nodes:
        alike.setdefault(_text(node), []).append(node.name)
    return {
        (kind, len(names)): names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
        for kind, names in alike.items()
    }


def _text(node: Node) -> str:
    parts = [f"{node.cores} cores"]
    for name, count in node.resources.items():
        parts.append(f"{count / 1024**2:.4g} GB" if name == "memory" else f"{count} {name}")
    return ", ".join([*parts, *sorted(node.features)])


def _write(path: Path, platform: Platform) -> None:
    from batsched_py.simulator.simgrid_xml import simgrid_lines

    try:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in simgrid_lines(platform))
    except OSError as error:
        raise InputError(f"{path}: cannot write this file ({error.strerror})") from None
