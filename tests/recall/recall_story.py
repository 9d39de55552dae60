"""Messages of an agent that repairs a harbour's booking service, and their compaction."""

from __future__ import annotations

from typing import Any

from holdfast import SessionService, SlidingWindow
from holdfast.triggers import always

LOG = "worker-4 ERROR tide table of Osterhaven is missing\n" + "worker-4 INFO nothing to do\n" * 200


def call(id: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}


def result(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}


STORY: list[dict[str, Any]] = [
    {"role": "user", "content": "Bookings for berth K7 fail since Tuesday. Please find out why."},
    call("c1", "read_file", '{"path": "logs/worker-4.log"}'),
    result("c1", LOG),
    {"role": "assistant", "content": "The tide table of Osterhaven is missing, so the quarkling check fails."},
    {"role": "user", "content": "Das Straßenfest ist am Freitag, bis dahin muss es gehen."},
    {"role": "assistant", "content": "Understood: done by Friday."},
    {"role": "user", "content": "我们决定使用数据库分片方案。"},
    {"role": "assistant", "content": "好的,我会用数据库分片。"},
    {"role": "user", "content": "Now restore the table from the backup of 2026-03-11."},
    call("c2", "run", '{"command": "pg_restore --table tides backup-2026-03-11.dump"}'),
    result("c2", "pg_restore: done, 4711 rows"),
    {"role": "assistant", "content": "Restored, 4711 rows."},
    {"role": "user", "content": "Good. What is left to do?"},
    {"role": "assistant", "content": "A test for missing tables."},
]
ARCHIVED = 12


async def append_story(service: SessionService, session_id: str = "s") -> None:
    """Appends all messages, then compacts so that the last two stay."""
    await service.create(id=session_id, owner="ada", format="openai-chat")
    for message in STORY:
        await service.append(session_id, message)
    done = await service.compact(session_id, always, SlidingWindow(2))
    assert done.removed == ARCHIVED
