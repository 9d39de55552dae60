"""Conversations with large tool results, for tests of `Keeper`."""

from __future__ import annotations

from typing import Any

from holdfast import MemoryStore, SessionService
from holdfast.agent import Keeper
from holdfast.models import Limits

Json = dict[str, Any]
TASK = "Mend the tide tables of Osterhaven. Never touch the archive folder."


def user_message(text: str = TASK) -> Json:
    return {"role": "user", "content": text}


def tool_call(number: int) -> Json:
    call = {"name": "read_file", "arguments": f'{{"path": "/harbor/berth_{number}.txt"}}'}
    return {
        "role": "assistant",
        "content": f"I look at berth {number}.",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
    }


def tool_result(number: int, words: int = 300) -> Json:
    lines = [
        f"berth {number} line {line}: depth {line * 7 + number} cm, moored since spring" for line in range(words // 10)
    ]
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": "\n".join(lines)}


def assistant_message(text: str = "All berths are read.") -> Json:
    return {"role": "assistant", "content": text}


def tool_steps(steps: int, first: int = 0) -> list[Json]:
    """Tool calls, each with its result."""
    return [message for number in range(first, first + steps) for message in (tool_call(number), tool_result(number))]


async def open_keeper(messages: list[Json], **options: Any) -> Keeper:
    """Returns a keeper of a session with these messages."""
    sessions = SessionService(MemoryStore(), limits=Limits(backoff=0.01))
    record = await sessions.create()
    if messages:
        await sessions.append(record.id, messages)
    return Keeper(sessions, record.id, **{"window": 8_000} | options)
