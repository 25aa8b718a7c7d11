"""What is logged is shown as lines that look like the errors of the command."""

from __future__ import annotations

import logging
from typing import TextIO

from batsched_py.blame import is_installed
from batsched_py.protocol.shown import harmless


class OneLine(logging.Formatter):
    """What is logged looks like the errors of the command."""

    def format(self, record: logging.LogRecord) -> str:
        """The line for a record."""
        return f"batsched-py: {record.levelname.lower()}: {harmless(record.getMessage())}"


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Whether a record is ours, of a policy or of users that take part, or a warning; libraries log much."""
    return record.levelno >= logging.WARNING or not is_installed(record.pathname)


def show_what_is_logged(stream: TextIO, verbose: bool) -> None:
    """Show warnings, or also what is done."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(OneLine())
    logging.basicConfig(handlers=[handler])
    if verbose:
        handler.addFilter(_is_of_interest)
        logging.getLogger().setLevel(logging.DEBUG)
