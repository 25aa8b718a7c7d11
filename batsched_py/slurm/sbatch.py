"""The options of ``sbatch``, and what a submission with them asks for."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Literal

from msgspec import Struct, field

from batsched_py.protocol.hosts import expand
from batsched_py.protocol.shown import shown, shown_name
from batsched_py.slurm.policy.settings import is_unused
from batsched_py.slurm.reading import Findings, NotModelled, count, listed, megabytes, signed, time_limit

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
    "batch bb bbf cluster-constraint clusters container core-spec cores-per-socket "
    "delay-boot extra-node-info gres-flags mcs-label mincpus network nodefile ntasks-per-gpu "
    "ntasks-per-socket overcommit power prefer reboot signal sockets-per-node test-only thread-spec "
    "tmp gpus-per-socket".split()
)
_NODES = re.compile(r"([0-9]{1,9})(k?)(?:-([0-9]{1,9})(k?))?")
_TYPE = r"[a-z0-9_.-]*[a-z_.-][a-z0-9_.-]*"
_COUNT = r"(?P<count>[0-9]{1,9})"
_GRES = re.compile(
    rf"(?:gres[:/])?(?P<name>[a-z_]+)(?:[:=](?P<type>{_TYPE}))?(?:[:=]{_COUNT})?", re.IGNORECASE
)
_GPUS = re.compile(rf"(?:(?P<type>{_TYPE}):)?{_COUNT}", re.IGNORECASE)


State = Literal["running", "waiting"]

ANY_NODES = (1, None)
"""As many nodes as it takes, of a job that does not say."""


class Submission(Struct, kw_only=True):
    """A job as it was submitted: what a call of ``sbatch`` asks for, whatever file tells of it.

    Of a job that waits or runs on a live cluster, its field ``node_list`` has the nodes that it runs on, or
    that it must have. One of ``priority`` 0 is held, or waits for ever.
    """

    name: str = ""
    """The job's name in the workload."""
    id: str = ""
    """What a live cluster calls it: some tasks of an array have one, like ``12_[4-9%2]``."""
    state: State = "waiting"
    started: float | None = None
    """Of a running job, in Unix time; of a waiting one, when Slurm plans to start it."""
    eligible: float | None = None
    """In Unix time."""
    is_logged: bool = False
    """Whether a log tells of it, which may name what the cluster does not have any more."""
    where: str = ""
    """Where it stands in a file."""
    at: float = 0.0
    run_time: float = 0.0
    nodes: tuple[int, int | None] = ANY_NODES
    """At least and at most."""
    tasks: int = 0
    """0 if it did not say."""
    cpus_per_task: int = 1
    tells_cpus: bool = False
    """Whether it told how many processors a task has."""
    tasks_per_node: int | None = None
    time: float | None = None
    """Its time limit; none if it did not say, ``inf`` if there is no limit."""
    memory_per_node: int | None = None
    """In MB, as all memory; 0 is all the memory of a node."""
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    cpus_per_gpu: int | None = None
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
    extra: dict[str, Any] = field(default_factory=dict)
    """What else a log tells of a job, its request included, in the form of a workload."""

    @property
    def runs(self) -> bool:
        """Whether it runs."""
        return self.state == "running"

    @property
    def is_held(self) -> bool:
        """Whether it waits, and will not start."""
        return not self.runs and self.fields["priority"] == 0

    @property
    def node_names(self) -> list[str]:
        """The nodes that it runs on, or that it must have."""
        return expand(self.fields.get("node_list", ""))


def read_options(
    words: Sequence[str], where: str, findings: Findings, up_to_script: bool = False
) -> Submission:
    """The submission with these options; what is wrong or not modelled is noted.

    Options may end where the name of a script stands.
    """
    submission = Submission(where=where)
    for name, text in _options(words, where, findings, up_to_script):
        if name in _READERS:
            findings.read(partial(_take, submission, name, findings), text, where, f"--{name}")
        elif name in _WITHOUT_EFFECT:
            findings.of_no_effect(where, f"--{name}")
        else:
            why = "not modelled" if name in _UNMODELLED else "no option that is known"
            findings.left_out(where, f"--{shown_name(name)} is {why}")
    return submission


def in_parts(words: Sequence[str]) -> list[list[str]]:
    """The options of each part of a heterogeneous job, between which colons stand alone.

    >>> in_parts(["-n", "4", ":", "-n", "1"])
    [['-n', '4'], ['-n', '1']]
    """
    parts: list[list[str]] = [[]]
    for word in words:
        if word == ":":
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def part_name(name: str, number: int) -> str:
    """What a part of a heterogeneous job is called; the first one as the job itself."""
    return f"{name}+{number}" if number else name


#: The commands that submit jobs.
_COMMANDS = ("sbatch", "srun", "salloc")


def read_submit_line(
    line: str, where: str, findings: Findings, part: int = 0
) -> tuple[Submission, bool] | None:
    """What a command asks for, and whether that is all its job asked for; nothing if it is no such command.

    If it asks for a heterogeneous job, one of its parts counts, or none if it has not so many.

    A script may ask for more, and so may an option that is not modelled. Slurm writes its words down without
    the quotes that held them together, so a text of several words ends the options that are read.
    """
    command, *words = line.split() or [""]
    if (command := command.rpartition("/")[2]) not in _COMMANDS:
        return None
    parts = in_parts(words)
    if part >= len(parts):
        return None
    submission = read_options(parts[part], where, findings, up_to_script=True)
    is_wrapped = any(word == "--wrap" or word.startswith("--wrap=") for word in words)
    is_all = (is_wrapped or command != "sbatch") and not findings.unmodelled
    return submission, is_all


def _take(submission: Submission, option: str, findings: Findings, text: str) -> None:
    """Let a submission have an option."""
    of_user = option == "exclusive" and text.lower() == "user"
    place, read = _switch("exclusive_user") if of_user else _READERS[option]
    value, of_job = read(text), place.removeprefix(_FIELD)
    if option == "switches":
        submission.fields["switches"], submission.fields["switch_wait"] = value
        value = value[0] == 1
    if of_job == place:
        if place == "resources_per_node":  # two options tell of these
            value = submission.resources_per_node | value
        setattr(submission, place, value)
        submission.tells_cpus = submission.tells_cpus or option == "cpus-per-task"
        return
    if is_unused("job", of_job) and of_job not in submission.fields:
        value_told = "=user" if of_user else ""
        findings.left_out(submission.where, f"--{option}{value_told} is not modelled")
    submission.fields[of_job] = value


@cache
def _whole_name(name: str) -> str:
    """The name of an option that may be cut short, if no other one begins so."""
    known = {*_READERS, *_WITHOUT_EFFECT, *_UNMODELLED}
    longer = [each for each in known if each.startswith(name)] if name not in known else []
    return longer[0] if len(longer) == 1 else name


def _options(
    words: Sequence[str], where: str, findings: Findings, up_to_script: bool
) -> Iterator[tuple[str, str]]:
    """The long name of each option, and its value."""
    rest = iter(words)
    for word in rest:
        value: str | None
        if word.startswith("--") and len(word) > 2:
            name, equals, after = word[2:].partition("=")
            name, value = _whole_name(name), after if equals else None
        elif word.startswith("-") and word[1:2] in _LETTERS:
            name, value = _LETTERS[word[1]], word[2:].removeprefix("=") or None
        elif up_to_script and not word.startswith("-"):
            return
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


def _nodes(text: str) -> tuple[int, int]:
    match = _NODES.fullmatch(text)
    if match is None:
        raise ValueError(f"{shown(text)} is not a number of nodes, or a range like 2-4")
    least = int(match[1]) * (1024 if match[2] else 1)
    most = int(match[3]) * (1024 if match[4] else 1) if match[3] else least
    if not 1 <= least <= most:
        raise ValueError(f"{shown(text)} is not a range of nodes")
    return least, most


def _positive(text: str) -> int:
    if (value := count(text)) < 1:
        raise ValueError(f"{shown(text)} is not a positive number")
    return value


def _hint(text: str) -> int | None:
    """How many processors of a core it may use, if it says."""
    if text not in ("nomultithread", "compute_bound", "multithread"):
        raise NotModelled(f"{shown(text)} is not modelled")
    return None if text == "multithread" else 1


def gres(text: str) -> dict[str, int]:
    """Resources that can be counted; one of a type is also one of those without a type.

    >>> gres("gpu:a100:2,gres/nvme=1")
    {'gpu': 2, 'gpu:a100': 2, 'nvme': 1}
    """
    return _amounts(text, _GRES, "NAME[:TYPE][:COUNT]")


def gpus(text: str) -> dict[str, int]:
    """GPUs of types, like ``a100:2`` or ``3``.

    >>> gpus("a100:2,1")
    {'gpu': 3, 'gpu:a100': 2}
    """
    return _amounts(text, _GPUS, "[TYPE:]COUNT")


def _amounts(text: str, pattern: re.Pattern[str], form: str) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for part in listed(text):
        match = pattern.fullmatch(part)
        if match is None:
            raise ValueError(f"{shown(part)} is not of the form {form}")
        found = match.groupdict()
        name, type_ = (found.get("name") or "gpu").lower(), found["type"]
        for called in (name, f"{name}:{type_}") if type_ else (name,):
            amounts[called] = amounts.get(called, 0) + int(found["count"] or 1)
    return {name: amount for name, amount in amounts.items() if amount}


def licences(text: str) -> dict[str, int]:
    """Licences, like ``matlab:2,idl``."""
    parts = [part.partition(":") for part in listed(text.replace(";", ","))]
    return {name: _positive(number or "1") for name, _, number in parts}


def _exclusive(text: str) -> bool:
    if text.lower() == "mcs":
        raise NotModelled(f"{shown(text)} is not modelled")
    if text.lower() not in ("", "node"):
        raise ValueError(f"{shown(text)} is neither nothing nor user")
    return True


def _switches(text: str) -> tuple[int, float | None]:
    """Behind how many switches its nodes may be, and how long it waits for that.

    >>> _switches("1@10"), _switches("2")
    ((1, 600.0), (2, None))
    """
    number, _, wait = text.partition("@")
    return _positive(number), time_limit(wait) if wait else None


#: What a name in the field ``slurm`` of a job begins with here.
_FIELD = "fields."

#: Where an option goes in a submission, and how its value is read.
Reader = tuple[str, Callable[[str], Any]]


def _switch(name: str) -> Reader:
    return f"{_FIELD}{name}", lambda text: True


_READERS: dict[str, Reader] = {
    "nodes": ("nodes", _nodes),
    "ntasks": ("tasks", _positive),
    "cpus-per-task": ("cpus_per_task", _positive),
    "cpus-per-gpu": ("cpus_per_gpu", _positive),
    "ntasks-per-node": ("tasks_per_node", _positive),
    "ntasks-per-core": ("fields.tasks_of_core", _positive),
    "threads-per-core": ("fields.cpus_of_core", _positive),
    "hint": ("fields.cpus_of_core", _hint),
    "time": ("time", time_limit),
    "mem": ("memory_per_node", megabytes),
    "mem-per-cpu": ("memory_per_cpu", megabytes),
    "mem-per-gpu": ("memory_per_gpu", megabytes),
    "gres": ("resources_per_node", lambda text: {} if text.lower() == "none" else gres(text)),
    "gpus": ("resources_per_job", gpus),
    "gpus-per-node": ("resources_per_node", gpus),
    "gpus-per-task": ("resources_per_task", gpus),
    "constraint": ("features", str),
    "licenses": ("licences", licences),
    "partition": ("partitions", listed),
    "exclusive": ("exclusive", _exclusive),
    "switches": ("one_switch", _switches),
    **{name: (name, str) for name in ("begin", "deadline", "dependency", "array")},
    "uid": ("user", str),
    **{name: (f"fields.{name}", str) for name in ("account", "qos", "reservation", "exclude")},
    "nodelist": ("fields.node_list", str),
    "job-name": ("fields.name", str),
    "nice": ("fields.nice", lambda text: signed(text) if text else 100),
    "priority": ("fields.priority", lambda text: None if text.upper() == "TOP" else count(text)),
    "time-min": ("fields.time_min", time_limit),
    "no-requeue": ("fields.requeue", lambda text: False),
    **{name: _switch(name) for name in ("hold", "requeue", "contiguous", "oversubscribe")},
    "spread-job": _switch("spread"),
    "use-min-nodes": _switch("use_min_nodes"),
}
