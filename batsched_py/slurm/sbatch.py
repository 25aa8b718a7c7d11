"""The options of ``sbatch``, and what a submission with them asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.findings import Findings
from batsched_py.slurm.policy.settings import is_unused
from batsched_py.slurm.values import NotModelled, count, listed, megabytes, signed, time_limit

_LETTERS = {
    "A": "account", "a": "array", "b": "begin", "D": "chdir", "M": "clusters", "C": "constraint",
    "S": "core-spec", "c": "cpus-per-task", "d": "dependency", "m": "distribution", "e": "error",
    "x": "exclude", "B": "extra-node-info", "G": "gpus", "H": "hold", "i": "input", "J": "job-name",
    "k": "no-kill", "L": "licenses", "F": "nodefile", "w": "nodelist", "N": "nodes", "n": "ntasks",
    "o": "output", "O": "overcommit", "s": "oversubscribe", "p": "partition", "q": "qos", "Q": "quiet",
    "t": "time", "v": "verbose", "W": "wait",
}  # fmt: skip

#: Options without a value, and those whose value may be left out.
_SWITCHES = frozenset(
    "contiguous hold oversubscribe spread-job use-min-nodes requeue no-requeue overcommit quiet verbose "
    "wait parsable ignore-pbs reboot test-only".split()
)
_OPTIONAL = frozenset("exclusive nice no-kill get-user-env propagate".split())

#: These shape no schedule.
_WITHOUT_EFFECT = frozenset(
    "acctg-freq chdir comment error export export-file get-user-env gid gpu-bind gpu-freq ignore-pbs input "
    "kill-on-invalid-dep mail-type mail-user mem-bind no-kill open-mode output parsable profile propagate "
    "quiet verbose wait wait-all-nodes wckey wrap cpu-freq distribution".split()
)
_UNMODELLED = frozenset(
    "batch bb bbf cluster-constraint clusters container core-spec cores-per-socket cpus-per-gpu "
    "delay-boot extra-node-info gres-flags mcs-label mincpus network nodefile ntasks-per-gpu "
    "ntasks-per-socket overcommit power prefer reboot signal sockets-per-node test-only thread-spec "
    "tmp gpus-per-socket".split()
)
_NODES = re.compile(r"([0-9]{1,9})(k?)(?:-([0-9]{1,9})(k?))?")
_TYPE = r"[a-z0-9_.-]*[a-z_.-][a-z0-9_.-]*"
_GRES = re.compile(rf"(?:gres[:/])?([a-z_]+)(?:[:=]({_TYPE}))?(?:[:=]([0-9]{{1,9}}))?", re.IGNORECASE)
_GPUS = re.compile(rf"(?:({_TYPE}):)?([0-9]{{1,9}})", re.IGNORECASE)


class Submission(Struct, kw_only=True):
    """A job as it was submitted: what a call of ``sbatch`` asks for, whatever file tells of it."""

    name: str = ""
    """The job's name in the workload."""
    where: str = ""
    """Where it stands in a file."""
    at: float = 0.0
    run_time: float = 0.0
    nodes: tuple[int, int | None] | None = None
    """At least and at most."""
    tasks: int | None = None
    cpus_per_task: int = 1
    tasks_per_node: int | None = None
    time: float | None = None
    """Its time limit; none if it did not say, ``inf`` if there is no limit."""
    memory_per_node: int | None = None
    """In MB, as all memory; 0 is all the memory of a node."""
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    resources_per_node: dict[str, int] = field(default_factory=dict)
    resources_per_job: dict[str, int] = field(default_factory=dict)
    resources_per_task: dict[str, int] = field(default_factory=dict)
    """A resource of a type, like ``gpu:a100``, is asked for besides the plain one."""
    features: str = ""
    licences: dict[str, int] = field(default_factory=dict)
    partitions: tuple[str, ...] = ()
    exclusive: bool = False
    one_switch: bool = False
    begin: str = ""
    deadline: str = ""
    dependency: str = ""
    array: str = ""
    user: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    """What goes into the field ``slurm`` of a job as it is."""


def read_options(words: Sequence[str], where: str, findings: Findings) -> Submission:
    """The submission with these options; what is wrong or not modelled is noted."""
    submission = Submission(where=where)
    for name, value in _options(words, where, findings):
        if name in _READERS:
            known = set(submission.fields)
            try:
                _READERS[name](submission, value)
                if any(is_unused("job", field) for field in submission.fields if field not in known):
                    findings.left_out(where, f"--{name} is not modelled")
            except ValueError as error:
                findings.refused(where, f"--{name}", error)
        elif name in _WITHOUT_EFFECT:
            findings.of_no_effect(where, f"--{name}")
        elif name in _UNMODELLED:
            findings.left_out(where, f"--{name} is not modelled")
        else:
            findings.left_out(where, f"--{shown_name(name)} is no option that is known")
    return submission


def _options(words: Sequence[str], where: str, findings: Findings) -> Iterator[tuple[str, str]]:
    """The long name of each option, and its value."""
    rest = iter(words)
    for word in rest:
        value: str | None
        if word.startswith("--") and len(word) > 2:
            name, equals, after = word[2:].partition("=")
            value = after if equals else None
        elif word.startswith("-") and word[1:2] in _LETTERS:
            name, value = _LETTERS[word[1]], word[2:].removeprefix("=") or None
        else:
            findings.mistake(where, f"{shown(word)} is no option")
            continue
        known = name in _READERS or name in _WITHOUT_EFFECT or name in _UNMODELLED
        if value is None and known and name not in _SWITCHES | _OPTIONAL:
            value = next(rest, None)
            if value is None:
                findings.mistake(where, f"{word} has no value")
                continue
        yield name, value or ""


def _nodes(submission: Submission, text: str) -> None:
    match = _NODES.fullmatch(text)
    if match is None:
        raise ValueError(f"{shown(text)} is not a number of nodes, or a range like 2-4")
    least = int(match[1]) * (1024 if match[2] else 1)
    most = int(match[3]) * (1024 if match[4] else 1) if match[3] else least
    if not 1 <= least <= most:
        raise ValueError(f"{shown(text)} is not a range of nodes")
    submission.nodes = (least, most)


def _positive(text: str) -> int:
    if (value := count(text)) < 1:
        raise ValueError(f"{shown(text)} is not a positive number")
    return value


def _hint(submission: Submission, text: str) -> None:
    if text in ("nomultithread", "compute_bound"):
        submission.fields["cpus_of_core"] = 1
    elif text != "multithread":
        raise NotModelled(f"{shown(text)} is not modelled")


def gres(text: str) -> dict[str, int]:
    """Resources that can be counted; one of a type is also one of those without a type.

    >>> gres("gpu:a100:2,gres/nvme=1")
    {'gpu': 2, 'gpu:a100': 2, 'nvme': 1}
    """
    amounts: dict[str, int] = {}
    for part in listed(text):
        match = _GRES.fullmatch(part)
        if match is None:
            raise ValueError(f"{shown(part)} is not of the form NAME[:TYPE][:COUNT]")
        _add(amounts, match[1].lower(), match[2], int(match[3] or 1))
    return {name: amount for name, amount in amounts.items() if amount}


def _gres(submission: Submission, text: str) -> None:
    submission.resources_per_node |= {} if text.lower() == "none" else gres(text)


def _add(amounts: dict[str, int], name: str, type_: str | None, count: int) -> None:
    """Add so many of a resource, of a type if one is told."""
    for called in (name, f"{name}:{type_}") if type_ else (name,):
        amounts[called] = amounts.get(called, 0) + count


def gpus(text: str) -> dict[str, int]:
    """GPUs of types, like ``a100:2`` or ``3``.

    >>> gpus("a100:2,1")
    {'gpu': 3, 'gpu:a100': 2}
    """
    amounts: dict[str, int] = {}
    for part in listed(text):
        match = _GPUS.fullmatch(part)
        if match is None:
            raise ValueError(f"{shown(part)} is not of the form [TYPE:]COUNT")
        _add(amounts, "gpu", match[1], int(match[2]))
    return {name: amount for name, amount in amounts.items() if amount}


def _gpus_per_node(submission: Submission, text: str) -> None:
    submission.resources_per_node |= gpus(text)


def licences(text: str) -> dict[str, int]:
    """Licences, like ``matlab:2,idl``."""
    parts = [part.partition(":") for part in listed(text.replace(";", ","))]
    return {name: _positive(number or "1") for name, _, number in parts}


def _exclusive(submission: Submission, text: str) -> None:
    match text.lower():
        case "" | "node":
            submission.exclusive = True
        case "user":
            submission.fields["exclusive_user"] = True
        case "mcs":
            raise NotModelled(f"{shown(text)} is not modelled")
        case _:
            raise ValueError(f"{shown(text)} is neither nothing nor user")


def _attribute(name: str, read: Callable[[str], Any]) -> Callable[[Submission, str], None]:
    def take(submission: Submission, text: str) -> None:
        setattr(submission, name, read(text))

    return take


def _job_field(name: str, read: Callable[[str], Any]) -> Callable[[Submission, str], None]:
    def take(submission: Submission, text: str) -> None:
        submission.fields[name] = read(text)

    return take


def _yes(text: str) -> bool:
    return True


def _nice(text: str) -> int:
    return signed(text) if text else 100


def _one_switch(text: str) -> bool:
    return _positive(text.partition("@")[0]) == 1


def _priority(text: str) -> int | None:
    return None if text.upper() == "TOP" else count(text)


_READERS: dict[str, Callable[[Submission, str], None]] = {
    "nodes": _nodes,
    "ntasks": _attribute("tasks", _positive),
    "cpus-per-task": _attribute("cpus_per_task", _positive),
    "ntasks-per-node": _attribute("tasks_per_node", _positive),
    "ntasks-per-core": _job_field("tasks_of_core", _positive),
    "threads-per-core": _job_field("cpus_of_core", _positive),
    "hint": _hint,
    "time": _attribute("time", time_limit),
    "mem": _attribute("memory_per_node", megabytes),
    "mem-per-cpu": _attribute("memory_per_cpu", megabytes),
    "mem-per-gpu": _attribute("memory_per_gpu", megabytes),
    "gres": _gres,
    "gpus": _attribute("resources_per_job", gpus),
    "gpus-per-node": _gpus_per_node,
    "gpus-per-task": _attribute("resources_per_task", gpus),
    "constraint": _attribute("features", str),
    "licenses": _attribute("licences", licences),
    "partition": _attribute("partitions", listed),
    "exclusive": _exclusive,
    "switches": _attribute("one_switch", _one_switch),
    "begin": _attribute("begin", str),
    "deadline": _attribute("deadline", str),
    "dependency": _attribute("dependency", str),
    "array": _attribute("array", str),
    "uid": _attribute("user", str),
    "account": _job_field("account", str),
    "qos": _job_field("qos", str),
    "nice": _job_field("nice", _nice),
    "priority": _job_field("priority", _priority),
    "hold": _job_field("hold", _yes),
    "reservation": _job_field("reservation", str),
    "requeue": _job_field("requeue", _yes),
    "no-requeue": _job_field("requeue", lambda text: False),
    "time-min": _job_field("time_min", time_limit),
    "nodelist": _job_field("node_list", str),
    "exclude": _job_field("exclude", str),
    "contiguous": _job_field("contiguous", _yes),
    "spread-job": _job_field("spread", _yes),
    "use-min-nodes": _job_field("use_min_nodes", _yes),
    "oversubscribe": _job_field("oversubscribe", _yes),
    "job-name": _job_field("name", str),
}
