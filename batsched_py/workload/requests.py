"""What the jobs of a log ask for on a machine of nodes.

Logs tell of requests in columns. Those of the Standard Workload Format are the requested memory, the
partition and the queue. Other logs may have further ones:

* ``request``: the whole request in JSON, as in a workload of Batsim; then nothing else counts;
* ``gpus``: of the whole job;
* ``nodes``: how many it had;
* ``requested_nodes``: how many it asked for at least;
* ``tasks``: into how many equal parts its processors are divided, none of which is on two nodes;
* ``features``: what its nodes must have, like ``a100&!old``;
* ``exclusive``: 1 if no other job may be on its nodes.

What a log does not say is not asked for. What it says counts only where the machine has such a thing: the
memory of a log is no reason to reject jobs on a machine whose file tells of no memory. A ``request`` is meant
as it is.
"""

from __future__ import annotations

import logging
import re
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from batsched_py.errors import InputError
from batsched_py.protocol.requests import MOST, parse_features, read_request
from batsched_py.protocol.shown import shown_name

if TYPE_CHECKING:
    from batsched_py.workload.model import ProcessorsRule
    from batsched_py.workload.swf.log import SwfLog

_log = logging.getLogger(__name__)

#: Columns beside those of the format that tell of requests, and what they say if they say nothing.
_MORE: dict[str, Any] = {
    "request": "", "gpus": 0, "nodes": 0, "requested_nodes": 0, "tasks": 0, "features": "", "exclusive": 0,
}  # fmt: skip


#: So many unknown names are told.
_SHOWN_NAMES = 5


class NodeWords(Struct, frozen=True):
    """What can be asked for on a machine of nodes, by name."""

    resources: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    features: frozenset[str] = frozenset()
    as_accasim: bool = False
    """Whether memory is asked for as in AccaSim: by all jobs of a log, or by none if its first does not."""


class _Asked(Struct, frozen=True):
    """What a log says about a job."""

    size: int
    memory: int
    """In KiB, of each core."""
    partition: str
    queue: str
    request: str
    gpus: int
    nodes: int
    requested_nodes: int
    tasks: int
    features: str
    exclusive: int


def requests_of(
    log: SwfLog, words: NodeWords, processors: ProcessorsRule = "allocated"
) -> tuple[NDArray[np.int64], list[dict[str, Any]]]:
    """The requests that jobs of a log make, each once, and for each job the place of its own among them."""
    if words.as_accasim and max(log.requested_memory[0], log.used_memory[0]) < 0:
        log = replace(log, requested_memory=np.full(len(log), -1.0))
        _log.warning("%s: as in AccaSim, no job asks for memory, because the first one does not", log.path)
    maker = _Maker(words, "request" in log.more)
    places: dict[_Asked, int] = {}
    codes = np.empty(len(log), np.int64)
    for row, values in enumerate(zip(*_columns(log, processors), strict=True)):
        codes[row] = places.setdefault(_Asked(*values), len(places))
    requests = []
    for asked, count in zip(places, np.bincount(codes, minlength=len(places)).tolist(), strict=True):
        try:
            made = maker.request(asked, count) if asked.size > 0 else {}
            read_request(asked.size, made)
            requests.append(made)
        except ValueError as error:
            number = log.job_number[int(np.argmax(codes == len(requests)))]
            raise InputError(f"{log.path}: job {number}: {error}") from None
    for what, counts in maker.unknown.items():
        names = ", ".join(map(shown_name, [name for name in counts if name][:_SHOWN_NAMES]))
        others = f" and {len(counts) - _SHOWN_NAMES} others" if len(counts) > _SHOWN_NAMES else ""
        what = f"{what} {names}{others}".rstrip()
        text = "%s: the machine has no %s; not asked for by %d of %d jobs"
        _log.warning(text, log.path, what, counts.total(), len(log))
    return codes, requests


def _columns(log: SwfLog, processors: ProcessorsRule) -> list[list[Any]]:
    """The columns of which :class:`_Asked` is made."""
    from batsched_py.workload.sources.accounting import names_of

    size, requested, memory = log.processors, log.requested_processors, log.requested_memory
    if processors == "requested":
        size = np.where(requested > 0, requested, size)
    shared = (size > requested) & (requested > 0)
    memory = np.where(shared, memory * requested / np.maximum(size, 1), memory)
    columns = [
        size.tolist(),
        np.ceil(np.clip(memory, 0, MOST)).astype(np.int64).tolist(),
        names_of(log, "partition").tolist(),
        names_of(log, "queue").tolist(),
    ]
    for name, nothing in _MORE.items():
        read = _text if nothing == "" else _count
        known = log.more.get(name)
        columns.append([nothing] * len(log) if known is None else list(map(read, known.tolist())))
    return columns


class _Maker:
    """Makes requests of what a log says, and counts what the machine has not."""

    def __init__(self, words: NodeWords, written: bool) -> None:
        """Requests may be ``written`` in full; then there are no others."""
        self._words = words
        self._written = written
        self.unknown: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """What the machine does not have, by kind and name: how many jobs would have asked for it."""

    def request(self, asked: _Asked, jobs: int) -> dict[str, Any]:
        """The field ``request`` of so many jobs.

        As many GPUs are on each node as the job had, if they were as many; else its tasks share them.
        """
        if self._written:
            try:
                return msgspec.json.decode(asked.request or "{}", type=dict[str, Any])
            except msgspec.DecodeError as error:
                raise ValueError(f"request: {error}") from None
        made: dict[str, Any] = {}
        if 0 < asked.tasks < asked.size and asked.size % asked.tasks == 0:
            made |= {"tasks": asked.tasks, "cores": asked.size // asked.tasks}
        tasks = made.get("tasks", asked.size)
        least = min(asked.requested_nodes or asked.nodes, tasks)
        if least > 1:
            made["nodes"] = [least, tasks]
        if asked.memory and self._has("memory", self._words.resources, "memory", jobs):
            made["per_core"] = {"memory": f"{min(asked.memory, MOST // asked.size)} kB"}
        if asked.gpus and self._has("gpu", self._words.resources, "GPUs", jobs):
            made.pop("nodes", None)
            if 0 < asked.nodes <= tasks and asked.gpus % asked.nodes == 0:
                made |= {"nodes": asked.nodes, "per_node": {"gpu": asked.gpus // asked.nodes}}
            else:
                made["per_job"] = {"gpu": asked.gpus}
        if asked.exclusive:
            made["exclusive"] = True
        return made | self._features(asked.features, jobs) | self._partitions(asked, jobs)

    def _features(self, text: str, jobs: int) -> dict[str, str]:
        if not text:
            return {}
        try:
            parse_features(text)
        except ValueError:
            self.unknown["features like"][text] += jobs
            return {}
        names = re.findall(r"[A-Za-z0-9_.:+-]+", text)
        known = [self._has(name, self._words.features, "feature", jobs, name) for name in names]
        return {"features": text} if all(known) else {}

    def _partitions(self, asked: _Asked, jobs: int) -> dict[str, list[str]]:
        """The partitions of a job; where there are none, a queue of the same name is one."""
        words = self._words.partitions
        named = [name for name in asked.partition.split(",") if name]
        known = [name for name in named if name in words]
        if not known and asked.queue in words:
            known = [asked.queue]
        if words and named and not known:
            self._has(asked.partition, words, "partition", jobs, asked.partition)
        return {"partitions": known} if known else {}

    def _has(self, word: str, words: frozenset[str], what: str, jobs: int, name: str = "") -> bool:
        if word not in words:
            self.unknown[what][name] += jobs
        return word in words


def _text(value: Any) -> str:
    return "" if value is None or value != value else str(value).strip()


def _count(value: Any) -> int:
    try:
        return max(int(value), 0)
    except (TypeError, ValueError, OverflowError):
        return 0
