"""``batsched-py change``: a log, cut, scaled, cleaned, shaken."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from batsched_py.api.terminal import say


@click.command("change")
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path))
@click.argument("target", metavar="OUT", type=click.Path(path_type=Path))
@click.argument("words", metavar="CHANGE [OPTION=VALUE]...", nargs=-1)
@click.option(
    "--parts",
    metavar="EVERY",
    help="Cut the result into parts of a week, a month or a span like 28d, and write OUT with -1, -2, ... "
    "before its ending.",
)
def command(source: Path, target: Path, words: Sequence[str], parts: str | None) -> None:
    """Change a LOG step by step and write it to OUT; each step is a line in the header of OUT.

    A step is the name of a change and its options; `batsched-py changes` lists them.

    \b
    Examples:
      batsched-py change HPC2N.swf.gz jan.swf period start=2003-01-01 end=2003-02-01
      batsched-py change LOG.swf busier.swf flurries load factor=1.2 by=arrivals
      batsched-py change LOG.swf users.swf users drop=2 first jobs=10000 estimates rule=exact
      batsched-py change LOG.swf week.swf --parts week
    """
    from batsched_py.workload.changes import HISTORY, change_log, parse_changes, split
    from batsched_py.workload.sources import read_log, write_log

    steps = parse_changes(words)
    log = change_log(read_log(source), steps)
    for line in log.header.get(HISTORY, "").split("\n"):
        say(f"  {line}" if line else "  nothing changed")
    if parts is None:
        write_log(target, log)
        say(f"{target}: {len(log):,} jobs")
        return
    ending = "".join(target.suffixes) if target.name.lower().endswith(".swf.gz") else target.suffix
    for number, part in enumerate(split(log, parts), start=1):
        file = target.with_name(f"{target.name.removesuffix(ending)}-{number}{ending}")
        write_log(file, part)
        say(f"{file}: {len(part):,} jobs")
