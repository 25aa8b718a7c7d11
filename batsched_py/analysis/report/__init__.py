"""The report: one HTML page that needs nothing else, neither the network nor a server."""

from batsched_py.analysis.report.page import Column, Report, Row, write_report

__all__ = ["Column", "Report", "Row", "write_report"]
