"""Screenshots of the five main pages, light and dark, wide and narrow: `python -m tests.web.screenshots FOLDER`.

The session is the bundled example, with the usage that a provider would report. Needs a browser, as the tests do.
"""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.web.browser import Browser, run_browser

from holdfast import SessionService, SQLiteStore
from holdfast.sessions.history import TITLE
from holdfast.tokens import Tokenizer
from holdfast.transcripts import read_transcript
from holdfast.triggers import TokenCount

EXAMPLES = {
    "review": "Review: shared firings",
    "support": "Order FL-48213: wrong lamp",
    "journal": "Twelve days in Yunnan",
    "harbor": "tidebook: tickets for release 4.1.3",
}
FOLDER = Path(__file__).resolve().parents[2] / "src" / "holdfast" / "transcripts" / "examples"
BUDGET = 60_000
SCREENS = {"light": (1280, False), "dark": (1280, True), "narrow": (420, False), "narrow-dark": (420, True)}


async def build(path: Path) -> int:
    """Fills a store with the bundled examples; returns the number of the last compaction of the longest."""
    async with SessionService(SQLiteStore(path)) as sessions:
        plain = SessionService(sessions.store, estimator=Tokenizer())
        for name, title in EXAMPLES.items():
            given = read_transcript(FOLDER / f"{name}.json")
            model = "claude-sonnet-4-5"
            await sessions.create(id=name, format=given.format, model=model, owner="mira", metadata={TITLE: title})
            cached = 0
            for number, message in enumerate(given.messages):
                usage = None
                if message.get("role") == "assistant":
                    size = (await plain.size(name)).tokens * 11 // 10 + 2_400
                    usage = {"input": 12, "output": 180, "cache_read": min(cached, size)}
                    usage["cache_write"] = size - usage["cache_read"]
                    cached = size
                await sessions.append(name, message, usage=usage)
                if number % 5 == 4 and (await sessions.size(name)).tokens > BUDGET:
                    await sessions.compact(name, TokenCount(BUDGET), budget=BUDGET, target=BUDGET // 3)
                    cached = 2_400
        await sessions.fork("harbor", (await sessions.events("harbor", last=200))[0].id)
        return (await sessions.events("harbor", kind="compaction"))[-1].seq


RANKED = """const [path, done] = arguments; fetch(path).then((reply) => reply.json()).then((found) =>
  done(found.page.lines.filter((line) => line.text.trim()).findIndex((line) =>
    line.rank && found.fates.some((fate) => fate[0] === line.sources[0]))))"""
READY = """return !document.querySelector('[aria-busy]') && !document.body.textContent.includes('being explained')
  && document.querySelector('.row, .figures dd, table') !== null"""


def take(browser: Browser, base: str, compaction: int, folder: Path) -> None:
    line = browser.driver.execute_async_script(RANKED, f"/api/s/harbor/c/{compaction}")
    pages = {
        "sessions": "/",
        "session": "/s/harbor",
        "compaction": f"/s/harbor/c/{compaction}?line={line}",
        "context": f"/s/harbor/at/{compaction}?vs={compaction - 1}",
        "what-if": "/s/harbor/try?budget=20000",
        "cost": "/s/harbor/cost",
    }
    for screen, (width, dark) in SCREENS.items():
        browser.set_screen(width, dark=dark)
        for name, page in pages.items():
            browser.open(base + page)
            browser.wait(READY)
            browser.driver.execute_async_script("setTimeout(arguments[0], 700)")
            browser.driver.save_screenshot(str(folder / f"web-{name}-{screen}.png"))


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "sessions.db"
        compaction = asyncio.run(build(path))
        command = [sys.executable, "-m", "holdfast", "web", str(path), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = re.search(r"http\S+", process.stdout.readline())
            assert found is not None
            try:
                with run_browser() as browser:
                    browser.open(found[0])
                    take(browser, found[0].partition("/?")[0], compaction, folder)
            finally:
                process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
