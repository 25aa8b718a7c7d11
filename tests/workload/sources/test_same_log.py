"""One log, written in every format and resolution that is read, gives the same schedule in all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow
import pyarrow.parquet
import pytest

import batsched_py as bp
from batsched_py.workload.sources import read_log, write_log
from batsched_py.workload.swf.log import SwfLog

BEGIN = 1_700_000_000
UNITS = ("s", "ms", "us", "ns")


@pytest.fixture(scope="module")
def log(root: Path) -> SwfLog:
    """2,000 jobs of the sample, in seconds since 1970."""
    return read_log(root / "workloads/sample.swf").select(np.arange(2000))


@pytest.fixture(scope="module")
def recorded(log: SwfLog) -> pd.DataFrame:
    """The same as a table of moments."""
    start = BEGIN + log.submit + log.wait
    return pd.DataFrame(
        {
            "job_number": log.job_number,
            "created": BEGIN + log.submit,
            "began": start,
            "done": start + log.run_time,
            "limit": log.requested_time / 60,
            "cores": log.processors,
            "user": log.user,
        }
    )


@pytest.fixture(scope="module")
def schedule(log: SwfLog, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., bytes]:
    folder = tmp_path_factory.mktemp("schedules")

    def run(path: Path, **options: str) -> bytes:
        settings = {"hosts": 64, "walltime": "at-least-run-time"} | (
            {"input_option": [f"{key}={value}" for key, value in options.items()]} if options else {}
        )
        bp.simulate(path, "easy", export=folder / "x", **settings)
        return (folder / "x_jobs.csv").read_bytes()

    return run


@pytest.fixture(scope="module")
def expected(log: SwfLog, schedule: Callable[..., bytes], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("log") / "log.swf"
    write_log(path, log)
    return schedule(path)


COLUMNS = "submit:created,start:began,end:done,requested_time:limit/min,allocated_processors:cores"
MOMENTS = ("created", "began", "done")


@pytest.mark.parametrize("ending", ["swf.gz", "csv", "parquet", "json", "batsim5.json", "sacct", "pbs"])
def test_in_every_format_that_keeps_all_of_it(
    log: SwfLog, schedule: Callable[..., bytes], expected: bytes, tmp_path: Path, ending: str
) -> None:
    write_log(tmp_path / f"log.{ending}", log)
    assert schedule(tmp_path / f"log.{ending}") == expected


@pytest.mark.parametrize(("ending", "nb_kept"), [("gwf", 16), ("swf", 18)])
def test_in_formats_with_more_fields_that_are_only_read(
    log: SwfLog, schedule: Callable[..., bytes], expected: bytes, tmp_path: Path, ending: str, nb_kept: int
) -> None:
    """Logs of the Grid Workloads Archive have 29 fields, that of Frontier 21, with sizes in the last one."""
    path = tmp_path / f"log.{ending}"
    write_log(tmp_path / "plain.swf", log)
    with path.open("w") as file:
        for line in (tmp_path / "plain.swf").read_text().splitlines():
            fields = line.split()
            if line.startswith(";"):
                continue
            if ending == "gwf":
                fields[nb_kept:] = ["-1"] * 13
            else:
                fields += ["0", "-1", f"frontier:excl:{fields[4]}x1"]
                fields[4] = "1"
            file.write(" ".join(fields) + "\n")
    assert schedule(path) == expected


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("zone", [None, "Europe/Stockholm", "UTC"])
@pytest.mark.parametrize("writer", ["pandas", "pyarrow", "polars"])
def test_dates_of_every_resolution(
    recorded: pd.DataFrame,
    schedule: Callable[..., bytes],
    expected: bytes,
    tmp_path: Path,
    unit: str,
    zone: str | None,
    writer: str,
) -> None:
    table, path = recorded.copy(), tmp_path / "log.parquet"
    for name in MOMENTS:
        moments = pd.to_datetime(table[name], unit="s")
        moments = moments if zone is None else moments.dt.tz_localize("UTC").dt.tz_convert(zone)
        table[name] = moments.dt.as_unit(unit)
    if writer == "pandas":
        table.to_parquet(path)
    elif writer == "pyarrow":
        pyarrow.parquet.write_table(pyarrow.Table.from_pandas(table, preserve_index=False), path)
    else:
        polars.from_pandas(table).write_parquet(path)
    assert schedule(path, columns=COLUMNS) == expected


@pytest.mark.parametrize(
    ("unit", "factor"), [("ms", 1e3), ("s", 1), ("min", 1 / 60), ("h", 1 / 3600), ("d", 1 / 86400)]
)
def test_numbers_in_every_unit(
    recorded: pd.DataFrame,
    schedule: Callable[..., bytes],
    expected: bytes,
    tmp_path: Path,
    unit: str,
    factor: float,
) -> None:
    table = recorded.assign(
        created=recorded["created"] - BEGIN,
        run=np.round(recorded["done"] - recorded["began"], 6) * factor,
        limit=recorded["limit"] * 60 * factor,
    ).drop(columns=["began", "done"])
    table.to_parquet(tmp_path / "log.parquet")
    columns = f"submit:created,run_time:run/{unit},requested_time:limit/{unit},allocated_processors:cores"
    found = read_log(tmp_path / "log.parquet", options={"columns": columns})
    assert np.allclose(found.run_time, recorded["done"] - recorded["began"], rtol=1e-12)
    if factor >= 1:
        assert schedule(tmp_path / "log.parquet", columns=columns) == expected


@pytest.mark.parametrize("form", ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S+00:00"])
def test_dates_as_text(
    recorded: pd.DataFrame, schedule: Callable[..., bytes], expected: bytes, tmp_path: Path, form: str
) -> None:
    table = recorded.copy()
    for name in MOMENTS:
        table[name] = pd.to_datetime(table[name], unit="s").dt.strftime(form)
    table.to_csv(tmp_path / "log.csv", index=False)
    assert schedule(tmp_path / "log.csv", columns=COLUMNS) == expected


def test_unix_times_as_numbers(
    recorded: pd.DataFrame, schedule: Callable[..., bytes], expected: bytes, tmp_path: Path
) -> None:
    recorded.to_csv(tmp_path / "log.csv", index=False)
    assert schedule(tmp_path / "log.csv", columns=COLUMNS) == expected
    log = read_log(tmp_path / "log.csv", options={"columns": COLUMNS})
    assert log.header["UnixStartTime"] == str(int(recorded["created"].iloc[0]))


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow"])
def test_a_table_in_memory(recorded: pd.DataFrame, log: SwfLog, form: str) -> None:
    table = recorded.copy()
    for name in MOMENTS:
        table[name] = pd.to_datetime(table[name], unit="s").dt.as_unit("us")
    given = {"pandas": lambda: table, "polars": lambda: polars.from_pandas(table),
             "pyarrow": lambda: pyarrow.Table.from_pandas(table)}[form]()  # fmt: skip
    columns = {
        "submit": "created",
        "start": "began",
        "end": "done",
        "requested_time": "limit",
        "allocated_processors": "cores",
    }
    read = bp.read_log(given, columns=columns, units={"requested_time": "min"})
    assert read.columns.submit.tolist() == (log.submit - log.submit[0]).tolist()
    for name in ("run_time", "wait", "user", "requested_time"):
        assert np.allclose(getattr(read.columns, name), getattr(log, name)), name
    back = bp.read_log({"pandas": lambda: read.jobs, "polars": lambda: polars.DataFrame(read),
                        "pyarrow": lambda: pyarrow.table(read)}[form]())  # fmt: skip
    assert back.columns.run_time.tolist() == read.columns.run_time.tolist()
    assert back.columns.submit.tolist() == read.columns.submit.tolist()


def test_days_are_dates(tmp_path: Path) -> None:
    table = pyarrow.table(
        {
            "submit": pyarrow.array([19000, 19001], pyarrow.date32()),
            "run_time": [1, 2],
            "requested_processors": [1, 1],
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "days.parquet")
    log = read_log(tmp_path / "days.parquet")
    assert log.submit.tolist() == [0, 86400]
    assert log.header["UnixStartTime"] == str(19000 * 86400)
