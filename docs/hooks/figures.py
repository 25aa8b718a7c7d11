"""The page of figures: every kind with its options, drawn from the sample; and the figures of the model."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_type_hints

import pandas as pd
from mkdocs.structure.files import File, Files

import batsched_py as bp
from batsched_py.analysis.plots.figures import KINDS, RunsKind, draw
from batsched_py.analysis.plots.kinds.over_time import FlowsKind
from batsched_py.analysis.plots.runs import recorded_run
from batsched_py.workload.models.slots import Slots

ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: Any) -> Files:
    """Add the figures."""
    for name, content in drawn().items():
        files.append(File.generated(config, f"figures/{name}.svg", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Put all kinds where the page of figures has room for them."""
    if page.file.src_uri != "figures.md":
        return markdown
    sections = [_section(name, kind) for name, kind in KINDS.all().items()]
    return markdown.replace("<!-- kinds -->", "\n\n".join(sections))


def _section(name: str, kind: type[Any]) -> str:
    hints = get_type_hints(kind, include_extras=True)
    options = [
        f"* `--{field.name}`: {hints[field.name].__metadata__[0].description}" for field in fields(kind)
    ]
    parts = [f"## {name}", inspect.getdoc(kind) or "", "\n".join(options), f"![{name}](figures/{name}.svg)"]
    return "\n\n".join(filter(None, parts))


@cache
def drawn() -> dict[str, bytes]:
    """All figures, by name."""
    with TemporaryDirectory() as folder:
        return dict(_draw_all(Path(folder)))


def _draw_all(folder: Path) -> Iterator[tuple[str, bytes]]:
    log = bp.read_log(ROOT / "workloads" / "sample.swf")
    simulate = partial(bp.simulate, log, progress=False)
    full = simulate("easy", platform=ROOT / "platforms" / "power64.xml", energy=True, decisions=True)
    half = simulate("easy", hosts=32, users="think-time", sessions="arrival:60", decisions=True)
    full.label, half.label = "64 hosts", "32 hosts, users who react"
    rigid = simulate("easy", hosts=32)
    rigid.label = "32 hosts, rigid replay"
    sharing = _sharing(folder)
    made = Slots().fit(log.columns).generate(len(log), seed=1)
    for name, kind in KINDS.all().items():
        if issubclass(kind, FlowsKind):
            figure = getattr(sharing.plot, name)()
        elif name in ("cycles", "work"):
            figure = draw(name, [recorded_run(made, "generated")], recorded_run(log.columns))
        elif issubclass(kind, RunsKind):
            others = [] if name in ("gantt", "power", "graphs") else [half]
            figure = getattr(full.plot, name.replace("-", "_"))(*others, recorded=log)
        else:
            figure = draw(name, _balance() if name == "equilibrium" else _table())
        yield name, _svg(figure, folder)
    yield "model-feedback", _svg(rigid.plot.cumulative(half, recorded=log), folder)
    few = log.first(jobs=14)
    for scheduler in ("fcfs", "easy"):
        chart = bp.simulate(few, scheduler, hosts=16, progress=False).plot.gantt(width="page")
        yield f"model-{scheduler}", _svg(chart, folder)


def _sharing(folder: Path) -> bp.Result:
    """Sixteen jobs that read from a storage, exchange bytes, and write back, on four hosts."""
    names = ("master_host", "n0", "n1", "n2", "n3", "storage")
    role = {"storage": '<prop id="role" value="storage"/>'}
    lines = ["<platform version='4.1'><zone id='z' routing='Floyd'>"]
    lines += [f"<host id='{name}' speed='1Gf'>{role.get(name, '')}</host>" for name in names]
    lines += ["<router id='switch'/>"]
    lines += [f"<link id='link_of_{name}' bandwidth='1Gbps'/>" for name in names]
    lines += [f"<route src='{name}' dst='switch'><link_ctn id='link_of_{name}'/></route>" for name in names]
    (folder / "platform.xml").write_text("".join([*lines, "</zone></platform>"]))
    files = {
        "type": "parallel_homogeneous_pfs",
        "bytes_to_read": 0,
        "bytes_to_write": 0,
        "storage": "storage",
    }
    profiles = {
        "read": files | {"bytes_to_read": 5e9},
        "work": {"type": "parallel_homogeneous", "cpu": 90e9, "com": 6e9},
        "write": files | {"bytes_to_write": 2e9},
        "all": {"type": "composed", "repeat": 1, "seq": ["read", "work", "write"]},
    }
    jobs = [
        {"id": str(number), "subtime": 100 * number, "res": 1 + number % 2, "profile": "all"}
        for number in range(16)
    ]
    workload = {"nb_res": 4, "jobs": jobs, "profiles": profiles}
    (folder / "jobs.json").write_text(json.dumps(workload))
    machine = folder / "platform.xml"
    result = bp.simulate(folder / "jobs.json", "easy", platform=machine, links=True, progress=False)
    result.label = "four hosts and a storage"
    return result


@cache
def _table() -> pd.DataFrame:
    """Results as a campaign has them: two schedulers at three loads, with three seeds each."""
    log = bp.read_log(ROOT / "workloads" / "sample.swf").first(jobs=300)
    rows = []
    for load in (0.8, 1.0, 1.2):
        for seed in range(1, 4):
            changed = log.load(factor=load).shake(seed=seed, arrivals=600.0)
            for scheduler in ("fcfs", "easy"):
                metrics = bp.simulate(changed, scheduler, hosts=64, progress=False).metrics
                axes = {"log": "sample", "load": load, "scheduler": scheduler, "seed": seed}
                rows.append(axes | metrics)
    return pd.DataFrame(rows)


def _balance() -> pd.DataFrame:
    """A machine at several loads with users who do not react, and users who do on several machines."""
    log = bp.read_log(ROOT / "workloads" / "sample.swf").first(jobs=600)
    settings = [(load, 48, None) for load in (0.6, 0.8, 1.0, 1.2)]
    settings += [(1.0, hosts, "think-time") for hosts in (24, 32, 48, 64)]
    rows = []
    for load, hosts, users in settings:
        reacting = {} if users is None else {"users": users, "sessions": "arrival:60"}
        metrics = bp.simulate(log.load(factor=load), "easy", hosts=hosts, progress=False, **reacting).metrics
        axes = {"log": "sample", "load": load, "platform": f"{hosts} hosts", "scheduler": "easy"}
        rows.append(axes | {"users": users or "rigid"} | metrics)
    return pd.DataFrame(rows)


def _svg(figure: Any, folder: Path) -> bytes:
    figure.save(folder / "figure.svg")
    return (folder / "figure.svg").read_bytes()
