"""Users who use less while energy is short.

M. Madon, G. Da Costa and J.-M. Pierson, "Characterization of Different User Behaviors for Demand Response in
Data Centers", Euro-Par 2022.
"""

import csv
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf, isfinite
from typing import Annotated
from zlib import crc32

import numpy as np
from msgspec import Meta, Struct
from msgspec.structs import replace

from batsched_py.errors import InputError
from batsched_py.input_files import read_input
from batsched_py.protocol.jobs import Job
from batsched_py.protocol.profiles import Delay, Homogeneous, HomogeneousTotal, Profile
from batsched_py.users import Action, EachUser, Remark, Submission, User, Withdrawal, WrappedUser, one_by_one
from batsched_py.workload.model import Workload

#: Whom a row of a file of chances is for if it names nobody.
EVERYBODY = "*"

#: What users may do instead of submitting as recorded, in the order of their chances, as notes call it.
DEEDS = ("later", "fewer", "less", "shorter", "gave-up")

#: The columns of a file of chances that hold these.
CHANCES = ("later", "fewer", "less", "shorter", "give_up")


class Window(Struct, frozen=True):
    """A time in which energy is short."""

    start: float
    end: float
    level: float = inf
    """The value of the signal, or infinite if the window was given by hand."""
    until: float = inf
    """When energy is no longer short, where windows of different levels follow one another."""


class Chances(Struct, frozen=True):
    """What users do when energy is short: for whom and from which level on."""

    by_user: Mapping[str, Mapping[float, tuple[float, ...]]]
    """For users, or everybody else, and levels, the chance of each of :data:`DEEDS`."""

    @property
    def lowest(self) -> float:
        """From which level on anybody does anything."""
        return min(level for levels in self.by_user.values() for level in levels)

    def of(self, user: str, level: float) -> tuple[float, ...]:
        """The chances of a user when the signal is at some level.

        One of a population, who is called USER.NUMBER, does what that user of the log does.
        """
        names = (user, user.rpartition(".")[0], EVERYBODY)
        rows = next((self.by_user[name] for name in names if name in self.by_user), {})
        reached = [least for least in rows if least <= level]
        return rows[max(reached)] if reached else (0.0,) * len(DEEDS)


def read_windows(text: str) -> list[Window]:
    """Windows as an option gives them.

    >>> [(window.start, window.end) for window in read_windows("0-3600,86400-90000")]
    [(0.0, 3600.0), (86400.0, 90000.0)]
    """
    windows = []
    for part in filter(None, text.split(",")):
        start, _, end = part.partition("-")
        try:
            window = Window(float(start), float(end))
        except ValueError:
            window = Window(inf, -inf)
        if not window.start < window.end < inf:
            raise InputError(f"window {part!r} of sober users: write START-END in seconds, like 36000-50400")
        windows.append(window)
    return windows


def read_signal(file: str, lowest: float) -> list[Window]:
    """Where a signal is at least so high; each of its values holds until the next one, the last for ever."""
    if not file:
        return []
    try:
        lines = read_input(file).decode("utf-8").splitlines()
        steps = [(float(time), float(value)) for time, value in (line.split(",") for line in lines if line)]
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: no signal of lines TIME,VALUE: {error}") from None
    return [
        Window(start, end, value)
        for (start, value), (end, _) in zip(steps, [*steps[1:], (inf, 0.0)], strict=True)
        if value >= lowest and end > start
    ]


def in_order(windows: Sequence[Window], levels: Sequence[float]) -> list[Window]:
    """Windows from the first to the last; those that follow one another between two levels are one."""
    merged: list[Window] = []
    for window in sorted(windows, key=lambda window: window.start):
        before = merged[-1] if merged else Window(-inf, -inf)
        if window.start < before.end:
            raise InputError(f"the windows of sober users overlap at {window.start:g} s")
        same = all((window.level >= each) == (before.level >= each) for each in levels)
        if merged and before.end == window.start and same:
            merged[-1] = Window(before.start, window.end, before.level)
        else:
            merged.append(window)
    for place in reversed(range(len(merged))):
        window, after = merged[place], merged[place + 1] if place + 1 < len(merged) else Window(inf, inf)
        until = after.until if after.start == window.end else window.end
        merged[place] = replace(window, until=until)
    return merged


def read_chances(file: str, otherwise: Mapping[float, tuple[float, ...]]) -> Chances:
    """The chances that a file gives by user and level; everybody has others if it does not say."""
    by_user: dict[str, dict[float, tuple[float, ...]]] = {}
    if file:
        try:
            lines = read_input(file).decode("utf-8").splitlines()
        except (OSError, ValueError) as error:
            raise InputError(f"{file}: no chances of sober users: {error}") from None
        for number, row in enumerate(csv.DictReader(lines), start=2):
            try:
                level, user = float(row["level"]), row["user"] or EVERYBODY
                chances = tuple(float(row.get(name) or 0) for name in CHANCES)
                right = row.keys() <= {"user", "level", *CHANCES} and isfinite(level)
                if not (right and min(chances) >= 0 and sum(chances) <= 1):
                    raise ValueError("columns or numbers")
            except (KeyError, TypeError, ValueError):
                columns = ", ".join(CHANCES)
                raise InputError(
                    f"{file}, line {number}: write columns user, level and any of {columns}, with chances "
                    "that sum up to 1 at most"
                ) from None
            if level in by_user.setdefault(user, {}):
                raise InputError(f"{file}, line {number}: user {user} has two rows for level {level:g}")
            by_user[user][level] = chances
    return Chances({EVERYBODY: otherwise} | by_user)


@dataclass
class Sober(EachUser):
    """Users who, during given windows of time, come back later, ask for less or give up, with given chances.

    What a user does is drawn for each job that it wants to submit inside a window; what no chance is given
    for is done as recorded. A job that asks for fewer hosts with the same work runs longer, by
    (hosts / fewer hosts) to the power of `speedup`, as does its walltime. A job that is given up is submitted
    and withdrawn at once, so that results tell of it. A file of chances tells users and levels of the signal
    apart.
    """

    name = "sober"

    windows: Annotated[
        str, Meta(description="START-END in seconds since the first submission; several with commas.")
    ] = ""
    signal_file: Annotated[
        str, Meta(description="A file with lines TIME,VALUE; windows are where the value is high.")
    ] = ""
    high: Annotated[float, Meta(description="From which value on the signal is high.")] = 1.0
    later: Annotated[
        float, Meta(ge=0, le=1, description="The chance that a job is submitted after the window.")
    ] = 0.0
    fewer: Annotated[
        float, Meta(ge=0, le=1, description="The chance that a job asks for fewer hosts, with the same work.")
    ] = 0.0
    less: Annotated[
        float, Meta(ge=0, le=1, description="The chance that a job asks for fewer hosts, and does less.")
    ] = 0.0
    shorter: Annotated[
        float, Meta(ge=0, le=1, description="The chance that a job runs for a shorter time, and does less.")
    ] = 0.0
    give_up: Annotated[float, Meta(ge=0, le=1, description="The chance that a job is given up.")] = 0.0
    chances_file: Annotated[
        str,
        Meta(
            description="A table of chances by user and level of the signal: CSV with the columns user (* is "
            "anybody else), level (from which value on) and any of later, fewer, less, shorter, give_up."
        ),
    ] = ""
    share: Annotated[
        float, Meta(gt=0, le=1, description="The share of its hosts, or of its run time, that is left.")
    ] = 0.5
    speedup: Annotated[
        float, Meta(ge=0, description="The exponent of the speed-up law; 1 is perfect, 0 is none.")
    ] = 1.0
    seed: Annotated[int, Meta(ge=0, description="Of what users draw.")] = 0

    def __post_init__(self) -> None:
        if sum(self.chances) > 1:
            raise InputError(f"the chances of sober users sum up to {sum(self.chances):g}, which is above 1")
        self.table = read_chances(self.chances_file, {self.high: self.chances})
        levels = {level for rows in self.table.by_user.values() for level in rows}
        windows = read_windows(self.windows) + read_signal(self.signal_file, self.table.lowest)
        self.times = in_order(windows, sorted(levels))

    @property
    def chances(self) -> tuple[float, ...]:
        """Of what is not done as recorded."""
        return self.later, self.fewer, self.less, self.shorter, self.give_up

    def named_users(self, workload: Workload) -> list[User]:
        """A sober user around each."""
        return [
            SoberUser(user, name, self, np.random.default_rng([self.seed, crc32(name.encode())]))
            for name, part in one_by_one(workload).items()
            for user in self.inner.users(part)
        ]


class SoberUser(WrappedUser):
    """Hands on what another user does, and changes what it does inside windows."""

    def __init__(self, user: User, name: str, rules: Sober, random: np.random.Generator) -> None:
        super().__init__(user)
        self._who = name
        self._rules = rules
        self._random = random
        self._starts = [window.start for window in rules.times]
        self._held: dict[str, Submission] = {}
        """The jobs that are to be submitted after a window."""
        self._plan: list[tuple[float, str]] = []
        """When, as a heap."""

    def next_time(self) -> float:
        """When the user acts, or comes back."""
        while self._plan and self._plan[0][1] not in self._held:
            heappop(self._plan)
        return min(self.user.next_time(), self._plan[0][0] if self._plan else inf)

    def submit(self, now: float) -> Sequence[Action]:
        """What the user does, changed."""
        actions: list[Action] = []
        while self._plan and self._plan[0][0] <= now:
            held = self._held.pop(heappop(self._plan)[1], None)
            actions += [] if held is None else [held]
        if self.user.next_time() <= now:
            for action in self.user.submit(now):
                actions += self._changed(action, now)
        return actions

    def _changed(self, action: Action, now: float) -> list[Action]:
        if isinstance(action, Submission):
            place = bisect_right(self._starts, now) - 1
            window = self._rules.times[place] if place >= 0 else None
            return [action] if window is None or now >= window.end else self._soberly(action, window)
        held = self._held.get(action.job_id)
        if held is None:
            return [action]
        if isinstance(action, Remark):
            held.note = action.note
            return []
        return [self._held.pop(action.job_id), action]

    def _soberly(self, submission: Submission, window: Window) -> list[Action]:
        chances = self._rules.table.of(self._who, window.level)
        drawn = int(np.searchsorted(np.cumsum(chances), self._random.random(), side="right"))
        deed = (*DEEDS, "as-recorded")[drawn]
        if deed == "later" and window.until == inf:
            deed = "gave-up"
        job, profile = submission.job, submission.profile
        changed: tuple[Job, Profile] | None = (job, profile)
        if deed == "shorter":
            changed = self._shorter(job, profile)
        elif deed in ("fewer", "less"):
            changed = self._smaller(job, profile, same_work=deed == "fewer")
        deed = "as-recorded" if changed is None else deed
        job, profile = changed or (job, profile)
        level = f" level={window.level:g}" if self._rules.chances_file else ""
        window_text = f"{window.start:g}:{window.end:g}"
        note = f"{submission.note} sober={deed} window={window_text}{level}".strip()
        sober = Submission(job, profile, note, submission.decided)
        if deed == "later":
            self._held[job.id] = sober
            heappush(self._plan, (window.until, job.id))
            return []
        return [sober, Withdrawal(job.id)] if deed == "gave-up" else [sober]

    def _shorter(self, job: Job, profile: Profile) -> tuple[Job, Profile] | None:
        """The job with less to do, on as many hosts, where that makes sense."""
        share = self._rules.share
        if (shorter := _times(profile, share)) is None:
            return None
        return replace(job, walltime=job.walltime * share, profile=f"{job.profile}_for_{share:g}"), shorter

    def _smaller(self, job: Job, profile: Profile, same_work: bool) -> tuple[Job, Profile] | None:
        """The job on fewer hosts, where that makes sense."""
        size = max(int(job.size * self._rules.share), 1)
        longer = (job.size / size) ** self._rules.speedup if same_work else 1.0
        smaller = _times(profile, longer)
        if size >= job.size or smaller is None:
            return None
        name = f"{job.profile}_{size}_of_{job.size}" if same_work else job.profile
        if isinstance(smaller, HomogeneousTotal):  # its work is that of all hosts
            smaller = replace(smaller, work=smaller.work * size / job.size)
            name = f"{job.profile}_{size}_of_{job.size}_{'same' if same_work else 'less'}"
        return replace(job, size=size, walltime=job.walltime * longer, profile=name), smaller


def _times(profile: Profile, factor: float) -> Profile | None:
    """A profile that takes so many times as long on as many hosts, of one for which that makes sense."""
    match profile:
        case Homogeneous(work=work):
            return replace(profile, work=work * factor)
        case Delay(seconds=seconds):
            return replace(profile, seconds=seconds * factor)
    return None
