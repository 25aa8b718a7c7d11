"""Which jobs a partition takes: by user, account and QOS, and by what they ask for."""

from __future__ import annotations

from collections.abc import Collection
from math import inf

from msgspec import Struct

from batsched_py.slurm.policy.job import WaitingRecord
from batsched_py.slurm.policy.settings import ROOT, Configuration, Partition


class Never(Struct, frozen=True):
    """Why a job can never run, as Slurm has it."""

    reason: str
    is_refused: bool = False
    """Whether Slurm refuses it at its submission; others wait for ever."""


def why_not_in(
    record: WaitingRecord,
    account: str,
    qos: str,
    flags: Collection[str],
    time_limit: float,
    configuration: Configuration,
) -> Never | None:
    """Why the partition of a record does not take its job, if it does not; the flags are those of its QOS."""
    partition = record.partition.settings
    refuses = configuration.scheduling.enforce_part_limits != "no"
    if partition.state not in ("up", "drain"):
        return Never("PartitionDown", partition.state == "inactive")
    if not _takes_user(partition, record.job.user or "", configuration):
        return Never("AccessDenied", is_refused=True)
    if not record.fields.reservation and (partition.req_resv or "require_reservation" in flags):
        return Never("ReservationRequired", is_refused=True)
    if partition.max_time < time_limit < inf and "partition_time_limit" not in flags:
        return Never("PartitionTimeLimit", refuses)
    if not _takes_size(partition, record, flags):
        return Never("PartitionNodeLimit", refuses)
    if not _is_let_in(account, partition.allow_accounts, partition.deny_accounts):
        return Never("AccountNotAllowed", refuses)
    if qos and not _is_let_in(qos, partition.allow_qos, partition.deny_qos):
        return Never("QOSNotAllowed", refuses)
    return None


def _is_let_in(name: str, allowed: Collection[str], denied: Collection[str]) -> bool:
    """Whether an account or a QOS is let in; who is allowed counts before who is denied."""
    return name in allowed if allowed else name not in denied


def _takes_size(partition: Partition, record: WaitingRecord, flags: Collection[str]) -> bool:
    """Whether a job asks for neither too many nodes nor too few."""
    asked, most = record.asked, inf if partition.max_nodes is None else partition.max_nodes
    is_too_large = asked.least_nodes > most and "partition_max_nodes" not in flags
    return not is_too_large and (asked.most_nodes >= partition.min_nodes or "partition_min_nodes" in flags)


def _takes_user(partition: Partition, user: str, configuration: Configuration) -> bool:
    """Whether a user may use a partition; where nobody knows the groups, all of them."""
    groups = configuration.groups
    if user == ROOT:
        return True
    allowed = {each for name in partition.allow_groups for each in groups.get(name, ())}
    return not partition.root_only and (user in allowed or not (groups and partition.allow_groups))
