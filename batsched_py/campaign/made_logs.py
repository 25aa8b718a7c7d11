"""Making the logs that a plan describes by recipes: changed, generated, cut into parts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batsched_py.campaign.digest import digest_of_file
from batsched_py.errors import InputError
from batsched_py.settings import pairs_in

if TYPE_CHECKING:
    from batsched_py.workload.swf.log import SwfLog


def make(path: Path, recipe: Mapping[str, Any]) -> None:
    """Write the log of a recipe; it gets its name only when it is complete."""
    from batsched_py.workload.recipe import log_from_recipe
    from batsched_py.workload.swf.log import write_swf

    if "file" in recipe:
        file = Path(recipe["file"])
        options = tuple(recipe.get("input_options", ()))
        recipe = {**recipe, "file": _log(file, recipe.get("kind"), digest_of_file(file), options)}
    log = log_from_recipe(recipe)
    if "request" in log.more:
        raise InputError(
            f"{path.name}: what its jobs ask of nodes would be lost in the log that a plan makes; write it "
            "to a FILE.json by `batsched-py generate` or `batsched-py change`, and name that file in the plan"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as folder:
            part = Path(folder) / path.name
            write_swf(part, log)
            os.replace(part, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


@lru_cache(maxsize=256)
def parts_of(file: Path, digest: str, every: str, options: tuple[str, ...] = ()) -> tuple[int, str]:
    """How many parts a log has, each a week, a month or a span like 28d; and which jobs are in none."""
    from batsched_py.workload.changes import count_parts, outside_of_parts

    log = _log(file, None, digest, options)
    return count_parts(log, every), outside_of_parts(log, every)


@lru_cache(maxsize=2)
def _log(file: Path, kind: str | None, digest: str, options: tuple[str, ...]) -> SwfLog:
    """A log of which several others are made."""
    from batsched_py.workload.sources import read_log

    return read_log(file, kind, pairs_in(options, "input_options:"))
