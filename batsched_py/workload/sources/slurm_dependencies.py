"""Dependencies and arrays of Slurm's jobs, as far as its accounting tells them.

``sacct`` has no field for them but the command that submitted a job, in ``SubmitLine``. A field
``Dependency``, as ``squeue`` has it, goes first where a file has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from batsched_py.protocol.dependencies import read_dependency
from batsched_py.workload.sources.accounting import Account
from batsched_py.workload.sources.slurm_fields import Records, Texts

_DEPENDENCY = re.compile(r"(?:^|\s)(?:--dependency[=\s]\s*|-d\s*)[\"']?([^\s\"']+)")
_LIMIT = re.compile(r"(?:^|\s)(?:--array[=\s]\s*|-a\s*)[\"']?[0-9,:-]+%([1-9][0-9]{0,8})")
_TASK = re.compile(r"([0-9]+)_([0-9]+)")
_MINUTES = re.compile(r"\+([0-9]{1,9})(?=:|$)")
_NOT_KNOWN = "dependency of a kind that is not simulated: left out"


def dependencies(records: Records, account: Account) -> dict[str, Texts]:
    """The columns ``after`` and ``array``, each if any job has something in it; jobs have Slurm's names."""
    ids = records.text("JobID").tolist()
    lines = records.known_text("SubmitLine").tolist()
    told = records.known_text("Dependency").tolist()
    texts = [text or _found(_DEPENDENCY, line) for text, line in zip(told, lines, strict=True)]
    after = [_after(text, name, account) if text else "" for text, name in zip(texts, ids, strict=True)]
    columns = {"after": after, "array": _arrays(ids, lines)}
    return {name: np.array(column, dtype=object) for name, column in columns.items() if any(column)}


def _after(text: str, name: str, account: Account) -> str:
    """A dependency of Slurm, without what is not simulated, such as ``expand``.

    Jobs of a log succeed when they are simulated, even those that failed. So what was to come after a failure
    comes after any end.
    """
    task = _TASK.fullmatch(name)
    separator = "?" if "?" in text else ","
    kept = []
    for part in re.split("[,?]", re.sub(r"\([^)]*\)|_\*", "", text).replace("afternotok", "afterany")):
        kind, *targets = part.split(":")
        if kind == "aftercorr" and task is not None:
            part = ":".join(["afterok", *(f"{target}_{task[2]}" for target in targets)])
        part = in_seconds(part)
        try:
            read_dependency(part)
            kept.append(part)
        except ValueError:
            account.guessed[_NOT_KNOWN] += 1
    return separator.join(kept)


def in_seconds(part: str) -> str:
    """A part of a dependency with delays in seconds; Slurm has them in minutes.

    >>> in_seconds("after:12+5:13")
    'after:12+300s:13'
    """
    return _MINUTES.sub(lambda match: f"+{int(match[1]) * 60}s", part)


def _arrays(ids: Iterable[str], lines: Iterable[str]) -> list[str]:
    """For each task of an array of which only some may run at once, the array and how many."""
    arrays = []
    for name, line in zip(ids, lines, strict=True):
        task, limit = _TASK.fullmatch(name), _found(_LIMIT, line)
        arrays.append(f"{task[1]}%{limit}" if task is not None and limit else "")
    return arrays


def _found(pattern: re.Pattern[str], line: str) -> str:
    match = pattern.search(line)
    return match[1] if match else ""
