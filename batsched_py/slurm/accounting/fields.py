"""The columns of ``sacctmgr`` and the keys of its dumps, and the fields that they become."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any, Literal, get_args

from batsched_py.protocol.shown import shown
from batsched_py.schedulers.slurm.settings.qos import QosFlag
from batsched_py.slurm.conf.settings import preempt_mode
from batsched_py.slurm.values import (
    NotModelled,
    count,
    each,
    limit,
    listed,
    names,
    number,
    seconds,
    time_limit,
    tres,
)

#: A field, and how its value is read; one that is read as ``None`` is left out.
Target = tuple[str, Callable[[str], Any]]

_MINUTE = 60.0
_OTHER_NAMES = {"overpartqos": "override_part_qos", "requiresreservation": "require_reservation"}
_OF_PARENT = str((1 << 31) - 1)


def _tres_minutes(text: str) -> dict[str, float]:
    return tres(text, _MINUTE)


def _wall(text: str) -> float | None:
    time = time_limit(text)
    return None if time == inf else time


def _shares(text: str) -> int | Literal["parent"]:
    """Raw shares; a dump has a large number for those of the parent."""
    return "parent" if text.lower() == "parent" or text == _OF_PARENT else count(text)


def _one(name: str) -> Callable[[str], dict[str, float]]:
    def read(text: str) -> dict[str, float]:
        return tres(f"{name}={text}")

    return read


def _flags(text: str) -> tuple[str, ...]:
    """Flags as Slurm writes them, like ``DenyOnLimit``."""
    known = {flag.replace("_", ""): flag for flag in get_args(QosFlag)} | _OTHER_NAMES

    def flag(word: str) -> str:
        if word.lower().replace("_", "") not in known:
            raise NotModelled(f"the flag {shown(word)} is not known")
        return str(known[word.lower().replace("_", "")])

    return tuple(each(listed(text), flag))


def _preempt_mode(text: str) -> str | None:
    mode: str | None = None if text.lower() == "cluster" else preempt_mode(text)
    return mode


_LIMITS: dict[str, Target] = {
    "grpjobs": ("grp_jobs", limit),
    "grpsubmitjobs": ("grp_submit_jobs", limit),
    "grpsubmit": ("grp_submit_jobs", limit),
    "grptres": ("grp_tres", tres),
    "grpcpus": ("grp_tres", _one("cpu")),
    "grpnodes": ("grp_tres", _one("node")),
    "grptresmins": ("grp_tres_seconds", _tres_minutes),
    "grptresrunmins": ("grp_tres_run_seconds", _tres_minutes),
    "grpwall": ("grp_wall", _wall),
    "grpjobsaccrue": ("grp_jobs_accrue", limit),
    "maxtresperjob": ("max_tres_per_job", tres),
    "maxtres": ("max_tres_per_job", tres),
    "maxtrespj": ("max_tres_per_job", tres),
    "maxtrespernode": ("max_tres_per_node", tres),
    "maxtrespn": ("max_tres_per_node", tres),
    "maxtresminsperjob": ("max_tres_seconds_per_job", _tres_minutes),
    "maxtresmins": ("max_tres_seconds_per_job", _tres_minutes),
    "maxtresminspj": ("max_tres_seconds_per_job", _tres_minutes),
    "maxwalldurationperjob": ("max_wall", _wall),
    "maxwall": ("max_wall", _wall),
    "maxwallpj": ("max_wall", _wall),
    "minpriothreshold": ("min_prio_thres", limit),
    "minprio": ("min_prio_thres", limit),
    "priority": ("priority", count),
}

ASSOCIATION: dict[str, Target] = _LIMITS | {
    "account": ("account", str.strip),
    "user": ("user", str.strip),
    "partition": ("partition", str),
    "parent": ("parent", str),
    "parentname": ("parent", str),
    "parname": ("parent", str),
    "fairshare": ("shares", _shares),
    "share": ("shares", _shares),
    "shares": ("shares", _shares),
    "rawshares": ("shares", _shares),
    "rawusage": ("usage", number),
    "qos": ("qos", names),
    "qoslevel": ("qos", names),
    "defaultqos": ("default_qos", str),
    "defqos": ("default_qos", str),
    "maxjobs": ("max_jobs", limit),
    "maxsubmitjobs": ("max_submit_jobs", limit),
    "maxsubmit": ("max_submit_jobs", limit),
    "maxjobsaccrue": ("max_jobs_accrue", limit),
}

QOS: dict[str, Target] = _LIMITS | {
    "name": ("name", str),
    "preempt": ("preempt", names),
    "preemptmode": ("preempt_mode", _preempt_mode),
    "preemptexempttime": ("preempt_exempt_time", _wall),
    "gracetime": ("grace_time", seconds),
    "flags": ("flags", _flags),
    "usagefactor": ("usage_factor", number),
    "usagethres": ("usage_threshold", number),
    "usagethreshold": ("usage_threshold", number),
    "limitfactor": ("limit_factor", number),
    "maxtrespu": ("max_tres_per_user", tres),
    "maxtresperuser": ("max_tres_per_user", tres),
    "maxjobspu": ("max_jobs_per_user", limit),
    "maxjobsperuser": ("max_jobs_per_user", limit),
    "maxsubmitpu": ("max_submit_jobs_per_user", limit),
    "maxsubmitjobsperuser": ("max_submit_jobs_per_user", limit),
    "maxjobsaccruepu": ("max_jobs_accrue_per_user", limit),
    "maxtrespa": ("max_tres_per_account", tres),
    "maxtresperaccount": ("max_tres_per_account", tres),
    "maxjobspa": ("max_jobs_per_account", limit),
    "maxjobsperaccount": ("max_jobs_per_account", limit),
    "maxsubmitpa": ("max_submit_jobs_per_account", limit),
    "maxsubmitjobsperaccount": ("max_submit_jobs_per_account", limit),
    "maxjobsaccruepa": ("max_jobs_accrue_per_account", limit),
    "mintres": ("min_tres_per_job", tres),
    "mintresperjob": ("min_tres_per_job", tres),
}

#: Columns and keys that are computed from others, or shape no schedule.
WITHOUT_EFFECT = frozenset(
    """cluster id description descr organization org coordinator coordinators adminlevel defaultwckey
    defwckey wckey comment normshares normusage effectvusage effectvusg levelfs lft rgt parentid
    deleted defaultaccount tresrunmins""".split()
)


def field_name(column: str) -> str:
    """A column's title as a key: small letters without blanks, digits and signs."""
    return "".join(letter for letter in column.lower() if letter.isalpha())
