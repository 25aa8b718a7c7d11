"""Reading a workload from any kind of file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from batsched_py.blame import naming
from batsched_py.errors import InputError
from batsched_py.workload.lines import check_is_file, has_more_fields
from batsched_py.workload.model import CancelledRule, PrecedingRule, ProcessorsRule, WalltimeRule, Workload

if TYPE_CHECKING:
    from batsched_py.workload.requests import NodeWords


def read_workload(
    path: str | Path,
    name: str,
    walltime_factor: float = 2.0,
    walltime: WalltimeRule = "at-least-run-time",
    cancelled: CancelledRule = "leave-out",
    options: Mapping[str, str] | None = None,
    words: NodeWords | None = None,
    preceding: PrecedingRule = "ignore",
    attributes: Sequence[str] = (),
    kind: str | None = None,
    processors: ProcessorsRule = "allocated",
) -> Workload:
    """Read an SWF log (``.swf``, ``.swf.gz``), a Batsim workload (``.json``) or a log of another known kind.

    The rules for walltimes and for jobs that were cancelled while they waited are those of
    :func:`~batsched_py.workload.swf.workload.swf_to_workload`; a Batsim workload says its jobs' walltimes
    itself, and knows nothing of cancelled ones. The same goes for preceding jobs.
    The ``kind`` of a log is told by its name, unless it is given. ``options`` are those of its kind, if it
    has any. With the ``words`` of a machine of nodes, jobs of logs get requests. They get further
    ``attributes`` from columns; those of a Batsim workload have all of its fields anyway. The rule for
    ``processors`` says how large jobs of logs are.
    """
    path = check_is_file(path)
    ending = path.name.lower()
    rule = walltime_factor, walltime, cancelled
    with_more = words is not None or bool(attributes)
    as_whole = with_more or preceding != "ignore"
    by_name = kind is None and not options
    is_swf = by_name and ending.endswith((".swf", ".swf.gz")) and not with_more
    if is_swf and (workload := _read_swf(path, name, rule, preceding, processors)) is not None:
        return workload
    if kind == "batsim" or (by_name and ending.endswith(".json") and not ending.endswith(".philly.json")):
        from batsched_py.workload.batsim_json import read_batsim_json

        if attributes:
            raise InputError(
                f"{path}: jobs of a Batsim workload have all their fields; leave out --attribute"
            )
        return read_batsim_json(path, name)
    from batsched_py.workload.sources import source_of
    from batsched_py.workload.sources.accounting import ReadsPieces, read_in_pieces
    from batsched_py.workload.swf.workload import JobColumns, swf_to_workload

    source = source_of(path, kind, options)
    if not as_whole and isinstance(source, ReadsPieces):
        workload = read_in_pieces(source, path, name, JobColumns(*rule, processors))
        if workload is not None:
            return workload
    with naming(f"kind of log {kind!r}"):
        log = source.read(path)
    return swf_to_workload(log, name, *rule, words, preceding, attributes, processors)


def _read_swf(
    path: Path,
    name: str,
    rule: tuple[float, WalltimeRule, CancelledRule],
    preceding: PrecedingRule,
    processors: ProcessorsRule,
) -> Workload | None:
    """The workload of an SWF log, if not all of its columns are needed at once."""
    from batsched_py.workload.swf.quick_reader import read_quickly

    walltime_factor, walltime, cancelled = rule
    if cancelled == "leave-out" and processors == "allocated" and walltime != "modelled":
        workload = read_quickly(path, name, walltime_factor, walltime, preceding)
        if workload is not None:
            return workload
    from batsched_py.workload.swf.workload import read_swf_workload  # which needs numpy

    if preceding != "ignore" or has_more_fields(path):
        return None
    return read_swf_workload(path, name, *rule, processors)
