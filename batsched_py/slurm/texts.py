"""Text files, read to their end or reported."""

from __future__ import annotations

from pathlib import Path

from batsched_py.input_files import read_input
from batsched_py.slurm.findings import Findings


def read_text(path: Path, findings: Findings) -> str:
    """The text in a file; nothing if it cannot be read."""
    try:
        return read_input(path).decode("utf-8-sig")
    except OSError as error:
        findings.mistake(str(path), f"cannot be read ({error.strerror})")
    except UnicodeDecodeError as error:
        findings.mistake(f"{path}, byte {error.start}", "is no text in UTF-8")
    return ""
