"""Lines of ``sacct`` that have its separator inside of values too, like ``-C skylake|rome``.

Such a line has more fields than the first line has names. Only free texts can hold a separator. So the
surplus fields belong to some of these, and all other values must look as their columns say: moments, numbers,
durations, states. If that leaves one way to read the line, this is it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

_TIME = r"(?:[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.+Z-]{5,20}|[0-9]+|Unknown|None|N/A|NONE)?"
_NUMBER = r"[0-9]*"
_DURATION = r"(?:[0-9:.-]+|INVALID|UNLIMITED|Partition_Limit|Unknown)?"
_RESOURCES = r"(?:[A-Za-z][A-Za-z0-9_/:.-]*=[^,=]*(?:,[A-Za-z][A-Za-z0-9_/:.-]*=[^,=]*)*)?"

#: What values look like, by the columns that have them.
_LOOKS: Final[dict[str, re.Pattern[str]]] = {
    name: re.compile(pattern)
    for pattern, names in {
        _TIME: "Submit Eligible Start End",
        _NUMBER: """AllocCPUS AllocNodes NCPUS NNodes ReqCPUS ReqNodes ElapsedRaw CPUTimeRAW DBIndex UID GID
            Priority QOSRAW NTasks AssocID ReservationId WCKeyID""",
        _DURATION: "Elapsed CPUTime Suspended SystemCPU TotalCPU UserCPU Timelimit Reserved Planned",
        _RESOURCES: "AllocTRES ReqTRES",
        r"[0-9]+(?:[_+.].*)?": "JobID JobIDRaw",
        r"[A-Z_]+(?: by [0-9]+|\+)?": "State",
        r"(?:[0-9.]+[KMGTP]?[cn]?)?": "ReqMem",
        r"(?:[0-9]+:[0-9]+)?": "ExitCode DerivedExitCode",
        r"(?:/(?s:.*))?": "WorkDir",
    }.items()
    for name in names.split()
}

#: Columns whose values may hold anything.
_FREE: Final = frozenset(
    "AdminComment Comment Constraints Container JobName SubmitLine SystemComment WCKey WorkDir".split()
)
_CONSTRAINT = re.compile(r"(?:^|\s)(?:--constraint[=\s]\s*|-C\s*)(\S+)")
#: With more surplus fields than this a line is not tried.
_MOST: Final = 12


def realigned(names: Sequence[str], fields: Sequence[str], separator: str) -> list[str] | None:
    """The values of a line with surplus fields; nothing if there is no one way to read it.

    >>> realigned(["JobID", "Constraints", "NNodes"], ["7", "a", "b", "2"], "|")
    ['7', 'a|b', '2']
    """
    surplus = len(fields) - len(names)
    if not 0 < surplus <= _MOST:
        return None
    found = list(_ways(names, fields, 0, surplus, separator))
    if len(found) > 1:
        found = [way for way in found if _agrees(dict(zip(names, way, strict=True)))]
    return found[0] if len(found) == 1 else None


def _ways(
    names: Sequence[str], fields: Sequence[str], place: int, surplus: int, separator: str
) -> Iterator[list[str]]:
    """All ways to give the fields from a place on to the names from there on."""
    made: list[str] = []
    for number in range(place, len(names)):
        name, value = names[number], fields[number - place]
        if surplus and name in _FREE:
            rest = fields[number - place :]
            for more in range(surplus, 0, -1):
                joined = separator.join(rest[: more + 1])
                if _looks(name, joined):
                    for way in _ways(names, rest[more + 1 :], number + 1, surplus - more, separator):
                        yield [*made, joined, *way]
        if not _looks(name, value):
            return
        made.append(value)
    if not surplus:
        yield made


def _looks(name: str, value: str) -> bool:
    """Whether a value may stand in a column."""
    pattern = _LOOKS.get(name)
    return pattern is None or pattern.fullmatch(value) is not None


def _agrees(values: dict[str, str]) -> bool:
    """Whether the nodes' features are those that the command asked for."""
    asked = _CONSTRAINT.search(values.get("SubmitLine", ""))
    return asked is not None and asked[1].strip("\"'") == values.get("Constraints")
