"""Who has used how much of the machine: for fair shares, and for the limits ``GrpTRESMins`` and ``GrpWall``.

Usage decays: each second it is multiplied with a factor that comes close to one half over the half-life. The
*classic* factor of a user is ``2^(-usage / share)``, where the usage of an account counts for its users. The
*fair tree* ranks all users: accounts of one level by share over usage, then the users within each.

What associations and QOS have used is counted when Slurm computes priorities: each ``PriorityCalcPeriod``,
what is there decays, and what running jobs have used since the last time is added. The rest of a job is added
when it ends. At some moments of the calendar, ``PriorityUsageResetPeriod`` lets all begin again from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import inf, log

from batsched_py.slurm.policy.job import RunningRecord
from batsched_py.slurm.policy.settings import ROOT, Association, Configuration, Priority, Qos, ResetPeriod

#: Whose jobs are counted together.
Key = tuple[str, ...]

DAY = timedelta(days=1)
QUARTERS = {1: 4, 2: 4, 3: 4, 4: 7, 5: 7, 6: 7, 7: 10, 8: 10, 9: 10}
"""In which month of the same year the next quarter begins."""


def decay_of(priority: Priority) -> float:
    """What usage is multiplied with each second."""
    return 1 - 0.693 / priority.decay_half_life if priority.decay_half_life > 0 else 1.0


def next_reset(period: ResetPeriod, last: float) -> float:
    """When usage is reset next, in seconds since 1970, by a calendar of UTC; ``inf`` if it never is.

    >>> [next_reset(each, 86400.0 * 31) / 86400 for each in ("daily", "weekly", "monthly", "quarterly")]
    [32.0, 38.0, 59.0, 90.0]
    """
    midnight = datetime.fromtimestamp(last, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case "daily":
            following = midnight + DAY
        case "weekly":  # weeks begin on Sunday
            following = midnight + DAY * (7 - midnight.isoweekday() % 7)
        case "monthly":
            following = (midnight.replace(day=1) + 32 * DAY).replace(day=1)
        case "quarterly":
            month = QUARTERS.get(midnight.month, 1)
            following = midnight.replace(day=1, month=month, year=midnight.year + (month == 1))
        case "yearly":
            following = midnight.replace(day=1, month=1, year=midnight.year + 1)
        case _:
            return inf
    return following.timestamp()


class Resets:
    """The moments at which usage begins again from nothing, in seconds from time 0."""

    def __init__(self, configuration: Configuration) -> None:
        self._period, self._origin = configuration.priority.usage_reset_period, configuration.origin
        self.next_time = 0.0 if self._period == "now" else self._after(0.0)

    def _after(self, time: float) -> float:
        return next_reset(self._period, self._origin + time) - self._origin

    def is_due(self, now: float) -> bool:
        """Whether usage is reset now; then the next time is a later one."""
        if now < self.next_time:
            return False
        self.next_time = self._after(now)
        return True


class Used:
    """What somebody has used: seconds of each resource, and of jobs."""

    def __init__(self, settings: Qos | Association) -> None:
        self.decays = not (isinstance(settings, Qos) and "no_decay" in settings.flags)
        self.tres: dict[str, float] = dict(settings.usage_tres)
        self.wall = settings.usage_wall
        self.left: dict[str, float] = {}
        """What running jobs may still use until their time limits are over."""

    def decay(self, factor: float) -> None:
        """Let some time pass, or forget all if the factor is 0."""
        self.tres = {name: amount * factor for name, amount in self.tres.items()}
        self.wall *= factor

    def add(self, tres: dict[str, float], seconds: float) -> None:
        """Somebody had so much for so long."""
        self.wall += seconds
        for name, amount in tres.items():
            self.tres[name] = self.tres.get(name, 0.0) + amount * seconds

    def leave(self, tres: dict[str, float], seconds: float) -> None:
        """A running job may have so much for so much longer, or shorter."""
        for name, amount in tres.items():
            self.left[name] = self.left.get(name, 0.0) + amount * seconds


NOTHING_USED = Used(Association(account=""))


class Spent:
    """The usage of all who have limits on it, under the keys by which their jobs are counted."""

    def __init__(self, configuration: Configuration, holders: dict[Key, Qos | Association]) -> None:
        is_limited = any(
            each.grp_tres_seconds or each.grp_tres_run_seconds or each.grp_wall is not None
            for each in holders.values()
        )
        is_counted = is_limited and configuration.priority.type == "multifactor"
        self.of = {key: Used(each) for key, each in holders.items()} if is_limited else {}
        self._decay = decay_of(configuration.priority)
        self._period = configuration.priority.calc_period
        self._resets = Resets(configuration)
        self._last = 0.0
        self.next_time = self._period if is_counted else inf
        """When it is computed again; ``priority/basic`` never does."""
        if is_counted and self._resets.next_time <= 0:
            self._reset(0.0)

    def count_from(self, started: float) -> None:
        """The controller was started so many seconds before time 0, and computes usage from then on."""
        if self.next_time < inf:
            self.next_time = self._period - started % self._period

    def _reset(self, now: float) -> None:
        if self._resets.is_due(now):
            for used in self.of.values():
                used.decay(0.0)

    def advance(self, now: float, running: Sequence[RunningRecord], bill: Bill) -> bool:
        """Go through all times until now at which Slurm computes usage; whether there are any."""
        if self.next_time > now:
            return False
        while self.next_time <= now:
            self._reset(self.next_time)
            factor = self._decay ** (self.next_time - self._last)
            for used in self.of.values():
                if used.decays:
                    used.decay(factor)
            for each in running:
                self._add(each, self.next_time, bill)
            self._last = self.next_time
            self.next_time += self._period
        return True

    def least(self, key: Key) -> Used:
        """What will be left of somebody's usage in the end, if nothing more is used."""
        used = self.of.get(key, NOTHING_USED)
        shrinks = (self._decay < 1 and used.decays) or self._resets.next_time < inf
        return NOTHING_USED if shrinks and self.next_time < inf else used

    def started(self, running: RunningRecord, bill: Bill) -> None:
        """A job runs from now on."""
        factor, tres, keys = bill(running)
        for key in keys:
            self.of[key].leave(tres, factor * running.waiting.limit * 60)

    def ended(self, running: RunningRecord, now: int, bill: Bill) -> None:
        """Count the rest of what a job has used; it uses no more."""
        self._add(running, now, bill, is_over=True)

    def _add(self, running: RunningRecord, until: float, bill: Bill, is_over: bool = False) -> None:
        since, limit = max(self._last, running.start), running.start + running.waiting.limit * 60
        factor, tres, keys = bill(running)
        seconds = max(until - since, 0.0) if self.next_time < inf else 0.0
        gone = max((limit if is_over else min(until, limit)) - since, 0.0)
        for key in keys:
            used = self.of[key]
            used.add(tres, factor * seconds * (self._decay**seconds if used.decays else 1.0))
            used.leave(tres, -factor * gone)


#: Tells of a running job its usage factor, what it has of each resource, and for whom it counts.
Bill = Callable[[RunningRecord], tuple[float, dict[str, float], Iterable[Key]]]


DEPTH_FACTOR = 5.0
"""How much it counts that an account is far from its share, where the depth of the tree does not."""


class Branch:
    """An account or a user in the tree of associations."""

    def __init__(self, settings: Association, parent: Branch | None) -> None:
        self.settings = settings
        self.parent = parent
        if parent is not None:
            parent.children.append(self)
        self.children: list[Branch] = []
        self.is_user = bool(settings.user)
        self.uses_parent = settings.shares == "parent"
        """Whether its share and usage are those of its parent."""
        self.raw_shares = 0 if settings.shares == "parent" else int(settings.shares)
        self.usage = settings.usage
        """In seconds of billed resources, decayed."""
        self.level_shares = 0
        self.shares = 0.0
        """Its part of the shares of its level (fair tree), or of the whole machine (classic)."""
        self.usage_part = 0.0
        """Of the usage of the whole machine."""
        self.effective = 0.0
        """Of the usage of its parent (fair tree), or with what its parents have used (classic)."""
        self.level_fs = 0.0
        self.factor = 0.0
        """Its fair-share factor."""

    @property
    def above(self) -> Branch | None:
        """The account above whose share it is part of."""
        above = self.parent
        while above is not None and above.uses_parent and above.parent is not None:
            above = above.parent
        return above

    def upwards(self) -> Iterator[Branch]:
        """Itself and all accounts above."""
        branch: Branch | None = self
        while branch is not None:
            yield branch
            branch = branch.parent


class FairShare:
    """The tree of associations, with usage and factors."""

    def __init__(self, settings: Priority, associations: Sequence[Association]) -> None:
        self._settings = settings
        self.decay = decay_of(settings)
        self.root = Branch(Association(account=ROOT, parent=""), None)
        accounts = {ROOT: self.root}
        waiting = [each for each in associations if not each.user and each.account != ROOT]
        while waiting:
            ready = [each for each in waiting if each.parent in accounts] or waiting
            for each in ready:
                accounts[each.account] = Branch(each, accounts.get(each.parent, self.root))
            waiting = [each for each in waiting if each not in ready]
        self._users: dict[tuple[str, str, str], Branch] = {}
        for each in associations:
            if each.user:
                parent = accounts.get(each.account) or Branch(Association(account=each.account), self.root)
                accounts[each.account] = parent
                self._users[each.account, each.user, each.partition] = Branch(each, parent)
        for account in accounts.values():
            shares = _shares_below(account)
            for child in account.children:
                child.level_shares = shares
        self.root.shares = 1.0
        for branch in self._all():
            branch.shares = self._share(branch)
        for branch in reversed([self.root, *self._all()]):  # accounts have what is below them at least
            branch.usage = max(branch.usage, sum(child.usage for child in branch.children))
        self.compute()

    def _all(self) -> Iterator[Branch]:
        """All branches but the root, each account before what is below it."""
        waiting = list(reversed(self.root.children))
        while waiting:
            branch = waiting.pop()
            yield branch
            waiting += reversed(branch.children)

    def find(self, account: str, user: str, partition: str) -> Branch | None:
        """The association of a job."""
        return self._users.get((account, user, partition)) or self._users.get((account, user, ""))

    def pass_time(self, seconds: float) -> None:
        """Let usage decay."""
        factor = self.decay**seconds
        for branch in (self.root, *self._all()):
            branch.usage *= factor

    def reset(self) -> None:
        """Forget all usage."""
        for branch in (self.root, *self._all()):
            branch.usage = 0.0

    def add_usage(self, branch: Branch, billed: float, seconds: float) -> None:
        """A job has had so much for so long."""
        usage = seconds * self.decay**seconds * billed
        for each in branch.upwards():
            each.usage += usage

    def _share(self, branch: Branch) -> float:
        if self._settings.fair_tree:
            counts = branch.above if branch.uses_parent else branch
            if counts is None or counts.level_shares == 0:
                return 0.0
            return counts.raw_shares / counts.level_shares
        if branch.uses_parent and branch.above is not None:
            return branch.above.shares
        share = 1.0
        for each in branch.upwards():
            if each.parent is not None and not each.uses_parent:
                share *= each.raw_shares / each.level_shares if each.level_shares else 0.0
        return share

    def compute(self) -> None:
        """Compute the factors of all users from the usage."""
        total = self.root.usage
        self.root.effective = 1.0
        for branch in self._all():
            branch.usage_part = min(branch.usage / total, 1.0) if total else 0.0
        if self._settings.fair_tree:
            _Ranking(len(self._users)).rank(self.root.children, False)
            return
        for branch in self._all():
            branch.effective = self._effective(branch)
            counts = branch.above if branch.uses_parent and branch.above is not None else branch
            dampening = self._settings.fairshare_dampening
            branch.factor = (
                2.0 ** -(counts.effective / counts.shares / dampening) if counts.shares > 0 else 0.0
            )

    def _effective(self, branch: Branch) -> float:
        """The usage that counts, in the classic way."""
        above = branch.above
        assert above is not None
        if above is self.root:
            return branch.usage_part
        if branch.uses_parent:
            return above.effective
        if "depth_oblivious" in self._settings.flags:
            return self._depth_oblivious(branch, above)
        if not branch.level_shares:
            return above.effective
        own = branch.usage_part
        return own + (above.effective - own) * (branch.raw_shares / branch.level_shares)

    def _depth_oblivious(self, branch: Branch, above: Branch) -> float:
        if not (branch.shares and above.shares and above.effective and branch.usage_part):
            return branch.usage_part
        of_parent = above.effective / above.shares
        of_siblings = sum(each.usage_part for each in above.children if not each.uses_parent) / above.shares
        of_level = branch.usage_part / branch.shares / of_siblings
        exponent = 1.0
        if of_parent and of_level and log(of_parent) * log(of_level) < 0:
            exponent = 1 / (1 + (DEPTH_FACTOR * log(of_parent)) ** 2)
        return float(of_parent * of_level**exponent * branch.shares)


class _Ranking:
    """Ranks users down the fair tree; the first has the highest factor."""

    def __init__(self, nb_users: int) -> None:
        self._nb_users = nb_users
        self._rank = self._next = nb_users

    def rank(self, siblings: Sequence[Branch], is_tied: bool) -> None:
        """Rank what is below, the best served last; users come before accounts that are equal."""
        for branch in siblings:
            _set_level(branch)
        before: float | None = None
        for branch in sorted(siblings, key=lambda branch: (-branch.level_fs, not branch.is_user)):
            tied = is_tied if before is None else before == branch.level_fs
            if branch.is_user:
                if not tied:
                    self._rank = self._next
                branch.factor = self._rank / self._nb_users
                self._next -= 1
            else:
                self.rank(branch.children, tied)
            before = branch.level_fs


def _set_level(branch: Branch) -> None:
    """Share over usage, among those of one level."""
    above = branch.above
    branch.effective = branch.usage / above.usage if above is not None and above.usage else 0.0
    if branch.uses_parent:
        branch.level_fs = inf if branch.is_user else float(0xFFFFFFFE)
    elif branch.shares == 0:
        branch.level_fs = 0.0
    else:
        branch.level_fs = branch.shares / branch.effective if branch.effective else inf


def _shares_below(branch: Branch) -> int:
    """The shares of a level: of the children, or of theirs if they use those of their parent."""
    return sum(_shares_below(child) if child.uses_parent else child.raw_shares for child in branch.children)
