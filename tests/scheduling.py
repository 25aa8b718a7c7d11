"""What tests of our own policies need beside the kit that tests any."""

from __future__ import annotations

import io
from threading import Thread

import pandas as pd

from batsched_py.decision.process import DecisionProcess
from batsched_py.decision.server import Server
from batsched_py.schedulers import SCHEDULERS, Scheduler
from batsched_py.simulator.decision_side import RemoteProcess
from batsched_py.simulator.platform import Platform
from batsched_py.testing import schedule_of
from batsched_py.wire.sockets import AnsweringEnd, AskingEnd
from batsched_py.workload.model import Workload
from tests.processes import PATIENCE


def policy(name: str, **options: str) -> Scheduler:
    """A policy of the registry."""
    return SCHEDULERS.create(name, options)


def over_zeromq(scheduler: Scheduler, workload: Workload, hosts: int | Platform) -> pd.DataFrame:
    """The schedule that a policy makes behind a socket."""
    with AnsweringEnd("tcp://127.0.0.1:*", PATIENCE) as here:
        thread = Thread(target=Server(here, lambda: DecisionProcess(scheduler)).serve)
        thread.start()
        with AskingEnd(here.endpoint, PATIENCE) as there:
            schedule = schedule_of(RemoteProcess(there), workload, hosts)
        thread.join(PATIENCE)
    return schedule


def text(schedule: pd.DataFrame) -> str:
    """A schedule to compare with another."""
    buffer = io.StringIO()
    schedule.to_csv(buffer)
    return buffer.getvalue()
