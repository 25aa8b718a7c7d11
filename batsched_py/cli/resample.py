"""``batsched-py resample``: a new log made of the users of an old one."""

from __future__ import annotations

import click

from batsched_py.cli.options import FILE


@click.command("resample")
@click.argument("log_file", metavar="LOG.swf", type=FILE)
@click.option("--weeks", metavar="N", type=click.IntRange(1), help="How long.  [default: as the log]")
@click.option(
    "--seed",
    metavar="S",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Another seed gives another log.",
)
@click.option(
    "--load",
    metavar="F",
    type=click.FloatRange(min=0, min_open=True),
    default=1.0,
    show_default=True,
    help="How many times the users of the log there are.",
)
@click.option(
    "-u",
    "--user-option",
    "settings",
    metavar="KEY=VALUE",
    multiple=True,
    help="Another option of `batsched-py users resample`, like long_term=8 or oversample=12:5.",
)
@click.option("-o", "--output", metavar="OUT.swf", type=FILE, required=True, help="Where the new log goes.")
def command(
    log_file: str, weeks: int | None, seed: int, load: float, settings: tuple[str, ...], output: str
) -> None:
    """Write a log in which new users, each with the jobs of one of LOG.swf, come and go.

    Every job keeps its weekday and its time of the day. The same seed gives the same bytes. With feedback,
    the same population is `batsched-py run --users resample`.

    \b
    Examples:
      batsched-py resample KTH-SP2.swf.gz --weeks 520 --seed 1 -o ten-years.swf.gz
      batsched-py resample KTH-SP2.swf.gz --load 1.5 -u oversample=93:10 -o busy.swf
    """
    from batsched_py.errors import InputError
    from batsched_py.users import USERS
    from batsched_py.users.resample import Resample, resampled_log
    from batsched_py.workload.swf.log import write_swf
    from batsched_py.workload.swf.reader import read_swf

    options = {"weeks": str(weeks or 0), "seed": str(seed), "load": str(load)}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"-u {text}: write KEY=VALUE")
        options[key] = value
    population = USERS.create("resample", options)
    assert isinstance(population, Resample)
    new = resampled_log(read_swf(log_file), population)
    try:
        write_swf(output, new)
    except OSError as error:
        raise InputError(f"{output}: cannot be written: {error.strerror}") from None
    click.echo(f"{output}: {len(new)} jobs by {len(set(new.user.tolist()))} users")
