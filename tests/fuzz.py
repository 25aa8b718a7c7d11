"""A fuzzer: mutates messages and files, and feeds them to whatever reads such, until its time is over.

Whatever comes in, nothing but a :class:`BatschedError` may come out, within a second. What breaks this is
made as small as possible and saved in ``tests/data/corpus``, which ``tests/test_corpus.py`` feeds again in
every test run. The same seed makes the same inputs::

    make fuzz SECONDS=3600 SEED=7
"""

from __future__ import annotations

import argparse
import hashlib
import io
import logging
import resource
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

from batsched_py.analysis.schedule import read_schedule
from batsched_py.campaign.archive import import_campaign
from batsched_py.campaign.plan_file import read_plan
from batsched_py.decision.process import DecisionProcess
from batsched_py.errors import BatschedError
from batsched_py.protocol.batsim4.codec import Batsim4Codec
from batsched_py.schedulers.easy import Easy
from batsched_py.simulator.external_events import read_events
from batsched_py.simulator.platform import read_platform
from batsched_py.wire.conversation import read_conversation
from batsched_py.workload.read import read_workload

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "tests" / "data" / "golden"
CORPUS = ROOT / "tests" / "data" / "corpus"

#: Nothing may take longer, in seconds of this process.
LIMIT = 1.0

#: So many messages are fed for each file, for they are quick.
MESSAGES = 20

#: Pieces that break things.
NASTY = [
    *(
        b"",
        b"\0",
        b"\xff\xfe",
        b"\xed\xa0\x80",
        b"\x1b[2J",
        b"null",
        b"true",
        b"NaN",
        b"Infinity",
        b"-1",
        b"0",
    ),
    *(b"1e999", b"9" * 20, b"9" * 310, b"9" * 4301, b"0-99999999999", b'"', b"\\", b",", b"{}", b"[]", b"!"),
    *(b"[" * 2000, b'{"a":' * 2000, b"../../x", b"/etc/passwd", b"%s%n", b"\r\n", b"&lt;", b"<!ENTITY"),
]


def feed_messages(text: bytes, folder: Path) -> None:
    """A request to a decision process in the middle of a simulation, and the same as a reply."""
    codec = Batsim4Codec()
    process = DecisionProcess(Easy())
    for request in _opening():
        process.react(codec.decode_request(request))
    with suppress(BatschedError):
        codec.decode_reply(text)
    codec.encode_reply(process.react(codec.decode_request(text)))


@cache
def _opening() -> list[bytes]:
    conversation = read_conversation(GOLDEN / "probe_cont2" / "conversation.jsonl")
    return [exchange.request for exchange in conversation[:2]]


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes, Path], None]:
    def feed(content: bytes, folder: Path) -> None:
        path = folder / name
        path.write_bytes(content)
        read(path)

    return feed


def feed_archive(content: bytes, folder: Path) -> None:
    """An archive, which is imported into a folder that must not be left half-made."""
    path, target = folder / "x.zip", folder / "again"
    path.write_bytes(content)
    import_campaign(path, target)


#: What is fed with what, by the name of the target.
TARGETS: dict[str, Callable[[bytes, Path], None]] = {
    "message": feed_messages,
    "workload": _file("w.json", lambda path: read_workload(path, "w0")),
    "log": _file("w.swf", lambda path: read_workload(path, "w0")),
    "platform": _file("p.xml", read_platform),
    "events": _file("e.txt", lambda path: read_events(str(path), True)),
    "plan": _file("plan.toml", read_plan),
    "conversation": _file("talk.jsonl", read_conversation),
    "schedule": _file("out_jobs.csv", lambda path: read_schedule(str(path))),
    "archive": feed_archive,
}


def seeds(target: str) -> list[bytes]:
    """Good inputs to begin with."""
    match target:
        case "message":
            files = [
                GOLDEN / name / "conversation.jsonl"
                for name in ("rigid200_fcfs", "dyn_ack", "power60_sleeper")
            ]
            return [exchange.request for file in files for exchange in read_conversation(file)[:40]]
        case "workload":
            return [
                (GOLDEN / "dyn_ack" / "small12.json").read_bytes(),
                (GOLDEN / "probe_cont2" / "probe.json").read_bytes(),
            ]
        case "log":
            return [b"".join((ROOT / "workloads" / "sample.swf").read_bytes().splitlines(keepends=True)[:30])]
        case "platform":
            return [path.read_bytes() for path in sorted((ROOT / "platforms").glob("*.xml"))]
        case "events":
            return [(GOLDEN / "outage_filler" / "outage.txt").read_bytes()]
        case "plan":
            return [path.read_bytes() for path in sorted((ROOT / "plans").glob("*.toml"))]
        case "conversation":
            return [(GOLDEN / "probe_cont2" / "conversation.jsonl").read_bytes()]
        case "schedule":
            return [(GOLDEN / "dyn_ack" / "jobs.csv").read_bytes()]
        case _:
            buffer = io.BytesIO()
            with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("contents.json", '{"campaign": "x", "sha256": {"plan.toml": "0"}}')
                archive.writestr("plan.toml", "x")
            return [buffer.getvalue()]


def mutate(random: Random, content: bytes) -> bytes:
    """A few small changes."""
    text = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((0, 1, 1, 4, 20)))
        match random.randrange(5):
            case 0:
                text[start:end] = random.choice(NASTY)
            case 1:
                text[start:end] = random.randbytes(end - start)
            case 2:
                del text[start : start + random.choice((1, 10, 1000))]
            case 3:
                other = random.randrange(len(text) + 1)
                text[start:start] = text[other : other + random.choice((5, 50, 500))]
            case _:
                digits = [
                    place for place in range(start, min(start + 200, len(text))) if 48 <= text[place] < 58
                ]
                if digits:
                    text[digits[0] : digits[0] + 1] = random.choice(NASTY)
    return bytes(text)


def fault(target: str, content: bytes) -> str | None:
    """What goes wrong with an input, if anything does."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        try:
            TARGETS[target](content, Path(folder))
        except BatschedError:
            pass
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}"
        return "takes too long" if time.process_time() - began > LIMIT else None


def shrink(target: str, content: bytes, wrong: str) -> bytes:
    """A smaller input with the same fault."""
    size = len(content) // 2
    while size:
        start = 0
        while start < len(content):
            shorter = content[:start] + content[start + size :]
            if fault(target, shorter) == wrong:
                content = shorter
            else:
                start += size
        size //= 2
    return content


def main() -> int:
    """Fuzz until the time is over; 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", action="append", choices=TARGETS)
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    random = Random(options.seed)
    targets = options.target or list(TARGETS)
    inputs = {target: seeds(target) for target in targets}
    counts = dict.fromkeys(targets, 0)
    turns = [target for target in targets for _ in range(MESSAGES if target == "message" else 1)]
    found: set[tuple[str, str]] = set()
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        for target in turns:
            content = mutate(random, random.choice(inputs[target]))
            counts[target] += 1
            wrong = fault(target, content)
            if wrong is not None and (target, wrong) not in found:
                found.add((target, wrong))
                small = shrink(target, content, wrong)
                CORPUS.mkdir(exist_ok=True)
                path = CORPUS / f"{target}-{hashlib.sha256(small).hexdigest()[:12]}"
                path.write_bytes(small)
                print(f"{target}: {wrong}: saved as {path.relative_to(ROOT)}", flush=True)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"seed {options.seed}: {sum(counts.values())} inputs, {len(found)} faults, {memory} MiB at most")
    print(", ".join(f"{count} x {target}" for target, count in counts.items()))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
