"""The report: one HTML page that needs nothing else, neither the network nor a server."""

from batsched_py.analysis.report.page import RecordedLog, Report, write_report
from batsched_py.analysis.report.series import Subject

__all__ = ["RecordedLog", "Report", "Subject", "write_report"]
