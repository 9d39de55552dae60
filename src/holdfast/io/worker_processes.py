"""Several processes that accept the connections of one port, under a parent that starts those anew that end."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable

log = logging.getLogger("holdfast")
_BACKLOG = 1_024
_RESTART_SECONDS = 1.0
"""Shortest time between two starts of one worker; one that fails sooner than that is not started again."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if sys.platform != "win32" else ()
Serve = Callable[[int, int], int]
"""Serves as the worker of a number until a descriptor can be read: its parent has ended. Returns the exit code."""


def listen_on(host: str, port: int) -> socket.socket:
    """Returns a socket whose connections every process that inherits it can accept."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


def run_workers(count: int, listening: socket.socket, serve: Serve) -> int:
    """Runs so many workers until SIGINT or SIGTERM, and returns the exit code; a second signal kills them.

    SIGHUP is passed on. A worker that ends by itself, or is killed, is started anew.
    """
    return _Parent(listening, serve).run(count)


class _Parent:
    def __init__(self, listening: socket.socket, serve: Serve) -> None:
        self._listening, self._serve = listening, serve
        self._workers: dict[int, tuple[int, float]] = {}
        """Number and time of the start of each, by its process."""
        self._read_end, self._write_end = os.pipe()
        """Only the parent has the end that writes: when it is closed, or the parent is killed, the workers stop."""
        self._is_stopping = False

    def run(self, count: int) -> int:
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        failure = 0
        try:
            for number in range(count):
                self._start(number)
            while self._workers:
                process, status = os.waitpid(-1, 0)
                number, started = self._workers.pop(process)
                code, ran = os.waitstatus_to_exitcode(status), time.monotonic() - started
                if code > 0 and (self._is_stopping or ran < _RESTART_SECONDS):
                    failure = code
                    self._stop()
                elif not self._is_stopping:
                    log.warning("worker %d has ended (%d) and is started anew", number, code)
                    time.sleep(max(0.0, _RESTART_SECONDS - ran))
                    self._start(number)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return failure

    def _on_signal(self, number: int, frame: object) -> None:
        if number == signal.SIGHUP or self._is_stopping:
            for process in list(self._workers):
                os.kill(process, signal.SIGHUP if number == signal.SIGHUP else signal.SIGKILL)
        else:
            self._stop()

    def _stop(self) -> None:
        if not self._is_stopping:
            self._is_stopping = True
            self._listening.close()
            os.close(self._write_end)

    def _start(self, number: int) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # a new worker has no handlers of its own yet
        try:
            if self._is_stopping:
                return
            if process := os.fork():
                self._workers[process] = number, time.monotonic()
            else:
                self._become_worker(number)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def _become_worker(self, number: int) -> None:
        code = 1
        try:
            os.setpgid(0, 0)  # Ctrl-C is the parent's alone
            os.close(self._write_end)
            for one in _SIGNALS:
                signal.signal(one, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            code = self._serve(number, self._read_end)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
