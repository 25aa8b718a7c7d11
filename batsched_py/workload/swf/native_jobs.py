"""A log that the native library holds as columns; objects are made of it when somebody looks at them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from batsched_py import native
from batsched_py.protocol.jobs import Job, ReadOnlyDict
from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.jobs import Jobs, Places
from batsched_py.workload.swf.conventions import LOG_SPEED, profile_name

if TYPE_CHECKING:
    from batsched_py.workload.columns import Numbers


#: The columns of a log, an object of the library.
Log = Any

if native.library is not None:
    native.library.prepare({"job": Job, "read_only": ReadOnlyDict})


class NativeJobs(Jobs):
    """Jobs that are made of the columns when somebody looks at them."""

    def __init__(self, log: Log) -> None:
        self.log = log

    def __len__(self) -> int:
        return len(self.log)

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Job]: ...
    def __getitem__(self, place: int | slice) -> Job | Sequence[Job]:
        if isinstance(place, slice):
            return self.pick(list(range(*place.indices(len(self)))))
        return self.log.job(place + len(self) if place < 0 else place)

    def __iter__(self) -> Iterator[Job]:
        return map(self.log.job, range(len(self)))

    @cached_property
    def submission_times(self) -> Numbers:
        """For each job, when it is submitted."""
        import numpy as np

        return np.frombuffer(self.log.submissions())

    def users(self) -> tuple[list[str | None], Numbers]:
        """The names of the users, and for each job the place of its user's name among them."""
        import numpy as np

        places: dict[str | None, int] = {}
        users = [places.setdefault(user, len(places)) for user in self.log.users()]
        return list(places), np.array(users, dtype=np.int32)

    def by_user(self) -> dict[str | None, Places]:
        """The places of each user's jobs, in the order of submission; those of nobody are under None."""
        users: dict[str | None, array[int]] = {}
        for place, user in enumerate(self.log.users()):
            users.setdefault(user, array("i")).append(place)
        return dict(users)

    def in_submission_order(self) -> Iterator[Job]:
        """The jobs as Batsim submits those of a workload file: by time, then by the letters of their ids."""
        return map(self.log.job, self.log.in_submission_order())

    def nb_larger_than(self, hosts: int) -> int:
        """How many jobs ask for more hosts than these."""
        return int(self.log.nb_larger_than(hosts))

    def find(self, job_id: str) -> Job | None:
        """The job with this identifier, if it is one of these."""
        place = self._places.get(job_id)
        return None if place is None else self.log.job(place)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {self.log.id(place): place for place in range(len(self))}

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)


class RecordedFinishes(Sequence[float]):
    """When the jobs of a log had finished, made when somebody looks at them."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def _finishes(self) -> array[float]:
        return array("d", bytes(self._log.finishes()))

    def __len__(self) -> int:
        return len(self._log)

    @overload
    def __getitem__(self, place: int) -> float: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[float]: ...
    def __getitem__(self, place: int | slice) -> float | Sequence[float]:
        return self._finishes[place]


class RunTimeProfiles(Mapping[str, Profile]):
    """A profile for each run time that jobs of a log have, from the shortest on; made like the others."""

    def __init__(self, log: Log) -> None:
        self._log = log

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        run_times = sorted(set(array("d", bytes(self._log.run_times()))))
        return {profile_name(run_time): Homogeneous(run_time * LOG_SPEED) for run_time in run_times}

    def __getitem__(self, name: str) -> Profile:
        return self._profiles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._profiles)

    def __len__(self) -> int:
        return len(self._profiles)
