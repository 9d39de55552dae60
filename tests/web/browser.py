"""A real browser for tests: Debian's chromium and chromedriver, driven by Selenium."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec

CHROMIUM, CHROMEDRIVER = shutil.which("chromium"), shutil.which("chromedriver")
MISSING = "needs a browser: apt-get install chromium chromium-driver, pip install selenium axe-core-python"
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-extensions", "--hide-scrollbars"),
    *("--process-per-site", "--disable-features=SpareRendererForSitePerProcess,BackForwardCache,Translate"),
)
_WAIT = """const done = arguments[arguments.length - 1], end = performance.now() + 1000 * arguments[0];
const given = Array.from(arguments).slice(1, -1);
const look = () => {
  const found = (() => { CODE })();
  if (found) done(found);
  else if (performance.now() > end) done(null);
  else setTimeout(look, 15);
};
look();"""
"""Waits inside of the page: asking again and again from here costs more than what is tested."""
_WAIT_SECONDS = 1.0


def require_browser() -> None:
    """Skips the tests of a module where there is no browser."""
    import pytest

    pytest.importorskip("selenium", reason=MISSING)
    pytest.importorskip("axe_core_python", reason=MISSING)
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

    def wait(self, code: str, *arguments: Any, seconds: float = 30) -> Any:
        """Waits until a function body, with `given` as its arguments, returns something true, also in the next page."""
        from selenium.common.exceptions import JavascriptException, TimeoutException

        script, end = _WAIT.replace("CODE", code), time.monotonic() + seconds
        self.driver.set_script_timeout(2 * _WAIT_SECONDS)
        try:
            while time.monotonic() < end:
                with suppress(TimeoutException):  # the page was left meanwhile
                    try:
                        if found := self.driver.execute_async_script(script, _WAIT_SECONDS, *arguments):
                            return found
                    except JavascriptException as problem:
                        if "unloaded" not in str(problem):
                            raise
        finally:
            self.driver.set_script_timeout(seconds)
        where = f"{self.driver.current_url}\n{self.text('main')[:400]}"
        raise AssertionError(f"not within {seconds} s: {code} {arguments}\n{where}")

    def wait_text(self, selector: str, text: str) -> None:
        self.wait("return document.querySelector(given[0])?.textContent.includes(given[1])", selector, text)

    def problems(self) -> list[str]:
        """Returns what the console says; a page must not cause any of it."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def accessibility_problems(self, rules: Sequence[str] = ()) -> list[str]:
        """Runs axe-core in the page, past its content security policy; all rules, or only some."""
        if not self.script("return 'axe' in window"):
            self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": axe_source()})
        options: dict[str, Any] = {"resultTypes": ["violations"], "preload": False}
        if rules:
            options["runOnly"] = list(rules)
        expression = (
            f"axe.run({msgspec.json.encode(options).decode()}).then((found) => JSON.stringify(found.violations))"
        )
        found = self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": expression, "awaitPromise": True})
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


def axe_source() -> str:
    """Returns axe-core: the file in HOLDFAST_AXE, such as a newer one of npm, else that of axe-core-python."""
    path = os.environ.get("HOLDFAST_AXE")
    return (Path(path) if path else files("axe_core_python") / "axe.min.js").read_text(encoding="utf-8")
