"""Helpers for Spring AI Session's own test cases."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast import Context, SessionService
from holdfast.messages import Message


class SpringFormat:
    """Spring counts the text of a formatted event; in its tests one character is one token."""

    name = "spring-format"

    def measure(self, message: Message) -> int:
        if message.results:
            responses = ", ".join(f"{result.name or result.call_id} -> {result.text}" for result in message.results)
            return len(f"Tool [responses: {responses}]")
        speaker = "User" if message.role == "user" else "Assistant"
        calls = ", ".join(f"{call.name}({call.arguments_json})" for call in message.calls)
        tail = f" [tool calls: {calls}]" if calls else ""
        return len(f"{speaker}: {message.text}{tail}" if message.text else f"{speaker}{tail}")

    def measure_text(self, text: str) -> int:
        return len(text)

    def tokens(self, units: int) -> int:
        return units


class Scenario:
    """A session with helpers to fill it: `u1` is a user message, `a1` an assistant message."""

    def __init__(self, service: SessionService, session_id: str) -> None:
        self.service, self.id = service, session_id

    async def append_named(self, *names: str, lane: str | None = None, synthetic: bool = False) -> None:
        for name in names:
            role = "user" if name.startswith(("u", "msg", "shadow", "q")) else "assistant"
            message = {"role": role, "content": name}
            await self.service.append(self.id, message, lane, id=name, synthetic=synthetic)

    async def append_text(self, role: str, name: str, content: str) -> None:
        await self.service.append(self.id, {"role": role, "content": content}, id=name)

    async def visible(self) -> list[str]:
        context: Context = await self.service.context(self.id)
        return [str(message["content"]) for message in context]


def names(events: Sequence[Any]) -> list[str]:
    return [event.id for event in events]
