"""What the page of a campaign says first, and whether it may ask code of users."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from batsched_py.campaign import html_report


def run_of(*code: str) -> Any:
    users = SimpleNamespace(name="think-time", options={}, files=code) if code else None
    workloads = SimpleNamespace(walltime_rule="as-logged")
    experiment = SimpleNamespace(
        scenario=SimpleNamespace(workloads=workloads), actors=SimpleNamespace(users=users)
    )
    return SimpleNamespace(axes={"log": "sample"}, manifest=SimpleNamespace(experiment=experiment))


def test_logs_that_are_not_there_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_report, "_files", lambda run: ("sample.swf",))
    known: Any = {("sample.swf",): None}
    assert html_report._note([run_of()], 2, known, True).startswith("1 of 2 runs are finished. Walltimes: ")
    assert "for want of the log sample" in html_report._note([run_of()], 2, {}, True)


def test_users_that_are_code_are_asked_only_if_they_are_trusted() -> None:
    def sessions(run: Any, trust: bool) -> object:
        return html_report._delimiter(run.manifest.experiment, trust)

    assert sessions(run_of("own.py"), False) is None
    assert sessions(run_of("own.py"), True) is not None
    assert sessions(run_of(), True) is None
