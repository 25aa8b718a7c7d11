"""Runs a command as the owner of /results, so that what it writes belongs to who started the containers.

    python as_owner.py [--stay] COMMAND...

A folder of results that the engine has just made belongs to root and is empty; it is given to the owner of
/inputs. With --stay, the container goes on after its command, until it is stopped. Then files that another
container has written as root in the meantime are given to the owner of the results, too.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NoReturn

INPUTS = Path("/inputs")
RESULTS = Path("/results")


def main() -> NoReturn:
    """Find out who the owner is, and run the command."""
    stays = sys.argv[1:2] == ["--stay"]
    command = sys.argv[1 + stays :]
    user, group = owner()
    os.environ["HOME"] = "/tmp"  # this user is not known in the image
    if stays:
        stay(command, user, group)
    os.setgroups([])
    os.setgid(group)
    os.setuid(user)
    os.execvp(command[0], command)


def owner() -> tuple[int, int]:
    """User and group of the folder of results."""
    if RESULTS.stat().st_uid == 0 and not any(RESULTS.iterdir()):
        inputs = INPUTS.stat()
        os.chown(RESULTS, inputs.st_uid, inputs.st_gid)
    results = RESULTS.stat()
    return results.st_uid, results.st_gid


def stay(command: list[str], user: int, group: int) -> NoReturn:
    """Run the command; if it succeeds, wait until the container is stopped."""
    start = time.time()
    child = subprocess.Popen(command, user=user, group=group, extra_groups=[])

    def stop(number: int, _: object) -> None:
        sys.exit(child.poll() if child.poll() is not None else 128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    try:
        code = child.wait()
        while code == 0:
            signal.pause()
        sys.exit(code)
    finally:
        child.terminate()
        child.wait()
        give_away(user, group, start)


def give_away(user: int, group: int, start: float) -> None:
    """Give what root has written since the start to the owner of the results."""
    for path in RESULTS.rglob("*"):
        found = path.lstat()
        if found.st_uid == 0 and found.st_ctime >= start:
            os.chown(path, user, group, follow_symlinks=False)


if __name__ == "__main__":
    main()
