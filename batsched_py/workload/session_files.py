"""Session graphs as files: one JSON file per user, described in ``docs/session-format.md``, and GraphML."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import msgspec

from batsched_py.protocol.dialects import BATSIM4
from batsched_py.workload.model import Workload
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import SessionRule

FORMAT_VERSION = 1

_GRAPHML_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="start" for="node" attr.name="start" attr.type="double"/>
<key id="finish" for="node" attr.name="finish" attr.type="double"/>
<key id="jobs" for="node" attr.name="jobs" attr.type="int"/>
<key id="think_time" for="edge" attr.name="think_time" attr.type="double"/>
"""


def write_session_json(
    path: Path, user: str, graph: SessionGraph, workload: Workload, delimiter: SessionRule
) -> None:
    """Write the sessions of a user with their jobs, those jobs' profiles, and what depends on what.

    Sessions are written one by one, a line each: a graph may have millions of edges.
    """
    jobs = [job for session in graph.sessions for job in session.jobs]
    head = {
        "format": "batsched-py sessions",
        "version": FORMAT_VERSION,
        "user": user,
        "delimiter": str(delimiter),
        "edges": "reduced" if graph.reduced else "all",
        "nb_res": workload.nb_hosts,
        "profiles": {job.profile: BATSIM4.spell_profile(workload.profiles[job.profile]) for job in jobs},
    }
    with path.open("wb") as file:
        file.write(msgspec.json.encode(head)[:-1] + b',"sessions":[')
        for index in range(len(graph.sessions)):
            file.write(b",\n" if index else b"\n")
            file.write(msgspec.json.encode(_session_fields(graph, index)))
        file.write(b"\n]}\n")


def _session_fields(graph: SessionGraph, index: int) -> dict[str, Any]:
    session = graph.sessions[index]
    predecessors = graph.predecessors(index)
    return {
        "id": index,
        "start": session.start,
        "finish": session.finish,
        "predecessors": predecessors.tolist(),
        "think_times": (session.start - graph.finishes[predecessors]).tolist(),
        "jobs": [BATSIM4.spell_job(job) | {"id": job.name} for job in session.jobs],
    }


def write_session_graphml(path: Path, user: str, graph: SessionGraph) -> None:
    """Write the graph of a user as GraphML, with the attributes of :meth:`SessionGraph.to_networkx`."""
    before, after = (ends.tolist() for ends in graph.edges())
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write(_GRAPHML_HEAD)
        file.write(f'<graph id={quoteattr(user)} edgedefault="directed">\n')
        for index, session in enumerate(graph.sessions):
            data = (
                _data("start", session.start)
                + _data("finish", session.finish)
                + _data("jobs", len(session.jobs))
            )
            file.write(f'<node id="{index}">{data}</node>\n')
        for source, target, think_time in zip(before, after, graph.think_times().tolist(), strict=True):
            file.write(
                f'<edge source="{source}" target="{target}">{_data("think_time", think_time)}</edge>\n'
            )
        file.write("</graph>\n</graphml>\n")


def _data(key: str, value: float) -> str:
    return f'<data key="{key}">{value!r}</data>'
