"""The page that simulates in a browser: what its Python does without libraries, and the page itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.browser import headless
from tests.processes import PATIENCE, ROOT

SAMPLE = ROOT / "workloads" / "sample.swf"
POLICY = (ROOT / "examples" / "own_policy.py").read_text()

#: Pyodide has these from elsewhere, or not at all.
MISSING = ("numpy", "pandas", "zmq", "networkx", "rich")
IN_A_BROWSER = f"""
import sys
import time
del time.thread_time
sys.modules.update(dict.fromkeys({MISSING!r}))
exec(open({str(ROOT / "playground" / "simulate.py")!r}).read())
print(simulate(sys.stdin.read()))
"""


def answered(folder: Path, **request: object) -> dict[str, Any]:
    """What the page's Python answers where no library is but those that the page has."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_BROWSER],
        input=json.dumps({"log": str(SAMPLE), "hosts": 64, **request}),
        capture_output=True,
        text=True,
        cwd=folder,
        env={"BATSCHED_PY_PURE": "1", "PYTHONPATH": str(ROOT)},
        timeout=PATIENCE,
    )
    assert not done.stderr
    return json.loads(done.stdout)


def jobs_of_run(folder: Path, policy: str) -> str:
    """What the command writes for the same policy."""
    command = [sys.executable, "-m", "batsched_py", "run", "-w", str(SAMPLE), "--hosts", "64", "-s", policy]
    subprocess.run([*command, "-e", str(folder / "run")], check=True, capture_output=True, timeout=PATIENCE)
    return (folder / "run_jobs.csv").read_text()


def test_a_simulation_needs_none_of_the_libraries_that_a_browser_lacks(tmp_path: Path) -> None:
    answer = answered(tmp_path, scheduler="easy")
    assert answer["jobs"] == jobs_of_run(tmp_path, "easy")
    assert ["mean wait", "3.89 h"] in answer["rows"]
    assert not {"files", "took"} & {label.strip() for label, _ in answer["rows"]}


def test_code_is_a_policy(tmp_path: Path) -> None:
    answer = answered(tmp_path, code=POLICY)
    assert answer["jobs"] == jobs_of_run(tmp_path, f"{ROOT / 'examples' / 'own_policy.py'}:ShortPass")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("x = 1", "the code has no class"),
        ("class X:\n    pass", "policy.py defines no scheduler 'X'"),
        (POLICY.replace("cluster.queue.head)", "cluster.queue.head, 5)"), "policy.py:"),
    ],
)
def test_mistakes_are_told_in_a_line(tmp_path: Path, code: str, words: str) -> None:
    error = answered(tmp_path, code=code)["error"]
    assert words in error
    assert "\n" not in error


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The page in a browser, served on loopback."""
    if shutil.which("npm") is None:
        pytest.skip("needs npm, from which Pyodide comes")
    made = tmp_path_factory.mktemp("playground") / "page"
    with headless(tmp_path_factory.mktemp("profile")) as browser:
        command = [sys.executable, str(ROOT / "playground" / "build.py"), str(made)]
        subprocess.run(command, check=True, timeout=PATIENCE)
        handler = partial(Quiet, directory=str(made))
        with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            browser.get(f"http://127.0.0.1:{server.server_port}/index.html")
            yield browser
            server.shutdown()


def wait_for(browser: Any, *states: str) -> str:
    """Wait until the page says one of these, or that something is wrong."""
    from selenium.webdriver.support.ui import WebDriverWait

    state = browser.find_element("id", "state")
    WebDriverWait(browser, PATIENCE).until(
        lambda _: state.text in states or state.get_attribute("class") == "error"
    )
    return state.text


def write(browser: Any, code: str) -> None:
    browser.execute_script("document.getElementById('code').value = arguments[0]", code)


@pytest.mark.slow
def test_the_page_simulates_as_the_command_does(page: Any, tmp_path: Path) -> None:
    assert wait_for(page, "Ready.") == "Ready."
    page.find_element("id", "run").click()
    assert wait_for(page, "Done.") == "Done."
    rows = {
        row.split("\t")[0]: row.split("\t")[1:]
        for row in page.execute_script(
            "return [...document.querySelectorAll('#rows tr')]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent).join('\\t'))"
        )
    }
    assert rows["mean wait"] == ["3.89 h", "15.06 h"]
    downloaded = page.execute_async_script(
        "const tell = arguments[0];"
        "fetch(document.getElementById('download').href).then((answer) => answer.text()).then(tell)"
    )
    assert downloaded == jobs_of_run(tmp_path, f"{ROOT / 'examples' / 'own_policy.py'}:ShortPass")
    assert [len(page.find_elements("css selector", f"#{name} path")) for name in ("queue", "waits")] == [2, 2]
    assert len(page.find_elements("css selector", "#gantt rect")) >= 3000
    assert not [line for line in page.get_log("browser") if line["level"] == "SEVERE"]

    # mistakes and endless loops do not stop the page
    write(page, POLICY.replace("60 * self.minutes", "nothing"))
    page.find_element("id", "run").click()
    assert "NameError" in wait_for(page, "Done.")
    write(page, POLICY.replace('"""Start from', 'while True: pass\n        """Start from'))
    page.find_element("id", "run").click()
    wait_for(page, "Your policy ...")
    page.find_element("id", "stop").click()
    assert wait_for(page, "Ready.") == "Ready."
    write(page, POLICY)
    page.find_element("id", "run").click()
    assert wait_for(page, "Done.") == "Done."
