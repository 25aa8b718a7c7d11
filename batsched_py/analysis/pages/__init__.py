"""HTML pages that need no other file and no network: the style and the scripts that all of them share."""

from batsched_py.analysis.pages.page import fill, write_figures_page, write_page

__all__ = ["fill", "write_figures_page", "write_page"]
