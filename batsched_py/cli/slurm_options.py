"""What the commands of ``batsched-py slurm`` have in common."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from batsched_py.api.terminal import say
from batsched_py.errors import InputError

if TYPE_CHECKING:
    from batsched_py.slurm.findings import Mistakes

T = TypeVar("T")

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)

#: So many lines of what is not modelled are printed; the file has all of them.
SHOWN = 40

#: So many mistakes are printed.
MOST_MISTAKES = 100

accounts_option = click.option(
    "--accounts",
    metavar="FILE",
    type=FILE,
    multiple=True,
    help="What `sacctmgr dump`, `sacctmgr -P show assoc`, `sacctmgr -P show qos` or `sshare -P -a` printed; "
    "may be given several times.",
)
reservations_option = click.option(
    "--reservations",
    metavar="FILE",
    type=FILE,
    multiple=True,
    help="What `scontrol show reservation` printed, or a script (.sh) with lines `scontrol create "
    "reservation ...`; it is read, not executed.",
)
zone_option = click.option(
    "--zone", metavar="ZONE", default="UTC", show_default=True, help="Time zone of all dates."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
page_option = click.option("--output", metavar="PAGE.html", type=FILE, help="Write a page.")


def tell(
    found: T,
    as_json: bool,
    page: Path | None,
    write_page: Callable[[Path, T], None],
    print_tables: Callable[[T], None],
) -> None:
    """Write a page if one is wanted, and print what was found, as JSON or as tables."""
    if page is not None:
        write_page(page, found)
    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(found)))
        return
    print_tables(found)
    if page is not None:
        click.echo(f"\n{page}")


def told_one_by_one(mistakes: Mistakes) -> InputError:
    """Print the mistakes, one a line; the last one ends the command."""
    *others, last = mistakes.found[: MOST_MISTAKES + 1]
    for mistake in others:
        say(f"batsched-py: error: {mistake}", err=True)
    more = len(mistakes.found) - MOST_MISTAKES
    return InputError(str(last) if more <= 1 else f"{more} more mistakes like these")
