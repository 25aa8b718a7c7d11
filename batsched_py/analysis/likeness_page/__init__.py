"""A log beside logs of models on one page: what `batsched-py compare -o` writes."""

from batsched_py.analysis.likeness_page.page import write_likeness_page

__all__ = ["write_likeness_page"]
