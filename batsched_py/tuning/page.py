"""What a search has found, as a page and on the terminal: history, front, what matters, whether it holds."""

import html
import os
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

from batsched_py.analysis import pages
from batsched_py.api.console import print_table
from batsched_py.api.terminal import say
from batsched_py.tuning.held_out import Compared, Group
from batsched_py.tuning.space import str_of
from batsched_py.tuning.tune import Finalist, Tuned

HEADS = ("objective", "today", "found", "gain", "p (Holm)", "sign test", "parts", "in the search", "")
GROUP_HEADS = ("jobs of", "number", "mean wait today", "found", "difference", "")


def settings_text(settings: Mapping[str, float | int | str]) -> str:
    """Settings on a line.

    >>> settings_text({"a": 1.5, "order": "shortest"})
    'a = 1.5, order = shortest'
    """
    return ", ".join(f"{name} = {str_of(value)}" for name, value in settings.items())


def compared_cells(each: Compared) -> list[str]:
    """The cells of a comparison."""
    gain = "?" if each.gain is None else f"{each.gain:.1%}"
    if each.low is not None and each.high is not None:
        gain += f" [{each.low:.1%}, {each.high:.1%}]"
    return [
        each.objective,
        f"{each.today:,.4g}",
        f"{each.found:,.4g}",
        gain,
        _p(each.holm_p_value),
        _p(each.sign_p_value),
        str(each.nb_parts),
        "?" if each.search_gain is None else f"{each.search_gain:.1%}",
        "holds" if each.holds else "not shown",
    ]


def group_cells(group: Group) -> list[str]:
    """The cells of a group of jobs."""
    mean, half = group.difference.mean, group.difference.half_width
    sign = "-" if mean < 0 else "+"
    more = "" if half is None else f" ± {pages.time_text(half)}"
    return [
        f"{group.kind} {group.name}",
        f"{group.jobs:,}",
        pages.time_text(group.today),
        pages.time_text(group.found),
        f"{sign}{pages.time_text(abs(mean))}{more}",
        group.verdict,
    ]


def _p(value: float | None) -> str:
    return "?" if value is None else f"{value:.2g}"


def write_tuned_page(path: str | Path, found: Tuned) -> None:
    """Write the page: one file that needs no other and no network."""
    title = found.title or f"Tuning: {found.name}"
    said = "".join(f'<p class="note"><b>{html.escape(text)}</b></p>' for text in found.warnings)
    header = (
        f"<h1>{html.escape(title)}</h1>\n"
        f'<p class="note">Settings were searched on parts {_numbers(found.search_parts)} of the log, and '
        f"compared with today's on parts {_numbers(found.held_out_parts)}, which the search has not seen. "
        "Gains are geometric means over parts, with 95 % intervals.</p>\n"
        f'{said}<div id="tiles">{_tiles(found)}</div>'
    )
    figures = {"history": _history(found), "importance": _importance(found)}
    shown = [
        pages.figure("The trials, in their order", "history"),
        pages.figure("What matters", "importance"),
    ]
    if len(found.objectives) > 1:
        figures["front"] = _front(found)
        shown.insert(0, pages.figure("The front: trials by two objectives", "front"))
    note = "Of a trial that was stopped early, the mean is over the parts that were simulated."
    sections = [pages.section("The search", note, *shown), *(_finalist(each) for each in found.finalists)]
    pages.write_figures_page(path, title, header, "".join(sections), figures)


def _finalist(each: Finalist) -> str:
    note = f"Trial {each.trial}: {settings_text(each.settings)}"
    cells = [[html.escape(cell) for cell in compared_cells(one)] for one in each.compared]
    groups = [[html.escape(cell) for cell in group_cells(one)] for one in each.groups]
    content = [
        f"<pre>{html.escape(each.command)}</pre>",
        pages.table("On the parts that were held out", HEADS, cells),
        pages.table(
            "Who gains and who loses (each interval is that of its group alone)", GROUP_HEADS, groups
        ),
    ]
    return pages.section("Settings that were found", note, *content, layout="wide")


def _tiles(found: Tuned) -> str:
    whole = sum(each.state == "whole" for each in found.trials)
    stopped = sum(each.state == "stopped" for each in found.trials)
    shown = [("trials", str(len(found.trials)), f"{whole} whole, {stopped} stopped early")]
    if found.finalists:
        first = (found.best or found.finalists[0]).compared[0]
        cells = compared_cells(first)
        shown += [("gain on held-out parts", cells[3], f"p = {cells[4]}"), ("verdict", cells[-1], "")]
    return pages.tiles([(html.escape(a), html.escape(b), html.escape(c)) for a, b, c in shown])


def _history(found: Tuned) -> pages.Figure:
    sign = found.signs[0]
    known = [(each, each.means[0]) for each in found.trials if each.means and each.means[0] is not None]
    dots = {
        state: [
            pages.Point(
                each.number, value, f"trial {each.number}", f"{value:.4g}: {settings_text(each.settings)}"
            )
            for each, value in known
            if each.state == state
        ]
        for state in ("whole", "stopped")
    }
    values = [sign * point.y for point in dots["whole"]]
    best = [sign * value for value in accumulate(values, min)]
    line = [pages.Point(dot.x, value) for dot, value in zip(dots["whole"], best, strict=True)]
    positive = all(value > 0 for _, value in known)
    return pages.Figure(
        pages.Axis("trial", ends=(0.0, max(1.0, len(found.trials) - 1.0))),
        pages.Axis(
            found.objectives[0],
            scale="log" if positive and known else "linear",
            ends=_ends([*(value for _, value in known), found.today[0]]),
        ),
        [
            pages.Layer("dots", dots["stopped"], None, "stopped early"),
            pages.Layer("dots", dots["whole"], 0, "whole"),
            pages.Layer("line", line, 1, "best so far"),
            pages.Layer("rule", [pages.Point(0, found.today[0])], 2, "today"),
        ],
    )


def _front(found: Tuned) -> pages.Figure:
    best = {each.trial for each in found.finalists}
    layers: dict[bool, list[pages.Point]] = {False: [], True: []}
    for each in found.trials:
        if len(each.means) > 1 and each.means[0] is not None and each.means[1] is not None:
            text = settings_text(each.settings)
            layers[each.number in best].append(
                pages.Point(each.means[0], each.means[1], f"trial {each.number}", text)
            )
    today = pages.Point(found.today[0], found.today[1], "today", "today's settings")
    points = [*layers[False], *layers[True], today]
    return pages.Figure(
        pages.Axis(found.objectives[0], ends=_ends([point.x for point in points])),
        pages.Axis(found.objectives[1], ends=_ends([point.y for point in points])),
        [
            pages.Layer("dots", layers[False], None, "trials"),
            pages.Layer("dots", layers[True], 0, "front"),
            pages.Layer("dots", [today], 2, "today"),
        ],
    )


def _importance(found: Tuned) -> pages.Figure | None:
    if not found.importance:
        return None
    bars = [
        pages.Bar(
            place - 0.4, place + 0.4, 0.0, share, name, f"{share:.0%} of the importance of all settings"
        )
        for place, (name, share) in enumerate(found.importance.items())
    ]
    return pages.Figure(
        pages.Axis("setting", names=list(found.importance)),
        pages.Axis("share", ends=(0.0, 1.0)),
        [pages.Layer("bars", bars)],
    )


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """The ends of an axis around values, which are not at its very ends."""
    low, high = min(values), max(values)
    return (low * 0.95, high * 1.05) if low > 0 else (low - 0.05 * (high - low) - 1e-9, high * 1.05 + 1e-9)


def _numbers(parts: Sequence[int]) -> str:
    """Numbers, those that follow each other together.

    >>> _numbers([2, 3, 4, 7])
    '2 to 4, 7'
    """
    runs: list[list[int]] = []
    for part in parts:
        if runs and part == runs[-1][-1] + 1:
            runs[-1].append(part)
        else:
            runs.append([part])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def tuned_tables(found: Tuned) -> None:
    """Print what was found, whether it holds, and the line to paste."""
    states = [each.state for each in found.trials]
    say(
        f"{found.name}: {len(states)} trials, of which {states.count('stopped')} were stopped early and "
        f"{states.count('failed')} failed"
    )
    for each in found.finalists:
        print_table(HEADS, [compared_cells(one) for one in each.compared], f"trial {each.trial}, held out")
        say(f"{settings_text(each.settings)}\n\n{each.command.replace(f'{os.getcwd()}{os.sep}', '')}\n")
    if found.importance:
        say("importance: " + ", ".join(f"{name} {share:.0%}" for name, share in found.importance.items()))
    if found.finalists:
        first = found.best or found.finalists[0]
        print_table(GROUP_HEADS, [group_cells(group) for group in first.groups], "who gains and who loses")
    for warning in found.warnings:
        say(f"batsched-py: {warning}", err=True)
