"""Conversations of an agent that reads a lot, for keepers to keep small."""

from __future__ import annotations

from typing import Any

from holdfast import Limits, MemoryStore, SessionService
from holdfast.agent import Keeper

Json = dict[str, Any]
TASK = "Mend the tide tables of Osterhaven. Never touch the archive folder."


def asks(text: str = TASK) -> Json:
    return {"role": "user", "content": text}


def reads(number: int) -> Json:
    call = {"name": "read_file", "arguments": f'{{"path": "/harbor/berth_{number}.txt"}}'}
    return {
        "role": "assistant",
        "content": f"I look at berth {number}.",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
    }


def finds(number: int, words: int = 300) -> Json:
    lines = [
        f"berth {number} line {line}: depth {line * 7 + number} cm, moored since spring" for line in range(words // 10)
    ]
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": "\n".join(lines)}


def answers(text: str = "All berths are read.") -> Json:
    return {"role": "assistant", "content": text}


def worked(steps: int, first: int = 0) -> list[Json]:
    """So many calls, each with its result."""
    return [message for number in range(first, first + steps) for message in (reads(number), finds(number))]


async def keeper_of(messages: list[Json], **options: Any) -> Keeper:
    """A keeper of a session that already holds these."""
    sessions = SessionService(MemoryStore(), limits=Limits(backoff=0.01))
    record = await sessions.create()
    if messages:
        await sessions.append(record.id, messages)
    return Keeper(sessions, record.id, **{"window": 8_000} | options)
