"""Session graphs as files: written, and read again to cut the same log into the same sessions.

``docs/session-format.md`` describes our JSON, that of Batmen, and the GraphML for other tools. Of what is
read, only the names of jobs, the starts of sessions, their dependencies and think times count; jobs are those
of the log. A replay with a file is the replay with the rule that made it, and an edited file is followed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec
import numpy as np
from msgspec import Struct, field

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.output_files import writing, writing_text
from batsched_py.protocol.dialects import BATSIM4
from batsched_py.workload.filed_sessions import FiledSession, FiledSessions, FiledUser
from batsched_py.workload.model import Jobs, Places, Workload
from batsched_py.workload.session_graph import SessionGraph
from batsched_py.workload.sessions import SessionCutter, Sessions

if TYPE_CHECKING:
    from batsched_py.workload.sessions import Times

FORMAT = "batsched-py sessions"
FORMAT_VERSION = 1

#: What the files are called in which the sessions of one user may be.
_SUFFIXES = (".json", ".SABjson")


class _Job(Struct):
    """Of the jobs of a file only the names count; what they do is in the log."""

    id: int | str


class _Session(Struct):
    """A session in either format: the names of members are ours, or those of Batmen."""

    id: int | str
    jobs: list[_Job]
    start: float | None = None
    first_submit_time: float | None = None
    predecessors: list[int | str] = field(default_factory=list)
    preceding_sessions: list[int | str] = field(default_factory=list)
    think_times: list[float] = field(default_factory=list)
    thinking_time_after_preceding_session: list[float] = field(default_factory=list)


class _User(Struct):
    """The sessions of one user."""

    sessions: list[_Session]
    format: str = FORMAT
    edges: str = "reduced"
    version: int | str | float | None = FORMAT_VERSION


class SessionFiles(SessionCutter):
    """Sessions as a file, or the files of a folder, tell them; each user of a log must be in one of them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return self.path.name

    def cut(self, jobs: Jobs, places: Places, finishes: Callable[[Places], Times]) -> Sessions:
        """The sessions that hold the user's jobs."""
        own = jobs.part(places)
        found = self._user_of_job.get(own[0].name)
        session_of = found.session_of_jobs() if found is not None else {}
        numbers: list[int] = []
        for job in own:
            number = session_of.pop(job.name, None)
            if number is None:
                raise InputError(f"{self.path}: job {job.name} of user {job.user} is in no session of theirs")
            if numbers and number < numbers[-1]:
                raise InputError(f"{self.path}: job {job.name} follows one of a later session in the log")
            numbers.append(number)
        if session_of:
            missing = next(iter(session_of))
            raise InputError(f"{self.path}: job {missing} of user {own[0].user} is not in the log")
        assert found is not None
        return FiledSessions(jobs, places, finishes, found, np.diff(numbers) > 0)

    @cached_property
    def _user_of_job(self) -> Mapping[str, FiledUser]:
        """For each job, its user."""
        users: dict[str, FiledUser] = {}
        for path in self._paths():
            for read in _read(path):
                user = _checked(path, read)
                for name in user.session_of_jobs():
                    if users.setdefault(name, user) is not user:
                        raise InputError(f"{path}: job {name} is another user's as well")
        return users

    def _paths(self) -> list[Path]:
        if not self.path.is_dir():
            return [self.path]
        paths = sorted(path for path in self.path.iterdir() if path.suffix in _SUFFIXES)
        if not paths:
            raise InputError(f"{self.path}: has no files that end in {' or '.join(_SUFFIXES)}")
        return paths


def _read(path: Path) -> list[_User]:
    """The users in a file: one, or an array of them."""
    try:
        found = msgspec.json.decode(read_input(path), type=_User | list[_User])
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: is no session file: {error}") from None
    return found if isinstance(found, list) else [found]


def _checked(path: Path, user: _User) -> FiledUser:
    """The sessions of a user, named by their places; each comes after those that it depends on."""
    if user.format != FORMAT:
        raise InputError(f"{path}: is of format {user.format!r}, not {FORMAT!r}")
    ours = all(session.first_submit_time is None for session in user.sessions)
    if ours and user.version != FORMAT_VERSION:
        raise InputError(f"{path}: is of version {user.version}; version {FORMAT_VERSION} can be read")
    places: dict[int | str, int] = {}
    sessions: list[FiledSession] = []
    for session in user.sessions:
        where = f"{path}: session {session.id}"
        start = session.start if ours else session.first_submit_time
        before = session.predecessors if ours else session.preceding_sessions
        thought = session.think_times if ours else session.thinking_time_after_preceding_session
        if start is None or not inf > start >= (sessions[-1].start if sessions else 0):
            raise InputError(f"{where} has no start, or one before that of the session before it")
        if fault := _fault_of(session, before, thought, places):
            raise InputError(f"{where} {fault}")
        links = sorted((places[other], think_time) for other, think_time in zip(before, thought, strict=True))
        places[session.id] = len(sessions)
        sessions.append(FiledSession(start, links, [str(job.id) for job in session.jobs]))
    return FiledUser(sessions, user.edges == "reduced")


def _fault_of(
    session: _Session,
    before: Sequence[int | str],
    thought: Sequence[float],
    places: Mapping[int | str, int],
) -> str | None:
    """What is wrong with a session and those that it depends on, of which some have places already."""
    if len(before) != len(thought) or len(set(before)) != len(before):
        return "needs one think time for each of the sessions that it depends on"
    if not all(inf > think_time >= 0 for think_time in thought):
        return "has a think time that is negative or infinite"
    if session.id in places or not all(other in places for other in before):
        return "is there twice, or depends on one that does not come before it"
    return None if session.jobs else "has no jobs"


def write_session_json(
    path: Path, user: str, graph: SessionGraph, workload: Workload, delimiter: SessionCutter
) -> None:
    """Write the sessions of a user with their jobs, those jobs' profiles, and what depends on what."""
    with writing(path) as file:
        _write_user(file, _head(user, graph, workload, delimiter), graph, _session_fields)


def write_all_sessions(
    path: Path, graphs: Mapping[str, SessionGraph], workload: Workload, delimiter: SessionCutter
) -> None:
    """Write the sessions of all users into one file: an array of what :func:`write_session_json` writes."""
    with writing(path) as file:
        for number, (user, graph) in enumerate(graphs.items()):
            file.write(b"," if number else b"[")
            _write_user(file, _head(user, graph, workload, delimiter), graph, _session_fields)
        file.write(b"]\n")


def write_batmen(
    path: Path, user: str, graph: SessionGraph, workload: Workload, delimiter: SessionCutter
) -> None:
    """Write the sessions of a user as Batmen's feedback users read them; sessions are numbered from 1."""
    head = {
        "description": f"sessions of user {user} by {delimiter}, written by batsched-py",
        "nb_res": workload.nb_hosts,
        "profiles": _profiles(graph, workload),
    }
    with writing(path) as file:
        _write_user(file, head, graph, _batmen_fields)


def _write_user(
    file: BinaryIO,
    head: Mapping[str, Any],
    graph: SessionGraph,
    fields: Callable[[SessionGraph, int], Mapping[str, Any]],
) -> None:
    """Write an object: sessions are written one by one, a line each, since there may be millions of edges."""
    file.write(msgspec.json.encode(head)[:-1] + b',"sessions":[')
    for index in range(len(graph.sessions)):
        file.write(b",\n" if index else b"\n")
        file.write(msgspec.json.encode(fields(graph, index)))
    file.write(b"\n]}\n")


def _head(user: str, graph: SessionGraph, workload: Workload, delimiter: SessionCutter) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "user": user,
        "delimiter": str(delimiter),
        "edges": "reduced" if graph.reduced else "all",
        "nb_res": workload.nb_hosts,
        "profiles": _profiles(graph, workload),
    }


def _profiles(graph: SessionGraph, workload: Workload) -> dict[str, Any]:
    """The profiles of a user's jobs."""
    jobs = [job for session in graph.sessions for job in session.jobs]
    return {job.profile: BATSIM4.spell_profile(workload.profiles[job.profile]) for job in jobs}


def _session_fields(graph: SessionGraph, index: int) -> dict[str, Any]:
    session = graph.sessions[index]
    return {
        "id": index,
        "start": session.start,
        "finish": session.finish,
        "predecessors": graph.predecessors(index).tolist(),
        "think_times": graph.think_times_before(index),
        "jobs": [BATSIM4.spell_job(job) | {"id": job.name} for job in session.jobs],
    }


def _batmen_fields(graph: SessionGraph, index: int) -> dict[str, Any]:
    session = graph.sessions[index]
    return {
        "id": index + 1,
        "first_submit_time": session.start,
        "preceding_sessions": (graph.predecessors(index) + 1).tolist(),
        "thinking_time_after_preceding_session": graph.think_times_before(index),
        "nb_jobs": len(session.jobs),
        "jobs": [BATSIM4.spell_job(job) | {"id": job.name} for job in session.jobs],
    }


_GRAPHML_HEAD = """\
<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="start" for="node" attr.name="start" attr.type="double"/>
<key id="finish" for="node" attr.name="finish" attr.type="double"/>
<key id="jobs" for="node" attr.name="jobs" attr.type="int"/>
<key id="think_time" for="edge" attr.name="think_time" attr.type="double"/>
"""


def write_session_graphml(path: Path, user: str, graph: SessionGraph) -> None:
    """Write the graph of a user as GraphML, with the attributes of :meth:`SessionGraph.to_networkx`."""
    from xml.sax.saxutils import quoteattr  # which imports much, for the network

    before, after = (ends.tolist() for ends in graph.edges())
    with writing_text(path) as file:
        file.write(_GRAPHML_HEAD)
        file.write(f'<graph id={quoteattr(user)} edgedefault="directed">\n')
        for index, session in enumerate(graph.sessions):
            data = {"start": session.start, "finish": session.finish, "jobs": len(session.jobs)}
            file.write(f'<node id="{index}">{"".join(map(_data, data, data.values()))}</node>\n')
        for source, target, think_time in zip(before, after, graph.think_times().tolist(), strict=True):
            data_of_edge = _data("think_time", think_time)
            file.write(f'<edge source="{source}" target="{target}">{data_of_edge}</edge>\n')
        file.write("</graph>\n</graphml>\n")


def _data(key: str, value: float) -> str:
    return f'<data key="{key}">{value!r}</data>'
