"""A server that lives as long as this process, however it ends; it can be stopped, killed and started meanwhile."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Literal, Self

GUARD = Path(__file__).with_name("guard.py")


class Server:
    """A guard in a process group of its own: whoever presses Ctrl-C here does not take it by surprise."""

    def __init__(self, kind: Literal["postgres", "valkey"]) -> None:
        self._guard = subprocess.Popen(
            [sys.executable, str(GUARD), kind, tempfile.mkdtemp(prefix=f"holdfast-{kind}-")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.url = self._answer()

    def stop(self) -> None:
        """As when a machine is restarted in good order."""
        self._say("stop")

    def kill(self) -> None:
        self._say("kill")

    def start(self) -> None:
        self.url = self._say("start")

    def _say(self, word: str) -> str:
        assert self._guard.stdin is not None
        self._guard.stdin.write(word + "\n")
        self._guard.stdin.flush()
        return self._answer()

    def _answer(self) -> str:
        assert self._guard.stdout is not None
        answer = self._guard.stdout.readline().strip()
        if not answer:
            raise RuntimeError("The server did not start: what it said is above.")
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
