"""The figures of the findings of "Resampling with Feedback"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from batsched_py.analysis.plots.style import PAGE, PALETTE
from batsched_py.analysis.runs import Estimate
from examples.experiments.populations import Figures, Setting
from examples.experiments.resampling_tables import by_seed, class_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Settings = Mapping[str, Setting]


def draw(figure: Figure, figures: Sequence[Figures], settings: Settings, edges: tuple[float, ...]) -> None:
    """Figures 17, 15, 20, 19 and 21 of the paper, from these simulations."""
    figure.set_size_inches(PAGE.inches, 9.6)
    axes = figure.subplots(4, 2)
    _histograms(axes[0, 0], figures, "open", "submitted_per_day", "jobs submitted a day, no feedback")
    _histograms(axes[0, 1], figures, "feedback", "submitted_per_day", "jobs submitted a day, feedback")
    _histograms(axes[1, 0], figures, "feedback", "mean_wait", "mean wait [s], feedback", only="easy")
    _classes(axes[1, 1], figures, settings["cycle"], edges)
    for column, setting in enumerate(("cycle", "no cycle")):
        _against_load(axes[2, column], figures, setting, settings[setting])
        _queues(axes[3, column], figures, setting, settings[setting])


def _histograms(
    axes: Axes, figures: Sequence[Figures], setting: str, name: str, label: str, only: str | None = None
) -> None:
    """How often which value came out, over the seeds; the log itself as a line."""
    values = {
        scheduler: [getattr(f, name) for f in by_seed(figures, setting, scheduler, 1.0).values()]
        for scheduler in ("easy", "fcfs")
        if only in (None, scheduler)
    }
    bins = np.histogram_bin_edges(np.concatenate(list(values.values())), bins=12)
    for (scheduler, each), colour in zip(values.items(), PALETTE, strict=False):
        axes.hist(each, bins=bins, histtype="stepfilled", alpha=0.5, color=colour, label=scheduler)
        axes.hist(each, bins=bins, histtype="step", color=colour)
    for f in figures:
        if f.task.setting == "log":
            axes.axvline(getattr(f, name), color="black", linestyle="--", label="the log itself, easy")
    axes.set(xlabel=label, ylabel="populations")
    axes.legend()


def _against_load(axes: Axes, figures: Sequence[Figures], name: str, setting: Setting) -> None:
    """The mean over seeds with its interval of 95%, against the number of users."""
    schedulers, loads = setting.schedulers, setting.loads
    for scheduler, colour in zip(schedulers, PALETTE, strict=False):
        estimates = [
            Estimate.of([f.submitted_per_day for f in by_seed(figures, name, scheduler, load).values()])
            for load in loads
        ]
        means, widths = [e.mean for e in estimates], [e.half_width or 0 for e in estimates]
        axes.errorbar(loads, means, widths, color=colour, marker="o", capsize=3, label=scheduler)
    axes.set(xlabel=f"users, as a multiple of the log's, {name}", ylabel="jobs submitted a day")
    axes.legend()


def _classes(axes: Axes, figures: Sequence[Figures], setting: Setting, edges: tuple[float, ...]) -> None:
    """Mean response times of jobs by their run times."""
    schedulers, loads = setting.schedulers, setting.loads
    places = np.arange(len(edges) + 1)
    for number, (scheduler, colour) in enumerate(zip(schedulers, PALETTE, strict=False)):
        rows = [f.responses(edges) for f in by_seed(figures, "cycle", scheduler, loads[-1]).values()]
        axes.bar(places + 0.27 * number, np.nanmean(rows, axis=0), 0.25, color=colour, label=scheduler)
    axes.set_xticks(places + 0.27, class_labels(edges), fontsize="small")
    axes.set(yscale="log", ylabel="mean response [s]", xlabel=f"run time, cycle, users x {loads[-1]:g}")
    axes.legend()


def _queues(axes: Axes, figures: Sequence[Figures], name: str, setting: Setting) -> None:
    """How many jobs wait in each hour of the day."""
    schedulers, loads = setting.schedulers, setting.loads
    for scheduler, colour in zip(schedulers, PALETTE, strict=False):
        rows = [f.queue_by_hour for f in by_seed(figures, name, scheduler, loads[-1]).values()]
        axes.plot(np.arange(24) + 0.5, np.mean(rows, axis=0), color=colour, label=scheduler)
    axes.set(
        xlabel=f"hours since the log's first time of day, {name}",
        ylabel=f"waiting jobs, users x {loads[-1]:g}",
        xlim=(0, 24),
    )
    axes.legend()
