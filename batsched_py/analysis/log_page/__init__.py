"""A log on one page: what `batsched-py describe -o` writes."""

from batsched_py.analysis.log_page.page import write_log_page

__all__ = ["write_log_page"]
