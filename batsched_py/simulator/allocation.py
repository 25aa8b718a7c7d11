"""Which hosts a job may be given."""

from __future__ import annotations

from batsched_py.errors import RuleBroken
from batsched_py.protocol.events import ExecuteJob, Settings
from batsched_py.protocol.hosts import HostSet
from batsched_py.protocol.jobs import HostState, Job
from batsched_py.protocol.profiles import Composed, Profile
from batsched_py.simulator.catalog import Catalog
from batsched_py.simulator.machines import Machines


class AllocationRules:
    """Checks allocations as Batsim does before it executes a job."""

    def __init__(
        self, machines: Machines, settings: Settings, catalog: Catalog, ignore_communication: bool
    ) -> None:
        self._machines = machines
        self._catalog = catalog
        self._ignore_communication = ignore_communication
        self._all = HostSet.range(machines.count)
        computing = HostSet.range(machines.count - machines.storages)
        self._shared = (computing.mask if settings.compute_sharing else 0) | (
            (self._all - computing).mask if settings.storage_sharing else 0
        )

    def check(self, decision: ExecuteJob, job: Job, profile: Profile) -> None:
        """Raise :class:`RuleBroken` if the job may not be executed like this."""
        hosts = decision.hosts
        if not hosts:
            raise RuleBroken("the allocation is empty")
        if hosts.mask >> self._machines.count:
            raise RuleBroken(f"hosts {hosts - self._all} do not exist")
        if decision.mapping is not None:
            self._check_mapping(decision.mapping, len(hosts), job, profile)
        elif len(hosts) != job.size and not self._is_moldable(job, profile):
            raise RuleBroken(f"job {job.id} asks for {job.size} hosts and was given {len(hosts)} ({hosts})")
        idle = self._machines.hosts_in(HostState.IDLE).mask & self._machines.awake
        if hosts.mask & ~idle:
            self._check_sharing(HostSet(hosts.mask & ~idle))
        if decision.io_job is not None:
            self._check_io_job()
        if decision.storage_mapping is not None and not decision.storage_mapping:
            raise RuleBroken("the storage mapping is empty")
        if isinstance(profile, Composed) and self._catalog.is_dynamic(job):
            raise RuleBroken(
                f"profile {job.profile!r} is composed and was registered while the simulation ran; "
                "Batsim finds the parts of those in workload files only"
            )

    def _check_mapping(self, mapping: list[int], places: int, job: Job, profile: Profile) -> None:
        if len(mapping) != job.size and not self._is_moldable(job, profile):
            raise RuleBroken(f"job {job.id} has {job.size} executors, the mapping places {len(mapping)}")
        if not mapping or not all(0 <= place < places for place in mapping):
            raise RuleBroken("the mapping is empty or names a place outside the allocation")

    def _check_sharing(self, hosts: HostSet) -> None:
        """These hosts are not idle: each must compute and allow more than one job."""
        for state in HostState:
            if state not in (HostState.IDLE, HostState.COMPUTING) and (
                bad := hosts & self._machines.hosts_in(state)
            ):
                raise RuleBroken(f"hosts {bad} of the allocation are {state}")
        if asleep := hosts - HostSet(self._machines.awake):
            raise RuleBroken(f"hosts {asleep} of the allocation are not in a power state to compute in")
        if busy := hosts - HostSet(self._shared):
            raise RuleBroken(f"hosts {busy} of the allocation run other jobs and may not be shared")

    def _check_io_job(self) -> None:
        if not self._ignore_communication:
            raise RuleBroken(
                "an additional IO job sends bytes, and the built-in Batsim has no network model; "
                "use --ignore-communication to leave it out, or a real Batsim"
            )

    def _is_moldable(self, job: Job, profile: Profile) -> bool:
        """Whether its work can be spread over any number of hosts."""
        return profile.is_moldable(self._catalog.everything()[job.workload])
