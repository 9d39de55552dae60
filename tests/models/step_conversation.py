"""An agent's conversation for every provider: tools, calls, and a session."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from holdfast import MemoryStore, SessionService
from holdfast.messages import Json, Message, Text, Tool, ToolResult, decode_all, encode_tools, user
from holdfast.models.calls import ReplyDelta, StepCall, StepReply
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
MESSAGES_FIELD = {"openai-chat": "messages", "openai-responses": "input", "anthropic": "messages", "gemini": "contents"}


def step_call(format: str, text: str = "Read both files.") -> StepCall:
    content: Json = (
        {"role": "user", "parts": [{"text": text}]} if format == "gemini" else {"role": "user", "content": text}
    )
    return StepCall([content], SYSTEM, TOOLS, max_tokens=500)


async def take_step(model: Any, text: str = "Read both files.") -> tuple[Any, list[ReplyDelta]]:
    """Takes one step; returns the reply and its deltas."""
    deltas: list[ReplyDelta] = []
    return await model.step(step_call(model.format, text), deltas.append), deltas


async def cancel_while_stalled(server: ProviderServer, work: Callable[[], Awaitable[object]]) -> bool:
    """Cancels work after its request reached the server, however busy the machine; returns whether that ended it."""
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:

            async def cancel() -> None:
                while not server.requests:  # noqa: ASYNC110 - the server runs in a thread of its own
                    await anyio.sleep(0.01)
                await anyio.sleep(0.15)
                scope.cancel()

            group.start_soon(cancel)
            await work()
    return scope.cancelled_caught


class Conversation:
    """A session that appends every reply and answers every call."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.sessions = SessionService(MemoryStore())

    async def say(self, *texts: str) -> list[Any]:
        """Sends these user messages; returns all replies until the model makes no more calls."""
        format = self.model.format
        tools = encode_tools(format, TOOLS)
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
                results = [
                    ToolResult(c.id, (Text(f"what {c.arguments_dict} holds"),), False, c.name) for c in reply.calls
                ]
                await self.sessions.append(session.id, Message("tool", tuple(results)))
        return replies


def sent_messages(server: ProviderServer) -> list[list[Json]]:
    """The messages of each request."""
    return [request.body[MESSAGES_FIELD[request.protocol]] for request in server.requests]
