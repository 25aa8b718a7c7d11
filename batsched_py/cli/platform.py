"""``batsched-py platform``: what a machine has, and the same machine for a real Batsim."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from batsched_py.ledger.nodes import Node
    from batsched_py.simulator.platform import Platform


@click.command("platform")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="PLATFORM.xml",
    type=click.Path(path_type=Path),
    help="Write it as a platform of SimGrid, for a real Batsim.",
)
def command(file: Path, output: Path | None) -> None:
    """Show the nodes of a machine: their cores, memory, GPUs, features and partitions.

    FILE is a machine in TOML, a slurm.conf, a system configuration of AccaSim (.config or .json), or a
    platform of SimGrid (.xml). docs/machines.md describes them all.

    \b
    Examples:
      batsched-py platform platforms/cluster.toml
      batsched-py platform slurm.conf
      batsched-py platform slurm.conf -o cluster.xml
    """
    from batsched_py.experiment import Machine
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
