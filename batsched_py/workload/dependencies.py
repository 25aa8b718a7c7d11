"""Dependencies of jobs on each other, as far as a workload tells them."""

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.protocol import dependencies as protocol
from batsched_py.protocol.dependencies import Dependency, depends
from batsched_py.protocol.jobs import Job


def have_dependencies(jobs: Sequence[Job]) -> bool:
    """Whether any of the jobs waits for others; of logs that are kept as columns, some know it at once."""
    known: bool | None = getattr(jobs, "have_dependencies", None)
    return isinstance(jobs, list) and any(map(depends, jobs)) if known is None else known


def check_dependencies(jobs: Iterable[Job], path: str) -> None:
    """Refuse jobs that wait for themselves, or for jobs of their workload that do not exist."""
    dependent = {job.id: job for job in jobs if depends(job)}
    if not dependent:
        return
    tasks: dict[str, list[str]] = {}
    limits: dict[str, int | None] = {}
    known = {job.id for job in jobs}
    waits: dict[str, Dependency] = {}
    for job in dependent.values():
        try:
            array, dependency = protocol.array_of(job), protocol.dependency_of(job)
        except ValueError as error:
            raise InputError(f"{path}: job {job.id}: {error}") from None
        if array is not None:
            if array.name in known:
                raise InputError(f"{path}: job {job.id}: its array has the name of the job {array.name}")
            if limits.setdefault(array.name, array.limit) != array.limit:
                raise InputError(
                    f"{path}: job {job.id}: other tasks of array {array.name} have another limit"
                )
            tasks.setdefault(array.name, []).append(job.id)
        if dependency is not None:
            waits[job.id] = dependency
    targets: dict[str, list[list[str]]] = {}
    for job_id, dependency in waits.items():
        job = dependent[job_id]
        targets[job_id] = []
        for end in dependency.ends:
            name = protocol.full_name(job, end.target)
            if name in known:
                targets[job_id].append([name])
            elif name in tasks:
                targets[job_id].append(tasks[name])
            elif name.startswith(f"{job.workload}!"):
                raise InputError(f"{path}: job {job_id}: field `after`: {end}: there is no job {name}")
    _check_ends(waits, targets, path)


def _check_ends(waits: dict[str, Dependency], targets: dict[str, list[list[str]]], path: str) -> None:
    """Find jobs that can never start, because they wait for themselves in the end."""
    needed_by: dict[str, list[str]] = {}
    for job_id, all_of in targets.items():
        for target in {name for names in all_of for name in names}:
            needed_by.setdefault(target, []).append(job_id)
    stuck = dict.fromkeys(waits)
    free = list(waits)
    while free:
        job_id = free.pop()
        if job_id not in stuck:
            continue
        dependency = waits[job_id]
        met = [not any(name in stuck for name in names) for names in targets[job_id]]
        if dependency.singleton or not met or (any(met) if dependency.any else all(met)):
            del stuck[job_id]
            free += needed_by.get(job_id, ())
    if stuck:
        way = [next(iter(stuck))]
        while way[-1] not in way[:-1]:
            way.append(next(name for names in targets[way[-1]] for name in names if name in stuck))
        circle = " -> ".join(way[way.index(way[-1]) :])
        raise InputError(f"{path}: job {way[-1]}: field `after`: the job waits for itself: {circle}")


def rewritten(text: str, rename: Callable[[str], str | None]) -> str:
    """A dependency with other names for the jobs; what has no name is taken to have happened.

    >>> rewritten("afterok:12:13,afterany:14", {"12": "1", "14": "3"}.get)
    'afterok:1,afterany:3'
    >>> rewritten("afterok:12?afterok:13", {"12": "1"}.get)
    ''
    """
    dependency = protocol.read_dependency(text)
    names = [rename(end.target) for end in dependency.ends]
    if dependency.any and None in names:
        return ""
    pairs = zip(dependency.ends, names, strict=True)
    parts = [str(replace(end, target=name)) for end, name in pairs if name is not None]
    return ("?" if dependency.any else ",").join([*parts, *["singleton"] * dependency.singleton])


def with_names(jobs: Sequence[Job], new: Callable[[str], str | None], suffix: str = "") -> list[Job]:
    """The jobs, with new names for those that they wait for, and a suffix to the names of their arrays.

    Arrays of which one of these jobs is a task are among what they may wait for.
    """
    texts = filter(None, (job.extra.get(protocol.ARRAY) for job in jobs))
    arrays = {protocol.read_array(text).name for text in texts}

    def rename(target: str) -> str | None:
        return f"{target}{suffix}" if target in arrays else new(target)

    made = []
    for job in jobs:
        if depends(job):
            extra = dict(job.extra)
            if text := rewritten(extra.pop(protocol.AFTER), rename) if extra.get(protocol.AFTER) else "":
                extra[protocol.AFTER] = text
            if extra.get(protocol.ARRAY):
                name, percent, limit = extra[protocol.ARRAY].partition("%")
                extra[protocol.ARRAY] = f"{name}{suffix}{percent}{limit}"
            job = replace(job, extra=extra)
        made.append(job)
    return made


def among_themselves(jobs: Sequence[Job]) -> Sequence[Job]:
    """The jobs without waits for jobs that are not among them; what is missing is taken to be over."""
    if not have_dependencies(jobs):
        return jobs
    known = {name for job in jobs for name in (job.name, job.id)}
    return with_names(jobs, lambda name: name if name in known else None)
