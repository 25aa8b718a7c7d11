"""A real browser without a window."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
NO_NETWORK = (
    "--disable-background-networking --disable-component-update --disable-sync --no-first-run "
    "--headless=new --no-sandbox --disable-gpu --window-size=1400,1000"
)
#: How long a page may take on a busy machine.
SECONDS = 600


@contextmanager
def headless(profile: Path) -> Iterator[Any]:
    """Chromium, with its logs of the console and of the network; skips the test where there is none."""
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install -e .[dev]")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*NO_NETWORK.split(), f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(CHROMEDRIVER))
    try:
        driver.set_page_load_timeout(SECONDS)
        driver.set_script_timeout(SECONDS)
        yield driver
    finally:
        driver.quit()
