"""The report: one HTML page that needs nothing else, neither the network nor a server."""

from batsched_py.analysis.report.page import Report, write_report
from batsched_py.analysis.report.series import Subject

__all__ = ["Report", "Subject", "write_report"]
