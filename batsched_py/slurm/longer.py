"""Jobs that ask for more time than their partitions allow after a change, and what their users do then."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf
from typing import Any, Literal

from msgspec.structs import replace

from batsched_py.protocol.dependencies import AFTER, ARRAY
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Profile
from batsched_py.slurm.jobs import LONGER, NEARLY
from batsched_py.slurm.policy.job import FIELD
from batsched_py.slurm.policy.settings import Configuration
from batsched_py.workload.dependencies import rewritten
from batsched_py.workload.model import CANCELLED_AFTER, Workload
from batsched_py.workload.swf.conventions import profile_name

#: What users do: they leave their jobs as they are, which then wait for ever; they ask for as much as they
#: may, and what runs for longer is killed; or they split a job into several that run one after another.
Rule = Literal["leave", "shorten", "split"]

#: A part of a job ends so many seconds before its limit, when it has written down how far it is.
CHECKPOINT = 60.0

#: What of a job counts for the first part of it only.
_OF_THE_FIRST = ("id", "begin", "not_before", "runs", "hold", "released")


def fitted(workload: Workload, configuration: Configuration, rule: Rule) -> Workload:
    """The jobs, of which those are changed that ask for more time than all their partitions allow."""
    if rule == "leave":
        return workload
    limits = {each.name: each.max_time for each in configuration.partitions}
    default = [each.name for each in configuration.partitions if each.default]
    profiles: dict[str, Profile] = dict(workload.profiles)
    last: dict[str, str] = {}
    """Of a job in parts, what the last one is called."""
    made: list[Job] = []
    for job in workload.jobs:
        if AFTER in job.extra and last:
            after = rewritten(job.extra[AFTER], lambda name: last.get(name, name))
            job = replace(job, extra=job.extra | {AFTER: after})
        named = job.extra.get("request", {}).get("partitions") or default[-1:]
        most = max((limits[name] for name in named if name in limits), default=inf)
        profile = workload.profiles[job.profile]
        asked = job.extra.get(FIELD, {}).get("time_limit", job.walltime)
        if not most < asked < inf or not isinstance(profile, Delay):
            made.append(job)
        elif rule == "split" and profile.seconds > most - NEARLY and CANCELLED_AFTER not in job.extra:
            parts = _parts(job, profile.seconds, most, profiles)
            last[job.name] = parts[-1].name
            made += parts
        else:
            made.append(_shortened(job, profile.seconds, most, configuration))
    return replace(workload, jobs=made, profiles=profiles, finishes=None)


def _shortened(job: Job, seconds: float, most: float, configuration: Configuration) -> Job:
    """The job with this limit, at which the policy kills it if it runs for as long."""
    fields = {key: value for key, value in job.extra.get(FIELD, {}).items() if key != "time_limit"}
    walltime = most
    if seconds > most - NEARLY:
        fields["time_limit"] = most
        walltime += LONGER + configuration.scheduling.over_time_limit
    return replace(job, walltime=walltime, extra=_with(job.extra, fields))


def _parts(job: Job, seconds: float, most: float, profiles: dict[str, Profile]) -> list[Job]:
    """The parts of a job, each of which begins when the one before it is over."""
    useful = max(most - CHECKPOINT, most / 2)
    fields = {key: value for key, value in job.extra.get(FIELD, {}).items() if key != "time_limit"}
    rest = {key: value for key, value in fields.items() if key not in _OF_THE_FIRST}
    found: list[Job] = []
    for number in range(1, ceil(seconds / useful) + 1):
        run_time = round(min(useful, seconds - useful * (number - 1)), 3)
        name = profile_name(run_time)
        profiles[name] = Delay(seconds=run_time)
        extra = _with(job.extra, fields if number == 1 else rest)
        if found:
            extra = {key: value for key, value in extra.items() if key != ARRAY}
            extra[AFTER] = f"afterany:{found[-1].name}"
        job_id = job.id if number == 1 else f"{job.id}part{number}"
        found.append(replace(job, id=job_id, walltime=most, profile=name, extra=extra))
    return found


def _with(extra: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in extra.items() if key != FIELD}
    return rest | ({FIELD: dict(fields)} if fields else {})
