"""The command ``batsched-py``: finds its commands, and turns errors into one line and an exit code."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # the part of ``signal`` that needs no loading
import errno
import gc
import importlib
import os
import sys
import traceback
from functools import partial
from types import FrameType
from typing import IO, Any, TextIO

import click

from batsched_py import __version__
from batsched_py.cli import once_loaded
from batsched_py.cli.told import Helpful, Told
from batsched_py.errors import BatschedError, did_you_mean
from batsched_py.protocol.shown import harmless, printable


class Failure(click.ClickException):
    """How a command that did not succeed tells so."""

    def show(self, file: IO[Any] | None = None) -> None:
        """Print one line."""
        click.echo(f"batsched-py: {harmless(self.message)}", file=file or sys.stderr)


class Interrupted(Failure):
    """Ctrl-C was pressed."""

    exit_code = 128 + signal.SIGINT


class Terminated(Failure):
    """SIGTERM was sent."""

    exit_code = 128 + signal.SIGTERM


class HungUp(Failure):
    """SIGHUP was sent: the terminal is gone."""

    exit_code = 128 + signal.SIGHUP


class SigTerm(KeyboardInterrupt):
    """Stops a command from wherever it is, as Ctrl-C does."""


class SigHup(KeyboardInterrupt):
    """The same."""


#: Every command: the module where it is ``NAME_command``, and what it is good for. A room that uses
#: this one has its commands in its own ``commands.py``; here they are known by name only.
COMMANDS = {
    "batsim": ("cli.batsim", "The built-in Batsim, with Batsim's options."),
    "benchmark": ("benchmark.commands", "Compare policies on fixed tasks that anyone can repeat."),
    "calibrate": ("cli.validate", "Tell how far a simulation may be trusted for a log."),
    "campaign": ("cli.campaign", "Run a whole plan of simulations."),
    "change": ("cli.logs", "Cut, scale, filter, clean or shake a log."),
    "changes": ("cli.listings", "List or describe the changes of a log."),
    "check": ("cli.check", "Try a scheduler in any language."),
    "compare": ("cli.generate", "Compare models with the log they learn from."),
    "convert": ("cli.logs", "Convert logs: SWF, Batsim, sacct, PBS, CSV, Parquet."),
    "describe": ("cli.logs", "Describe a log, as text, JSON or a page."),
    "diff": ("cli.metrics", "Compare two executions of one workload, job by job."),
    "explain": ("cli.metrics", "Tell why a job waited."),
    "fit": ("cli.generate", "Fit a model to a log and save it."),
    "generate": ("cli.generate", "Generate a log from a model."),
    "list": ("cli.listings", "List schedulers, users, models and changes, or describe one."),
    "metrics": ("cli.metrics", "Measure a schedule."),
    "models": ("cli.listings", "List or describe the models that generate logs."),
    "platform": ("cli.batsim", "Show the nodes of a machine."),
    "plot": ("cli.plot", "Draw figures of schedules, logs and sessions."),
    "record": ("cli.serve", "Write down a conversation."),
    "replay": ("cli.serve", "Hold a recorded conversation again."),
    "resample": ("cli.generate", "Make a new log of the users of an old one."),
    "review": ("cli.review", "Tell what a reviewer would object to in a study."),
    "run": ("cli.run", "Simulate a workload, in one process."),
    "saturation": ("cli.validate", "Search for the load at which a machine falls behind."),
    "schedulers": ("cli.listings", "List or describe the schedulers."),
    "serve": ("cli.serve", "Decide for a Batsim in another process."),
    "sessions": ("cli.logs", "Cut the jobs of a log's users into sessions."),
    "slurm": ("slurm.commands", "Simulate a Slurm cluster from its files."),
    "status": ("cli.run", "Ask a simulation in another process how far it is."),
    "tune": ("tuning.commands", "Search the settings of a scheduler."),
    "users": ("cli.listings", "List or describe the behaviours of users."),
    "validate": ("cli.validate", "Check a schedule for violations."),
}


class Suggesting(Helpful, click.Group):
    """A group that finds its commands by itself, and says which one may have been meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is called; a word that is none ends in an error."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], self.list_commands(ctx))}.")
        return super().resolve_command(ctx, args)


class Commands(Suggesting):
    """A command is imported when it is asked for, and not to list it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, if there is one."""
        if cmd_name not in COMMANDS:
            return None
        module, _ = COMMANDS[cmd_name]
        command: click.Command = getattr(
            importlib.import_module(f"batsched_py.{module}"), f"{cmd_name}_command"
        )
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, use) for name, (_, use) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; what it raises for the user to read becomes one line."""
        try:
            return super().invoke(ctx)
        except BatschedError as error:
            if ctx.params["verbose"]:
                click.echo(printable(traceback.format_exc()), err=True, nl=False)
            raise Failure(f"error: {error}") from None
        except MemoryError:
            raise Failure("error: there is not enough memory for this") from None
        except SigTerm:
            raise Terminated("stopped by SIGTERM") from None
        except SigHup:
            raise HungUp("stopped by SIGHUP") from None
        except RecursionError:
            raise Failure("error: something is nested too deeply, in a file or in code of yours") from None
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise
            raise Failure(f"error: {error.strerror or error}{_named(error)}") from None
        except KeyboardInterrupt as stop:
            raise Interrupted(str(stop) or "stopped by Ctrl-C") from None


def _show_version(ctx: click.Context, option: click.Parameter, asked: bool) -> None:
    if asked:
        from batsched_py.native import describe

        click.echo(f"batsched-py {__version__} ({describe()})")
        ctx.exit()


@click.group("batsched-py", cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-v", "--verbose", cls=Told, is_flag=True, help="Log what is done, and show where errors come from."
)
@click.option(
    "--version",
    cls=Told,
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and which engine is in use, and exit.",
)
def batsched_py(verbose: bool) -> None:
    """A workbench for research on HPC job scheduling, compatible with Batsim.

    \b
    Simulate a log with EASY backfilling, all in one process:
      batsched-py run -w KTH-SP2.swf.gz -s easy
    Answer a Batsim that runs elsewhere:
      batsched-py serve -s easy
    See which schedulers, users, models and changes of logs there are:
      batsched-py list
    """
    if verbose:
        _show_what_is_logged(sys.stderr, verbose)
    else:
        once_loaded("logging", partial(_show_what_is_logged, sys.stderr, verbose))
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:  # which is what nohup asks for
        signal.signal(signal.SIGHUP, _hang_up)


def _show_what_is_logged(stream: TextIO, verbose: bool) -> None:
    from batsched_py.cli.logged import show_what_is_logged

    show_what_is_logged(stream, verbose)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise SigTerm


def _hang_up(number: int, frame: FrameType | None) -> None:
    raise SigHup


def _named(error: OSError) -> str:
    return f": {error.filename}" if error.filename else ""


def main() -> None:
    """Run the command line.

    Python does not look for garbage when the process ends.
    Nothing here multiplies large matrices, and the threads that numpy starts for that take half of the time
    in which it is loaded.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        batsched_py(prog_name="batsched-py")
    except OSError as error:  # of stdout, for --help is shown before any command begins
        Failure(f"error: {error.strerror}").show()
        sys.exit(1)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing is left to be tidied up
        gc.freeze()
        _say_all()


def _say_all() -> None:
    """Write what stdout still has to say; a device without room is told of in one line."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if error.errno != errno.EPIPE:
            Failure(f"error: stdout cannot be written: {error.strerror}").show()
            sys.exit(1)
