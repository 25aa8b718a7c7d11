"""Profiles of jobs of which only the run time is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from batsched_py.protocol.profiles import Homogeneous, Profile
from batsched_py.workload.swf_text import LOG_SPEED, spelled


class RunTimeProfiles(Mapping[str, Profile]):
    """A profile for each run time that jobs have, from the shortest on; made when somebody looks at them."""

    def __init__(self, run_times: Callable[[], Iterable[float]]) -> None:
        self._run_times = run_times

    @cached_property
    def _profiles(self) -> dict[str, Profile]:
        return {
            f"run_{spelled(time)}": Homogeneous(time * LOG_SPEED) for time in sorted(set(self._run_times()))
        }

    def __getitem__(self, name: str) -> Profile:
        return self._profiles[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._profiles)

    def __len__(self) -> int:
        return len(self._profiles)
