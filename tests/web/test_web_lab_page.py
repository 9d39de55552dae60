"""The self-contained page of the lab in a real browser: narrow and wide, for people who do not see its charts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from browser import Browser, require_browser, run_browser
from lab_files import lab_report

from holdfast.lab.page import render_page

require_browser()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lab") / "reports"
    folder.mkdir()
    report = lab_report("hull")
    one = msgspec.structs.replace(report.kinds[0], sessions=1, cuts=1)
    (folder / "lab.html").write_text(render_page(msgspec.structs.replace(report, kinds=[one])))
    return folder / "lab.html"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with run_browser() as opened:
        yield opened


@pytest.mark.parametrize(("width", "dark"), [(420, False), (1280, True), (2560, False)])
def test_lab_page_fits_and_is_accessible(browser: Browser, page: Path, width: int, *, dark: bool) -> None:
    browser.set_screen(width, dark=dark)
    browser.open(page.as_uri())
    browser.wait("return document.querySelector('figure svg')")
    assert browser.script("return document.documentElement.scrollWidth") <= width
    assert browser.accessibility_problems() == []
    assert browser.problems() == []


def test_lab_page_counts_in_words_and_its_charts_have_a_text(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    browser.wait("return document.querySelector('figure svg')")
    assert browser.text("#facts").startswith("1 session, 1 cut · ")
    labels = browser.script("return [...document.querySelectorAll('svg[role=img]')].map((one) => one.ariaLabel)")
    assert labels and all("hull: " in label for label in labels)


def test_lab_page_has_one_color_for_what_is_compared_with(browser: Browser, page: Path) -> None:
    browser.open(page.as_uri())
    browser.wait("return document.querySelector('.series')")
    strokes = browser.script(
        "return [...document.querySelectorAll('.series')].map((one) => one.getAttribute('stroke'))"
    )
    assert set(strokes) <= {"var(--kept)", "var(--summary)", "var(--real)", "var(--other)"}
