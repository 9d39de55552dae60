"""The pages in a real browser: every page and action, by keyboard alone, with hostile texts, on both color schemes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from browser import Browser, require_browser, run_browser
from lab_files import write_reports
from test_web_api import HOSTILE, hostile_session
from web_harness import RunningInspector, compact, run_inspector, talk

from holdfast import BlockingSessionService, SessionService, SQLiteStore
from holdfast.web.addresses import session_path

require_browser()
SESSION_PAGES = ("", "/at/26?vs=25", "/c/26", "/try", "/cost")
PAGES = (
    "/",
    "/search?q=N7+timber",
    "/lab",
    "/lab/lab.html",
    "/lab/tuned.json",
    "/jobs",
    *(f"/s/s{one}" for one in SESSION_PAGES),
)
WRITTEN = ("keys", "acts", "try", "conflict", "live")
"""Sessions that one test each changes, so that the order of tests does not matter."""
LOADED = """const main = document.querySelector('main');
return !main.textContent.includes('being explained') && !document.querySelector('[aria-busy]')
  && main.querySelector('.row, .figures dd, table, .hits')"""
TAB, ESCAPE, DOWN = "\ue004", "\ue00c", "\ue015"


class Site(NamedTuple):
    """A running inspector and its store."""

    portal: BlockingPortal
    running: RunningInspector
    store: Path
    hostile: str
    """Path of the session with a hostile text in every field."""

    @property
    def base(self) -> str:
        return self.running.url


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("web")
    write_reports(folder / "reports", HOSTILE)
    with start_blocking_portal() as portal:
        hostile = portal.call(fill, folder / "sessions.db")
        store = SQLiteStore(folder / "sessions.db")
        opened = run_inspector(store, logs_in=False, preset="holdfast", reports=folder / "reports")
        with portal.wrap_async_context_manager(opened) as running:
            yield Site(portal, running, folder / "sessions.db", session_path(hostile))


async def fill(path: Path) -> str:
    async with SessionService(SQLiteStore(path)) as sessions:
        for name in ("s", *WRITTEN):
            await talk(sessions, name, turns=12, model="claude-sonnet-4-5")
            if name != "try":
                assert await compact(sessions, name) == 26
        return await hostile_session(sessions)


@pytest.fixture(scope="module")
def browser(site: Site) -> Iterator[Browser]:
    with run_browser() as opened:
        opened.open(site.running.access.opening_url)
        assert opened.driver.current_url == f"{site.base}/"
        yield opened


@pytest.fixture(autouse=True)
def no_console_message(browser: Browser) -> Iterator[None]:
    """Nothing that a page does is reported in the console: no error, no refused resource, no blocked script."""
    browser.problems()
    yield
    refused = ("409 (Conflict)", "401 (Unauthorized)")  # the browser itself reports the replies that tests ask for
    assert [problem for problem in browser.problems() if not any(reply in problem for reply in refused)] == []


@pytest.mark.parametrize("page", PAGES)
def test_page_is_complete_accessible_and_small_on_both_color_schemes(browser: Browser, site: Site, page: str) -> None:
    browser.set_screen()
    browser.open(site.base + page)
    browser.wait(LOADED)
    assert browser.script("return document.querySelectorAll('*').length") <= 500
    for width, dark in ((1280, False), (420, True)):
        browser.set_screen(width, dark=dark)
        background = browser.script("return getComputedStyle(document.documentElement).backgroundColor")
        assert background == ("rgb(21, 24, 26)" if dark else "rgb(253, 253, 252)")
        assert browser.script("return document.documentElement.scrollWidth") <= width
        assert browser.accessibility_problems(["color-contrast"] if dark else ()) == []


def unreachable(browser: Browser) -> list[str]:
    """Returns the controls that Tab does not reach."""
    count = browser.script(
        """window.controls = [...document.querySelectorAll(
          'a[href], button, select, input:not([type=hidden]), [tabindex="0"]')];
        window.reached = new Set();
        document.activeElement.blur();
        document.addEventListener('focusin', (event) => window.reached.add(event.target));
        return window.controls.length"""
    )
    browser.press(TAB * (count + 2))
    missed = (
        "return window.controls.filter((one) => !window.reached.has(one)).map((one) => one.outerHTML.slice(0, 100))"
    )
    found: list[str] = browser.script(missed)
    return found


def test_hostile_texts_stay_text_in_every_page(browser: Browser, site: Site) -> None:
    """A payload that became markup would open an alert, or be reported in the console by the policy that blocks it."""
    browser.set_screen()
    for page in ("?e=30", "/at/20", "/at/29?vs=28", "/c/29", "/try", "/cost"):
        browser.open(f"{site.base}{site.hostile}{page}")
        browser.wait(LOADED)
        assert "onerror=alert(1)" in browser.text("h1")
        if page == "/c/29":
            browser.wait_text("#notes", "<img src=x")
        assert_no_markup(browser)
    for page, place in (
        ("/", "main"),
        ("/search?q=onerror", ".hits"),
        ("/jobs", "#sessions"),
        ("/lab/lab.html", "tbody"),
        ("/lab/tuned.json", ".lead"),
    ):
        browser.open(f"{site.base}{page}")
        browser.wait_text(place, "<img src=x")
        assert_no_markup(browser)
    browser.open(f"{site.base}{site.hostile}?e=2")
    browser.wait_text("#detail", "→ <img src=x onerror=alert(1)>")
    assert_no_markup(browser)


def assert_no_markup(browser: Browser) -> None:
    assert browser.script("return document.querySelectorAll('main img, main script, main b').length") == 0


def test_keyboard_alone_moves_searches_and_undoes(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/keys")
    browser.wait_text("#detail h2", "#26")
    assert unreachable(browser) == []
    browser.press("g")
    browser.wait_text("#detail", "You keep the harbour's files.")
    browser.press("jj")
    browser.wait_text("#detail h2", "#3")
    browser.press("k")
    browser.wait_text("#detail", "Ship 0 of berth N0")
    assert "e=2" in browser.driver.current_url
    browser.wait("return document.querySelector('#strip canvas')")
    browser.press("]")
    browser.wait_text("#detail h2", "#26")
    browser.press("[")
    browser.wait_text("#status", "There is no earlier compaction.")
    browser.press("?")
    browser.wait_text("dialog", "previous and next compaction")
    browser.press(ESCAPE)
    browser.wait("return !document.querySelector('dialog')")
    browser.press("u")
    browser.wait_text("dialog.ask", "Undo compaction #26")
    browser.press(ESCAPE)
    browser.wait("return !document.querySelector('dialog')")
    assert "Undo" in browser.text("#last")
    browser.press("u")
    browser.wait_text("dialog.ask", "leave the context")
    browser.click("dialog.ask button.do")
    browser.wait_text("#status", "undone")
    browser.wait_text("#last", "Nothing is archived")
    browser.press("/#5\n")
    browser.wait_text("#detail h2", "#5")
    browser.press("/N7 timber\n")
    browser.wait_text("h1", "Search: N7 timber")
    browser.press("j\n")
    browser.wait_text("#detail", "Ship 7 of berth N7")
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        assert not sessions.size("keys").is_compacted


def test_keyboard_alone_reads_a_compaction_and_travels(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/s/c/26")
    browser.wait_text("#verdict", "equal to what is stored, byte for byte")
    browser.press("j")
    browser.wait_text("#detail h2", "This line")
    focus(browser, "before")
    browser.press("G")
    browser.wait_text("#detail h2", "#25 kept")
    browser.press(DOWN)
    browser.press("g")
    browser.wait_text("#detail h2", "#1 kept")
    browser.open(f"{site.base}/s/s/at/26?vs=25")
    browser.wait_text("#detail h2", "#25 → #26")
    browser.press("[")
    browser.wait_text("#state", "After #25")
    focus(browser, "wire")
    browser.press("\n")
    browser.wait_text("#detail", '"messages":[{"role":"system","content":"You keep the harbour')
    for page in ("/jobs", "/lab", "/s/s/cost"):
        browser.open(site.base + page)
        browser.wait(LOADED)
        browser.press("G")
        browser.wait("return document.activeElement.closest('td:first-child')")


def focus(browser: Browser, name: str) -> None:
    """Presses Tab until an element has the focus."""
    for _ in range(20):
        browser.press(TAB)
        if browser.script("return document.activeElement.id") == name:
            return
    raise AssertionError(f"Tab does not reach #{name}")


def test_actions_of_an_event_pin_restore_and_fork(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/acts?e=4")
    for button, message, version in (
        ("Pin", "Pinned", 27),
        ("Unpin", "Unpinned", 28),
        ("Restore", "Restored as #29", 29),
    ):
        browser.open(f"{site.base}/s/acts?e=4")
        press_button(browser, button)
        if button == "Restore":
            confirm(browser)
        browser.wait_text("#status", message)
        browser.wait("return document.body.dataset.version === given[0]", str(version))
    browser.wait_text("#list", "Ship 1 of berth N1")
    press_button(browser, "Fork here")
    confirm(browser)
    browser.wait_text(".title", "fork of #")
    assert "/s/acts" not in browser.driver.current_url


def confirm(browser: Browser) -> None:
    browser.wait("return document.querySelector('dialog.ask button.do')")
    browser.click("dialog.ask button.do")


def press_button(browser: Browser, text: str, just_before: str = "") -> None:
    found = "[...document.querySelectorAll('#detail button')].find((one) => one.textContent === given[0])"
    browser.wait(f"return {found}", text)
    browser.script(f"const given = arguments; {just_before}; {found}.click()", text)


def test_what_if_shows_two_ways_and_commits_the_first(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/try/try?budget=1000&choice1=strategy:sliding&choice2=strategy:ledger")
    browser.wait_text("#figures2", "archived")
    assert unreachable(browser) == []
    before = browser.text("#figures2")
    browser.script("const b = document.getElementById('budget'); b.value = 2000; b.dispatchEvent(new Event('input'))")
    browser.wait("return document.getElementById('figures2').textContent !== given[0]", before)
    browser.script(
        "const c = document.getElementById('choice1'); c.value = 'strategy:last'; c.dispatchEvent(new Event('input'))"
    )
    browser.script("document.getElementById('instructions').value = 'Keep the berths.'")
    browser.click("#commit button")
    browser.wait_text("#last", "by keep last")


def test_conflict_is_shown_and_nothing_is_lost(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/conflict")
    browser.wait_text("#detail h2", "#")
    press_button(browser, "Fork here", just_before="document.body.dataset.version = 1")
    confirm(browser)
    browser.wait_text("#status", "Somebody else changed this session meanwhile")
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        assert sessions.get("conflict").version == 26
        assert not any(one.parent == "conflict" for one in sessions.list())


def test_append_elsewhere_appears_and_can_be_paused(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/live")
    browser.wait_text("#detail h2", "#")
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        sessions.append("live", {"role": "user", "content": "A schooner is in sight."})
        browser.wait_text("#list", "A schooner is in sight.")
        browser.click(".aside")
        assert browser.script("return document.querySelector('.aside').getAttribute('aria-pressed')") == "false"
        sessions.append("live", {"role": "user", "content": "A brig, too."})
        browser.click(".aside")
        browser.wait_text("#list", "A brig, too.")


def test_line_of_the_notes_shows_its_source(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/s/c/26")
    cited = "[...document.querySelectorAll('#notes .row')].find((row) => /^\\[\\d+\\] /.test(row.textContent))"
    browser.wait(f"return {cited}")
    browser.script(f"{cited}.click()")
    browser.wait_text("#detail", "Later user messages")
    browser.wait("return document.querySelector('#before .row.from')")
    browser.script("document.querySelector('#before .row.archived').click()")
    browser.wait_text("#detail", "it lies before")


def test_list_of_sessions_has_the_cost_of_each(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/")
    browser.wait("""return document.querySelector('[data-path="/s/s"]').textContent.startsWith('$0.0')""")


def test_only_the_visible_tab_has_a_stream(browser: Browser, site: Site) -> None:
    """A browser has six connections to a server: with a stream each, the seventh tab would hang."""
    first = browser.driver.current_window_handle
    opened = []
    for _ in range(3):
        browser.driver.switch_to.new_window("tab")
        opened.append(browser.driver.current_window_handle)
        browser.open(f"{site.base}/s/s")
        browser.wait_text("#detail h2", "#")
    end = monotonic() + 30
    while site.running.inspector.api.streams.total() != 1:
        assert monotonic() < end
        sleep(0.02)
    for handle in opened:
        browser.driver.switch_to.window(handle)
        browser.driver.close()
    browser.driver.switch_to.window(first)


def test_key_opens_the_pages_of_its_owner(browser: Browser, site: Site) -> None:
    keys = {"ann-key-0123456789": "ann"}
    with site.portal.wrap_async_context_manager(run_inspector(keys=keys, logs_in=False)) as running:
        site.portal.call(talk, running.sessions, "ann-s", 2)
        browser.open(running.url)
        browser.wait_text("h1", "Key")
        assert browser.accessibility_problems() == []
        browser.press(f"{TAB * 2}wrong\n")
        browser.wait_text("#status", "This key is not known.")
        browser.script("document.getElementById('key').value = ''")
        browser.press("ann-key-0123456789\n")
        browser.wait_text("h1", "Sessions")
