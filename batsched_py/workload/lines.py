"""The lines of a file, plain or compressed with gzip, piece by piece, however large it is.

A file may be malicious: a few kilobytes of gzip can unpack to more than any memory holds. So the length of
a line and the size that a compressed file unpacks to are limited, and checked before memory is taken;
those of a table in Parquet as well.
"""

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from math import inf
from os.path import isdir, isfile
from pathlib import Path
from typing import Any, BinaryIO, Final

from batsched_py.errors import InputError

#: Bytes that are read at a time by default.
PIECE = 1 << 20

#: Bytes in a line; a record of a log has a hundred.
LONGEST_LINE = 1 << 20

#: How many times its size a compressed file may unpack to. Logs are 6 to 9 times larger than compressed, and
#: one whose records are all alike is 40 times larger; gzip itself reaches 1,000.
HIGHEST_RATIO = 200

#: Bytes that any compressed file may unpack to.
HARMLESS = 1 << 26

#: Fields in a record of Frontier's log; the Standard Workload Format has 18.
_MORE_FIELDS = 21

#: How many bad lines of a file a message names.
SHOWN_BAD_LINES = 3


def check_is_file(path: str | Path) -> Path:
    """The path, if there is a file."""
    path = Path(path)
    if isdir(path):
        raise InputError(f"{path}: is a folder; give the log in it")
    if not isfile(path):
        raise InputError(f"{path}: there is no such file")
    return path


def read_lines(path: Path, size: int = PIECE) -> Iterator[bytes]:
    """Pieces of a file of about this size, each of which ends with the end of a line."""
    try:
        with path.open("rb") as file:
            is_compressed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            limit = max(HARMLESS, HIGHEST_RATIO * os.fstat(file.fileno()).st_size) if is_compressed else inf
            with _unpacked(file) if is_compressed else nullcontext(file) as unpacked:
                rest, nb_bytes = b"", 0
                while piece := unpacked.read(size):
                    nb_bytes += len(piece)
                    if nb_bytes > limit:
                        raise _too_large(path, limit, "gunzip it first")
                    end = piece.rfind(b"\n") + 1
                    if end:
                        yield rest + piece[:end]
                        rest = b""
                    rest += piece[end:]
                    if len(rest) > LONGEST_LINE:
                        what = f"a line of more than {LONGEST_LINE:,} bytes, as no log has"
                        raise InputError(f"{path}: has {what}")
                if rest:
                    yield rest
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _unpacked(file: BinaryIO) -> BinaryIO:
    import gzip

    return gzip.open(file)  # type: ignore[return-value]


def has_more_fields(path: Path) -> bool:
    """Whether the first record of a log has as many fields as those of Frontier's."""
    if not isfile(path):
        return False
    lines = (line for piece in read_lines(path) for line in piece.split(b"\n"))
    first = next((line for line in lines if line.strip() and not line.startswith(b";")), b"")
    return len(first.split()) == _MORE_FIELDS


def bad_lines_text(faults: Mapping[int, str], count: int) -> str:
    """How many lines are bad, and what is wrong with the first of them.

    >>> bad_lines_text({7: "'x' is not a number", 3: "1 field instead of 2"}, count=2)
    "2 bad lines (line 3: 1 field instead of 2; line 7: 'x' is not a number)"
    """
    shown = [f"line {line}: {faults[line]}" for line in sorted(faults)[:SHOWN_BAD_LINES]]
    if count > len(shown):
        shown.append("...")
    return f"{count} bad line{'s' if count > 1 else ''} ({'; '.join(shown)})"


#: What a value of a column takes in memory.
_BYTES: Final = 8


def read_parquet(path: Path, rows: int | None = None) -> Iterator[Any]:
    """The table in a file, if it is not much larger than the file; at most so many rows at a time.

    A few bytes can stand for millions of equal rows, or of equal texts. So each text is read once, and all
    sizes are known before memory is taken. Columns with several values in a row are left out.
    """
    import pyarrow
    from pyarrow import compute
    from pyarrow.parquet import ParquetFile

    limit = max(HARMLESS, HIGHEST_RATIO * path.stat().st_size)
    whole = ParquetFile(path).schema_arrow
    schema = pyarrow.schema(
        [each for each in whole if not pyarrow.types.is_nested(each.type)], whole.metadata
    )
    texts = [field.name for field in schema if _is_text(field)]
    with ParquetFile(path, read_dictionary=texts) as file:
        _check_size(path, _BYTES * file.metadata.num_rows * max(1, len(schema)), limit)
        if rows is None:
            tables = iter([file.read(schema.names)])
        else:
            batches = file.iter_batches(rows, columns=schema.names)
            tables = (pyarrow.Table.from_batches([batch]) for batch in batches)
        length = 0
        for table in tables:
            for chunk in (chunk for name in texts for chunk in table[name].chunks):
                each = compute.binary_length(chunk.dictionary)  # as each text is kept once
                length += compute.sum(each.take(chunk.indices)).as_py() or 0
            _check_size(path, length, limit)
            yield table.cast(schema)


def _is_text(field: Any) -> bool:
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    return bool(
        types.is_string(kind) or types.is_large_string(kind)
        or types.is_binary(kind) or types.is_large_binary(kind)
    )  # fmt: skip


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise _too_large(path, limit, "write it as CSV")


def _too_large(path: Path, limit: float, advice: str) -> InputError:
    return InputError(
        f"{path}: unpacks to more than {limit:,} bytes, which is more than {HIGHEST_RATIO} times its size; "
        f"if it is a log nevertheless, {advice}"
    )
