"""Users who know what day it is: a Monday of the log is a Monday of the simulation, in both engines."""

from __future__ import annotations

import csv
import re
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import batsched_py as bp
from batsched_py import native
from batsched_py.errors import InputError, PolicyError
from batsched_py.users import Behaviour, Submission, User
from batsched_py.workload.model import Workload
from batsched_py.workload.read import read_workload
from tests.processes import ROOT, call_here

PARIS = ZoneInfo("Europe/Paris")

#: Friday, 2024-03-29; in the night to Sunday the clock goes forward.
FRIDAY = datetime(2024, 3, 29, tzinfo=PARIS)
HEADER = f"; MaxProcs: 4\n; UnixStartTime: {FRIDAY.timestamp():.0f}\n; TimeZoneString: Europe/Paris\n"


def log_at(folder: Path, *hours: float, header: str = HEADER) -> Path:
    """A log with jobs of one user so many hours after its start."""
    record = "{} {} 0 60 1 -1 -1 1 -1 -1 1 7 1 1 1 1 -1 -1\n"
    lines = [record.format(number, int(hour * 3600)) for number, hour in enumerate(hours, 1)]
    (folder / "log.swf").write_text(header + "".join(lines))
    return folder / "log.swf"


@pytest.fixture(params=["native", "python"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "native" and native.library is None:
        pytest.skip("the native engine is not in use")
    monkeypatch.setattr(native, "library", native.library if request.param == "native" else None)
    return str(request.param)


def test_time_0_is_the_first_submission_and_summer_time_counts(engine: str, tmp_path: Path) -> None:
    """Also where the first job of all is not the first of the file, or cannot be used."""
    workload = read_workload(log_at(tmp_path, 10, 34, 60), "w0")
    dates = [workload.date(job.submission_time) for job in workload.jobs]
    assert [date.isoformat() for date in dates] == [
        "2024-03-29T10:00:00+01:00",
        "2024-03-30T10:00:00+01:00",
        "2024-03-31T13:00:00+02:00",
    ]
    assert [date.strftime("%A") for date in dates] == ["Friday", "Saturday", "Sunday"]
    text = log_at(tmp_path, 10, 34, 60).read_text().splitlines(keepends=True)
    (tmp_path / "log.swf").write_text("".join([*text[:3], "3 six\n", text[5], text[4], text[3]]))
    assert read_workload(tmp_path / "log.swf", "w0").date(0.0) == dates[0]


def test_dates_of_a_table_are_those_of_its_jobs(tmp_path: Path) -> None:
    table = tmp_path / "log.csv"
    table.write_text(
        "job_number,submit,run_time,requested_processors,user\n"
        "1,2024-01-01 09:30:00,60,1,7\n"
        "2,2024-07-06 09:30:00,60,1,7\n"
    )
    workload = read_workload(table, "w0", options={"zone": "Europe/Paris"}, kind="csv")
    assert [workload.date(job.submission_time).replace(tzinfo=None) for job in workload.jobs] == [
        datetime(2024, 1, 1, 9, 30),
        datetime(2024, 7, 6, 9, 30),
    ]


def test_a_log_that_does_not_say_when_it_began_has_no_dates(engine: str, tmp_path: Path) -> None:
    log = log_at(tmp_path, 0, header="; MaxProcs: 4\n")
    workload = read_workload(log, "w0")
    assert workload.calendar is None
    with pytest.raises(
        InputError, match=f"{log}: does not say when it began, as UnixStartTime in the header"
    ):
        workload.date(0.0)


def test_who_asks_for_a_date_that_is_not_known_is_told(engine: str, tmp_path: Path) -> None:
    log = log_at(tmp_path, 0, header="; MaxProcs: 4\n")

    class Asks(Behaviour):
        name = "asks"

        def users(self, workload: Workload) -> list[User]:
            workload.date(0.0)
            return []

    with pytest.raises((InputError, PolicyError), match=r"log\.swf: does not say when it began"):
        bp.simulate(str(log), "fcfs", users=Asks())


def test_monday_is_monday(engine: str, tmp_path: Path) -> None:
    """The users of the documentation come on Monday at 8 in Paris instead of at the weekend."""
    document = (ROOT / "docs" / "users.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"```python\n(.*?)```", document, re.DOTALL))
    (tmp_path / "weekdays.py").write_text(code)
    log = log_at(tmp_path, 10, 34, 60, 100)
    prefix = tmp_path / "out"
    users = ["--users", f"{tmp_path / 'weekdays.py'}:Weekdays(rigid)"]
    code_, _, error = call_here(["run", "-w", log, "-s", "fcfs", *users, "-e", prefix])
    assert (code_, error) == (0, "")
    with Path(f"{prefix}_jobs.csv").open() as file:
        times = {row["job_id"]: float(row["submission_time"]) for row in csv.DictReader(file)}
    began = (FRIDAY + timedelta(hours=10)).timestamp()
    dates = {job: datetime.fromtimestamp(began + time, PARIS) for job, time in times.items()}
    assert {job: date.strftime("%A %H:%M") for job, date in dates.items()} == {
        "1": "Friday 10:00",
        "2": "Monday 08:00",
        "3": "Monday 08:00",
        "4": "Tuesday 05:00",
    }


class Noted(User):
    """Hands in the jobs as recorded, with the day in the note."""

    def __init__(self, workload: Workload) -> None:
        self.name = "7"
        self._workload = workload
        self._left = list(workload.jobs)

    def next_time(self) -> float:
        return self._left[0].submission_time if self._left else float("inf")

    def submit(self, now: float) -> list[Submission]:
        job, self._left = self._left[0], self._left[1:]
        day = f"day={self._workload.date(now):%A}"
        return [Submission(job, self._workload.profiles[job.profile], note=day)]

    def job_ended(self, *ended: object) -> None:
        """Nothing to do."""


class Notes(Behaviour):
    """Such users."""

    name = "notes"

    def users(self, workload: Workload) -> list[User]:
        return [Noted(workload)]


def test_the_day_is_known_while_users_submit(engine: str, tmp_path: Path) -> None:
    result = bp.simulate(str(log_at(tmp_path, 10, 34, 60, 100)), "fcfs", users=Notes())
    assert list(result.jobs["metadata"]) == ["day=Friday", "day=Saturday", "day=Sunday", "day=Tuesday"]
