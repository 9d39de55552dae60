"""The one thread that writes: appends that wait in its queue are committed together."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ...errors import HoldfastError, InvalidInput, StoreClosed
from .connection import translate

log = logging.getLogger("holdfast.stores.sqlite")

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

MOST_TOGETHER = 512
"""Jobs in one transaction."""
QUIET_SECONDS = 0.05
"""How long nothing must have come in before the search index is filled."""
MOST_BEHIND = 20_000
"""Jobs after which the search index is filled even if it is never quiet."""


class Job:
    """A piece of work on the connection, and who waits for its outcome.

    It raises a HoldfastError only before its first write: then the transaction goes on without it.
    """

    __slots__ = ("error", "future", "loop", "result", "work")

    def __init__(self, work: Work[Any]) -> None:
        self.work = work
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.result: Any = None
        self.error: BaseException | None = None


class Writer:
    """A queue and its thread. The thread opens its connection with the first job and closes it at the end."""

    def __init__(self, path: str, connect: Callable[[], sqlite3.Connection], tidy: Work[bool]) -> None:
        self._path = path
        self._connect = connect
        self._tidy = tidy
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._door = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._behind = 1
        """Jobs done since the search index was complete; one at the start, as a crash may have left some."""

    async def run(self, work: Work[T]) -> T:
        """Do the work in a transaction, and return when it is committed."""
        job = Job(work)
        self._put(job)
        result: T = await job.future
        return result

    def wake(self) -> None:
        """Start the thread if it has not been needed yet: whoever only reads has an index filled too."""
        if self._thread is None:
            job = Job(lambda connection: None)
            job.future.add_done_callback(lambda done: done.exception())  # a file that cannot be written stays as it is
            self._put(job)

    def _put(self, job: Job) -> None:
        with self._door:
            if self._closed:
                raise StoreClosed
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="holdfast-writer", daemon=True)
                self._thread.start()
            self._queue.put(job)

    def stop(self) -> None:
        """Finish what is queued, then end the thread; blocks until then."""
        with self._door:
            if not self._closed and self._thread is not None:
                self._queue.put(None)
            self._closed = True
        if self._thread is not None:
            self._thread.join()

    def _serve(self) -> None:
        try:
            while (job := self._next()) is not None:
                if not self._commit_together(job):
                    break
        finally:
            if self._connection is not None:
                self._connection.close()

    def _next(self) -> Job | None:
        """The next job; while there is none, the search index is filled piece by piece."""
        patience = QUIET_SECONDS
        while self._behind and self._connection is not None:
            try:
                if self._behind < MOST_BEHIND:
                    return self._queue.get(timeout=patience)
            except queue.Empty:
                patience = 0.0005
            try:
                self._behind = 1 if self._tidy(self._connection) else 0
            except Exception as error:
                log.warning("The search index could not be brought up to date, will try again: %s", error)
                self._roll_back(self._connection)
                self._behind = 0
        return self._queue.get()

    def _commit_together(self, first: Job) -> bool:
        """Run the job and all that wait behind it in one transaction; False if the last word was to stop."""
        jobs, more = [first], True
        try:
            if self._connection is None:
                self._connection = self._connect()
            connection = self._connection
            connection.execute("BEGIN IMMEDIATE")
            _run(first, connection)
            until = time.monotonic() + 0.02
            while more and len(jobs) < MOST_TOGETHER and time.monotonic() < until:
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
                if job is None:
                    more = False
                else:
                    jobs.append(job)
                    _run(job, connection)
            connection.execute("COMMIT")
            self._behind += len(jobs)
        except BaseException as error:  # whatever it was, whoever waits must hear of it
            if self._connection is not None:
                self._roll_back(self._connection)
            if len(jobs) == 1:
                first.error = self._clear(error)
            else:
                for job in jobs:
                    self._commit_alone(job)
        _deliver(jobs)
        return more

    def _commit_alone(self, job: Job) -> None:
        """Run a job by itself, after the transaction it was part of failed: so one failure stays one."""
        connection = self._connection
        assert connection is not None
        job.error = None
        try:
            connection.execute("BEGIN IMMEDIATE")
            _run(job, connection)
            connection.execute("COMMIT")
            self._behind += 1
        except BaseException as error:
            self._roll_back(connection)
            job.error = self._clear(error)

    def _clear(self, error: BaseException) -> BaseException:
        if isinstance(error, UnicodeEncodeError):
            return InvalidInput(f"This is not Unicode text and cannot be in a log: {error}.")
        return translate(error, self._path) if isinstance(error, sqlite3.Error) else error

    @staticmethod
    def _roll_back(connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _run(job: Job, connection: sqlite3.Connection) -> None:
    try:
        job.result = job.work(connection)
    except HoldfastError as error:
        job.error = error


def _deliver(jobs: list[Job]) -> None:
    """Wake each event loop once, whatever the number of its jobs."""
    if len({job.loop for job in jobs}) == 1:
        _wake(jobs[0].loop, jobs)
        return
    for loop in {job.loop for job in jobs}:
        _wake(loop, [job for job in jobs if job.loop is loop])


def _wake(loop: asyncio.AbstractEventLoop, jobs: list[Job]) -> None:
    try:
        loop.call_soon_threadsafe(_settle, jobs)
    except RuntimeError:
        log.debug("An event loop was closed before its writes were acknowledged.")


def _settle(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
