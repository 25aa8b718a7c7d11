"""Two executions of one workload, compared job by job."""

from batsched_py.analysis.executions.differences import Executions, compare_executions

__all__ = ["Executions", "compare_executions"]
