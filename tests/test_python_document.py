"""What Python is offered: the list of public names, and the document that explains them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import batsched_py as bp

ROOT = Path(__file__).resolve().parents[1]
DOCUMENT = (ROOT / "docs" / "python.md").read_text()
EXAMPLES = re.findall(r"^```python\n(.*?)^```", DOCUMENT, flags=re.MULTILINE | re.DOTALL)


def test_every_public_name_is_there_and_listed() -> None:
    assert dir(bp) == sorted(bp.__all__) == bp.__all__
    for name in bp.__all__:
        assert getattr(bp, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        bp.nothing  # noqa: B018


def test_the_document_explains_the_public_names_and_no_others() -> None:
    rows = re.findall(r"^\| (.*?) \|", DOCUMENT, flags=re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(bp.__all__)
    assert set(re.findall(r"\bbp\.(\w+)", DOCUMENT)) <= set(bp.__all__)


def test_it_names_every_change_and_every_option_of_a_campaign() -> None:
    from batsched_py.cli.campaign import run_command
    from batsched_py.workload.changes import CHANGES

    assert {f"`{name}`" for name in CHANGES.all()} <= set(re.findall(r"`\w+`", DOCUMENT))
    words = {str(max(each.opts, key=len)).lstrip("-").replace("-", "_") for each in run_command.params}
    assert {f"`{word}`" for word in words - {"plan_file", "logs", "live", "trust"}} <= set(
        re.findall(r"`\w+`", DOCUMENT)
    )


def test_its_examples_run(tmp_path: Path) -> None:
    """As one script, in a checkout."""
    for folder in ("workloads", "platforms", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    script = "\n".join(EXAMPLES)
    body = "".join(f"    {line}\n" for line in script.splitlines())
    (tmp_path / "script.py").write_text(f'if __name__ == "__main__":\n{body}')
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mean bounded slowdown" in done.stdout


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys; import batsched_py; print(*(m for m in sys.modules if m.startswith('batsched_py.')))"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.stdout.strip() == ""
