"""Putting a page together."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import msgspec

from batsched_py.analysis.pages.figure import Figure
from batsched_py.errors import InputError

_ASSETS: Final = files("batsched_py.analysis.pages") / "assets"

#: The scripts that all pages share, in the order in which they build on each other.
_SCRIPTS: Final = tuple(_ASSETS / f"{part}.js" for part in ("tools", "scale", "plot"))


def write_page(
    path: str | Path, title: str, body: str, data: Any, style: Traversable, scripts: Sequence[Traversable]
) -> None:
    """Write a page with this HTML in its body.

    ``data`` is what the scripts draw. The page's own style and scripts come after the shared ones.
    """
    parts = {
        "title": html.escape(title),
        "style": "\n".join(map(_text, (_ASSETS / "page.css", style))),
        "body": body,
        "data": json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
        "script": "\n".join(map(_text, (*_SCRIPTS, *scripts))),
    }
    content = fill(_ASSETS / "page.html", parts)
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(content, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def write_figures_page(
    path: str | Path, title: str, header: str, sections: str, figures: Mapping[str, Figure | None]
) -> None:
    """Write a page with a header and sections, in whose places the figures are drawn."""
    body = f"<header>\n{header}\n</header>\n<main>\n{sections}\n</main>"
    data = msgspec.to_builtins(figures)
    write_page(path, title, body, data, _ASSETS / "figures.css", [_ASSETS / "figures.js"])


def fill(template: Traversable, parts: Mapping[str, str]) -> str:
    """A text with ``{{name}}`` replaced by the part of that name."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _text(template))


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")
