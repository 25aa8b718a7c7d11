"""Getting a log from an archive on the web, and making sure that it is the right one."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from urllib.error import URLError
from urllib.request import urlopen

from batsched_py.campaign.plan import MissingLog
from batsched_py.errors import InputError

#: How long a server may be silent, in seconds.
PATIENCE = 30.0


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
