"""A server that ends with this process, however that ends; it can be stopped, killed and started meanwhile."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal, Self

GUARD = Path(__file__).with_name("guard.py")


class Server:
    """Runs a guard process in its own session, so that Ctrl-C does not reach it; `durable` leaves fsync on."""

    def __init__(self, kind: Literal["postgres", "valkey"], *, durable: bool = False) -> None:
        folder = tempfile.mkdtemp(prefix=f"holdfast-{kind}-")
        self._guard = subprocess.Popen(
            [sys.executable, str(GUARD), kind, folder, *(["durable"] if durable else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.url = self._answer()

    def stop(self) -> None:
        """Stops as in an orderly restart of the machine."""
        self._send("stop")

    def kill(self) -> None:
        self._send("kill")

    def start(self) -> None:
        self.url = self._send("start")

    def _send(self, command: str) -> str:
        assert self._guard.stdin is not None
        self._guard.stdin.write(command + "\n")
        self._guard.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._guard.stdout is not None
        answer = self._guard.stdout.readline().strip()
        if not answer:
            raise RuntimeError("The server did not start: see its output above.")
        return answer

    def close(self) -> None:
        assert self._guard.stdin is not None and self._guard.stdout is not None
        self._guard.stdin.close()
        self._guard.wait(60)
        self._guard.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
