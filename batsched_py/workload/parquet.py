"""Reading a table in Parquet that may have been made to fill memory; needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from batsched_py.errors import InputError
from batsched_py.workload.lines import HARMLESS, HIGHEST_RATIO

#: What a value of a column takes in memory.
_BYTES: Final = 8


def read_parquet(path: Path, rows: int | None = None) -> Iterator[Any]:
    """The table in a file, if it is not much larger than the file; at most so many rows at a time.

    A few bytes can stand for millions of equal rows, or of equal texts. So each text is read once, and all
    sizes are known before memory is taken.
    """
    from pyarrow.parquet import ParquetFile

    limit = max(HARMLESS, HIGHEST_RATIO * path.stat().st_size)
    schema = ParquetFile(path).schema_arrow
    texts = [field.name for field in schema if _is_text(path, field)]
    with ParquetFile(path, read_dictionary=texts) as file:
        _check_size(path, _BYTES * file.metadata.num_rows * max(1, len(schema)), limit)
        length = 0
        for table in _tables(file, rows):
            length += sum(_length_of_texts(table[name]) for name in texts)
            _check_size(path, length, limit)
            yield table.cast(schema)


def _tables(file: Any, rows: int | None) -> Iterator[Any]:
    if rows is None:
        yield file.read()
        return
    from pyarrow import Table

    for batch in file.iter_batches(rows):
        yield Table.from_batches([batch])


def _is_text(path: Path, field: Any) -> bool:
    from pyarrow import types

    kind = field.type.value_type if types.is_dictionary(field.type) else field.type
    if types.is_nested(kind):
        raise InputError(f"{path}: column {field.name!r} has several values in a row; leave it out")
    return bool(
        types.is_string(kind) or types.is_large_string(kind)
        or types.is_binary(kind) or types.is_large_binary(kind)
    )  # fmt: skip


def _length_of_texts(column: Any) -> int:
    """How many bytes all texts of a column have, of which each is kept once."""
    from pyarrow import compute

    return sum(
        compute.sum(compute.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        for chunk in column.chunks
    )


def _check_size(path: Path, size: int, limit: int) -> None:
    if size > limit:
        raise InputError(
            f"{path}: unpacks to more than {limit:,} bytes, which is more than {HIGHEST_RATIO} times its "
            "size; if it is a log nevertheless, write it as CSV"
        )
