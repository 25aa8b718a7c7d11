"""Pages that are kept elsewhere in the repository, and links from pages to files that are no pages."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]

#: Where each of these pages is kept.
OUTSIDE = {
    "changelog.md": "CHANGELOG.md",
    "containers.md": "docker/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "nix.md": "nix/README.md",
}

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#:]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for page, source in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Point links to where pages are now; what is no page is named instead."""
    kept = OUTSIDE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    moved = {source: name for name, source in OUTSIDE.items()}

    def link(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        file = posixpath.normpath(posixpath.join(posixpath.dirname(kept), target))
        inside = moved.get(file, file.removeprefix("docs/"))
        if files.get_file_from_path(inside) is None:
            return text
        return f"[{text}]({posixpath.relpath(inside, posixpath.dirname(page.file.src_uri) or '.')}{anchor})"

    return _LINK.sub(link, markdown)
