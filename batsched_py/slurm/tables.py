"""Tables of schedules of Slurm on the terminal."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from batsched_py.analysis.pages import time_text
from batsched_py.api.console import console_for_tables
from batsched_py.protocol.shown import harmless
from batsched_py.slurm.comparison import HEADS, Comparison, cells
from batsched_py.slurm.forecast import backtest, page
from batsched_py.slurm.forecast.forecast import Forecast
from batsched_py.slurm.prepared import Range, Spread
from batsched_py.slurm.what_if import EFFECT_HEADS, Outcome, effect_cells, ran_no_more
from batsched_py.slurm.worth import Worth

#: So many groups of a kind are printed, the busiest ones; the page and the JSON have all of them.
SHOWN = 12


def comparison_tables(found: Comparison) -> None:
    """Print a recorded schedule beside a simulated one."""
    console = console_for_tables()
    console.print(f"{harmless(found.recorded)} (recorded) and {harmless(found.simulated)} (simulated)")
    if found.only_recorded or found.only_simulated:
        console.print(
            f"{found.only_recorded} jobs ran in the first only, {found.only_simulated} in the second only"
        )
    console.print(filled(HEADS, {"all jobs": cells(found.all)}))
    for grouping, groups in found.groups.items():
        if groups:
            console.print(f"\nby {grouping}")
            console.print(filled(HEADS, {name: cells(groups[name]) for name in list(groups)[:SHOWN]}))
            if len(groups) > SHOWN:
                console.print(f"and {len(groups) - SHOWN} more, which --json and --output show")


def worth_tables(found: Worth) -> None:
    """Print what a twin is worth: recorded beside simulated waits, a verdict, and what may be the cause."""
    console = console_for_tables()
    console.print(f"The log, simulated {found.draws} times, beside what was recorded")
    if found.only_recorded:
        console.print(f"{found.only_recorded} jobs ran when they were recorded, and do not when simulated")
    rows = {"all jobs": cells(found.all)}
    for grouping in ("partition", "account", "qos"):
        groups = found.groups.get(grouping, {})
        rows |= {f"{grouping} {name}": cells(groups[name]) for name in list(groups)[:SHOWN]}
    console.print(filled(HEADS, rows))
    console.print(f"Verdict: {found.verdict.trust}. {found.verdict.words}")
    for reason in found.verdict.reasons:
        console.print(f"  {harmless(reason)}")
    if found.causes:
        console.print("What is not modelled, and may be why they differ:")
        for cause in found.causes:
            console.print(f"  {harmless(cause)}")


def backtest_table(found: backtest.Backtest) -> None:
    """Print how good forecasts were."""
    console = console_for_tables()
    console.print(harmless(backtest.explained(found)))
    rows = {"all jobs": found.all, **found.groups}
    console.print(filled(backtest.HEADS, {name: backtest.score_cells(score) for name, score in rows.items()}))


def spread_table(found: Spread) -> None:
    """Print how far simulations are from recordings."""
    heads = ["", "of", "mean", "least", "most"]
    rows = {
        "mean wait, recorded": [f"{found.recordings} recordings", *_range(found.recorded_wait)],
        "mean wait, simulated": [f"{found.simulations} simulations", *_range(found.wait)],
    }
    if found.recordings_apart is not None:
        rows["starts apart, two recordings"] = ["pairs", *_range(found.recordings_apart)]
    rows["starts apart, simulated"] = [f"{found.simulations} simulations", *_range(found.starts_apart)]
    console = console_for_tables()
    console.print(filled(heads, rows))
    if found.deviation is not None:
        console.print(f"deviation of the mean wait: {found.deviation:+.1%}")


def _range(found: Range) -> list[str]:
    return [time_text(each) for each in (found.mean, found.least, found.most)]


def what_if_tables(found: Outcome) -> None:
    """Print who gains and who loses by a change."""
    console = console_for_tables()
    repetitions = f", {len(found.seeds)} repetitions" if len(found.seeds) > 1 else ""
    console.print(f"{harmless('; '.join(found.changes))} (users: {harmless(found.users)}{repetitions})")
    console.print("utilization: {:.1%} before, {:.1%} after".format(*found.utilization))
    if told := ran_no_more(found):
        console.print(told)
    console.print(filled(EFFECT_HEADS, {"all jobs": effect_cells(found.all)}))
    for grouping, groups in found.groups.items():
        if groups:
            console.print(f"\nby {grouping}, those who gain most first")
            names = list(groups)
            chosen = names if len(names) <= SHOWN else names[: SHOWN // 2] + names[-SHOWN // 2 :]
            console.print(filled(EFFECT_HEADS, {name: effect_cells(groups[name]) for name in chosen}))
            if len(names) > SHOWN:
                console.print(f"and {len(names) - SHOWN} between them, which --json and --output show")


def forecast_table(found: Forecast) -> None:
    """Print when jobs will start."""
    console = console_for_tables()
    console.print(
        f"{found.now} UTC: {len(found.jobs)} jobs wait, {found.running} run, {found.held} are held"
        + (f"; run times were drawn {found.repetitions} times" if found.repetitions else "")
    )
    console.print(page.what_is_left_out(found))
    if found.misplaced:
        console.print(f"{found.misplaced} running jobs do not fit on their nodes, as it seems")
    heads = page.forecast_heads(found)
    console.print(filled(heads, {job.id: page.forecast_cells(job, found) for job in found.jobs}))
    if found.instead is not None:
        console.print(f"\njob {harmless(found.instead.id)}, as it is and instead")
        rows = {
            name: page.forecast_cells(job, found) for name, job in page.as_it_is_and_instead(found).items()
        }
        console.print(filled(heads, rows))
    if found.advice:
        console.print(f"\n{harmless(page.advice_title(found))}, what gains most first")
        rows = {each.option: page.advice_cells(each, found) for each in found.advice}
        console.print(filled(page.advice_heads(found), rows))


def filled(heads: Sequence[str], rows: Mapping[str, Sequence[str]]) -> Table:
    """A table whose rows have names."""
    table = Table(box=None, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="right" if place else "left")
    for name, row in rows.items():
        table.add_row(harmless(name), *row)
    return table
