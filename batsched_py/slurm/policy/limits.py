"""Limits of associations and QOS: jobs that would exceed one wait, and hold nobody else up.

A limit that a QOS sets counts in place of the same limit of the associations; that of a partition's QOS
counts first. A job that runs already when a simulation begins counts, and has no limit itself. Where limits
are not ``safe``, jobs run on until the usage over time exceeds one (``GrpTRESMins``, ``GrpWall``), and are
killed then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from msgspec.structs import replace

from batsched_py.slurm.policy.fair_share import NOTHING_USED, Key, Spent, Used
from batsched_py.slurm.policy.job import RunningRecord, WaitingRecord
from batsched_py.slurm.policy.nodes import KIBIBYTES, Machine, Share, places
from batsched_py.slurm.policy.settings import NORMAL, Association, Configuration, Qos
from batsched_py.slurm.policy.settings import Limits as LimitSettings


class Accounts:
    """Associations and QOS by the jobs that belong to them."""

    def __init__(self, configuration: Configuration, machine: Machine, others: Sequence[str]) -> None:
        self.configuration = configuration
        self._machine = machine
        self._others = [f"gres/{name}" for name in others]
        self._max_tres = "max_tres" in configuration.priority.flags
        self.qos = {each.name: each for each in configuration.qos}
        self._accounts = {each.account: each for each in configuration.associations if not each.user}
        self._users: dict[str, list[Association]] = {}
        for each in configuration.associations:
            if each.user:
                self._users.setdefault(each.user, []).append(each)
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
        configuration = Configuration() if accounts is None else accounts.configuration
        self.spent = Spent(configuration, _by_key(configuration) if self.are_set else {})
        """What they have used over time."""
        self._is_safe = "safe" in configuration.enforce
        self.kills = bool(self.spent.of) and not self._is_safe
        """Whether jobs may be killed because of what was used."""
        self._factors_matter = any("usage_factor_safe" in each.flags for each in configuration.qos)
        self._holders_of: dict[tuple[str | None, ...], Sequence[Holder]] = {}

    def forbid(self, record: WaitingRecord) -> bool:
        """Whether a job has to wait wherever it would run: for the numbers of jobs, or its time limit."""
        return bool(self._count_exceeded(record))

    def _count_exceeded(self, record: WaitingRecord) -> str:
        for settings, key, user, account in [] if record.fields.runs else self._holders(record):
            if settings.grp_wall is not None and self._is_over_wall(
                record, settings.grp_wall, self._used(key)
            ):
                return f"{_whose(key)}GrpWallLimit"
            if settings.max_wall is not None and self._minutes(record) * 60 > settings.max_wall:
                return f"{_whose(key)}MaxWallDurationPerJobLimit"
            for whose, limit, name in (
                (key, "grp_jobs", "GrpJobsLimit"),
                (user, "max_jobs_per_user", "MaxJobsPerUserLimit"),
                (account, "max_jobs_per_account", "MaxJobsPerAccount"),
                (key, "max_jobs", "MaxJobsLimit"),
            ):
                most = getattr(settings, limit, None)
                if most is not None and self._counts.get(whose, {}).get(JOBS, 0) >= most:
                    return name if name.endswith("Account") else _whose(key) + name
        return ""

    def _is_over_wall(self, record: WaitingRecord, most: float, used: Used) -> bool:
        """Whether jobs have run for long enough, or would have if a job ran as long as it may."""
        has, limit = used.wall // 60, most // 60
        return has >= limit or (self._is_safe and has + self._minutes(record) > limit)

    def _minutes(self, record: WaitingRecord) -> int:
        """How long a job may run, for limits: times the factor of its QOS with ``UsageFactorSafe``."""
        if not self._factors_matter or self._accounts is None:
            return record.limit
        qos = self._accounts.qos_of(record)
        factor = 1.0 if qos is None or "usage_factor_safe" not in qos.flags else qos.usage_factor
        return int(record.limit * factor)

    def _used(self, key: Key) -> Used:
        return self.spent.of.get(key, NOTHING_USED)

    def forbid_alone(self, record: WaitingRecord) -> bool:
        """Whether a job would exceed a limit even if no other job ran."""
        if self._accounts is None:
            return False
        minutes, walls = self._minutes(record), list[float | None]()
        for settings, *_ in self._holders(record):
            walls += settings.max_wall, settings.grp_wall
        is_too_long = any(most is not None and minutes * 60 > most for most in walls)
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
        minutes = self._minutes(record)
        job_seconds = {name: amount * minutes * 60 for name, amount in tres.items()}
        per_node = {name: amount / tres["node"] for name, amount in tres.items()}
        for settings, key, user, account in [] if record.fields.runs else self._holders(record):
            if not alone and (why := self._usage_exceeded(record, settings, key, job_seconds)):
                return why
            for limit, has, whose, form in (
                ("grp_tres", tres, key, "Grp{}"),
                ("max_tres_seconds_per_job", job_seconds, None, "Max{}MinutesPerJob"),
                ("max_tres_per_job", tres, None, "Max{}PerJob"),
                ("max_tres_per_node", per_node, None, "Max{}PerNode"),
                ("max_tres_per_account", tres, account, "Max{}PerAccount"),
                ("max_tres_per_user", tres, user, "Max{}PerUser"),
            ):
                beside = self._counts.get(whose) if whose and not alone else None
                if name := _exceeds(has, getattr(settings, limit, None), beside):
                    return reason(_whose(key), form, name)
        return ""

    def _usage_exceeded(
        self, record: WaitingRecord, settings: LimitSettings, key: Key, job_seconds: Mapping[str, float]
    ) -> str:
        """The limit on what is used over time that a job would exceed, if any."""
        if not (settings.grp_tres_seconds or settings.grp_tres_run_seconds):
            return ""
        used = self._used(key) if self._factor(record) else NOTHING_USED
        if name := self._over_used(settings.grp_tres_seconds, used, job_seconds):
            return reason(_whose(key), "Grp{}Minutes", name)
        left = {name: amount // 60 * 60 for name, amount in used.left.items()}
        if name := _exceeds(job_seconds, settings.grp_tres_run_seconds, left):
            return reason(_whose(key), "Grp{}RunMinutes", name)
        return ""

    def _over_used(self, limits: Mapping[str, float], used: Used, job_seconds: Mapping[str, float]) -> str:
        """Of which resource too much was used, or would be if a job and all that run used their limits."""
        for name, limit in limits.items():
            most, needs = limit // 60, job_seconds.get(name, 0.0) // 60
            has, left = used.tres.get(name, 0.0) // 60, used.left.get(name, 0.0) // 60
            if needs and (has >= most or (self._is_safe and needs + left > most - has)):
                return name
        return ""

    def _factor(self, record: WaitingRecord) -> float:
        """The usage factor of a job's QOS."""
        qos = None if self._accounts is None else self._accounts.qos_of(record)
        return 1.0 if qos is None else qos.usage_factor

    # --- what counts -----------------------------------------------------------------------------

    def change(self, running: RunningRecord, sign: int, now: int) -> None:
        """A job counts from now on, or no longer if the sign is -1."""
        if self._accounts is None:
            return
        tres = self._accounts.tres(running.waiting, running.share) | {JOBS: 1}
        for key in {key for _, *keys in self._holders(running.waiting) for key in keys}:
            has = self._counts.setdefault(key, {})
            for name, amount in tres.items():
                has[name] = has.get(name, 0.0) + sign * amount
        if self.spent.of:
            if sign > 0:
                self.spent.started(running, self._bill)
            else:
                self.spent.ended(running, now, self._bill)

    def advance(self, now: float, running: Sequence[RunningRecord]) -> bool:
        """Let time pass; whether usage was computed again."""
        return self.spent.advance(now, running, self._bill)

    def _bill(self, running: RunningRecord) -> tuple[float, dict[str, float], Iterable[Key]]:
        """How a running job counts: by which factor, what it has, and for whom."""
        assert self._accounts is not None
        record = running.waiting
        keys = (key for _, key, _, _ in self._holders(record))
        return self._factor(record), self._accounts.tres(record, running.share), keys

    def why_killed(self, running: RunningRecord) -> str:
        """The limit on usage over time because of which a running job is killed, if any."""
        if not self.kills or self._accounts is None:
            return ""
        record = running.waiting
        has = {name: amount * 60 for name, amount in self._accounts.tres(record, running.share).items()}
        for settings, key, _, _ in [] if record.fields.runs else self._holders(record):
            used = self._used(key)
            if name := self._over_used(settings.grp_tres_seconds, used, has):
                return reason(_whose(key), "Grp{}Minutes", name)
            if settings.grp_wall is not None and self._is_over_wall(record, settings.grp_wall, used):
                return f"{_whose(key)}GrpWallLimit"
        return ""

    def eases(self, records: Iterable[WaitingRecord]) -> bool:
        """Whether one of some jobs waits for usage to become less, and may start then."""
        return bool(self.spent.of) and any(map(self._waits_for_usage, records))

    def _waits_for_usage(self, record: WaitingRecord) -> bool:
        if self._accounts is None or record.fields.runs:
            return False
        seconds = self._minutes(record) * 60
        needs = {name: amount * seconds for name, amount in self._accounts.least_tres(record).items()}

        def is_over(settings: LimitSettings, used: Used) -> bool:
            is_over_wall = settings.grp_wall is not None and self._is_over_wall(
                record, settings.grp_wall, used
            )
            return is_over_wall or bool(self._over_used(settings.grp_tres_seconds, used, needs))

        found = [(settings, key, self._used(key)) for settings, key, _, _ in self._holders(record)]
        is_held = any(is_over(settings, used) for settings, _, used in found)
        return is_held and not any(is_over(settings, self.spent.least(key)) for settings, key, _ in found)

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
        above: list[LimitSettings] = []
        for name, qos in {each.name: each for each in of_qos}.items():
            keys = _qos_key(name), ("user", name, user), ("account", name, account)
            yield _without(qos, above), *keys
            above.append(qos)
        for association in accounts.associations_of(record):
            key = _association_key(association)
            yield _without(association, above), key, key, key


def _qos_key(name: str) -> Key:
    return "qos", name


def _association_key(association: Association) -> Key:
    return "association", association.account, association.user, association.partition


def _by_key(configuration: Configuration) -> dict[Key, Qos | Association]:
    """All QOS and associations, each under the key by which its jobs are counted."""
    found: dict[Key, Qos | Association] = {_qos_key(each.name): each for each in configuration.qos}
    return found | {_association_key(each): each for each in configuration.associations}


#: Limits of what jobs have.
_OF_TRES = (
    "max_tres_per_job", "max_tres_per_node", "max_tres_seconds_per_job", "grp_tres", "max_tres_per_user",
    "max_tres_per_account", "grp_tres_run_seconds", "grp_tres_seconds",
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


def _whose(key: Key) -> str:
    """Whose limit it is, as the reasons of Slurm begin."""
    return "QOS" if key[0] == "qos" else "Assoc"


_CALLED = {"cpu": "Cpu", "mem": "Mem", "node": "Node", "gres": "GRES", "billing": "Billing"}

#: Which reasons end in Limit.
_ENDS_IN_LIMIT = {
    "cpu": ("Grp{}", "Grp{}Minutes", "Grp{}RunMinutes", "Max{}PerJob", "Max{}MinutesPerJob", "Max{}PerUser"),
    "node": ("Grp{}", "Max{}PerJob", "Max{}PerUser"),
    "mem": ("Grp{}",),
}


def reason(whose: str, form: str, resource: str) -> str:
    """A limit on a resource as the reasons of Slurm have it.

    >>> reason("QOS", "Grp{}Minutes", "cpu"), reason("Assoc", "Grp{}", "gres/gpu:a100")
    ('QOSGrpCPUMinutesLimit', 'AssocGrpGRES')
    >>> reason("QOS", "Max{}PerUser", "mem"), reason("QOS", "Max{}PerAccount", "cpu")
    ('QOSMaxMemoryPerUser', 'MaxCpuPerAccount')
    """
    kind, _, _ = resource.partition("/")
    called = _CALLED.get(kind, "Unknown")
    if kind == "cpu" and form in ("Grp{}Minutes", "Grp{}RunMinutes"):
        called = "CPU"
    if kind == "mem" and whose == "QOS" and form != "Grp{}":
        called = "Memory"
    whose = "" if form == "Max{}PerAccount" else whose
    return whose + form.format(called) + "Limit" * (form in _ENDS_IN_LIMIT.get(kind, ()))


def _without(settings: LimitSettings, above: Sequence[LimitSettings]) -> LimitSettings:
    """Limits without those that others have set, of the same resources."""
    kept = {}
    for name in LimitSettings.__struct_fields__:
        own = getattr(settings, name)
        if isinstance(own, dict):
            own = {
                key: most for key, most in own.items() if not any(key in getattr(of, name) for of in above)
            }
        elif any(getattr(of, name) is not None for of in above):
            own = None
        kept[name] = own
    return replace(settings, **kept) if above else settings
