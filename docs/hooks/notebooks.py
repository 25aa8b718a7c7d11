"""Notebooks as pages: each is executed when the site is built, and shown with what comes out."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

#: How long a cell may take, in seconds.
PATIENCE = 300


def on_files(files: Files, config: Any) -> Files:
    """Add a page for each notebook, and a file for each of its pictures."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        text, pictures = as_page(executed(path), path.stem)
        files.append(File.generated(config, f"examples/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"examples/{name}", content=content))
    return files


def executed(path: Path) -> Any:
    """A notebook with the outputs of all its cells; a cell that fails raises an error."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=PATIENCE, resources={"metadata": {"path": ROOT}}).execute()
    return notebook


def as_page(notebook: Any, name: str) -> tuple[str, dict[str, bytes]]:
    """A notebook in Markdown, and its pictures by the names of their files."""
    parts, pictures = [], {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            shown = output.get("data", {})
            if "image/png" in shown:
                file = f"{name}-{len(pictures) + 1}.png"
                pictures[file] = base64.b64decode(shown["image/png"])
                parts.append(f"![What the cell draws]({file})")
            elif "text/html" in shown:
                parts.append(_on_one_line(shown["text/html"]))
            elif text := shown.get("text/plain", output.get("text", "")).rstrip():
                parts.append(f"```text\n{text}\n```")
    parts.append(f"This page is the notebook `examples/{name}.ipynb`, executed.")
    return "\n\n".join(parts) + "\n", pictures


def _on_one_line(html: str) -> str:
    """Tables in the style of the site, in a block that Markdown leaves alone."""
    bare = re.sub(r"<style.*?</style>", "", html, flags=re.DOTALL)
    return " ".join(re.sub(r"<table[^>]*>", "<table>", bare).split())
