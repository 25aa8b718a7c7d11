"""A session rule of your own: a working day, which begins at four in the morning.

batsched-py run -w LOG.swf -s easy --users think-time --sessions examples/session_rule.py:WorkingDay
batsched-py sessions LOG.swf --delimit examples/session_rule.py:WorkingDay
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from batsched_py.workload.sessions import SessionRule

DAY = 86400
FOUR = 4 * 3600


class WorkingDay(SessionRule):
    """A job opens a session if it is the user's first of a day."""

    def opens(self, submissions: NDArray[Any], finishes: NDArray[Any]) -> NDArray[Any]:
        """Whether each job but the first comes on another day than the one before."""
        return np.diff((submissions - FOUR) // DAY) > 0
