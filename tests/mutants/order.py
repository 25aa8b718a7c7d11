"""Which tests reach a fault, and the order in which they are run with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tests.mutants.faults import Fault
from tests.mutants.reached import Test


def read_tests(path: Path) -> list[Test]:
    """All that have run."""
    return [msgspec.json.decode(line, type=Test) for line in path.read_bytes().splitlines()]


#: So many tests of each file go first.
FEW = 3


def put_probes(folder: Path, faults: Sequence[Fault]) -> Mapping[Path, str]:
    """Around each expression that a fault is to change, put a probe; what the files contained."""
    contents = {fault.path: (folder / fault.path).read_text(encoding="utf-8") for fault in faults}
    for path, content in contents.items():
        pieces = []
        for number, fault in enumerate(faults):
            if fault.path == path and fault.expression is not None:
                begin, end = fault.expression
                opening = f'(__import__("builtins").__dict__.get("reached", int)({number}), '
                pieces += [(begin, 1, begin - end, number, opening), (end, 0, end - begin, -number, ")[1]")]
        for begin, *_, text in sorted(pieces, reverse=True):
            content = content[:begin] + text + content[begin:]
        (folder / path).write_text(content, encoding="utf-8")
    return contents


def in_order(tests: Sequence[Test], number: int, stem: str) -> list[Test]:
    """The tests that reach a fault, or of all tests if that is not known of any.

    A few of each file go first, the quickest; files of the fault's name go before the others, and then those
    whose tests take the least time. Tests of one file stay together: they may share what is prepared.
    """
    of_files: dict[str, list[Test]] = {}
    for test in [test for test in tests if number in test.reached] or tests:
        of_files.setdefault(test.name.partition("::")[0], []).append(test)
    for found in of_files.values():
        found.sort(key=lambda test: test.seconds)

    def turns(part: slice) -> list[Test]:
        parts = {file: found[part] for file, found in of_files.items()}
        files = sorted(
            parts, key=lambda file: (stem not in Path(file).stem, sum(each.seconds for each in parts[file]))
        )
        return [test for file in files for test in parts[file]]

    return turns(slice(FEW)) + turns(slice(FEW, None))
