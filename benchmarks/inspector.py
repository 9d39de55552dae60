"""The inspector in a real browser on a session of 100,000 events, compared with one of 1,000.

Needs Debian's chromium and chromium-driver.
"""

from __future__ import annotations

import asyncio
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from urllib.request import Request, urlopen

from tests.web.browser import Browser, run_browser

from benchmarks.measure import Options, Ratio
from benchmarks.mixes import chat
from holdfast import BlockingSessionService, SessionService, SlidingWindow, SQLiteStore
from holdfast.strategies import KeepLedger
from holdfast.triggers import always

SHORT, LONG, QUICK = 1_000, 100_000, 10_000
RHYTHM, WINDOW = 2_000, 300
JUMPS = 20
MAX_PAINT, MAX_JUMP, MAX_NEWS, MAX_NODES, MAX_FIGURE = 1.0, 0.3, 1.0, 500, 1.0


def run(options: Options) -> Iterator[Ratio]:
    long = QUICK if options.quick else LONG
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "s.db"
        asyncio.run(_build(path, long))
        with _serve(path) as address, run_browser() as browser:
            browser.driver.set_script_timeout(60)
            browser.open(address)
            base = address.partition("/?")[0]
            paint = {name: _first_paint(browser, f"{base}/s/{name}") for name in ("short", "long")}
            yield Ratio(
                "inspector: first paint",
                f"seconds, session of {long:,} events",
                paint["long"],
                MAX_PAINT,
                seconds=paint,
            )
            jumps = _jumps(browser, long)
            yield Ratio(
                "inspector: jump to any event",
                "seconds, median",
                median(jumps),
                MAX_JUMP,
                seconds={"slowest": max(jumps)},
            )
            nodes = browser.script("return document.querySelectorAll('*').length")
            yield Ratio("inspector: DOM nodes", "elements on the page of a session", nodes, MAX_NODES)
            yield Ratio("inspector: append elsewhere", "seconds until it is shown", _news(browser, path), MAX_NEWS)
            yield Ratio(
                "inspector: seventh tab",
                "seconds to its first rows",
                _seventh_tab(browser, f"{base}/s/long"),
                MAX_PAINT,
            )
            yield Ratio(
                "inspector: first figures",
                "seconds, of what if and of what the model saw",
                _first_figures(browser, long),
                MAX_FIGURE,
            )
            idle, busy = _reads(browser, base)
            reads = {"idle": idle, "while explaining": busy}
            yield Ratio("inspector: reads during what-if", "95th percentile / when idle", busy / idle, seconds=reads)


async def _build(path: Path, long: int) -> None:
    async with SessionService(SQLiteStore(path, synchronous="NORMAL"), estimator="chars/4") as service:
        for name, length in (("short", SHORT), ("long", long)):
            await service.create(id=name, format="openai-chat", model="claude-sonnet-4-5")
            messages = chat(length)
            for start in range(0, length, RHYTHM):
                await service.append(name, messages[start : start + RHYTHM])
                strategy = KeepLedger(20_000) if start + RHYTHM >= length else SlidingWindow(WINDOW)
                await service.compact(name, always, strategy)


@contextmanager
def _serve(path: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "holdfast", "web", str(path), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"http\S+", process.stdout.readline())
        assert found is not None
        try:
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)


def _first_paint(browser: Browser, url: str) -> float:
    """Seconds from the request to the first rows, the faster of three loads."""
    times = []
    for _ in range(3):
        started = time.perf_counter()
        browser.open(url)
        browser.wait("return document.querySelectorAll('.row').length > 5")
        times.append(time.perf_counter() - started)
    return min(times)


def _jumps(browser: Browser, long: int) -> list[float]:
    """Seconds from a number in the search field to its row and its text."""
    times = []
    for seq in random.Random(7).sample(range(1, long), JUMPS):
        took = browser.driver.execute_async_script(
            """const [seq, done] = arguments;
            const field = document.getElementById('search'), start = performance.now();
            field.value = '#' + seq; field.form.requestSubmit();
            const look = () => document.querySelector('.row[aria-selected=true] .seq')?.textContent === '#' + seq
              && document.querySelector('#detail h2')?.textContent === '#' + seq
              ? done((performance.now() - start) / 1000) : requestAnimationFrame(look);
            look();""",
            seq,
        )
        times.append(float(took))
    return times


def _news(browser: Browser, path: Path) -> float:
    browser.press("G")
    with BlockingSessionService(SQLiteStore(path)) as sessions:
        sessions.append("long", {"role": "user", "content": "A schooner is in sight."})
        started = time.perf_counter()
        browser.wait_text("#list", "A schooner is in sight.")
    return time.perf_counter() - started


def _seventh_tab(browser: Browser, url: str) -> float:
    """Opens six tabs and measures the next: with a stream for each, a browser would have no connection left."""
    for _ in range(6):
        browser.driver.switch_to.new_window("tab")
        browser.open(url)
        browser.wait("return document.querySelectorAll('.row').length > 5")
    return _first_paint(browser, url)


def _first_figures(browser: Browser, long: int) -> float:
    """Seconds of the slower of the two first figures, which come from sizes alone."""
    took = browser.driver.execute_async_script(
        """const [at, done] = arguments; (async () => { const times = [];
        for (const path of [`preview?quick=1&strategy=ledger&budget=9000&at=${at}`, `at/${at}?quick=1`]) {
          const start = performance.now(); await (await fetch(`/api/s/long/${path}`)).json();
          times.push((performance.now() - start) / 1000); }
        done(Math.max(...times)); })();""",
        long,
    )
    return float(took)


def _reads(browser: Browser, base: str) -> tuple[float, float]:
    """95th percentile of reading rows, idle and while a compaction is previewed again and again."""
    read = """const [path, done] = arguments; (async () => { const times = [];
      for (let number = 0; number < 100; number++) { const start = performance.now();
        await (await fetch(`/api/s/long/rows?from=${number * 7 + 1}&to=${number * 7 + 100}`)).json();
        times.push((performance.now() - start) / 1000); }
      done(times); })();"""
    idle = browser.driver.execute_async_script(read, "")
    cookie = browser.driver.get_cookies()[0]
    stop = threading.Event()
    thread = threading.Thread(target=_preview_forever, args=(base, f"{cookie['name']}={cookie['value']}", stop))
    thread.start()
    try:
        busy = browser.driver.execute_async_script(read, "")
    finally:
        stop.set()
        thread.join()
    return quantiles(idle, n=20)[-1], quantiles(busy, n=20)[-1]


def _preview_forever(base: str, cookie: str, stop: threading.Event) -> None:
    budget = 4_000
    while not stop.is_set():
        budget += 10
        url = f"{base}/api/s/long/preview?strategy=ledger&budget={budget}"
        with urlopen(Request(url, headers={"cookie": cookie}), timeout=60) as reply:
            reply.read()
