"""The documentation site: built strictly, without a dead link, and looked at in a real browser."""

from __future__ import annotations

import fcntl
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser import headless
from tests.campaigns import archive, wait_until

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ("first-steps", "users-who-react", "your-own-scheduler")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all workers; notebooks are executed meanwhile."""
    pytest.importorskip("mkdocs", reason="needs mkdocs: pip install -e .[docs]")
    base = tmp_path_factory.getbasetemp()
    common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = common / "site"
    with (common / "site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "index.html").exists():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(folder)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Page(HTMLParser):
    """What a page points to, and the places in it that others may point to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.anchors.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        for name in ("src", *(["href"] if tag == "link" else [])):
            if values.get(name):
                self.loaded.append(values[name] or "")


@pytest.fixture(scope="session")
def pages(site: Path) -> dict[Path, Page]:
    """All pages, but for the one that tells that there is no such page."""
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_no_link_inside_is_dead(pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            known = target.is_file() and (
                not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].anchors
            )
            if not known:
                dead.append(f"{path.name}: {link}")
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(pages: dict[Path, Page]) -> None:
    loaded = {link for page in pages.values() for link in page.loaded}
    assert [link for link in loaded if urlsplit(link).scheme not in ("", "data")] == []


def test_every_document_is_a_page(site: Path) -> None:
    documents = {path.relative_to(ROOT / "docs").with_suffix(".html") for path in ROOT.glob("docs/**/*.md")}
    assert [str(path) for path in documents if not (site / path).is_file()] == []


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_shown_with_their_outputs(site: Path, name: str) -> None:
    source = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text())
    assert not any(cell.get("outputs") for cell in source["cells"]), "outputs are made when the site is built"
    page = (site / "examples" / f"{name}.html").read_text()
    assert re.search(rf'src="{name}-1.png"', page)
    assert (site / "examples" / f"{name}-1.png").read_bytes().startswith(b"\x89PNG")
    assert "<table" in page


def test_every_notebook_is_on_the_site() -> None:
    assert sorted(path.stem for path in (ROOT / "examples").glob("*.ipynb")) == sorted(NOTEBOOKS)


def test_the_reference_has_every_command_and_every_public_name(site: Path) -> None:
    import batsched_py
    from batsched_py.cli.main import COMMANDS

    commands = Page(site / "reference" / "command-line.html").anchors
    assert [name for name in COMMANDS if not {name, f"batsched-py-{name}"} & commands] == []
    names = {anchor.rpartition(".")[2] for anchor in Page(site / "reference" / "python.html").anchors}
    assert sorted(set(batsched_py.__all__) - names - {"__version__"}) == []


@pytest.fixture(scope="module")
def browser(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str]]:
    """A browser, and where it finds the site."""
    with headless(tmp_path_factory.mktemp("profile")) as driver, archive(site) as address:
        yield driver, address


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("index", "batsched_py"),
        ("tutorial", "Tutorial"),
        ("figures", "Draw figures"),
        ("model", "The model"),
        ("metrics", "Metrics"),
        ("examples/users-who-react", "Users who react"),
        ("reference/python", "Python"),
        ("reference/command-line", "Command line"),
    ],
)
def test_a_page_looks_right_in_a_browser(browser: tuple[Any, str], page: str, heading: str) -> None:
    driver, address = browser
    driver.get("about:blank")
    driver.get_log("browser"), driver.get_log("performance")
    driver.get(f"{address}/{page}.html")
    assert driver.find_element("css selector", "h1").text.removesuffix("¶").strip() == heading
    assert driver.get_log("browser") == []
    sizes = driver.execute_script(
        "return [...document.querySelectorAll('article img')].map((image) => image.naturalWidth)"
    )
    assert all(sizes), "every picture is there"
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    assert [url for url in urls if not url.startswith((address, "data:"))] == []


def test_pages_that_are_opened_as_files_can_be_searched(site: Path, browser: tuple[Any, str]) -> None:
    driver, _ = browser
    driver.get((site / "index.html").as_uri())
    driver.execute_script("document.getElementById('__search').click()")
    driver.execute_script("document.querySelector('.md-search__input').focus()")
    driver.find_element("css selector", ".md-search__input").send_keys("backfilling")
    found = "return document.querySelectorAll('.md-search-result__item').length"
    wait_until(lambda: driver.execute_script(found), "search has found something")
