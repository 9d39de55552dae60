"""A long task of the real program: it compacts by itself, is killed twice, and ends right after `--continue` (H1)."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast import SessionService
from holdfast.context.events import EventKind, message_in
from holdfast.stores import open_store
from providers import Answer, Call, ProviderServer, Request, Say

BERTHS = 30
"""Each is read and written: 60 calls."""
KILLS = 2
WINDOW = 20_000
SUMMARY = "## Goal\nMeasure every berth.\n## Next Steps\n- Measure the berths that have no file in out yet."
TABLE = "bollard {0}, ring {0}, ladder {0}: sound and dry; " * 110


class MeasuringModel:
    """Reads and writes the next berth that has no file yet; the folder alone tells it where it is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.called: list[str] = []
        self.answered = 0

    def __call__(self, request: Request) -> Answer:
        self.answered += 1
        if "tools" not in request.body:
            return SUMMARY
        left = [number for number in range(BERTHS) if not (self.folder / f"out/{number}.txt").exists()]
        if not left:
            return Say("Every berth is measured.")
        read = Call("read_file", {"path": f"data/{left[0]}.txt"}, id=f"read-{self.answered}")
        write = Call(
            "write_file", {"path": f"out/{left[0]}.txt", "content": f"berth {left[0]}\n"}, id=f"write-{self.answered}"
        )
        self.called += [read.id, write.id]
        return Say(f"I measure berth {left[0]}.", calls=(read, write))


def run_chat(place: Path, model: str, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "holdfast", "chat", "--mode", "json", "--yes", "--model", model]
    given = ["--store", f"sqlite:///{place / 's.db'}", "--folder", str(place / "harbor"), "--window", str(WINDOW)]
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "OPENAI_API_KEY": "none"}
    return subprocess.Popen([*command, *given, *words], stdout=subprocess.PIPE, text=True, env=environ)


def read_events(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        if line.endswith("\n"):
            yield json.loads(line)


def test_long_task_survives_compactions_and_kills(tmp_path: Path) -> None:
    (data := tmp_path / "harbor" / "data").mkdir(parents=True)
    for number in range(BERTHS):
        (data / f"{number}.txt").write_text(TABLE.format(number))
    model = MeasuringModel(tmp_path / "harbor")
    seen: list[dict[str, Any]] = []

    def run(prompt: str, kill_at: int, *words: str) -> None:
        """Runs the chat; kills it when so many calls have started in all, and reads what it had still said."""
        with run_chat(tmp_path, f"{server.openai_url}#m", prompt, *words) as process:
            for event in read_events(process):
                seen.append(event)
                if event["type"] == "tool_started" and sum(one["type"] == "tool_started" for one in seen) == kill_at:
                    process.kill()

    with ProviderServer(model, window=WINDOW) as server:
        run("Measure every berth.", 17)
        run("Go on.", 38, "--continue")
        run("Go on.", 0, "--continue")
    assert (server.refused, server.overflowed) == ([], 0), "every request was valid, and inside the window"
    assert seen[-1]["type"] == "run_finished" and seen[-1]["status"] == "done"
    written = {file.name: file.read_text() for file in (tmp_path / "harbor" / "out").iterdir()}
    assert written == {f"{number}.txt": f"berth {number}\n" for number in range(BERTHS)}
    asyncio.run(check_log(tmp_path, model, seen))


async def check_log(place: Path, model: MeasuringModel, seen: list[dict[str, Any]]) -> None:
    async with SessionService(open_store(f"sqlite:///{place / 's.db'}")) as sessions:
        (record,) = await sessions.list()
        assert await sessions.verify(record.id) == []
        events = await sessions.events(record.id, lane="")
    messages = [message_in(event) for event in events if event.kind == EventKind.MESSAGE]
    calls = Counter(call.id for message in messages for call in message.calls)
    results = Counter(result.call_id for message in messages for result in message.results)
    acknowledged = {event["call"] for event in seen if event["type"] == "tool_finished"}
    assert len(acknowledged) >= 2 * BERTHS - 2 * KILLS, "a kill costs the news of one reply's two calls at most"
    assert acknowledged <= calls.keys() <= set(model.called)
    assert calls == results and set(calls.values()) == {1}, "every call once, with one result"
    assert {event["event"] for event in seen if event["type"] == "reply"} <= {event.id for event in events}
    assert sum(event.kind == EventKind.COMPACTION for event in events) >= 3
