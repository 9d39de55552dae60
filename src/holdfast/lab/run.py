"""Runs the lab over session files in several processes."""

from __future__ import annotations

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from .results import LabSettings, NotMeasured, SessionOutcome, SessionResults
from .surprise_server import CompletionServer
from .trial import measure_session

T = TypeVar("T")


class LabResults:
    """Results of all sessions in a fixed order, and the files not measured."""

    def __init__(self, settings: LabSettings, outcomes: Sequence[SessionOutcome]) -> None:
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


def run_lab(
    files: Sequence[Path], settings: LabSettings, *, jobs: int = 1, progress: Callable[[], None] = lambda: None
) -> LabResults:
    """Measures all files. A model that predicts is tried first, so that a missing server stops the run at once."""
    if settings.surprise_by is not None:
        CompletionServer(settings.surprise_by, settings.surprise_url).check()
    outcomes = []
    for outcome in map_files(partial(measure_session, settings=settings, files=tuple(files)), files, jobs):
        outcomes.append(outcome)
        progress()
    return LabResults(settings, outcomes)


def map_files(work: Callable[[Path], T], files: Sequence[Path], jobs: int) -> Iterator[T]:
    """Yields results as they complete, largest files first for an even load."""
    ordered = sorted(files, key=lambda file: (-file.stat().st_size, str(file)))
    if jobs <= 1 or len(ordered) <= 1:
        yield from map(work, ordered)
        return
    with _process_pool(min(jobs, len(ordered)), work) as pool:
        yield from pool.imap_unordered(_run_work, ordered)


@contextmanager
def _process_pool(count: int, work: Callable[[Path], object]) -> Iterator[Any]:
    """Process pool whose workers receive the work once and ignore SIGINT; this process terminates them."""
    with _sigint_ignored():
        pool = multiprocessing.get_context("spawn").Pool(count, initializer=_start_worker, initargs=(work,))
    try:
        yield pool
    finally:
        pool.terminate()
        pool.join()


@contextmanager
def _sigint_ignored() -> Iterator[None]:
    """Ignores SIGINT in the block, so that child processes inherit it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


_work: Callable[[Path], object]


def _start_worker(work: Callable[[Path], object]) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _work = work


def _run_work(file: Path) -> object:
    return _work(file)
