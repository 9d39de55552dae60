"""Screenshots of the inspector: `python -m scripts.inspector_screenshots FOLDER`, or `--readme` for those in README.md.

Every page, light and dark, wide and narrow. The sessions are the bundled examples, with the usage that a provider would
report. Needs a browser, as the tests do.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.web.browser import Browser, run_browser

from holdfast import SessionService, SQLiteStore
from holdfast.cli.web import load_example
from holdfast.sessions.history import TITLE
from holdfast.transcripts import read_transcript

EXAMPLES = {
    "review": "Review: shared firings",
    "support": "Order FL-48213: wrong lamp",
    "journal": "Twelve days in Yunnan",
    "harbor": "tidebook: tickets for release 4.1.3",
}
ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src" / "holdfast" / "transcripts" / "examples"
SCREENS = {f"{width}{'-dark' * dark}": (width, dark) for width in (420, 1280, 2560) for dark in (False, True)}
README = ("session", "compaction")
"""Pages that the README shows, light and wide."""


async def build(path: Path) -> int:
    """Fills a store with the bundled examples; returns the number of the last compaction of the longest."""
    async with SessionService(SQLiteStore(path)) as sessions:
        for name, title in EXAMPLES.items():
            given = read_transcript(FOLDER / f"{name}.json")
            await load_example(sessions, name, given, owner="mira", metadata={TITLE: title})
        await sessions.fork("harbor", (await sessions.events("harbor", last=200))[0].id)
        return (await sessions.events("harbor", kind="compaction"))[-1].seq


RANKED = """const [path, done] = arguments; fetch(path).then((reply) => reply.json()).then((found) =>
  done(found.page.lines.filter((line) => line.text.trim()).findIndex((line) =>
    line.rank && found.fates.some((fate) => fate[0] === line.sources[0]))))"""
READY = """return !document.querySelector('[aria-busy]') && !document.body.textContent.includes('being explained')
  && document.querySelector('.row, .figures dd, table, .hits') !== null"""


def take(browser: Browser, base: str, compaction: int, folder: Path, *, readme: bool) -> None:
    browser.driver.set_script_timeout(60)
    line = browser.driver.execute_async_script(RANKED, f"/api/s/harbor/c/{compaction}")
    pages = {
        "sessions": "/",
        "session": "/s/harbor",
        "compaction": f"/s/harbor/c/{compaction}?line={line}",
        "context": f"/s/harbor/at/{compaction}?vs={compaction - 1}",
        "what-if": "/s/harbor/try",
        "cost": "/s/harbor/cost",
        "search": "/search?q=tidebook",
        "jobs": "/jobs",
        "lab": "/lab",
        "report": "/lab/lab.html",
    }
    how = {"format": "webp", "quality": 80} if readme else {"format": "png"}
    for screen, (width, dark) in SCREENS.items():
        browser.set_screen(width, dark=dark)
        for name, page in pages.items():
            if readme and (screen != "1280" or name not in README):
                continue
            browser.open(base + page)
            browser.wait(READY)
            browser.driver.execute_async_script("setTimeout(arguments[0], 700)")
            image = browser.driver.execute_cdp_cmd("Page.captureScreenshot", how)
            file = f"web-{name}.webp" if readme else f"web-{name}-{screen}.png"
            (folder / file).write_bytes(base64.b64decode(image["data"]))


def main(folder: Path, *, readme: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        path, reports = Path(temporary) / "sessions.db", Path(temporary) / "reports"
        reports.mkdir()
        if not readme:
            lab = ["lab", str(FOLDER), "--budget", "2k,4k,8k", "--cuts", "3", "--page", str(reports / "lab.html")]
            subprocess.run([sys.executable, "-m", "holdfast", *lab], check=True, stdout=subprocess.DEVNULL)
        compaction = asyncio.run(build(path))
        command = [sys.executable, "-m", "holdfast", "web", str(path), "--port", "0", "--reports", str(reports)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            found = re.search(r"http\S+", process.stdout.readline())
            assert found is not None
            try:
                with run_browser() as browser:
                    browser.open(found[0])
                    take(browser, found[0].partition("/?")[0], compaction, folder, readme=readme)
            finally:
                process.send_signal(signal.SIGTERM)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="where to write every page")
    where.add_argument("--readme", action="store_true", help="write those that README.md shows to docs/")
    given = parser.parse_args()
    main(given.folder or ROOT / "docs", readme=given.readme)
