"""The page of the settings of Slurm: what the importer makes of each, by the importer itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from batsched_py.slurm.known import group_of

#: The settings of Slurm by kind, each with its first and its last version, made by list_slurm_settings.py.
LISTED: dict[str, dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("slurm_settings.json").read_text()
)

TITLES = {
    "slurm.conf": "Settings of slurm.conf",
    "partition": "Settings of partitions",
    "node": "Settings of nodes",
    "qos": "Columns of QOS",
    "association": "Columns of associations",
    "qos flag": "Flags of QOS",
    "reservation flag": "Flags of reservations",
}

FIRST, LAST = "22.05", "24.11"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the tables where the page has room for them."""
    if page.file.src_uri != "slurm-settings.md":
        return markdown
    return markdown.replace("<!-- slurm settings -->", tables())


def tables() -> str:
    """All settings: first those of the files, then the words of single settings."""
    kinds = [*TITLES, *sorted(LISTED.keys() - TITLES.keys())]
    return "\n\n".join("\n".join(_section(kind)) for kind in kinds)


def _section(kind: str) -> Iterator[str]:
    yield f"## {TITLES.get(kind, f'Words of {kind}')}\n"
    yield "| | |\n| --- | --- |"
    groups: dict[str, list[str]] = {"modelled": [], "shapes no schedule": [], "not modelled": []}
    for name, (first, last) in LISTED[kind].items():
        since = f" (since {first})" if first != FIRST else f" (until {last})" if last != LAST else ""
        groups[str(group_of(kind, name))].append(f"`{name}`{since}")
    for group, named in groups.items():
        if named:
            yield f"| {group} | {', '.join(named)} |"
