"""``batsched-py status``: how far a simulation in another process is."""

from __future__ import annotations

import click


@click.command("status")
@click.argument("address", default="out_status.sock", metavar="[ADDRESS]")
def command(address: str) -> None:
    """Ask a simulation in another process of this machine how far it is, and print its answer as JSON.

    The simulation must have been begun with --status. ADDRESS is what it was given there: a port, or the name
    of a file; without one, out_status.sock. The answer has the simulated time, how many jobs wait, run and
    have ended, how much of the machine is in use, and the time and memory that the simulation took.

    \b
    Examples:
      batsched-py run -w KTH-SP2.swf.gz -s conservative --status &
      batsched-py status
      batsched-py run -w KTH-SP2.swf.gz -s conservative --status 8765 &
      batsched-py status 8765
    """
    import msgspec

    from batsched_py.errors import InputError
    from batsched_py.watch.status_socket import ask

    told = ask(address)
    try:
        click.echo(msgspec.json.format(told.strip(), indent=2))
    except msgspec.DecodeError:
        raise InputError(f"what answers at {address} is no simulation of ours") from None
