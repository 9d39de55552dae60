"""A small agent's conversation, for every provider: tools, calls, and the session that holds it."""

from __future__ import annotations

from typing import Any

from holdfast import MemoryStore, SessionService
from holdfast.calls import Delta, StepCall, StepReply
from holdfast.messages import Json, Message, Text, Tool, ToolResult, decode_all, tools_in, user
from providers import Call, ProviderServer

READ = Tool(
    "read_file",
    "Reads a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)
LIST = Tool("list_files", "Lists files.", {"type": "object", "properties": {}, "additionalProperties": False})
TOOLS = (READ, LIST)
SYSTEM = "You keep the harbour's files."
TIDES, PILOTS = Call("read_file", {"path": "tides.csv"}), Call("read_file", {"path": 'pilots/öst "1".csv'})
SENT = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}


def asked(format: str, text: str = "Read both files.") -> StepCall:
    content: Json = (
        {"role": "user", "parts": [{"text": text}]} if format == "gemini" else {"role": "user", "content": text}
    )
    return StepCall([content], SYSTEM, TOOLS, max_tokens=500)


async def take(model: Any, text: str = "Read both files.") -> tuple[Any, list[Delta]]:
    """One step, and all that was heard of it."""
    heard: list[Delta] = []
    return await model.step(asked(model.format, text), heard.append), heard


class Conversation:
    """A session that takes every reply as it is, and answers every call."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.sessions = SessionService(MemoryStore())

    async def say(self, *texts: str) -> list[Any]:
        """All replies until the model has no more calls for any of these."""
        format = self.model.format
        tools = tools_in(format, TOOLS)
        session = await self.sessions.create(system=SYSTEM, tools=tools, format=format)
        replies: list[Any] = []
        for text in texts:
            await self.sessions.append(session.id, user(text))
            while True:
                context = await self.sessions.context(session.id, format=format)
                call = StepCall(context.messages, SYSTEM, TOOLS, max_tokens=500)
                replies.append(reply := await self.model.step(call, lambda _: None))
                if not isinstance(reply, StepReply):
                    return replies
                await self.sessions.append(session.id, decode_all(reply.messages, format)[0], usage=reply.usage)
                if not reply.calls:
                    break
                results = [ToolResult(c.id, (Text(f"what {c.object} holds"),), False, c.name) for c in reply.calls]
                await self.sessions.append(session.id, Message("tool", tuple(results)))
        return replies


def sent(server: ProviderServer) -> list[list[Json]]:
    """The messages of each request."""
    return [request.body[SENT[request.protocol]] for request in server.requests]
