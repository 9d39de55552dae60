"""While a model writes: what it is doing, for whoever waits at a terminal, and a way to stop it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from ..anatomy import first_line
from ..calls import Notice
from ..compaction import Abort

_DOING = {"summary": "the summary", "rollup": "a shorter summary", "repair": "its answer again"}


class Writing:
    """What the calls of one compaction are doing, in a line. They report from a thread of their own."""

    def __init__(self, who: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._who = who
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._last: Notice | None = None
        self._characters: dict[int, int] = {}
        self._until = 0.0

    def __call__(self, notice: Notice) -> None:
        with self._lock:
            self._last = notice
            if notice.kind in ("calling", "delta", "answered"):
                self._characters[notice.call] = notice.characters
            if notice.kind == "waiting":
                self._until = self._clock() + notice.seconds

    def line(self) -> str:
        with self._lock:
            last, characters = self._last, sum(self._characters.values())
            left = max(0, round(self._until - self._clock()))
        spent = f"{self._clock() - self._started:.0f} s"
        if last is None:
            return f"compacting · {spent}"
        if last.kind == "waiting":
            return f"waiting {left} s, then attempt {last.attempt + 1}: {first_line(last.text)}"
        if last.kind == "answered":
            return f"reading the summary · {spent}"
        words = (
            f"{'writing' if characters else 'asking for'} {_DOING.get(last.purpose, last.purpose)}",
            f"call {last.call}" if last.call > 1 else "",
            f"attempt {last.attempt}" if last.attempt > 1 else "",
            f"{characters:,} characters" if characters else "",
            spent,
            self._who,
        )
        return " · ".join(filter(None, words))


@contextmanager
def stoppable() -> Iterator[Abort]:
    """Ctrl-C stops the block through the library, at once and in order; a second one stops everything.

    What was stopped is nobody's result, even if it came to its end meanwhile.
    """
    abort = Abort()
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield abort
        return

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        abort()

    signal.signal(signal.SIGINT, stop)
    try:
        yield abort
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if abort.aborted:
        click.echo("holdfast: aborted: nothing has changed.", err=True)
        raise click.Abort
