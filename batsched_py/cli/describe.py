"""``batsched-py describe``: what a researcher wants to know of a log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from batsched_py.api.progress import waiting
from batsched_py.api.quantities import duration
from batsched_py.api.terminal import say
from batsched_py.cli.pairs import pairs_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from batsched_py.workload.description import Description
    from batsched_py.workload.description.distributions import Distribution


@click.command("describe")
@click.argument("source", metavar="LOG", type=click.Path(path_type=Path))
@click.option("--from", "kind", metavar="KIND", help="What LOG is, if its name does not tell.")
@pairs_option("-i", "--input-option", "options", "An option of the kind of LOG, like zone=Europe/Paris.")
@click.option("--json", "as_json", is_flag=True, help="Print all figures as JSON.")
@click.option(
    "-o", "--output", metavar="PAGE.html", type=click.Path(path_type=Path), help="Write a page with figures."
)
def command(
    source: Path, kind: str | None, options: dict[str, str], as_json: bool, output: Path | None
) -> None:
    """Describe a LOG of any kind: its load, users, cycles, distributions, bags of tasks, burstiness, memory.

    Bad and suspicious records are counted by kind. docs/workloads.md has the definition of every figure.

    \b
    Examples:
      batsched-py describe HPC2N.swf.gz
      batsched-py describe HPC2N.swf.gz -o hpc2n.html
      batsched-py describe jobs.csv -i columns=submit:SubmittedAt,run_time:Seconds
      batsched-py describe HPC2N.swf.gz --json | jq .burstiness
    """
    from batsched_py.workload.description import describe
    from batsched_py.workload.sources import read_log

    with waiting(f"Describing {source.name}"):
        description = describe(read_log(source, kind, options))
        if output is not None:
            from batsched_py.analysis.log_page import write_log_page

            write_log_page(output, description)
    if as_json:
        import msgspec

        say(msgspec.json.format(msgspec.json.encode(description)))
        return
    for title, rows in _sections(description).items():
        say(f"\n{title}")
        for label, value in rows:
            say(f"  {label:<44}{value:>20}")
    if output is not None:
        say(f"\n{output}")


def _sections(known: Description) -> dict[str, list[tuple[str, str]]]:
    load, users, spread = known.load, known.users, known.distributions
    return {
        known.name: [
            ("jobs", f"{load.jobs:,}"),
            ("users", f"{load.users:,}"),
            ("processors", f"{load.machine:,}" if load.machine else "unknown"),
            ("from first to last submission", duration(load.duration)),
            ("load", _share(load.load)),
            ("utilization", _share(load.utilization)),
            ("users who submit half of the jobs", f"{users.half_of_jobs:,}"),
            ("sessions (an hour of silence between)", f"{users.sessions:,}"),
            ("mean jobs of a session", f"{users.jobs_per_session.mean:.2f}"),
            ("submitted in working hours", _share(known.cycles.working_hours)),
            ("submitted at weekends", _share(known.cycles.weekend)),
        ],
        "Bad and suspicious records": [*_records(known)] or [("none", "")],
        "Flurries and dominating users": [*_outstanding(known)] or [("none", "")],
        f"The {known.characterised:,} jobs that completed": [
            *_distribution("run time", spread.run_time),
            *_distribution("time between submissions", spread.interarrival),
            ("median size", f"{spread.size.median:g}"),
            ("mean size", f"{spread.size.mean:.2f}"),
            ("serial", _share(spread.serial)),
            ("of parallel jobs, on a power of two", _share(spread.powers_of_two)),
            (
                "mean of run time over requested time",
                _number(spread.accuracy.mean if spread.accuracy else None),
            ),
            ("correlation of run time and size", _number(known.correlation.pearson)),
            ("rank correlation", _number(known.correlation.spearman)),
            ("spatial burstiness (entropy)", _number(known.burstiness.spatial)),
            *(
                (f"temporal burstiness (entropy), {scale}", _number(value))
                for scale, value in known.burstiness.temporal.items()
            ),
            *_memory(known),
            ("agree with the user's previous job", _share(known.locality.repetition)),
        ],
        f"Bags of tasks (delta {known.bags.delta:g} s)": [*_bags(known)],
    }


def _distribution(name: str, known: Distribution | None) -> Iterator[tuple[str, str]]:
    if known is not None:
        yield f"median {name}", duration(known.median)
        yield f"mean {name}", duration(known.mean)


def _records(known: Description) -> Iterator[tuple[str, str]]:
    quality = known.quality
    for kind, counts in (("left out", quality.left_out), ("guessed", quality.guessed)):
        yield from ((f"{kind}: {what}", f"{count:,}") for what, count in counts.items())
    yield from ((what, f"{count:,}") for what, count in quality.suspicious.items())
    yield from ((f"unknown {what}", f"{count:,}") for what, count in quality.unknown.items())


def _outstanding(known: Description) -> Iterator[tuple[str, str]]:
    for flurry in known.flurries.flurries:
        yield (
            f"user {flurry.user} in weeks {flurry.first_week}-{flurry.last_week}",
            f"{flurry.jobs:,} jobs ({flurry.share_of_jobs:.0%})",
        )
    for user in known.flurries.dominating:
        yield f"user {user.user} in all of the log", f"{user.jobs:,} jobs ({user.share_of_jobs:.0%})"


def _memory(known: Description) -> Iterator[tuple[str, str]]:
    if known.memory is not None:
        yield "Hurst parameter of arrivals, median", _number(known.memory.median)
        yield "  aggregated variance", _number(known.memory.aggregated_variance)
        yield "  detrended fluctuation", _number(known.memory.detrended_fluctuation)
        yield "  local Whittle", _number(known.memory.local_whittle)
        yield "  wavelets", _number(known.memory.wavelet)


def _bags(known: Description) -> Iterator[tuple[str, str]]:
    for name, bags in (("contiguous", known.bags.contiguous), ("per key", known.bags.per_key)):
        yield f"share of jobs, {name}", f"{bags.share_of_jobs:.1%}"
        yield f"bags of two or more, {name}", f"{bags.bags:,}"
        yield f"exponent of Zipf sizes, {name}", f"{bags.zipf_exponent:.2f}"
    for each in known.bags.contiguous.variability:
        if each.variability is not None:
            yield (
                f"deviation within bags of {each.run_time_from:g} to {each.run_time_to:g} s",
                f"{each.variability:,.0f} s",
            )


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
