"""What goes wrong with an input, and the smallest input with which the same goes wrong."""

from __future__ import annotations

import hashlib
import resource
import signal
import time
import traceback
from contextlib import suppress
from pathlib import Path
from types import FrameType

from batsched_py.errors import BatschedError
from tests.fuzz.targets import ROOT, TARGETS

CORPUS = ROOT / "tests" / "data" / "corpus"

#: Nothing may take longer, in seconds of this process, ...
SECONDS = 1.0

#: ... nor need more memory, in MiB of this process with all that it has loaded.
MEMORY = 300


class _TooLong(BaseException):
    """Raised wherever the input is being read."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _TooLong


def fault(target: str, content: bytes, folder: Path) -> str | None:
    """What goes wrong with an input, if anything does; it may leave things in the folder of its target."""
    folder = folder / target
    folder.mkdir(exist_ok=True)
    former = signal.signal(signal.SIGPROF, _stop)
    began = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, 5 * SECONDS)
    try:
        TARGETS[target].feed(content, folder)
    except BatschedError:
        pass
    except KeyboardInterrupt:
        raise
    except _TooLong:
        return "takes too long"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, former)
    if time.process_time() - began > SECONDS:
        return "takes too long"
    if memory() > MEMORY:
        _forget_memory()
        return "takes too much memory"
    return None


def memory() -> int:
    """How much this process needed at most so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _forget_memory() -> None:
    """Let the most be counted from now on, where Linux can do that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def shrink(target: str, content: bytes, wrong: str, folder: Path) -> bytes:
    """A smaller input with the same fault."""
    size = len(content) // 2
    while size:
        start = 0
        while start < len(content):
            shorter = content[:start] + content[start + size :]
            if fault(target, shorter, folder) == wrong:
                content = shorter
            else:
                start += size
        size //= 2
    return content


def save(target: str, content: bytes, corpus: Path = CORPUS) -> Path:
    """Keep an input under the name of its target."""
    corpus.mkdir(exist_ok=True)
    path = corpus / f"{target}-{hashlib.sha256(content).hexdigest()[:12]}"
    path.write_bytes(content)
    return path
