"""A client in another process than the agent: `holdfast rpc`, its pipes, and what came through them."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]
PATIENCE = 30
"""Seconds after which a test fails rather than waits."""
_OURS = ("HOLDFAST_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "XDG_")


def environment(home: Path) -> dict[str, str]:
    """Nothing of the person's own: no settings, no keys."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
    return kept | {"HOME": str(home), "PYTHONUNBUFFERED": "1"}


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "holdfast", *map(str, args)]


class Client:
    """Its records come through a thread, so that waiting for one can end."""

    def __init__(self, folder: Path, *args: object) -> None:
        self.process = subprocess.Popen(
            command("rpc", "--folder", folder, *args),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(folder),
        )
        self.records: list[Json] = []
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.hello = self.until(lambda record: record["type"] == "hello")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def send(self, **request: Any) -> None:
        self.write(json.dumps(request).encode() + b"\n")

    def ask(self, **request: Any) -> Json:
        """A request and its answer, whatever comes in between."""
        id = f"r{len(self.records)}"
        self.send(id=id, **request)
        return self.answer(id)

    def answer(self, id: Any) -> Json:
        return self.until(lambda record: record["type"] in ("response", "error") and record.get("id", "") == id)

    def event(self, kind: str) -> Json:
        return self.until(lambda record: record["type"] == kind)

    def until(self, wanted: Callable[[Json], bool]) -> Json:
        """The next record that is wanted."""
        while True:
            record = self.next()
            if wanted(record):
                return record

    def next(self) -> Json:
        line = self._lines.get(timeout=PATIENCE)
        assert line is not None, self._last_words()
        record: Json = json.loads(line)
        self.records.append(record)
        return record

    def end(self) -> int:
        """Close its input, take what is left, and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while (line := self._lines.get(timeout=PATIENCE)) is not None:
            self.records.append(json.loads(line))
        return self.process.wait(PATIENCE)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _last_words(self) -> str:
        assert self.process.stderr is not None
        return f"it ended: {self.process.stderr.read().decode()}"
