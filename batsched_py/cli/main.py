"""The command ``batsched-py``: finds its commands, and turns errors into one line and an exit code."""

from __future__ import annotations

import importlib.util
import logging
import pkgutil
import signal
import sys
import traceback
from types import FrameType
from typing import IO, Any

import click

from batsched_py import __version__, cli
from batsched_py.errors import BatschedError


class Failure(click.ClickException):
    """How a command that did not succeed tells so."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print one line."""
        click.echo(f"batsched-py: {' '.join(self.message.split())}", file=file or sys.stderr)


class Interrupted(Failure):
    """Ctrl-C was pressed."""

    exit_code = 128 + signal.SIGINT


class Terminated(Failure):
    """SIGTERM was sent."""

    exit_code = 128 + signal.SIGTERM


class SigTerm(KeyboardInterrupt):
    """Stops a command from wherever it is, as Ctrl-C does."""


class Commands(click.Group):
    """Each module beside this one that defines ``command`` is a command, imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        names = [module.name.replace("_", "-") for module in pkgutil.iter_modules(cli.__path__)]
        return [name for name in names if self.get_command(ctx, name) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        module = f"{cli.__name__}.{cmd_name.replace('-', '_')}"
        if importlib.util.find_spec(module) is None:
            return None
        return getattr(importlib.import_module(module), "command", None)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it raises for the user to read becomes one line."""
        try:
            return super().invoke(ctx)
        except BatschedError as error:
            if ctx.params["verbose"]:
                traceback.print_exc()
            raise Failure(f"error: {error}") from None
        except SigTerm:
            raise Terminated("stopped by SIGTERM") from None
        except KeyboardInterrupt:
            raise Interrupted("stopped by Ctrl-C") from None


class OneLine(logging.Formatter):
    """What is logged looks like the errors of the command."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        return f"batsched-py: {record.levelname.lower()}: {' '.join(record.getMessage().split())}"


@click.group("batsched-py", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-v", "--verbose", is_flag=True, help="Log what is done, and show where errors come from.")
@click.version_option(__version__, prog_name="batsched-py")
def batsched_py(verbose: bool) -> None:
    """A workbench for research on HPC job scheduling, compatible with Batsim.

    \b
    Simulate a log with EASY backfilling, all in one process:
      batsched-py run -w KTH-SP2.swf.gz -s easy
    Answer a Batsim that runs elsewhere:
      batsched-py serve -s easy
    See which schedulers there are:
      batsched-py schedulers
    """
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    logging.basicConfig(handlers=[handler])
    if verbose:
        logging.getLogger("batsched_py").setLevel(logging.DEBUG)
    signal.signal(signal.SIGTERM, _terminate)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SigTerm


def main() -> None:
    """Run the command line."""
    batsched_py(prog_name="batsched-py")
