"""Getting all logs of a plan: those that can be downloaded, and those that are to be made."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.error import URLError
from urllib.request import urlopen

from batsched_py.campaign.made_logs import make
from batsched_py.campaign.plan import MissingLog, Plan
from batsched_py.errors import InputError
from batsched_py.trust import code_named_in

#: How long a server may be silent, in seconds.
PATIENCE = 30.0

#: A context that gives a function to report how many logs are made, and of how many.
Making = Callable[[], AbstractContextManager[Callable[[int, int], None]]]


def prepared(read: Callable[[], Plan], may_fetch: Callable[[MissingLog], bool], making: Making) -> Plan:
    """A plan of which all logs are here; it is read again when some were not.

    What the parts of a log are is known when it is here, so others may then be wanted.
    """
    plan = read()
    while plan.missing or plan.unmade:
        for log in plan.missing:
            if not may_fetch(log):
                raise InputError(
                    f"{log.path.name} is not here; say where it is by --logs DIR, or download it by --yes"
                )
            fetch(log)
        with making() as moved, code_named_in(plan.file, plan.trusted):
            for number, unmade in enumerate(plan.unmade):
                moved(number, len(plan.unmade))
                make(unmade.path, unmade.recipe)
        plan = read()
    return plan


def fetch(log: MissingLog) -> None:
    """Download a log; it gets its name only if its checksum is the one that the plan gives."""
    try:
        log.path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=log.path.parent, prefix=log.path.name, suffix=".part") as part:
            with urlopen(log.url, timeout=PATIENCE) as answer:
                shutil.copyfileobj(answer, part)
            part.seek(0)
            digest = hashlib.file_digest(part, "sha256").hexdigest()
            if log.sha256 not in (None, digest):
                raise InputError(f"{log.url}: is not the log that the plan wants: its checksum is {digest}")
            os.chmod(part.name, 0o644)
            os.link(part.name, log.path)
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise InputError(f"{log.url}: cannot be downloaded to {log.path.parent}: {reason}") from None
