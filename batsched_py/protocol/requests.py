"""What a job asks for beside a number of hosts: cores, memory and other resources of nodes.

Batsim knows hosts only. It passes all further fields of a job on, so a request stands in the field
``request`` of a job in a workload file, and a real Batsim carries it to the decision process unread.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache, partial
from math import gcd
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from batsched_py.protocol.shown import shown

#: How much of each resource, by name; memory is counted in KiB.
Amounts = tuple[tuple[str, int], ...]

_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([kKMGTP]?)(?:i?B)?\s*")
_KIBIBYTES = {"": 1 / 1024, "k": 1, "K": 1, "M": 1024, "G": 1024**2, "T": 1024**3, "P": 1024**4}

#: The most that can be asked for or be had of a resource.
MOST = 1 << 48

_Count = Annotated[int, Meta(ge=1, le=MOST)]
_Written = dict[str, int | float | str]


class Request(Struct, frozen=True, gc=False):
    """Tasks that are placed on nodes, each with its cores and its share of other resources.

    All tasks are alike. The tasks of a job that are on one node share what is asked for by node. Amounts of a
    resource are told apart by their names, such as ``memory`` and ``gpu``. What the whole job asks for is
    shared out among its tasks; if there are fewer GPUs than tasks, several tasks make one that has one.
    """

    tasks: int
    cores: int = 1
    """Of each task."""
    per_task: Amounts = ()
    per_node: Amounts = ()
    """On each node that is used."""
    least_nodes: int = 1
    most_nodes: int = MOST
    tasks_per_node: int = MOST
    """At most."""
    exclusive: bool = False
    """Whether no other job may be on its nodes."""
    features: str = ""
    """What its nodes must have, like ``a100 & !old``."""
    partitions: tuple[str, ...] = ()
    """Where it may run, the preferred one first; all its nodes are in one of them. Without any, anywhere."""
    one_switch: bool = False
    """Whether nodes of one switch are preferred."""
    licences: Amounts = ()
    """Of the whole job."""

    @property
    def hosts(self) -> int:
        """How many hosts the job runs on: one for each core."""
        return self.tasks * self.cores


class _Fields(Struct, forbid_unknown_fields=True):
    """A request as it is written in a workload file."""

    tasks: _Count | None = None
    cores: _Count = 1
    per_core: _Written = {}
    per_task: _Written = {}
    per_node: _Written = {}
    per_job: _Written = {}
    nodes: int | tuple[int, ...] = (1, MOST)
    tasks_per_node: _Count = MOST
    exclusive: bool = False
    features: str = ""
    partitions: tuple[str, ...] = ()
    one_switch: bool = False
    licences: dict[str, _Count] = {}


def read_request(size: int, fields: Mapping[str, Any] | None) -> Request:
    """The request of a job of a size, as its field ``request`` says; without that, single cores anywhere.

    >>> read_request(8, {"cores": 2, "per_core": {"memory": "1 GB"}, "nodes": 2}).per_task
    (('memory', 2097152),)
    """
    return _read(size, msgspec.json.encode(fields)) if fields else Request(size)


@lru_cache(maxsize=1 << 16)
def _read(size: int, text: bytes) -> Request:
    """The request in a text; most jobs ask for what others have asked for."""
    if size < 1:
        raise ValueError("request: a job without hosts cannot have one")
    try:
        given = msgspec.json.decode(text, type=_Fields)
    except msgspec.ValidationError as error:
        raise ValueError(f"request: {error}") from None
    tasks = given.tasks or size // given.cores
    if tasks * given.cores != size:
        raise ValueError(f"request: {tasks} tasks of {given.cores} cores do not make the {size} hosts of res")
    least, *others = (given.nodes, given.nodes) if isinstance(given.nodes, int) else given.nodes or (0, 0)
    most = others[0] if len(others) == 1 else 0
    if not 1 <= least <= most <= MOST:
        nodes = shown(given.nodes)
        raise ValueError(f"request: nodes {nodes} is not a number of nodes or a range like [2, 4]")
    if least > min(most, tasks):
        raise ValueError(f"request: at least {least} nodes cannot be had by {tasks} tasks on at most {most}")
    per_job = _amounts(given.per_job)
    bundle = tasks // gcd(tasks, *(count for name, count in per_job.items() if name != "memory"))
    if bundle > given.tasks_per_node or least > tasks // bundle:
        raise ValueError(f"request: {given.per_job} of the job cannot be shared out among its {tasks} tasks")
    per_task = Counter[str]()
    for given_amounts, factor in ((given.per_task, bundle), (given.per_core, given.cores * bundle)):
        per_task.update({name: count * factor for name, count in _amounts(given_amounts).items()})
    per_task.update({name: -(-count * bundle // tasks) for name, count in per_job.items()})
    if max(per_task.values(), default=0) > MOST:
        raise ValueError(f"request: a task asks for more than {MOST} of a resource")
    return Request(
        tasks // bundle,
        given.cores * bundle,
        _sorted(per_task),
        _sorted(_amounts(given.per_node)),
        least,
        most,
        given.tasks_per_node // bundle,
        given.exclusive,
        given.features,
        given.partitions,
        given.one_switch,
        _sorted(given.licences),
    )


def amount(name: str, value: int | float | str) -> int:
    """How much of a resource: a number, or for memory a size like ``"4 GB"``; without a unit it is in MB.

    >>> amount("memory", "1.5 GB"), amount("memory", 2), amount("gpu", 4)
    (1572864, 2048, 4)
    """
    if name == "memory":
        return kibibytes(f"{value} MB" if isinstance(value, int | float) else value)
    if isinstance(value, str):
        if not (value.strip().isascii() and value.strip().isdigit()):
            raise ValueError(f"{name}: {shown(value)} is not a whole number")
        value = int(value)
    if value != int(value) or not 0 <= value <= MOST:
        raise ValueError(f"{name}: {value} is not a whole number of at least 0")
    return int(value)


def kibibytes(text: str) -> int:
    """A size of memory in KiB, rounded up; a unit of 1024 is meant, as batch systems do it."""
    match = _SIZE.fullmatch(text)
    size = float(match[1]) * _KIBIBYTES[match[2]] if match else -1.0
    if not 0 <= size <= MOST:
        raise ValueError(f"{shown(text)} is not a size of memory like '4 GB'")
    return -int(-size // 1)


def _amounts(written: Mapping[str, int | float | str]) -> dict[str, int]:
    return {name: amount(name, value) for name, value in written.items()}


def _sorted(amounts: Mapping[str, int]) -> Amounts:
    return tuple(sorted((name, value) for name, value in amounts.items() if value))


_TOKEN = re.compile(r"[A-Za-z0-9_.:+-]+|[&|,!()]")

#: Whether a node with these features is meant.
Meant = Callable[[Collection[str]], bool]


def parse_features(text: str) -> Meant:
    """What an expression means: ``&`` or a comma is *and*, ``|`` is *or*, ``!`` is *not*.

    >>> parse_features("a100 & !(old | slow)")({"a100", "new"})
    True
    """
    text = text.rstrip()
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != "".join(text.split()) or len(tokens) > 200:
        raise ValueError(f"features {shown(text)}: names joined by &, | and ! are expected")
    meant = _joined(tokens, text)
    if tokens:
        raise ValueError(f"features {shown(text)}: {tokens[0]!r} is not expected there")
    return meant


def _joined(tokens: list[str], text: str, by: str = "|") -> Meant:
    """What terms mean that are joined by ``|``, or, inside such a term, by one of ``&,``."""
    read, enough = (partial(_joined, by="&,"), any) if by == "|" else (_one, all)
    terms = [read(tokens, text)]
    while tokens and tokens[0] in by:
        tokens.pop(0)
        terms.append(read(tokens, text))
    return lambda features: enough(term(features) for term in terms)


def _one(tokens: list[str], text: str) -> Meant:
    token = tokens.pop(0) if tokens else ""
    match token:
        case "!":
            meant = _one(tokens, text)
            return lambda features: not meant(features)
        case "(":
            meant = _joined(tokens, text)
            if not tokens or tokens.pop(0) != ")":
                raise ValueError(f"features {shown(text)}: a parenthesis is not closed")
            return meant
        case "" | ")" | "&" | "," | "|":
            raise ValueError(f"features {shown(text)}: a name is missing")
        case _:
            return lambda features: token in features
