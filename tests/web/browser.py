"""A real browser for tests: Debian's chromium and chromedriver, driven by Selenium."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "needs a browser: pip install selenium, apt-get install chromium chromium-driver"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
)
T = TypeVar("T")


def require_browser() -> None:
    """Skips the tests of a module where there is no browser."""
    import pytest

    pytest.importorskip("selenium", reason=MISSING)
    if CHROMIUM is None or CHROMEDRIVER is None:
        pytest.skip(MISSING, allow_module_level=True)


class Browser:
    """One tab, and what tests ask of it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, url: str) -> None:
        self.driver.get(url)

    def set_screen(self, width: int = 1280, height: int = 860, *, dark: bool = False) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def script(self, code: str, *arguments: Any) -> Any:
        return self.driver.execute_script(code, *arguments)

    def text(self, selector: str) -> str:
        return str(self.script("return document.querySelector(arguments[0])?.textContent ?? ''", selector))

    def press(self, keys: str) -> None:
        """Types keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(keys).perform()

    def click(self, selector: str) -> None:
        self.driver.find_element("css selector", selector).click()

    def wait(self, what: Callable[[], T], seconds: float = 15) -> T:
        """Waits until something is true, and returns it."""
        end = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < end, (
                f"not within {seconds} s: {self.driver.current_url}\n{self.text('main')[:400]}"
            )
            time.sleep(0.02)
        return found

    def wait_text(self, selector: str, text: str) -> None:
        self.wait(lambda: text in self.text(selector))

    def problems(self) -> list[str]:
        """Returns what the console says; a page must not cause any of it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def accessibility_problems(self, axe: str) -> list[str]:
        """Runs axe-core in the page, past its content security policy."""
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe})
        run = {"expression": "axe.run().then((found) => JSON.stringify(found.violations))", "awaitPromise": True}
        found = self.driver.execute_cdp_cmd("Runtime.evaluate", run)
        return [
            f"{rule['id']}: {node['html'][:120]}"
            for rule in msgspec.json.decode(found["result"]["value"])
            for node in rule["nodes"]
        ]


@contextmanager
def run_browser() -> Iterator[Browser]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = webdriver.ChromeOptions()
        assert CHROMIUM is not None and CHROMEDRIVER is not None, MISSING
        options.binary_location = CHROMIUM
        for flag in (*FLAGS, f"--user-data-dir={folder}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(CHROMEDRIVER))
        try:
            browser = Browser(driver)
            browser.set_screen()
            yield browser
        finally:
            driver.quit()


def axe_source() -> str | None:
    """Returns axe-core, which is not part of the project: `npm pack axe-core`, unpacked, as HOLDFAST_AXE."""
    path = os.environ.get("HOLDFAST_AXE")
    return Path(path).read_text(encoding="utf-8") if path else None
