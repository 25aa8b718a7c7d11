"""The page that shows what a change would do."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Final

from batsched_py.analysis.pages import write_figures_page
from batsched_py.analysis.pages.parts import figure, section, table, tiles, time_text
from batsched_py.slurm.comparison.figures import usage_figure
from batsched_py.slurm.what_if.outcome import Effect, Outcome

EFFECT_HEADS: Final = ("", "jobs", "mean wait, before", "after", "difference", "who")


def ran_no_more(found: Outcome) -> str:
    """What is told of jobs that run on one side only, if there are any; waits are those of the others."""
    no_more, new = found.all.no_more, found.all.new
    if not no_more and not new:
        return ""
    return (
        f"{no_more:,.0f} jobs run before the change only, {new:,.0f} after it only; waits are those of jobs "
        "that run on both sides"
    )


def write_what_if_page(path: str | Path, found: Outcome) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"What if: {'; '.join(found.changes)}"
    repeated = f", {len(found.seeds)} repetitions" if len(found.seeds) > 1 else ""
    header = f"""<h1>{html.escape(title)}</h1>
<p class="note">Users: {html.escape(found.users)}{repeated}. Differences are of mean waits, after less before,
with a 95 % interval over the repetitions. {ran_no_more(found)}</p>
<div id="tiles">{_tiles(found)}</div>"""
    sections = [
        *(
            section(
                f"By {grouping}",
                "Jobs are short up to an hour and narrow up to eight hosts." if grouping == "class" else "",
                table(
                    "",
                    EFFECT_HEADS,
                    [[html.escape(name), *effect_cells(each)] for name, each in groups.items()],
                ),
                layout="wide",
            )
            for grouping, groups in found.groups.items()
            if groups
        ),
        section("Utilization", "", figure("Cores in use, over time", "utilization"), layout="wide"),
    ]
    levels = dict(zip(("before", "after"), found.levels, strict=True))
    drawn = {"utilization": usage_figure(found.edges, levels)}
    write_figures_page(path, title, header, "".join(sections), drawn)


def effect_cells(effect: Effect) -> list[str]:
    """The cells of a row behind its name."""
    difference = effect.difference
    count = f"{effect.jobs:,.0f}"
    if effect.no_more or effect.new:
        count += f" (-{effect.no_more:,.0f}, +{effect.new:,.0f})"
    if not effect.jobs:
        return [count, "?", "?", "?", effect.verdict]
    mean = round(difference.mean, 1)
    sign = "-" if mean < 0 else "+"
    half = "" if difference.half_width is None else f" ± {time_text(round(difference.half_width, 1))}"
    return [
        count,
        time_text(effect.before),
        time_text(effect.after),
        f"{sign}{time_text(abs(mean))}{half}",
        effect.verdict,
    ]


def _tiles(found: Outcome) -> str:
    shown = effect_cells(found.all)
    before, after = found.utilization
    return tiles(
        [
            ("jobs", shown[0], ""),
            ("mean wait, after", shown[2], f"{shown[1]} before"),
            ("difference", shown[3], shown[4]),
            ("utilization, after", f"{after:.1%}", f"{before:.1%} before"),
        ]
    )
