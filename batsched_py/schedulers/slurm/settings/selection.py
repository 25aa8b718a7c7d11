"""Which resources are given out, and which nodes are taken first: ``[selection]``."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from batsched_py.schedulers.slurm.settings.amounts import Count

Consumed = Literal["cpu", "core", "socket", "none"]


class Selection(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``SelectType`` and ``SelectTypeParameters``, and the settings of ``SchedulerParameters`` on nodes."""

    type: Literal["linear", "cons_tres"] = "linear"
    """``linear`` gives out whole nodes."""
    consumed: Consumed = "core"
    """The unit in which processors are given out."""
    memory: bool = False
    """Whether memory is given out, as with ``CR_Core_Memory``."""
    lln: bool = False
    """``CR_LLN``: the least loaded nodes first."""
    one_task_per_core: bool = False
    core_default_dist_block: bool = False
    pack_serial_at_end: bool = False
    """Jobs of one processor go to the last nodes."""

    def_mem_per_cpu: Count = 0
    """What a job that does not say gets, in MB; 0 is all the memory of a node."""
    def_mem_per_node: Count = 0
    def_mem_per_gpu: Count = 0
    max_mem_per_cpu: Count = 0
    """0 is no limit."""
    max_mem_per_node: Count = 0
    def_cpu_per_gpu: Count = 0
    topology: Literal["default", "tree"] = "default"


class NodeSettings(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the machine's file does not say of some nodes: an entry of ``[[nodes]]``."""

    nodes: str
    """As Slurm writes them, like ``n[1-8],m1``."""
    weight: Count = 1
    """The nodes with the least weight are taken first."""
    sockets: Count = 1
    cores_per_socket: Count = 0
    """0 is all the cores of the node in one socket."""
    threads_per_core: Count = 1
    state: Literal["up", "down", "drain"] = "up"
