"""Which jobs make way for others, and how: ``[preemption]``."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from batsched_py.schedulers.slurm.settings.amounts import Count, Seconds

PreemptMode = Literal["off", "cancel", "requeue"]


class Preemption(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``PreemptType``, ``PreemptMode`` and what goes with them."""

    type: Literal["none", "partition_prio", "qos"] = "none"
    mode: PreemptMode = "off"
    exempt_time: Seconds = 0.0
    """A job is left alone for so long."""
    reorder_count: Count = 1
    """``preempt_reorder_count``."""
    strict_order: bool = False
    youngest_first: bool = False
    send_user_signal: bool = False
    within_qos: bool = False
    """``PreemptMode=WITHIN``: jobs make way for those of higher priority of the same QOS, too."""
