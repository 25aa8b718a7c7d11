"""Makes the playground: a page that simulates in the browser, as static files in a folder.

    python playground/build.py [FOLDER]

Its Python is Pyodide's, from npm; the package is a wheel without the native engine. Nothing comes from
elsewhere when the page is opened, so any web server will do.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TARGET = Path("out", "playground")

PYODIDE = "pyodide-314.0.7.tgz"
PYODIDE_SHA256 = "66b7949e5a0cba2250b586d7e368bf12fb482800748d182c4618254b685ffaa0"
PYODIDE_FILES = (
    "pyodide.mjs",
    "pyodide.asm.mjs",
    "pyodide.asm.wasm",
    "python_stdlib.zip",
    "pyodide-lock.json",
)

#: The libraries that a simulation needs, for the Python of that Pyodide.
LIBRARIES = ("click==8.5.1", "msgspec==0.22.0")
PLATFORM = "--platform pyemscripten_2026_0_wasm32 --python-version 3.14 --implementation cp --abi cp314"


def main(target: Path = TARGET) -> None:
    """Put everything together, and then in its place."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "playground")
        made.mkdir()
        for name in ("index.html", "page.js", "figures.js", "worker.js", "simulate.py"):
            shutil.copy(ROOT / "playground" / name, made)
        shutil.copy(ROOT / "workloads" / "sample.swf", made)
        shutil.copy(ROOT / "examples" / "own_policy.py", made / "policy.py")
        add_python(made / "pyodide", Path(folder))
        add_wheels(made / "wheels")
        wheels = sorted(wheel.name for wheel in (made / "wheels").iterdir())
        (made / "wheels.json").write_text(json.dumps(wheels))
        shutil.rmtree(target, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(made, target)
    print(f"{target} is made; serve it and open it in a browser:")
    print(f"  python3 -m http.server --bind 127.0.0.1 --directory {target} 8000")


def add_python(target: Path, folder: Path) -> None:
    """Get Pyodide from npm, and keep the files that a browser needs."""
    if shutil.which("npm") is None:
        sys.exit("playground: npm is needed to get Pyodide; on Debian: apt install npm")
    call("npm", "pack", PYODIDE.removesuffix(".tgz").replace("-", "@"), "--pack-destination", str(folder))
    archive = folder / PYODIDE
    if hashlib.sha256(archive.read_bytes()).hexdigest() != PYODIDE_SHA256:
        sys.exit(f"playground: {PYODIDE} is not the file that it was when this page was tried")
    target.mkdir()
    with tarfile.open(archive) as files:
        for name in PYODIDE_FILES:
            member = files.extractfile(f"package/{name}")
            assert member is not None
            (target / name).write_bytes(member.read())


def add_wheels(target: Path) -> None:
    """Build our wheel without a compiler, and get those of the libraries."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    call(
        *pip, "wheel", "--no-deps", "--wheel-dir", str(target), str(ROOT), CXX="false", BATSCHED_PY_NATIVE=""
    )
    call(
        *pip,
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        *PLATFORM.split(),
        "--dest",
        str(target),
        *LIBRARIES,
    )


def call(*command: str, **environment: str) -> None:
    """Run a command, or end with the last thing that it said."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | environment)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        sys.exit(f"playground: {' '.join(command[:4])} ... failed: {said[-1]}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
