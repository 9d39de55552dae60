"""The pages in a real browser: every page and action, by keyboard alone, with hostile texts, on both color schemes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import anyio
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
WRITTEN = ("keys", "acts", "try", "conflict", "live", "redo", "moved")
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


HOSTILE_MARKDOWN = """# <img src=x onerror=alert(1)>

**<b onclick=alert(1)>** `</code><script>alert(1)</script>` [link](javascript:alert(1)) ![i](http://evil.example/i.png)

| <i>a</i> | b |
|---|---|
| <svg onload=alert(1)> | <iframe src=//evil.example> |

- <script>alert(1)</script>

```html
</pre><img src=x onerror=alert(1)>
```
> <object data=x>
"""


def test_hostile_content_is_drawn_as_text(browser: Browser, site: Site) -> None:
    """Markdown, arguments, edits, results and images: nothing of a session becomes markup or is loaded."""
    edit = {
        "file_path": HOSTILE,
        "old_string": f"{HOSTILE}\n1",
        "new_string": f"{HOSTILE}\n2",
        HOSTILE: {HOSTILE: [HOSTILE] * 30},
    }
    call = {"id": "c", "type": "function", "function": {"name": HOSTILE, "arguments": json.dumps(edit)}}
    pictures = [
        f"data:{kind};base64,PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+" for kind in ("image/svg+xml", "text/html", "image/png")
    ]
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        made = sessions.create(format="openai-chat")
        content = [{"type": "image_url", "image_url": {"url": url}} for url in pictures]
        sessions.append(made.id, {"role": "user", "content": [{"type": "text", "text": HOSTILE_MARKDOWN}, *content]})
        sessions.append(made.id, {"role": "assistant", "content": HOSTILE_MARKDOWN, "tool_calls": [call]})
        sessions.append(
            made.id, {"role": "tool", "tool_call_id": "c", "content": json.dumps({HOSTILE: [HOSTILE] * 30})}
        )
    for seq, inside in ((1, "<svg onload=alert(1)>"), (2, "-<img src=x"), (3, "<img src=x")):
        browser.open(f"{site.base}{session_path(made.id)}?e={seq}")
        browser.wait_text("#detail", inside.removeprefix("-"))
        browser.wait(
            "const closed = document.querySelectorAll('#detail details:not([open])');"
            "for (const one of closed) one.open = true; return !closed.length"
        )
        found = (
            "main script, main b, main i, main svg:not(.gauge), main iframe, main object, #detail a[href^=javascript]"
        )
        assert (
            browser.script("return document.querySelectorAll(given[0]).length".replace("given", "arguments"), found)
            == 0
        )
        images = browser.script("return [...document.querySelectorAll('#detail img')].map((one) => one.src)")
        assert images == ([pictures[2]] if seq == 1 else [])


def test_text_that_is_slow_to_match_does_not_keep_the_page_busy(browser: Browser, site: Site) -> None:
    slow = [
        "`" * 9_000 + "a" * 9_000,
        "`a" * 9_000,
        "**a" * 6_000,
        "*a " * 6_000,
        "|" + " |" * 9_000 + "x",
        "- " * 9_000 + "x",
    ]
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        made = sessions.create(format="openai-chat")
        sessions.append(made.id, [{"role": "user", "content": f"a ship: {text}"} for text in slow])
    for seq in range(1, len(slow) + 1):
        browser.open(f"{site.base}{session_path(made.id)}?e={seq}")
        browser.wait_text("#detail .markdown", "a ship: ")


def test_markdown_edits_and_calls_are_drawn(browser: Browser, site: Site) -> None:
    edit = {"file_path": "a.py", "old_string": "one\ntwo\nthree", "new_string": "one\n2\nthree"}
    call = {"id": "c", "type": "function", "function": {"name": "Edit", "arguments": json.dumps(edit)}}
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        made = sessions.create(format="openai-chat")
        text = "## Ships\n\n- **two** `berths`\n- one\n\n```\nx = 1\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |"
        sessions.append(made.id, {"role": "user", "content": text})
        sessions.append(made.id, {"role": "assistant", "content": None, "tool_calls": [call]})
        sessions.append(made.id, {"role": "tool", "tool_call_id": "c", "content": "Done."})
    browser.open(f"{site.base}{session_path(made.id)}?e=1")
    browser.wait_text("#detail .heading", "Ships")
    drawn = "return arguments[0].map((one) => document.querySelectorAll(`#detail ${one}`).length)"
    assert browser.script(drawn, ["strong", "code", "li", "pre.code", "td"]) == [1, 1, 2, 1, 2]
    browser.open(f"{site.base}{session_path(made.id)}?e=2")
    browser.wait_text("#detail .diff .removed", "-two")
    assert browser.text("#detail .diff .added") == "+2\n" and "Done." in browser.text("#detail")
    browser.open(f"{site.base}{session_path(made.id)}?e=3")
    browser.wait_text("#detail .diff", "-two")


class Clicks:
    """A person who does a task: each click is counted."""

    def __init__(self, browser: Browser, site: Site) -> None:
        self.browser, self.count = browser, 0
        browser.open(f"{site.base}/")
        browser.wait("return document.querySelector('#sessions td a') && !document.querySelector('[aria-busy]')")

    def click(self, selector: str, text: str = "") -> None:
        found = "[...document.querySelectorAll(given[0])].find((one) => one.textContent.includes(given[1]))"
        self.browser.wait(f"return {found}", selector, text)
        self.browser.script(f"const given = arguments; {found}.click()", selector, text)
        self.count += 1

    def sees(self, selector: str, text: str) -> None:
        self.browser.wait_text(selector, text)


def test_first_time_user_does_each_task_within_three_clicks(browser: Browser, site: Site) -> None:
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        full = sessions.create(format="openai-chat", metadata={"title": "A full hold"}, model="claude-sonnet-4-5")
        sessions.append(full.id, {"role": "user", "content": "Which ships are here?"})
        usage = {"input": 169_990, "output": 10}
        sessions.append(full.id, {"role": "assistant", "content": "Two."}, usage=usage)
    clicks = Clicks(browser, site)  # which session overflows next
    assert browser.text("#sessions tbody tr:first-child td:first-child") == "over"
    assert "A full hold" in browser.text("#sessions tbody tr:first-child")
    assert clicks.count == 0
    clicks = Clicks(browser, site)  # what did the last compaction lose
    clicks.click("#sessions a[href='/s/s']")
    clicks.click("#last a", "What was lost")
    clicks.sees("#state", "archived")
    clicks = Clicks(browser, site)  # why is this line not there
    clicks.click("#sessions a[href='/s/s']")
    clicks.click(".row.archived", "Ship 9")
    clicks.click(".acts a", "Why it is not there")
    clicks.sees("#detail", "Archived: it lies before")
    assert clicks.count == 3
    clicks = Clicks(browser, site)  # what would half the budget lose
    clicks.click("#sessions a[href='/s/s']")
    clicks.click("nav a", "What if")
    clicks.sees("#lost", "Against A, B archives")
    clicks = Clicks(browser, site)  # undo it
    clicks.click("#sessions a[href='/s/redo']")
    clicks.click("#undo")
    clicks.click("dialog button.do")
    clicks.sees("#last", "Compaction #26 is undone.")
    assert clicks.count == 3
    clicks = Clicks(browser, site)  # and redo it
    clicks.click("#sessions a[href='/s/redo']")
    clicks.click("#redo")
    clicks.click("dialog button.do")
    clicks.sees("#last", "What was lost")
    assert clicks.count == 3


def test_list_is_sorted_and_filtered_in_the_address(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/?find=harbour%20none")
    browser.wait_text("#sessions", "None of them matches.")
    browser.open(f"{site.base}/?sort=newest&state=fine")
    browser.wait("return document.querySelector('button.state.fine[aria-pressed=\"true\"]')")
    browser.wait("return !document.querySelector('[aria-busy]')")
    assert browser.script(
        "return [...document.querySelectorAll('td .state')].every((one) => one.textContent === 'fine')"
    )
    browser.script("document.querySelector('button.state.fine').click()")
    assert "state=" not in browser.driver.current_url and "sort=newest" in browser.driver.current_url


def test_compaction_and_its_lines_light_each_other_and_a_smaller_room_loses_lines(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/s/c/26?e=2")
    browser.wait_text("#detail h2", "#2 archived")
    browser.wait("return document.querySelector('#notes .row.from')")


def test_preview_can_be_cancelled_and_keeps_its_first_figures(browser: Browser, site: Site) -> None:
    """The exact figures are held back as in a long session; the first ones come from sizes alone."""
    worker = site.running.inspector.api.worker
    preview = worker.preview

    async def wait(*_: object) -> Any:
        await anyio.sleep_forever()

    worker.preview = wait  # type: ignore[method-assign]
    try:
        browser.open(f"{site.base}/s/try/try")
        browser.wait_text("#figures1", "first figures")
        assert browser.script("return document.querySelector('#commit button').disabled")
        browser.click("#progress1 button")
        browser.wait_text("#progress1", "Cancelled")
        assert "first figures" in browser.text("#figures1")
    finally:
        worker.preview = preview  # type: ignore[method-assign]


def test_preview_that_does_not_fit_cannot_be_committed(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/try/try?budget1=20&budget2=1000")
    browser.wait_text("#refused", "Cannot be committed: ")
    assert browser.script("return document.querySelector('#commit button').disabled")


def test_change_of_another_writer_is_shown_with_a_message(browser: Browser, site: Site) -> None:
    browser.open(f"{site.base}/s/moved")
    browser.wait_text("#last", "What was lost")
    with BlockingSessionService(SQLiteStore(site.store)) as sessions:
        sessions.undo("moved")
    browser.wait_text("#status", "Somebody else undid the compaction.")
    browser.wait_text("#last", "Compaction #26 is undone.")


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
    browser.open(f"{site.base}/s/try/try?budget1=1000&budget2=1000&choice1=strategy:sliding&choice2=strategy:ledger")
    browser.wait_text("#figures1", "shortened")  # the exact figures: what cancels the work has left
    browser.wait_text("#figures2", "shortened")
    assert unreachable(browser) == []
    before = browser.text("#figures2")
    browser.script("const b = document.getElementById('budget2'); b.value = 2000; b.dispatchEvent(new Event('input'))")
    browser.wait("return document.getElementById('figures2').textContent !== given[0]", before)
    browser.script(
        "const c = document.getElementById('choice1'); c.value = 'strategy:last'; c.dispatchEvent(new Event('input'))"
    )
    browser.script("document.getElementById('instructions').value = 'Keep the berths.'")
    browser.wait("return !document.querySelector('#commit button').disabled")
    browser.click("#commit button")
    confirm(browser)
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
    browser.wait("""return document.querySelector('[data-path="/s/s"]')?.textContent.startsWith('$0.0')""")


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
