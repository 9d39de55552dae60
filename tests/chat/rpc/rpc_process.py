"""Test harness: `holdfast rpc` as a subprocess, with its pipes and records."""

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
TIMEOUT = 30
"""Seconds after which a waiting test fails."""
_REMOVED_PREFIXES = ("HOLDFAST_", "OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "XDG_")


def environment(home: Path) -> dict[str, str]:
    """Returns the environment without user settings and API keys."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_REMOVED_PREFIXES)}
    return kept | {"HOME": str(home), "PYTHONUNBUFFERED": "1"}


def command(*args: object) -> list[str]:
    return [sys.executable, "-m", "holdfast", *map(str, args)]


class RpcProcess:
    """Reads records in a thread, so that waiting can time out."""

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
        threading.Thread(target=self._read_output, daemon=True).start()
        self.hello = self.wait_for(lambda record: record["type"] == "hello")

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

    def request(self, **request: Any) -> Json:
        """Sends a request and waits for its answer."""
        id = f"r{len(self.records)}"
        self.send(id=id, **request)
        return self.wait_for_response(id)

    def wait_for_response(self, id: Any) -> Json:
        return self.wait_for(lambda record: record["type"] in ("response", "error") and record.get("id", "") == id)

    def wait_for_event(self, kind: str) -> Json:
        return self.wait_for(lambda record: record["type"] == kind)

    def wait_for(self, wanted: Callable[[Json], bool]) -> Json:
        """Returns the next record that matches."""
        while True:
            record = self.next_record()
            if wanted(record):
                return record

    def next_record(self) -> Json:
        line = self._lines.get(timeout=TIMEOUT)
        assert line is not None, self._stderr_text()
        record: Json = json.loads(line)
        self.records.append(record)
        return record

    def end(self) -> int:
        """Closes the input, reads the remaining records, and waits for the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        while (line := self._lines.get(timeout=TIMEOUT)) is not None:
            self.records.append(json.loads(line))
        return self.process.wait(TIMEOUT)

    def _read_output(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _stderr_text(self) -> str:
        assert self.process.stderr is not None
        return f"it ended: {self.process.stderr.read().decode()}"
