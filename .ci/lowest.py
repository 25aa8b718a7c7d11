"""Print the lowest version of everything that ``pyproject.toml`` asks for, as constraints for pip."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

#: A name, perhaps with extras, and the lowest version.
ASKED = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^\]]*\])?\s*>=\s*(?P<version>[0-9.]+)")


def lowest(project: Path) -> list[str]:
    """One for each package that is used at run time; tools of developers may be as new as they are."""
    table = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    runtime = [group for name, group in table["optional-dependencies"].items() if name not in ("dev", "docs")]
    groups = [table["dependencies"], *runtime]
    asked = {
        found["name"]: found["version"] for group in groups for each in group if (found := ASKED.match(each))
    }
    return [f"{name}=={version}" for name, version in sorted(asked.items())]


if __name__ == "__main__":
    print("\n".join(lowest(Path(__file__).parents[1] / "pyproject.toml")))
