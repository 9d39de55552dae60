"""`holdfast worker` as real processes that can be blocked in the middle of a compaction."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from holdfast import SessionService, SQLiteStore

HOOK = 'if [ -n "$GATE" ]; then : > "$GATE.begun"; while [ ! -e "$GATE.open" ]; do sleep 0.02; done; fi'
SUMMARY = "They talked of the harbour and its ships."
LONG = 60


class WorkerProcess:
    """One worker process. With a gate it blocks before its compaction is decided until the gate is opened."""

    def __init__(self, home: WorkerHome, name: str, *options: str, gated: bool = False) -> None:
        self.gate = home.folder / name
        self.log = home.folder / f"{name}.log"
        command = [sys.executable, "-m", "holdfast", "worker", "--store", home.store, "--preset", "spring"]
        environ = {**os.environ, **home.environ, "GATE": str(self.gate) if gated else ""}
        with self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, "--summarizer", f"script:{home.script}", "--sweep", "0.1", *options],
                stderr=stderr,
                env=environ,
            )

    def log_text(self) -> str:
        return self.log.read_text()

    def has_begun(self) -> bool:
        return self.gate.with_name(f"{self.gate.name}.begun").exists()

    def open(self) -> None:
        self.gate.with_name(f"{self.gate.name}.open").touch()

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def exit_code(self) -> int:
        return self.process.wait(LONG)


class WorkerHome:
    """A store, a script for the summaries, and settings with the hook that blocks workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "sessions.db"
        self.store = f"sqlite:///{self.path}"
        self.script = folder / "script.json"
        self.script.write_bytes(msgspec.json.encode({"steps": ["-"], "summary": SUMMARY}))
        settings = folder / "config" / "holdfast" / "settings.toml"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"[hooks]\nbefore = ['{HOOK}']\n")
        self.environ = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}
        self.workers: list[WorkerProcess] = []

    def service(self) -> SessionService:
        return SessionService(SQLiteStore(self.path), preset="spring")

    def start(self, name: str, *options: str, gated: bool = False) -> WorkerProcess:
        self.workers.append(WorkerProcess(self, name, *options, gated=gated))
        return self.workers[-1]

    def close(self) -> None:
        for worker in self.workers:
            worker.open()
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait(LONG)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)


async def append_turns(service: SessionService, *names: str, turns: int = 25) -> None:
    """Appends more turns than the preset keeps."""
    for name in names:
        await service.create(id=name, format="openai-chat")
        log_text = [
            {"role": who, "content": f"{who} {number} of {name} goes on about the harbour and whatever comes to mind"}
            for number in range(turns)
            for who in ("user", "assistant")
        ]
        await service.append(name, log_text)
