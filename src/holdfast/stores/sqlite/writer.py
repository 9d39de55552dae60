"""The writer thread: queued jobs are committed together (group commit)."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from ...errors import HoldfastError, InvalidInput, StoreClosed, StoreError, StoreReadOnly
from ..base import ProcessGuard
from .connection import BUSY_SECONDS, begin, is_busy, translate_sqlite_error

log = logging.getLogger("holdfast.stores.sqlite")
T = TypeVar("T")
DatabaseWork = Callable[[sqlite3.Connection], T]
MAX_GROUP_COMMIT = 512
"""Maximum number of jobs in one transaction."""
IDLE_SECONDS = 0.05
"""How long the queue must be empty before the search index is filled."""
MAX_UNINDEXED_JOBS = 20_000
"""Jobs after which the search index is filled even if the queue is never empty."""


class WriteJob:
    """A function to run on the connection, and the future of its caller.

    It may raise a HoldfastError only before its first write: the transaction then continues without it.
    """

    __slots__ = ("alone", "error", "future", "loop", "result", "since", "work")

    def __init__(self, work: DatabaseWork[Any], *, alone: bool = False) -> None:
        self.work = work
        self.alone = alone
        """Outside a transaction, after everything queued before it."""
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None
        self.since = time.monotonic()


class WriterThread:
    """Job queue and its thread, which opens its connection with the first job and closes it at the end."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], sqlite3.Connection],
        idle_work: DatabaseWork[float | None],
        process: ProcessGuard,
    ) -> None:
        self._path = path
        self._connect = connect
        self._idle_work = idle_work
        """Runs piece by piece while no job is queued; returns the pause before the next piece, None if it is done."""
        self._queue: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._held: deque[WriteJob | None] = deque()
        """Jobs taken from the queue that run next."""
        self._process = process
        self._file: tuple[int, int] | None = None
        """Device and inode of the open file."""
        self._unindexed_jobs = 1
        """Jobs committed since the index was complete; starts at 1, since a crash may have left events unindexed."""

    async def run(self, work: DatabaseWork[T]) -> T:
        """Runs the job in a transaction and returns its result after the commit."""
        job = WriteJob(work)
        self._put(job)
        result: T = await job.future
        return result

    async def run_alone(self, work: DatabaseWork[T]) -> T:
        """Runs the job outside a transaction, after those queued before it."""
        job = WriteJob(work, alone=True)
        self._put(job)
        result: T = await job.future
        return result

    def start_indexing(self) -> None:
        """Starts the thread if it is not running, so that the index is filled in a process that only reads."""
        if self._thread is None:
            job = WriteJob(lambda connection: None)
            job.future.add_done_callback(lambda done: done.exception())  # ignore a file that cannot be written
            self._put(job)

    def _put(self, job: WriteJob) -> None:
        self._process.enter()
        with self._lock:
            if self._closed:
                raise StoreClosed
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
                self._thread.start()
            self._queue.put(job)

    def stop(self) -> None:
        """Finishes the queued jobs and ends the thread; blocks until then."""
        with self._lock:
            if not self._closed and self._thread is not None:
                self._queue.put(None)
            self._closed = True
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        try:
            while (job := self._next_job()) is not None:
                if not (self._run_alone(job) if job.alone else self._commit_group(job)):
                    break
        finally:
            if self._connection is not None:
                self._connection.close()

    def _next_job(self) -> WriteJob | None:
        """Returns the next job; does the idle work, above all filling the search index, while the queue is empty."""
        if self._held:
            return self._held.popleft()
        timeout = IDLE_SECONDS
        while self._unindexed_jobs and self._connection is not None:
            try:
                if self._unindexed_jobs < MAX_UNINDEXED_JOBS:
                    return self._queue.get(timeout=timeout)
            except queue.Empty:
                pass
            try:
                pause = self._idle_work(self._connection)
                self._unindexed_jobs = 0 if pause is None else 1
                timeout = pause or 0.0
            except Exception as error:
                log.warning("The search index could not be updated and will be retried: %s", error)
                self._roll_back(self._connection)
                self._unindexed_jobs = 0
        return self._queue.get()

    def _commit_group(self, first: WriteJob) -> bool:
        """Runs the job and those queued behind it in one transaction; False if a stop was queued."""
        jobs, more = [first], True
        try:
            connection = self._open()
            begin(connection)
            _run_job(first, connection)
            until = time.monotonic() + 0.02
            while more and len(jobs) < MAX_GROUP_COMMIT and time.monotonic() < until:
                try:
                    job = self._held.popleft() if self._held else self._queue.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    more = False
                elif job.alone:
                    self._held.appendleft(job)
                    break
                else:
                    jobs.append(job)
                    _run_job(job, connection)
            connection.execute("COMMIT")
            self._unindexed_jobs += len(jobs)
        except BaseException as error:  # any failure must reach the waiting callers
            if self._connection is not None:
                self._roll_back(self._connection)
            if len(jobs) == 1:
                first.error = self._translate(error)
                jobs += self._also_failed(error)
            else:
                for job in jobs:
                    self._commit_alone(job)
        _deliver_results(jobs)
        return more

    def _open(self) -> sqlite3.Connection:
        """Returns the connection; raises StoreError if its file is no longer there, since nobody could read it."""
        if self._connection is None:
            self._connection = self._connect()
            self._file = _file_identity(self._path)
        elif self._file is not None and _file_identity(self._path) != self._file:
            raise StoreError(
                f"{self._path} was deleted or replaced while it was open; nothing was written: open the store again."
            )
        return self._connection

    def _also_failed(self, error: BaseException) -> list[WriteJob]:
        """Fails the jobs that have waited for the same lock as long as the first; drops a connection without rights."""
        if not isinstance(error, sqlite3.Error):
            return []
        translated = translate_sqlite_error(error, self._path)
        if isinstance(translated, StoreReadOnly) and self._connection is not None and self._file is not None:
            self._connection.close()
            self._connection = None  # the file may be writable at the next attempt
        if not is_busy(error):
            return []
        with suppress(queue.Empty):
            while True:
                self._held.append(self._queue.get_nowait())
        limit = time.monotonic() - BUSY_SECONDS
        failed = [job for job in self._held if job is not None and job.since <= limit]
        self._held = deque(job for job in self._held if job is None or job.since > limit)
        for job in failed:
            job.error = translated
        return failed

    def _run_alone(self, job: WriteJob) -> bool:
        try:
            _run_job(job, self._open())
        except BaseException as error:
            job.error = self._translate(error)
        _deliver_results([job])
        return True

    def _commit_alone(self, job: WriteJob) -> None:
        """Runs a job in its own transaction after its group failed, so that only the failing job fails."""
        connection = self._connection
        assert connection is not None
        job.error = None
        try:
            begin(connection)
            _run_job(job, connection)
            connection.execute("COMMIT")
            self._unindexed_jobs += 1
        except BaseException as error:
            self._roll_back(connection)
            job.error = self._translate(error)

    def _translate(self, error: BaseException) -> BaseException:
        if isinstance(error, UnicodeEncodeError):
            return InvalidInput(f"The text is not valid Unicode and cannot be stored: {error}.")
        return translate_sqlite_error(error, self._path) if isinstance(error, sqlite3.Error) else error

    @staticmethod
    def _roll_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _run_job(job: WriteJob, connection: sqlite3.Connection) -> None:
    try:
        job.result = job.work(connection)
    except HoldfastError as error:
        job.error = error


def _deliver_results(jobs: list[WriteJob]) -> None:
    """Wakes each event loop once, whatever the number of its jobs."""
    if len({job.loop for job in jobs}) == 1:
        _notify_loop(jobs[0].loop, jobs)
        return
    for loop in {job.loop for job in jobs}:
        _notify_loop(loop, [job for job in jobs if job.loop is loop])


def _notify_loop(loop: asyncio.AbstractEventLoop, jobs: list[WriteJob]) -> None:
    try:
        loop.call_soon_threadsafe(_resolve_futures, jobs)
    except RuntimeError:
        log.debug("An event loop was closed before its writes were acknowledged.")


def _resolve_futures(jobs: list[WriteJob]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
