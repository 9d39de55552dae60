"""All sessions of some folders, in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .results import NotMeasured, Outcome, SessionResults
from .settings import Settings
from .trial import try_session

Result = TypeVar("Result")


class Results:
    """Everything that was measured, in a fixed order, and what was not."""

    def __init__(self, settings: Settings, outcomes: Sequence[Outcome]) -> None:
        self.settings = settings
        found = [outcome for outcome in outcomes if isinstance(outcome, SessionResults)]
        self.sessions = sorted(found, key=lambda outcome: (outcome.kind, outcome.session))
        self.not_measured = sorted(
            (outcome for outcome in outcomes if isinstance(outcome, NotMeasured)), key=lambda outcome: outcome.file
        )

    @property
    def kinds(self) -> list[str]:
        return list(dict.fromkeys(session.kind for session in self.sessions))

    @property
    def failures(self) -> list[str]:
        return sorted({failure for session in self.sessions for failure in session.failures})


def run(
    files: Sequence[Path], settings: Settings, *, jobs: int = 1, progress: Callable[[], None] = lambda: None
) -> Results:
    outcomes = []
    for outcome in spread(partial(try_session, settings=settings), files, jobs):
        outcomes.append(outcome)
        progress()
    return Results(settings, outcomes)


def spread(work: Callable[[Path], Result], files: Sequence[Path], jobs: int) -> Iterator[Result]:
    """Results as they come, the largest files first, so that no process is left alone with one at the end."""
    ordered = sorted(files, key=lambda file: (-file.stat().st_size, str(file)))
    if jobs <= 1 or len(ordered) <= 1:
        yield from map(work, ordered)
        return
    with _processes(min(jobs, len(ordered))) as pool:
        yield from pool.imap_unordered(work, ordered)


@contextmanager
def _processes(count: int) -> Iterator[Any]:
    """Processes that leave Ctrl-C to this one, which then ends them all."""
    with _interrupts_ignored():
        pool = multiprocessing.get_context("spawn").Pool(count, initializer=_leave_interrupts)
    try:
        yield pool
    finally:
        pool.terminate()
        pool.join()


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """What is started meanwhile ignores them from its first instruction on."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leave_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
