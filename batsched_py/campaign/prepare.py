"""Getting all logs of a plan: those that can be downloaded, and those that are to be made."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from batsched_py.campaign.fetch import fetch
from batsched_py.campaign.made_logs import make
from batsched_py.campaign.plan import MissingLog, Plan
from batsched_py.errors import InputError

#: Somebody to be told how many logs are made, and of how many, as long as that takes.
Making = Callable[[], AbstractContextManager[Callable[[int, int], None]]]


def prepared(read: Callable[[], Plan], may_fetch: Callable[[MissingLog], bool], making: Making) -> Plan:
    """A plan of which all logs are here; it is read again when some were not.

    What the parts of a log are is known when it is here, so others may then be wanted.
    """
    plan = read()
    while plan.missing or plan.unmade:
        for log in plan.missing:
            if not may_fetch(log):
                raise InputError(
                    f"{log.path.name} is not here; say where it is by --logs DIR, or download it by --yes"
                )
            fetch(log)
        with making() as moved:
            for number, unmade in enumerate(plan.unmade):
                moved(number, len(plan.unmade))
                make(unmade.path, unmade.recipe)
        plan = read()
    return plan
