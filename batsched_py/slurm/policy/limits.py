"""Limits of associations and QOS: jobs that would exceed one wait, and hold nobody else up.

A limit that a QOS sets counts in place of the same limit of the associations; that of a partition's QOS
counts first. A job that runs already when a simulation begins counts, and has no limit itself. Limits on
usage over time (``GrpTRESMins`` and ``GrpWall``) are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord
from batsched_py.slurm.policy.nodes import KIBIBYTES, Machine, Share, places
from batsched_py.slurm.policy.settings import Association, Configuration, Qos
from batsched_py.slurm.policy.settings import Limits as LimitSettings

NORMAL = "normal"
"""The QOS of jobs that do not say."""


class Accounts:
    """Associations and QOS by the jobs that belong to them."""

    def __init__(self, configuration: Configuration, machine: Machine, others: Sequence[str]) -> None:
        self._machine = machine
        self._others = [f"gres/{name}" for name in others]
        self._max_tres = "max_tres" in configuration.priority.flags
        self.qos = {each.name: each for each in configuration.qos}
        self._accounts = {each.account: each for each in configuration.associations if not each.user}
        self._users: dict[str, list[Association]] = {}
        for each in configuration.associations:
            if each.user:
                self._users.setdefault(each.user, []).append(each)
        self.settings: list[LimitSettings] = [*configuration.qos, *configuration.associations]
        self._have_qos = any(each.default_qos for each in configuration.associations)
        """Whether associations have a QOS for jobs that do not say."""
        self._default_account = cache(self._default_account_of)
        self._associations = cache(self._find_associations)
        self._least_cpus = cache(self._least_cpus_of)

    def account_of(self, record: WaitingRecord) -> str:
        """The account of a job; that of its user if it does not say."""
        return record.fields.account or self._default_account(record.job.user or "")

    def _default_account_of(self, user: str) -> str:
        of_user = sorted(self._users.get(user, ()), key=lambda each: not each.default_account)
        return of_user[0].account if of_user else ""

    def associations_of(self, record: WaitingRecord) -> Sequence[Association]:
        """The association of a job and the accounts above it, from below."""
        return self._associations(self.account_of(record), record.job.user or "", record.partition.name)

    def _find_associations(self, account: str, user: str, partition: str) -> Sequence[Association]:
        own = [each for each in self._users.get(user, ()) if each.account == account]
        found = [each for each in own if each.partition == partition] or [
            each for each in own if not each.partition
        ]
        above = self._accounts.get(account)
        while above is not None and above not in found:
            found.append(above)
            above = self._accounts.get(above.parent)
        return found

    def qos_of(self, record: WaitingRecord) -> Qos | None:
        """The QOS of a job: its own, that of its association, or the normal one."""
        name = record.fields.qos
        if not name and self._have_qos:
            defaults = (each.default_qos for each in self.associations_of(record) if each.default_qos)
            name = next(defaults, NORMAL)
        return self.qos.get(name or NORMAL)

    def tres(self, record: WaitingRecord, share: Share) -> dict[str, float]:
        """What a job has of each resource."""
        if share.exclusive:
            found = self._machine.tres(share.nodes, self._others)
        else:
            found = {
                "cpu": float(sum(cpus for _, cpus, _ in share.parts)),
                "mem": sum(memory for _, _, memory in share.parts) / KIBIBYTES,
                "node": float(share.nodes.bit_count()),
            }
            for column, _, amount in share.others:
                name = self._others[column]
                found[name] = found.get(name, 0.0) + amount
        return self._with_billing(record, found)

    def least_tres(self, record: WaitingRecord) -> dict[str, float]:
        """What a job that waits would have of each resource, at least, wherever it starts."""
        asked, nodes = record.asked, record.asked.least_nodes
        cpus = max(record.cpus, asked.cpus)
        if asked.exclusive:
            cpus = max(cpus, nodes * self._least_cpus(asked.nodes))
        memory = nodes * asked.memory_per_node + cpus * asked.memory_per_cpu
        found = {"cpu": float(cpus), "mem": memory / KIBIBYTES, "node": float(nodes)}
        for column, of_node, of_task in asked.others:
            found[self._others[column]] = float(nodes * of_node + asked.tasks * of_task)
        for columns, amount in asked.of_job:
            for column in columns:
                found[self._others[column]] = found.get(self._others[column], 0.0) + amount
        return self._with_billing(record, found)

    def _least_cpus_of(self, nodes: int) -> int:
        return min((self._machine.nodes[place].cpus for place in places(nodes)), default=0)

    def _with_billing(self, record: WaitingRecord, found: dict[str, float]) -> dict[str, float]:
        found["billing"] = found["cpu"]
        if weights := record.partition.settings.tres_billing_weights:
            parts = [weight * found.get(name, 0.0) for name, weight in weights.items()]
            found["billing"] = float(int(max(parts) if self._max_tres else sum(parts)))
        return found

    def billed(self, running: RunningRecord) -> float:
        """How much a job is billed for each second."""
        return self.tres(running.waiting, running.share)["billing"]


#: Whose jobs are counted together.
Key = tuple[str, ...]

#: Limits, and the three whose jobs are counted for them: all, those of a user, and those of an account.
Holder = tuple[LimitSettings, Key, Key, Key]

JOBS = "jobs"
"""What the number of jobs is called among what jobs have."""

UNLIMITED = LimitSettings()


class Limits:
    """The limits of a configuration, and what counts against them; without accounts there are none."""

    def __init__(self, accounts: Accounts | None = None) -> None:
        self._accounts = accounts
        self.are_set = accounts is not None
        """Whether there are any."""
        self._counts: dict[Key, dict[str, float]] = {}
        """How many jobs run that are counted together, and what they have."""
        settings = [] if accounts is None else accounts.settings
        self.depend_on_time = any(each.grp_tres_run_seconds for each in settings)
        """Whether a job may start after a while though nothing has happened."""
        self.now = 0
        """The moment at which it is asked."""
        self._ends: dict[Key, dict[str, float]] = {}
        """What running jobs have, each multiplied with when its time limit is over."""
        self._holders_of: dict[tuple[str | None, ...], Sequence[Holder]] = {}

    def forbid(self, record: WaitingRecord) -> bool:
        """Whether a job has to wait wherever it would run: for the numbers of jobs, or its time limit."""
        return bool(self._count_exceeded(record))

    def _count_exceeded(self, record: WaitingRecord) -> str:
        for settings, key, user, account in [] if record.fields.runs else self._holders(record):
            if _is_too_long(record, settings):
                return f"{_whose(key)}MaxWallDurationPerJobLimit"
            for whose, limit, name in (
                (key, "grp_jobs", "GrpJobsLimit"),
                (user, "max_jobs_per_user", "MaxJobsPerUserLimit"),
                (account, "max_jobs_per_account", "MaxJobsPerAccountLimit"),
                (key, "max_jobs", "MaxJobsLimit"),
            ):
                most = getattr(settings, limit, None)
                if most is not None and self._counts.get(whose, {}).get(JOBS, 0) >= most:
                    return _whose(key) + name
        return ""

    def forbid_alone(self, record: WaitingRecord) -> bool:
        """Whether a job would exceed a limit even if no other job ran."""
        if self._accounts is None:
            return False
        is_too_long = any(_is_too_long(record, holder[0]) for holder in self._holders(record))
        return is_too_long or bool(self._exceeded(record, self._accounts.least_tres(record), alone=True))

    def why(self, record: WaitingRecord) -> str:
        """The limit that a job would exceed now, as Slurm calls it; nothing if there is none."""
        if self._accounts is None:
            return ""
        return self._count_exceeded(record) or self._exceeded(record, self._accounts.least_tres(record))

    def forbid_share(self, record: WaitingRecord, share: Share) -> bool:
        """Whether a job has to wait because of what it would have."""
        return self._accounts is not None and bool(self._exceeded(record, self._accounts.tres(record, share)))

    def forbid_wherever(self, record: WaitingRecord) -> bool:
        """Whether a job has to wait because of what it would have at least, wherever it would run."""
        if self._accounts is None or not any(_limits_tres(holder[0]) for holder in self._holders(record)):
            return False
        return bool(self._exceeded(record, self._accounts.least_tres(record)))

    def _exceeded(self, record: WaitingRecord, tres: Mapping[str, float], alone: bool = False) -> str:
        """The limit that a job which has this would exceed, beside others or alone; else nothing."""
        job_seconds = {name: amount * record.limit * 60 for name, amount in tres.items()}
        per_node = {name: amount / tres["node"] for name, amount in tres.items()}
        for settings, key, user, account in [] if record.fields.runs else self._holders(record):
            for limit, has, whose, form in (
                ("max_tres_per_job", tres, None, "Max{}PerJob"),
                ("max_tres_per_node", per_node, None, "Max{}PerNode"),
                ("max_tres_seconds_per_job", job_seconds, None, "Max{}MinutesPerJob"),
                ("grp_tres", tres, key, "Grp{}Limit"),
                ("max_tres_per_user", tres, user, "Max{}PerUser"),
                ("max_tres_per_account", tres, account, "Max{}PerAccount"),
            ):
                beside = self._counts.get(whose) if whose and not alone else None
                if name := _exceeds(has, getattr(settings, limit, None), beside):
                    return _whose(key) + form.format(_called(name))
            most = {} if alone else settings.grp_tres_run_seconds
            if most and (name := _exceeds(job_seconds, most, self._seconds_left(key))):
                called = "CPU" if name == "cpu" else _called(name)
                return f"{_whose(key)}Grp{called}RunMinutesLimit"
        return ""

    def _seconds_left(self, key: Key) -> dict[str, float]:
        """What running jobs have until their time limits are over, of each resource."""
        has = self._counts.get(key, {})
        return {name: end - has[name] * self.now for name, end in self._ends.get(key, {}).items()}

    def change(self, running: RunningRecord, sign: int) -> None:
        """A job counts from now on, or no longer if the sign is -1."""
        if self._accounts is None:
            return
        tres = self._accounts.tres(running.waiting, running.share) | {JOBS: 1}
        for key in {key for _, *keys in self._holders(running.waiting) for key in keys}:
            has = self._counts.setdefault(key, {})
            for name, amount in tres.items():
                has[name] = has.get(name, 0.0) + sign * amount
            if self.depend_on_time:
                ends, end = self._ends.setdefault(key, {}), running.start + running.waiting.limit * 60
                for name, amount in tres.items():
                    ends[name] = ends.get(name, 0.0) + sign * amount * end

    def _holders(self, record: WaitingRecord) -> Sequence[Holder]:
        """Whose limits count for a job, and who is counted; many jobs have the same."""
        if self._accounts is None:
            return ()
        key = record.fields.account, record.job.user, record.partition.name, record.fields.qos
        if key not in self._holders_of:
            self._holders_of[key] = list(self._find_holders(record, self._accounts))
        return self._holders_of[key]

    def _find_holders(self, record: WaitingRecord, accounts: Accounts) -> Iterator[Holder]:
        """The same, of associations only the limits that no QOS has."""
        user, account, own = record.job.user or "", accounts.account_of(record), accounts.qos_of(record)
        of_partition = accounts.qos.get(record.partition.settings.qos)
        of_qos: list[Qos] = [each for each in (of_partition, own) if each is not None]
        if own is not None and "override_part_qos" in own.flags:
            of_qos.reverse()
        set_by_qos: set[str] = set()
        for name, qos in {each.name: each for each in of_qos}.items():
            keys = ("qos", name), ("user", name, user), ("account", name, account)
            yield _without(qos, set_by_qos), *keys
            set_by_qos |= {limit for limit in LimitSettings.__struct_fields__ if getattr(qos, limit)}
        for association in accounts.associations_of(record):
            key = ("association", association.account, association.user, association.partition)
            yield _without(association, set_by_qos), key, key, key


#: Limits of what jobs have.
_OF_TRES = (
    "max_tres_per_job", "max_tres_per_node", "max_tres_seconds_per_job", "grp_tres", "max_tres_per_user",
    "max_tres_per_account", "grp_tres_run_seconds",
)  # fmt: skip


def _limits_tres(settings: LimitSettings) -> bool:
    """Whether there is any limit of what jobs have."""
    return any(getattr(settings, name, None) for name in _OF_TRES)


def _exceeds(
    tres: Mapping[str, float], most: Mapping[str, float] | None, beside: Mapping[str, float] | None = None
) -> str:
    """Of which resource this is more than a limit, beside what others have; nothing if of none."""
    has = beside or {}
    for name, limit in (most or {}).items():
        if has.get(name, 0.0) + tres.get(name, 0.0) > limit:
            return name
    return ""


def _is_too_long(record: WaitingRecord, settings: LimitSettings) -> bool:
    return settings.max_wall is not None and record.limit * 60 > settings.max_wall


def _whose(key: Key) -> str:
    """Whose limit it is, as the reasons of Slurm begin."""
    return "QOS" if key[0] == "qos" else "Assoc"


def _called(resource: str) -> str:
    """A resource as the reasons of Slurm have it.

    >>> _called("cpu"), _called("gres/gpu:a100")
    ('Cpu', 'GRES')
    """
    return "GRES" if resource.startswith("gres/") else resource.capitalize()


def _without(settings: LimitSettings, names: set[str]) -> LimitSettings:
    """Limits without some of them."""
    return replace(settings, **{name: getattr(UNLIMITED, name) for name in names}) if names else settings
