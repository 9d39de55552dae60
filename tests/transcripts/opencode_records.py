"""OpenCode sessions: as written by `opencode export`, and as files of its storage folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]
SESSION = "ses_01"
START = 1_767_225_600_000
"""2026-01-01T00:00:00Z, in milliseconds."""


def at(second: int) -> int:
    return START + 1_000 * second


class Session:
    """Messages in sequence, a second apart."""

    def __init__(self, **info: Any) -> None:
        self.info: Record = {
            "id": SESSION,
            "projectID": "p1",
            "directory": "/harbor/tidebook",
            "title": "Berths",
            "version": "1.2.3",
            "time": {"created": START, "updated": START},
        } | info
        self.messages: list[Record] = []

    def user(self, *parts: Record | str, **info: Any) -> str:
        model = {"providerID": "anthropic", "modelID": "claude-x"}
        return self._add({"role": "user", "agent": "build", "model": model} | info, parts)

    def reply(self, *parts: Record | str, **info: Any) -> str:
        parent = next((m["info"]["id"] for m in reversed(self.messages) if m["info"]["role"] == "user"), None)
        about = {
            "role": "assistant",
            "parentID": parent,
            "modelID": "claude-x",
            "providerID": "anthropic",
            "mode": "build",
            "path": {"cwd": "/harbor/tidebook", "root": "/harbor/tidebook"},
            "cost": 0,
            "tokens": tokens(0, 0),
            "finish": "stop",
        }
        return self._add(about | info, parts)

    def compact(self, summary: str, *, auto: bool = True, **part: Any) -> str:
        """Adds the user's question and the summary that answers it."""
        asked = self.user({"type": "compaction", "auto": auto, **part})
        self.reply(summary, parentID=asked, summary=True, mode="compaction")
        return asked

    def _add(self, info: Record, parts: tuple[Record | str, ...]) -> str:
        number = len(self.messages) + 1
        name = f"msg_{number:03d}"
        known = {"id": name, "sessionID": SESSION, "time": {"created": at(number), "completed": at(number)}}
        given = [text_part(part) if isinstance(part, str) else part for part in parts]
        self.messages.append(
            {
                "info": known | info,
                "parts": [
                    {"id": f"prt_{number:03d}_{place}", "sessionID": SESSION, "messageID": name} | part
                    for place, part in enumerate(given)
                ],
            }
        )
        return name

    @property
    def exported(self) -> Record:
        return {"info": self.info, "messages": self.messages}

    def store(self, storage: Path) -> Path:
        """Writes the files of the storage folder; returns the session's file."""
        for message in self.messages:
            info = message["info"]
            _write(storage / "message" / SESSION / f"{info['id']}.json", info)
            for part in message["parts"]:
                _write(storage / "part" / info["id"] / f"{part['id']}.json", part)
        return _write(storage / "session" / "p1" / f"{SESSION}.json", self.info)


def _write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def text_part(text: str, **more: Any) -> Record:
    return {"type": "text", "text": text, **more}


def tool(call: str, output: str = "done", status: str = "completed", **more: Any) -> Record:
    """A call with its result; `cleared` is the second at which the result was cleared."""
    time = {"start": at(0), "end": at(0)} | ({"compacted": at(more.pop("cleared"))} if "cleared" in more else {})
    state: Record = {"status": status, "input": {"path": "."}, "time": time}
    if status == "completed":
        state |= {"output": output, "title": "ls", "metadata": {}}
    elif status == "error":
        state |= {"error": output}
    return {"type": "tool", "callID": call, "tool": "ls", "state": state | more}


def step(kind: str = "start", **more: Any) -> Record:
    return {"type": f"step-{kind}", **more}


def tokens(input: int, output: int, read: int = 0, write: int = 0, **more: int) -> Record:
    return {"input": input, "output": output, "reasoning": 0, "cache": {"read": read, "write": write}, **more}


def compacted() -> Session:
    """A session with a tool call, a compaction that keeps a tail, and messages after it."""
    session = Session()
    session.user("Where is berth 4?")
    session.reply(tool("c1", "berth 4: by the crane"), tokens=tokens(100, 10))
    session.reply("By the crane.", tokens=tokens(120, 5))
    tail = session.user("And berth 5?")
    session.reply(tool("c2", "berth 5: by the lock"), "By the lock.", tokens=tokens(200, 20, read=50))
    session.compact("Berth 4 is by the crane.", tail_start_id=tail)
    session.user("Continue if you have next steps")
    session.reply("I have none.", tokens=tokens(90, 6))
    return session
