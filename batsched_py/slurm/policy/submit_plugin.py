"""A submit plugin: code of a cluster that changes or refuses jobs when they are submitted.

Slurm executes ``job_submit.lua`` or a library. The twin executes a class in Python, named by the option
``submit_plugin`` of the policy; ``examples/submit_plugin.py`` is one.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf
from typing import Any, ClassVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from batsched_py.blame import naming
from batsched_py.errors import InputError, PolicyError
from batsched_py.plugins import Registry
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.requests import parse_features, read_request
from batsched_py.slurm.policy.job import FIELD, fields_of
from batsched_py.slurm.policy.settings import Configuration


class Submitted(Struct, kw_only=True):
    """What a job asks for when it is submitted; a plugin may change it."""

    account: str = ""
    qos: str = ""
    partitions: list[str] = []
    """Without any, that of jobs that do not say."""
    reservation: str = ""
    time_limit: float = inf
    """In seconds. It may become shorter; then the job is killed after it."""
    time_min: float | None = None
    nice: int = 0
    hold: bool = False
    features: str = ""
    """What its nodes must have, like ``a100 & !old``."""
    exclusive: bool = False


class SubmitPlugin(ABC):
    """Changes or refuses jobs when they are submitted."""

    name: ClassVar[str]
    """What it is called; without it, as its class in small letters."""

    def begin(self, configuration: Configuration) -> None:
        """Prepare; called once, with the configuration of the cluster."""
        return None

    @abstractmethod
    def submit(self, asked: Submitted, job: Job) -> str | None:
        """Change what a job asks for, or tell why it is refused.

        All that cannot be changed is told by the job of the workload, such as its user and its size.
        """


#: Those of other distributions, and in files.
SUBMIT_PLUGINS = Registry[SubmitPlugin](
    "submit plugin",
    SubmitPlugin,  # type: ignore[type-abstract]
    package=None,
    group="batsched_py.submit_plugins",
)


class Refused(Struct, frozen=True):
    """What a plugin says of a job that it refuses."""

    why: str


class Submissions:
    """Shows each job to a plugin, and checks what it makes of it."""

    def __init__(self, given: str | SubmitPlugin, configuration: Configuration) -> None:
        self._plugin = SUBMIT_PLUGINS.instance(given)
        self._called = str(getattr(self._plugin, "name", type(self._plugin).__name__.lower()))
        self._partitions = {partition.name for partition in configuration.partitions}
        with naming(f"submit plugin {self._called!r}"):
            self._plugin.begin(configuration)

    def of(self, job: Job) -> Job | Refused:
        """A job as it is after the plugin has seen it, or that it is refused."""
        try:
            request, fields = read_request(job.size, job.extra.get("request")), fields_of(job)
        except ValueError as error:
            raise InputError(f"job {job.id}: {error}") from None
        time_limit = job.walltime if fields.time_limit is None else fields.time_limit
        known = {name: getattr(fields, name) for name in _IN_FIELDS}
        known |= {name: getattr(request, name) for name in _IN_REQUEST}
        known["partitions"] = list(request.partitions)
        asked = Submitted(**known, time_limit=time_limit)
        with naming(f"submit plugin {self._called!r}"):
            why = self._plugin.submit(asked, job)
        if why is not None:
            return Refused(str(why) or "the submit plugin refuses it")
        try:
            asked = msgspec.convert(msgspec.to_builtins(asked), Submitted)
            if asked.features:
                parse_features(asked.features)
        except (msgspec.ValidationError, ValueError) as error:
            self._fail(job, str(error))
        self._check(job, asked, time_limit)
        return _changed(job, asked, known | {"time_limit": time_limit})

    def _check(self, job: Job, asked: Submitted, time_limit: float) -> None:
        for name in asked.partitions:
            if self._partitions and name not in self._partitions:
                self._fail(job, f"there is no partition {name!r}")
        if not 0 < asked.time_limit <= time_limit:
            self._fail(job, f"a time limit of {time_limit:g} s cannot become {asked.time_limit:g} s")

    def _fail(self, job: Job, why: str) -> None:
        raise PolicyError(f"submit plugin {self._called!r}, job {job.name}: {why}")


def _changed(job: Job, asked: Submitted, known: Mapping[str, Any]) -> Job:
    """A job that asks for something else than what is known of it."""
    new = {name: value for name, value in msgspec.to_builtins(asked).items() if value != known[name]}
    in_request = {name: value for name, value in new.items() if name in _IN_REQUEST}
    in_fields = {name: value for name, value in new.items() if name not in _IN_REQUEST}
    extra = dict(job.extra)
    if in_request:
        extra["request"] = {**extra.get("request", {}), **in_request}
    if in_fields:
        extra[FIELD] = {**extra.get(FIELD, {}), **in_fields}
    return replace(job, extra=extra)


#: What a plugin may change of the fields of a job, and of its request.
_IN_FIELDS = ("account", "qos", "reservation", "time_min", "nice", "hold")
_IN_REQUEST = ("partitions", "features", "exclusive")
