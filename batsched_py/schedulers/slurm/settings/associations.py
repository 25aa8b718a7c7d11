"""Accounts and users, with their shares and limits: the entries of ``[[associations]]``."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from batsched_py.schedulers.slurm.settings.amounts import Count
from batsched_py.schedulers.slurm.settings.limits import Limits

ROOT = "root"
"""The account above all others."""


class Association(Limits, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """An account, or a user in an account, perhaps for one partition only."""

    account: str
    user: str = ""
    """Nobody if this is the account itself."""
    partition: str = ""
    """All partitions if this is empty."""
    parent: str = ROOT
    """The account above, of an account; the parent of a user is the account."""
    shares: Count | Literal["parent"] = 1
    """Raw shares; with ``parent`` its usage counts as that of its parent, and so does its share."""
    priority: Count = 0
    qos: tuple[str, ...] = ()
    """What it may ask for; those of its parent if there are none."""
    default_qos: str = ""
    default_account: bool = False
    """Whether this is the account of the user's jobs that do not say."""
    max_jobs: Count | None = None
    max_submit_jobs: Count | None = None
    max_jobs_accrue: Count | None = None
    usage: Annotated[float, Meta(ge=0)] = 0.0
    """Raw usage at the beginning, as ``sshare`` shows it."""
