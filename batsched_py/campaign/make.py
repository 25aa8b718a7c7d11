"""Making a log that a plan describes by a recipe: a changed or a generated one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from batsched_py.errors import InputError


def make(path: Path, recipe: Mapping[str, Any]) -> None:
    """Write the log of a recipe; it gets its name only when it is complete."""
    from batsched_py.workload.recipe import log_from_recipe
    from batsched_py.workload.swf import write_swf

    log = log_from_recipe(recipe)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".making-") as folder:
            part = Path(folder) / path.name
            write_swf(part, log)
            os.replace(part, path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
