"""What becomes of each setting, and of each word that it may have, as the importer itself takes it.

A setting is modelled, shapes no schedule, or is not modelled. It is read as an import would, to see which.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from msgspec import MsgspecError

from batsched_py.slurm import accounting, conf, conf_settings, reading, reservations
from batsched_py.slurm.conf_settings import Parameter
from batsched_py.slurm.policy.settings import HEEDED_RESERVATION_FLAGS, PartitionState, is_unused
from batsched_py.slurm.reservations import FLAGS_WITHOUT_EFFECT

Group = Literal["modelled", "shapes no schedule", "not modelled"]

#: Values that are right for one setting or another.
_SAMPLES = ("7", "YES", "cpu=7", "EXCLUSIVE", "cancel", "tree", "name")

#: Settings whose words are told apart below, and those that become more than fields.
_OTHERWISE = frozenset(
    """schedulerparameters preemptparameters accountingstoragetype licenses nodename nodeset
    partitionname epilog""".split()
)


def group_of(kind: str, name: str) -> Group | None:
    """What becomes of a setting of some kind, or of a word of the setting of that name; none if unknown."""
    plain = name.lower()
    match kind:
        case "slurm.conf":
            if plain in _OTHERWISE:
                return "modelled"
            return _setting(plain, conf_settings.SETTINGS, "") or _listed(
                plain, conf_settings.WITHOUT_EFFECT, conf_settings.UNMODELLED
            )
        case "partition":
            return _setting(plain, conf_settings.PARTITION_SETTINGS, "partitions") or _listed(
                plain, conf_settings.PARTITION_WITHOUT_EFFECT, conf_settings.PARTITION_UNMODELLED
            )
        case "node":
            if plain in conf_settings.NODE_KEYS:
                return "modelled"
            return _listed(plain, conf_settings.NODE_WITHOUT_EFFECT, conf_settings.NODE_UNMODELLED)
        case "SchedulerParameters" | "PreemptParameters":
            return _parameter(plain, conf_settings.OPTIONS[kind.lower()])
        case "qos" | "association":
            return _column(kind, accounting.field_name(name))
        case "reservation flag":
            return _reservation_flag(name)
    return _word(kind, name)


def _listed(name: str, without_effect: frozenset[str], unmodelled: frozenset[str]) -> Group | None:
    if name in without_effect:
        return "shapes no schedule"
    return "not modelled" if name in unmodelled else None


def _of_fields(places: Mapping[str, Any] | list[str], table: str) -> Group:
    """What becomes of fields, which are of a table if they do not name theirs."""
    named = [(place.rpartition(".")[0] or table, place.rpartition(".")[2]) for place in places]
    if not named:
        return "shapes no schedule"
    is_left_out = all(table and is_unused(table, field) for table, field in named)
    return "not modelled" if is_left_out else "modelled"


def _setting(name: str, settings: Mapping[str, Callable[[str], Any]], table: str) -> Group | None:
    if name not in settings:
        return None
    for sample in _SAMPLES:
        try:
            return _of_fields(settings[name](sample), table)
        except reading.NotModelled:
            continue
        except (MsgspecError, ValueError):
            continue
    return "modelled"  # one that has words of its own


def _parameter(name: str, options: Mapping[str, Parameter]) -> Group | None:
    if name in options:
        table, field, _ = options[name]
        return "not modelled" if is_unused(table, field) else "modelled"
    return _listed(name, conf_settings.PARAMETERS_WITHOUT_EFFECT, conf_settings.PARAMETERS_UNMODELLED)


def _column(kind: str, name: str) -> Group | None:
    targets, table = (accounting.QOS, "qos") if kind == "qos" else (accounting.ASSOCIATION, "associations")
    if name in targets:
        return "not modelled" if is_unused(table, targets[name][0]) else "modelled"
    return _listed(name, accounting.WITHOUT_EFFECT, accounting.UNMODELLED)


def _state(name: str) -> str:
    """The state of a node or a partition."""
    if name in conf.AS_TOLD_IN_THE_FILE:
        raise reading.NotModelled(name)
    if name not in conf.STATES and name.lower() not in get_args(PartitionState):
        raise ValueError(name)
    return name


def _reservation_flag(name: str) -> Group | None:
    """Slurm shows no flag that takes another one back; all others are listed if they do not count."""
    flag = reservations.flag_named(name)
    if flag in HEEDED_RESERVATION_FLAGS:
        return "modelled"
    return "shapes no schedule" if flag in FLAGS_WITHOUT_EFFECT else "not modelled"


def _word(kind: str, name: str) -> Group | None:
    """What becomes of a word of a setting."""
    readers: dict[str, Callable[[str], Any]] = {
        "qos flag": accounting.read_flags,
        "OverSubscribe": lambda text: str(conf_settings.PARTITION_SETTINGS["oversubscribe"](text)),
        "State": _state,
    }
    read = readers.get(kind) or conf_settings.SETTINGS[kind.lower()]
    try:
        values = read(name)
        if not isinstance(values, Mapping):
            return "modelled"
        left_out = [conf.is_left_out(place, value) for place, value in values.items()]
    except reading.NotModelled as error:
        return None if "not known" in str(error) else "not modelled"
    except (MsgspecError, ValueError):
        return None
    if not values:
        return "shapes no schedule"
    return "not modelled" if any(left_out) else "modelled"
