"""Print what the image installs, with exact versions and the hashes of their files, for pip.

    python .ci/constraints.py > docker/constraints.txt

That is what builds the package, what it depends on, and the extras of the image. pip finds the versions, for
the Python that runs this; PyPI says which wheels each has, so the list is good for other processors, too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any
from urllib.request import urlopen

#: What the image has beside what is always needed.
EXTRAS = ("campaign", "plots")

ABOUT = "# Made by `make constraints`. The image installs these files and no others.\n"


def requirements(project: Path) -> list[str]:
    """What is asked for, as ``pyproject.toml`` says it."""
    said = tomllib.loads(project.read_text(encoding="utf-8"))
    wanted = {*said["build-system"]["requires"], *said["project"]["dependencies"]}
    for extra in EXTRAS:
        wanted.update(said["project"]["optional-dependencies"][extra])
    return sorted(wanted)


def versions(wanted: list[str]) -> dict[str, str]:
    """The version of each package that pip would install, dependencies of dependencies included."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    command += ["--disable-pip-version-check", "--only-binary", ":all:", "--report", "-", *wanted]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found = [each["metadata"] for each in json.loads(done.stdout)["install"]]
    return {each["name"].lower().replace("_", "-"): each["version"] for each in found}


def hashes(name: str, version: str) -> list[str]:
    """Those of the wheels of a version that Debian can use, whatever its processor and Python."""
    with urlopen(f"https://pypi.org/pypi/{name}/json", timeout=60) as answer:
        files: list[dict[str, Any]] = json.load(answer)["releases"][version]
    wheels = [file for file in files if file["filename"].endswith(".whl")]
    usable = [file for file in wheels if re.search("-any|manylinux", file["filename"])]
    return sorted(file["digests"]["sha256"] for file in usable)


def lines(found: dict[str, str]) -> list[str]:
    """A list of requirements as pip reads it."""
    return [
        " \\\n    ".join([f"{name}=={version}", *(f"--hash=sha256:{each}" for each in hashes(name, version))])
        for name, version in sorted(found.items())
    ]


if __name__ == "__main__":
    asked = requirements(Path(__file__).resolve().parents[1] / "pyproject.toml")
    print(ABOUT + "\n".join(lines(versions(asked))))
