"""Lists the settings of several versions of Slurm, from a clone of its sources, into slurm_settings.json.

    python docs/hooks/list_slurm_settings.py CLONE

Names of settings are those of the tables of its parser, flags are those that it prints, and the words that a
setting may have are those of its manual pages.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

FILE = Path(__file__).with_name("slurm_settings.json")

#: The last release of each version, by its tag.
TAGS = {
    "22.05": "slurm-22-05-11-1",
    "23.02": "slurm-23-02-8-1",
    "23.11": "slurm-23-11-11-1",
    "24.05": "slurm-24-05-8-1",
    "24.11": "slurm-24-11-7-1",
}

#: The tables of the parser.
TABLES = {
    "slurm.conf": "slurm_conf_options",
    "partition": "_partition_options",
    "node": "_nodename_options",
}

#: Settings whose words may shape schedules.
WORDY = (
    "AccountingStorageEnforce", "EnforcePartLimits", "OverSubscribe", "PreemptMode", "PreemptParameters",
    "PreemptType", "PriorityFlags", "PriorityType", "PriorityUsageResetPeriod", "SchedulerParameters",
    "SchedulerType", "SelectType", "SelectTypeParameters", "State", "TopologyPlugin",
)  # fmt: skip

#: What is told to a command, and stored with no QOS; and a remark.
NO_NAMES = ("Add", "Remove", "NOTE", "WithDeleted", "WithRawQOSLevel")

#: Sections of the manual of sacctmgr that list columns.
COLUMNS = {
    "qos": "LIST/SHOW QOS FORMAT OPTIONS",
    "association": "LIST/SHOW ASSOCIATION FORMAT OPTIONS",
}


def names(clone: Path, tag: str) -> Iterator[tuple[str, str]]:
    """Kinds of settings and their names in a version."""

    def source(path: str) -> str:
        shown = subprocess.run(["git", "-C", clone, "show", f"{tag}:{path}"], capture_output=True, check=True)
        return shown.stdout.decode(errors="replace")

    def between(text: str, begin: str, end: str) -> str:
        return text.split(begin, 1)[1].split(end, 1)[0]

    conf = source("src/common/read_config.c")
    for kind, table in TABLES.items():
        rows = between(conf, f"s_p_options_t {table}[]", "{NULL}")
        yield from ((kind, name) for name in re.findall(r'\{\s*"(\w+)",\s*S_P', rows))
    flags = between(source("src/common/slurmdb_defs.c"), "*slurmdb_qos_flags_str(", "\n}")
    yield from (("qos flag", name) for name in re.findall(r'"(\w+),"', flags))
    flags = between(source("src/common/slurm_protocol_defs.c"), "*reservation_flags_string(", "\n}")
    yield from (("reservation flag", name) for name in re.findall(r'flag_str, "(\w+)', flags))
    manual = source("doc/man/man5/slurm.conf.5")
    yield from ((setting, word) for setting, word in words(manual) if setting in WORDY)
    manual = source("doc/man/man1/sacctmgr.1")
    for kind, section in COLUMNS.items():
        listed = between(manual, f'.SH "{section}"', "\n.SH")
        yield from (
            (kind, name) for name in re.findall(r"^(?:\.IP )?\\fB(?:\\fI)?(\w+)\\f.(?:\\f.)?$", listed, re.M)
        )


def words(manual: str) -> Iterator[tuple[str, str]]:
    """The words of settings: items of lists below an item."""
    items: list[str] = [""]
    lines = manual.splitlines()
    for line, following in pairwise(lines):
        if line.startswith(".SH"):
            items = [""]
        elif line.startswith(".RS"):
            items.append("")
        elif line.startswith(".RE") and len(items) > 1:
            items.pop()
        elif line.startswith(".TP") and (match := re.match(r'"?\\fB([\w/]+)', following)):
            items[-1] = match[1]
            if len(items) == 2:
                yield items[0], items[1]


def main(clone: Path) -> None:
    """Write the file."""
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for version, tag in TAGS.items():
        for kind, name in dict.fromkeys(names(clone, tag)):
            if name not in NO_NAMES:
                found[kind][name].append(version)
    spans = {
        kind: {name: [in_[0], in_[-1]] for name, in_ in sorted(of.items())} for kind, of in found.items()
    }
    FILE.write_text(json.dumps(spans, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
