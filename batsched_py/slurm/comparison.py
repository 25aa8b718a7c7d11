"""A recorded schedule beside a simulated one, job by job, and the page that shows it.

Schedules are tables. The columns are ``submit``, ``eligible`` (when a job was not held by itself any more),
``start``, ``end`` and ``size``, and as texts ``partition``, ``account``, ``qos`` and ``user``, empty where
nothing tells them. The names of jobs are the index.
"""

from __future__ import annotations

import csv
import html
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pandas as pd
from msgspec import Struct

from batsched_py.analysis import pages
from batsched_py.analysis.calibration import Waits, cells_of, distribution, map_of_waits, percentiles_of
from batsched_py.analysis.conditions import held_beside
from batsched_py.analysis.schedule import mean_level, read_schedule, started
from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.dependencies import array_of
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.shown import shown
from batsched_py.slurm.policy.job import fields_of
from batsched_py.slurm.policy.slurm import REQUEUED
from batsched_py.workload.batsim_json import read_batsim_json
from batsched_py.workload.description.jobs import CLASSES, class_numbers
from batsched_py.workload.sources import read_log
from batsched_py.workload.sources.accounting import count_hosts, names_of
from batsched_py.workload.swf.log import Floats

#: The columns of a recorded scenario.
RECORDED = ("number", "submit", "eligible", "start", "end", "state", "nodes")

_TIMES = ("submit", "eligible", "start", "end")

_TEXTS = ("partition", "account", "qos", "user")


def read_jobs(path: Path, zone: str) -> pd.DataFrame:
    """The jobs that ran, of a recorded ``.csv``, a log of ``sacct``, a ``jobs.csv`` or a folder with one."""
    if path.is_dir():
        found = sorted(path.glob("*jobs.csv"))
        if len(found) != 1:
            raise InputError(f"{path}: there is not one jobs.csv here, but {len(found)}; name the file")
        path = found[0]
    try:
        head = read_input(path)[:4096].decode(errors="replace").partition("\n")[0].strip()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if set(RECORDED) <= set(head.split(",")):
        return _read_recording(path)
    if "job_id" in head.split(","):
        held = {name.rpartition("!")[2]: job.eligible for name, job in held_beside(path).items()}
        return simulated_jobs(read_schedule(path), held)
    return _read_log(path, zone)


def _read_recording(path: Path) -> pd.DataFrame:
    """What was recorded of a real Slurm; jobs that never ran are left out."""
    rows = []
    reader = csv.DictReader(StringIO(read_input(path).decode(errors="replace")))
    for row in reader:
        where = f"{path}, line {reader.line_num}"
        if None in row or None in row.values():
            raise InputError(f"{where}: has another number of fields than the first line")
        if not row["start"] or not row["end"] or not row["nodes"]:
            continue
        try:
            times = [float(row[name] or row["submit"]) for name in _TIMES]
        except ValueError:
            raise InputError(f"{where}: submit, eligible, start and end are not all numbers") from None
        rows.append((row["number"], *times, max(count_hosts(row["nodes"]), 1)))
    if not rows:
        raise InputError(f"{path}: no job of this recording ran")
    names = [row[0] for row in rows]
    table = pd.DataFrame([row[1:] for row in rows], index=names, columns=[*_TIMES, "size"])
    if not table.index.is_unique:
        twice = table.index[table.index.duplicated()][0]
        raise InputError(f"{path}: there are two jobs called {shown(str(twice))}")
    return table.assign(**dict.fromkeys(_TEXTS, ""))


def simulated_jobs(schedule: pd.DataFrame, held: Mapping[str, float | None]) -> pd.DataFrame:
    """The jobs of a simulation; some were held until a time.

    Times are whole seconds, rounded down as Slurm does. Of a job that went back into the queue, the last
    execution counts, as in a log of ``sacct``; it is not eligible at once.
    """
    ran = started(schedule)
    again = ran["metadata"].str.contains(r"(?:^| )restart=")
    ids = ran["job_id"].astype(str)
    firsts = ids.where(~again, ids.str.rpartition("#")[0])
    requeued = set(firsts[ran["metadata"].str.contains(r"(?:^| )requeued=")])
    is_last = ~firsts.duplicated(keep="last")
    ran, names = ran[is_last], firsts[is_last].tolist()
    submit = ran["submission_time"].tolist()
    table = pd.DataFrame(
        {
            "submit": submit,
            "eligible": [
                time + REQUEUED if name in requeued else held.get(name) or time
                for name, time in zip(names, submit, strict=True)
            ],
            "start": ran["starting_time"].to_numpy(),
            "end": ran["finish_time"].to_numpy(),
            "size": ran["requested_number_of_resources"].to_numpy(),
        },
        index=names,
    )
    table[[*_TIMES]] = np.floor(table[[*_TIMES]])
    table = table.assign(**dict.fromkeys(_TEXTS, ""))
    table.attrs[NOT_TOLD] = [name for name in names if name not in requeued and not held.get(name)]
    return table


#: Among the attributes of a table: the jobs of which it does not tell whether they could begin at once.
NOT_TOLD = "eligible is not told"


def _eligible_as(recorded: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The same table, in which jobs that it does not tell of are eligible as long after their submission as
    they were in the recording: they were held, or had a ``--begin``."""
    untold = table.index.intersection(table.attrs.get(NOT_TOLD, []))
    if untold.empty:
        return table
    later = (recorded["eligible"] - recorded["submit"]).loc[untold]
    eligible = table["eligible"].copy()
    eligible[untold] = np.minimum(table["submit"][untold] + later, table["start"][untold])
    return table.assign(eligible=eligible)


def _read_log(path: Path, zone: str) -> pd.DataFrame:
    """The jobs of a log of ``sacct``, named as the importer names them."""
    log = read_log(path, "sacct", {"zone": zone})
    submit = log.submit - log.submit.min()
    account, qos = (log.more.get(name, np.full(len(log), "")).astype(str) for name in ("account", "qos"))
    table = pd.DataFrame(
        {
            "submit": submit,
            "eligible": submit + log.more.get("eligible", 0.0),
            "start": submit + log.wait,
            "end": submit + log.wait + log.run_time,
            "size": log.processors,
            "partition": names_of(log, "partition"),
            "account": account,
            "qos": qos,
            "user": names_of(log, "user"),
        },
        index=log.job_number.astype(str).tolist(),
    )
    return table[(log.wait >= 0) & ~log.never_started]


def with_workload(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table with what a workload says of its jobs: sizes, partitions, accounts, QOS and users.

    A job that had more than it asked for, as one with whole nodes has in a log, keeps its size.
    """
    known, jobs = {}, read_batsim_json(path, "w0").jobs
    table = table.assign(eligible=_eligible_tasks(table, jobs))
    for job in jobs:
        fields, request = fields_of(job), job.extra.get("request", {})
        partitions = ",".join(request.get("partitions", ()))
        known[job.name] = fields.begin, job.size, partitions, fields.account, fields.qos, job.user or ""
    told = pd.DataFrame.from_dict(known, orient="index", columns=["begin", "size", *_TEXTS])
    told = told.reindex(table.index)
    told = told.where(told.notna() & (told != ""))
    told["size"] = np.fmax(told["size"].astype(float), table["size"].astype(float))
    eligible = np.maximum(table["eligible"], table["submit"] + told.pop("begin").fillna(0.0).astype(float))
    table = table.assign(
        eligible=eligible, **{name: told[name].fillna(table[name]) for name in told.columns}
    ).astype({"size": np.int64})
    table.attrs.pop(NOT_TOLD, None)
    return table


def _eligible_tasks(table: pd.DataFrame, jobs: Sequence[Job]) -> pd.Series:
    """When jobs were eligible, as Slurm counts for the tasks of an array with a limit.

    A task is held until one before it has ended. Only if as many as may run did so until then, Slurm has held
    the rest of the array; otherwise it is eligible as long as the first task.
    """
    eligible = table["eligible"].copy()
    tasks = defaultdict[tuple[str, int], list[str]](list)
    for job in jobs:
        array = array_of(job)
        if array is not None and array.limit is not None and job.name in eligible.index:
            tasks[array.name, array.limit].append(job.name)
    for (_, limit), names in tasks.items():
        of_array = table.loc[names].sort_values("eligible", kind="stable")
        since = None
        for name, at in of_array["eligible"].items():
            ran = ((of_array["start"] < at) & (of_array["end"] >= at)).sum()
            since = at if since is None or (at > since and ran >= limit) else since
            eligible[name] = since
    return eligible


Each = TypeVar("Each")

#: The ways in which jobs are grouped.
GROUPINGS = ("class", "partition", "account", "qos", "user")

#: So many values of the utilization are computed.
STEPS = 96


class Compared(Struct, frozen=True, kw_only=True):
    """What is compared of some jobs; times are in seconds.

    A job waits from when it is eligible: not held, not before its ``--begin``, with its dependencies
    fulfilled.
    """

    waits: Waits
    deviation: float | None
    """By how much the simulated mean wait differs from the recorded one, as a share of that."""
    start_difference: float
    """The mean of how far apart the two starts of a job are."""
    median_start_difference: float
    largest_start_difference: float

    @classmethod
    def of(cls, recorded: pd.DataFrame, simulated: pd.DataFrame) -> Compared:
        """The comparison of the same jobs in two tables."""
        waits = Waits.of(waits_of(recorded), waits_of(simulated))
        mean = waits.mean_recorded
        apart = np.abs(recorded["start"].to_numpy() - simulated["start"].to_numpy())
        return cls(
            waits=waits,
            deviation=(waits.mean_simulated - mean) / mean if mean > 0 else None,
            start_difference=float(apart.mean()),
            median_start_difference=float(np.median(apart)),
            largest_start_difference=float(apart.max()),
        )


class Utilization(Struct, frozen=True, kw_only=True):
    """How many cores (or nodes, where only these are known) jobs have, in equal steps of time."""

    edges: list[float]
    recorded: list[float]
    simulated: list[float]


class Comparison(Struct, frozen=True, kw_only=True):
    """A recorded schedule beside a simulated one."""

    recorded: str
    simulated: str
    only_recorded: int
    """Jobs that ran in the recording only."""
    only_simulated: int
    all: Compared
    groups: dict[str, dict[str, Compared]]
    """By class, partition, account, QOS and user, the busiest first."""
    utilization: Utilization
    percentiles: list[tuple[float, float]]
    cells: list[tuple[int, int, int]]


def compare(tables: Sequence[pd.DataFrame], names: tuple[str, str]) -> Comparison:
    """Compare the jobs that ran in both tables, the recorded one first; ``names`` tells what they are."""
    recorded, simulated = tables
    # a recording has one line for an array, which is its last task: let that be called like the array
    last = {str(name).rpartition("_")[0]: name for name in simulated.index}
    arrays = {name: array for array, name in last.items() if array in recorded.index}
    simulated = simulated.rename(index=arrays)
    both = recorded.index[recorded.index.isin(simulated.index)]
    if not len(both):
        raise InputError(f"no job ran both in {names[0]} and in {names[1]}")
    one, other = recorded.loc[both], simulated.loc[both]
    other = _eligible_as(one, other)
    waits = waits_of(one), waits_of(other)
    edges, levels = usage((one, other), one["size"])
    return Comparison(
        recorded=names[0],
        simulated=names[1],
        only_recorded=len(recorded) - len(both),
        only_simulated=len(simulated) - len(both),
        all=Compared.of(one, other),
        groups={grouping: _grouped(one, other, grouping) for grouping in GROUPINGS},
        utilization=Utilization(edges=edges, recorded=levels[0], simulated=levels[1]),
        percentiles=percentiles_of(*waits),
        cells=cells_of(*waits),
    )


def labels(jobs: pd.DataFrame, grouping: str) -> pd.Series:
    """The group of each job."""
    if grouping == "class":
        numbers = class_numbers((jobs["end"] - jobs["start"]).to_numpy(), jobs["size"].to_numpy())
        return pd.Series(np.array(CLASSES)[numbers], index=jobs.index)
    return jobs[grouping].astype(str)


def _grouped(recorded: pd.DataFrame, simulated: pd.DataFrame, grouping: str) -> dict[str, Compared]:
    found = {
        str(name): Compared.of(recorded.loc[jobs], simulated.loc[jobs])
        for name, jobs in recorded.groupby(labels(recorded, grouping)).groups.items()
        if name
    }
    return dict(sorted(found.items(), key=lambda item: (-item[1].waits.jobs, item[0])))


def usage(
    tables: Sequence[pd.DataFrame], sizes: pd.Series | None = None
) -> tuple[list[float], list[list[float]]]:
    """Equal steps of time, and how much jobs have in them by each table; ``sizes`` hold for all tables."""
    begin = min(float(table["submit"].min()) for table in tables)
    end = max(float(table["end"].max()) for table in tables)
    edges = np.linspace(begin, max(end, begin + 1.0), STEPS + 1)
    levels = [
        mean_level(table["start"], table["end"], table["size"] if sizes is None else sizes, edges)
        for table in tables
    ]
    return edges.tolist(), [each.tolist() for each in levels]


def waits_of(jobs: pd.DataFrame) -> Floats:
    """How long jobs waited since they were eligible."""
    waits: Floats = (jobs["start"] - jobs["eligible"]).to_numpy(dtype=np.float64)
    return np.maximum(waits, 0.0)


def usage_figure(edges: Sequence[float], levels: Mapping[str, Sequence[float]]) -> pages.Figure:
    """How much jobs have between each two edges, for schedules by their names."""
    middles = [(begin + end) / 2 for begin, end in pairwise(edges)]
    layers = []
    for place, (name, heights) in enumerate(levels.items()):
        points = [
            pages.Point(time, height, pages.time_text(time), f"{name}: {height:.1f}")
            for time, height in zip(middles, heights, strict=True)
        ]
        layers.append(pages.Layer("line", points, place, name))
    times, highest = (edges[0], edges[-1]), max(*map(max, levels.values()), 1.0)
    return pages.Figure(pages.Axis("time", "s", ends=times), pages.Axis("in use", ends=(0, highest)), layers)


HEADS: Final = (
    "", "jobs", "mean wait, recorded", "simulated", "deviation", "median wait, recorded", "simulated",
    "starts apart, mean", "median", "at most",
)  # fmt: skip


def by_group(
    groups: Mapping[str, Mapping[str, Each]], heads: Sequence[str], cells: Callable[[Each], list[str]]
) -> Iterator[str]:
    """A section for each way in which jobs are grouped, with a row for each group."""
    for grouping, found in groups.items():
        note = "Jobs are short up to an hour and narrow up to eight hosts." if grouping == "class" else ""
        rows = [[html.escape(name), *cells(each)] for name, each in found.items()]
        if rows:
            yield pages.section(f"By {grouping}", note, pages.table("", heads, rows), layout="wide")


def write_comparison_page(path: str | Path, found: Comparison) -> None:
    """Write the page: one file that needs no other and no network."""
    title = f"{found.simulated}, simulated, beside {found.recorded}, recorded"
    header = f'<h1>{html.escape(title)}</h1>\n<div id="tiles">{_tiles(found)}</div>'
    sections = [
        pages.section(
            "Waits",
            "If both waits were the same, all jobs would lie on the diagonal of the map. Drag across a "
            "figure to zoom in, double-click to see all of it again, hover for values.",
            pages.figure("Share of jobs that wait no longer", "distribution"),
            pages.figure("Jobs by both waits", "map"),
        ),
        pages.section(
            "Utilization", "", pages.figure("What jobs have, over time", "utilization"), layout="wide"
        ),
        *by_group(found.groups, HEADS, cells),
    ]
    used = found.utilization
    drawn = {
        "distribution": distribution(found.percentiles),
        "map": map_of_waits(found.cells),
        "utilization": usage_figure(used.edges, {"recorded": used.recorded, "simulated": used.simulated}),
    }
    pages.write_figures_page(path, title, header, "".join(sections), drawn)


def cells(each: Compared) -> list[str]:
    """The cells of a row behind its name."""
    waits = each.waits
    apart = each.start_difference, each.median_start_difference, each.largest_start_difference
    return [
        f"{waits.jobs:,}",
        *map(pages.time_text, (waits.mean_recorded, waits.mean_simulated)),
        "-" if each.deviation is None else f"{each.deviation:+.1%}",
        *map(pages.time_text, (waits.median_recorded, waits.median_simulated, *apart)),
    ]


def _tiles(found: Comparison) -> str:
    shown = cells(found.all)
    return pages.tiles(
        [
            ("jobs compared", shown[0], f"{found.only_recorded} and {found.only_simulated} ran in one only"),
            ("mean wait, simulated", shown[2], f"{shown[1]} recorded"),
            ("deviation of the mean wait", shown[3], ""),
            ("median wait, simulated", shown[5], f"{shown[4]} recorded"),
            ("starts apart in the mean", shown[6], f"median {shown[7]}, at most {shown[8]}"),
        ]
    )
