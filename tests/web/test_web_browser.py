"""The pages in a real browser: every page and action, by keyboard alone, with hostile texts, on both color schemes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from browser import Browser, axe_source, require_browser, run_browser
from test_web_api import hostile_session
from web_harness import compact, talk

from holdfast import BlockingSessionService, SessionService, SQLiteStore
from holdfast.web.addresses import session_path

require_browser()
PAGES = ("", "/at/20", "/at/26?vs=25", "/c/26", "/try", "/cost")


WRITTEN = ("keys", "try", "conflict", "live")
"""Sessions that one test each changes, so that the order of tests does not matter."""


async def fill(path: Path) -> str:
    async with SessionService(SQLiteStore(path)) as sessions:
        for name in ("s", *WRITTEN):
            await talk(sessions, name, turns=12, model="claude-sonnet-4-5")
            if name != "try":
                assert await compact(sessions, name) == 26
        return await hostile_session(sessions)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("web") / "sessions.db"


@pytest.fixture(scope="module")
def hostile(store: Path) -> str:
    return session_path(anyio.run(fill, store))


@pytest.fixture(scope="module")
def address(store: Path, hostile: str) -> Iterator[str]:
    """The address of `holdfast web`, with its token."""
    command = [sys.executable, "-m", "holdfast", "web", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http\S+", process.stdout.readline())
        assert found is not None
        yield found[0]
        process.send_signal(signal.SIGTERM)


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    with run_browser() as opened:
        opened.open(address)
        assert opened.driver.current_url == address.partition("?")[0]
        yield opened


@pytest.fixture(autouse=True)
def no_console_message(browser: Browser) -> Iterator[None]:
    browser.problems()
    yield
    refused = "409 (Conflict)"  # the browser itself reports the reply that a test asks for
    assert [problem for problem in browser.problems() if refused not in problem] == []


@pytest.fixture
def base(address: str) -> str:
    return address.partition("/?")[0]


def is_loaded(browser: Browser) -> bool:
    """Whether a page of a session shows its content."""
    done = """return !document.querySelector('main').textContent.includes('being explained')
      && (document.querySelector('.row') || document.querySelector('.figures dd') || document.querySelector('table'))
      && !document.querySelector('[aria-busy]')"""
    return bool(browser.script(done))


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (420, True)])
def test_every_page_loads_and_stays_small(browser: Browser, base: str, page: str, width: int, dark: bool) -> None:
    browser.set_screen(width, dark=dark)
    browser.open(f"{base}/s/s{page}")
    browser.wait(lambda: is_loaded(browser))
    assert browser.script("return document.querySelectorAll('*').length") <= 500
    assert browser.script("return document.documentElement.scrollWidth") <= width
    background = browser.script("return getComputedStyle(document.documentElement).backgroundColor")
    assert background == ("rgb(21, 24, 26)" if dark else "rgb(253, 253, 252)")


@pytest.mark.parametrize("page", [*PAGES, "/"])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_finds_nothing(browser: Browser, base: str, page: str, dark: bool) -> None:
    axe = axe_source()
    if axe is None:
        pytest.skip("needs axe-core: npm pack axe-core, unpack it, HOLDFAST_AXE=package/axe.min.js")
    browser.set_screen(dark=dark)
    browser.open(f"{base}/" if page == "/" else f"{base}/s/s{page}")
    browser.wait(lambda: is_loaded(browser))
    assert browser.accessibility_problems(axe) == []


def test_hostile_texts_stay_text_in_every_page(browser: Browser, base: str, hostile: str) -> None:
    browser.script("window.attacked = 0")
    compaction = 29
    for page in ("", "?e=2", "/at/20", "/at/29?vs=28", f"/c/{compaction}", "/try", "/cost"):
        browser.open(f"{base}{hostile}{page}")
        browser.wait(lambda: is_loaded(browser))
        assert browser.script("return document.querySelectorAll('main img, main script').length") == 0
        assert browser.script("return window.attacked") is None
        assert "onerror=alert(1)" in browser.text("h1")
    browser.open(f"{base}{hostile}?e=2")
    browser.wait_text("#detail", "→ <img src=x onerror=alert(1)>")
    for page in ("/", "/search?q=onerror"):
        browser.open(f"{base}{page}")
        assert browser.script("return document.querySelectorAll('main img, main script').length") == 0
        assert "<img src=x" in browser.text("main")


def test_keyboard_alone_moves_searches_and_undoes(browser: Browser, base: str, store: Path) -> None:
    browser.open(f"{base}/s/keys")
    browser.wait_text("#detail h2", "#26")
    browser.press("g")
    browser.wait_text("#detail", "You keep the harbour's files.")
    browser.press("jj")
    browser.wait_text("#detail h2", "#3")
    browser.press("k")
    browser.wait_text("#detail", "Ship 0 of berth N0")
    assert "e=2" in browser.driver.current_url
    browser.wait(lambda: browser.script("return document.querySelector('#strip canvas') !== null"))
    browser.press("]")
    browser.wait_text("#detail h2", "#26")
    browser.press("[")
    browser.wait_text("#status", "There is no earlier compaction.")
    browser.press("?")
    browser.wait_text("dialog", "previous and next compaction")
    browser.press("\ue00c")
    browser.wait(lambda: not browser.text("dialog"))
    browser.press("u")
    browser.wait_text("#status", "undone")
    browser.wait_text("#last", "Nothing is archived")
    browser.press("/#5\n")
    browser.wait_text("#detail h2", "#5")
    browser.press("/N7 timber\n")
    browser.wait_text("h1", "Search: N7 timber")
    browser.press("j\n")
    browser.wait_text("#detail", "Ship 7 of berth N7")
    with BlockingSessionService(SQLiteStore(store)) as sessions:
        assert not sessions.size("keys").is_compacted


def test_what_if_shows_two_ways_and_commits_the_first(browser: Browser, base: str) -> None:
    browser.open(f"{base}/s/try/try?budget=1000&choice1=strategy:sliding&choice2=strategy:ledger")
    browser.wait(lambda: is_loaded(browser))
    browser.wait_text("#figures2", "archived")
    before = browser.text("#figures2")
    browser.script("const b = document.getElementById('budget'); b.value = 2000; b.dispatchEvent(new Event('input'))")
    browser.wait(lambda: browser.text("#figures2") != before)
    browser.script(
        "const c = document.getElementById('choice1'); c.value = 'strategy:last'; c.dispatchEvent(new Event('input'))"
    )
    browser.wait(lambda: is_loaded(browser))
    browser.click("#commit button")
    browser.wait_text("#last", "by keep last")


def test_conflict_is_shown_and_nothing_is_lost(browser: Browser, base: str, store: Path) -> None:
    browser.open(f"{base}/s/conflict")
    browser.wait_text("#detail h2", "#")
    browser.script("document.body.dataset.version = 1")
    browser.click("#detail .acts button:last-child")
    browser.wait_text("#status", "Somebody else changed this session meanwhile")
    with BlockingSessionService(SQLiteStore(store)) as sessions:
        assert sessions.get("conflict").version == 26 and len(sessions.list()) == len(WRITTEN) + 2


def test_append_elsewhere_appears_and_can_be_paused(browser: Browser, base: str, store: Path) -> None:
    browser.open(f"{base}/s/live")
    browser.wait_text("#detail h2", "#")
    with BlockingSessionService(SQLiteStore(store)) as sessions:
        sessions.append("live", {"role": "user", "content": "A schooner is in sight."})
        browser.wait_text("#list", "A schooner is in sight.")
        browser.click(".aside")
        sessions.append("live", {"role": "user", "content": "A brig, too."})
        assert browser.script("return document.querySelector('.aside').getAttribute('aria-pressed')") == "false"
        browser.click(".aside")
        browser.wait_text("#list", "A brig, too.")


def test_line_of_the_notes_shows_its_source(browser: Browser, base: str) -> None:
    browser.open(f"{base}/s/s/c/26")
    browser.wait_text("#verdict", "equal to what is stored, byte for byte")
    browser.wait(lambda: browser.script("return document.querySelectorAll('#notes .row').length > 3"))
    cited = "[...document.querySelectorAll('#notes .row')].find((row) => /^\\[\\d+\\] /.test(row.textContent))"
    browser.script(f"{cited}.click()")
    browser.wait_text("#detail", "Later user messages")
    browser.wait(lambda: browser.script("return document.querySelector('#before .row.from') !== null"))
    browser.script("document.querySelector('#before .row.archived').click()")
    browser.wait_text("#detail", "it lies before")


def test_list_of_sessions_has_the_cost_of_each(browser: Browser, base: str) -> None:
    browser.open(f"{base}/")
    browser.wait(lambda: browser.text('[data-path="/s/s"]').startswith("$0.0"))


def test_seven_tabs_are_served_at_once(browser: Browser, base: str) -> None:
    first = browser.driver.current_window_handle
    opened = []
    for _ in range(6):
        browser.driver.switch_to.new_window("tab")
        opened.append(browser.driver.current_window_handle)
        browser.open(f"{base}/s/s")
        browser.wait_text("#detail h2", "#")
    for handle in opened:
        browser.driver.switch_to.window(handle)
        browser.driver.close()
    browser.driver.switch_to.window(first)
    browser.open(f"{base}/s/s")
    browser.wait_text("#detail h2", "#")
