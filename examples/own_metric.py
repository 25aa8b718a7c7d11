"""Metrics of your own, for the plan of a campaign or for one schedule:

metrics = ["mean_waiting_time", "own_metric.py:P90", "own_metric.py:LongWaits"]     # in a plan
batsched-py metrics out_jobs.csv --by class --metric examples/own_metric.py:P90     # on the command line
"""

from batsched_py.analysis.outcome import Outcome
from batsched_py.analysis.own_metrics import OwnMetric


class P90(OwnMetric):
    """The wait that 90 % of the jobs do not exceed."""

    name = "p90_waiting_time"
    unit = "s"

    def measure(self, outcome: Outcome) -> float | None:
        """A quantile of a column of jobs.csv, over the jobs that were executed."""
        return outcome.executed["waiting_time"].quantile(0.9)


class LongWaits(OwnMetric):
    """The share of the jobs that wait for longer than a day."""

    name = "long_waits"

    def measure(self, outcome: Outcome) -> float | None:
        """None where no job was executed: then there is no share."""
        waits = outcome.executed["waiting_time"]
        return (waits > 86400).mean() if len(waits) else None
