"""A client's visit in this process: requests in, records out, with a scripted model behind it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
from anyio.abc import ObjectSendStream

from holdfast import MemoryStore, SessionService
from holdfast.agent.tools import Folder, always_yes
from holdfast.chat import Chat
from holdfast.models import ScriptedAgentModel
from holdfast.presets import preset_named
from holdfast.rpc.approvals import Approvals
from holdfast.rpc.serving import Serving

Json = dict[str, Any]


class Visit:
    def __init__(self, chat: Chat, send: ObjectSendStream[bytes], records: list[Json]) -> None:
        self.chat = chat
        self.records = records
        self._send = send
        self._seen = 0

    async def lines(self, *lines: bytes) -> None:
        """Sent at once, as a client that does not wait would."""
        await self._send.send(b"".join(line + b"\n" for line in lines))

    async def ask(self, *requests: Json) -> None:
        await self.lines(*(json.dumps(request).encode() for request in requests))

    async def answer(self, id: Any) -> Json:
        """The response to a request, or its error."""
        return await self.record(lambda record: record["type"] in ("response", "error") and record.get("id", "") == id)

    async def event(self, kind: str, **fields: Any) -> Json:
        """The next event of this kind, after those that were waited for before."""
        found = await self.record(
            lambda record: record["type"] == kind and fields.items() <= record.items(), self._seen
        )
        self._seen = self.records.index(found) + 1
        return found

    async def record(self, wanted: Any, start: int = 0) -> Json:
        with anyio.fail_after(10):
            while True:
                for record in self.records[start:]:
                    if wanted(record):
                        return record
                await anyio.sleep(0.002)

    async def done(self, **request: Any) -> Json:
        """Ask, and take the data of the response."""
        id = f"r{len(self.records)}"
        await self.ask({"id": id, **request})
        answer = await self.answer(id)
        assert answer["type"] == "response", answer
        assert (answer["command"], answer["ok"]) == (request["type"], True)
        data: Json = answer["data"]
        return data

    async def refused(self, **request: Any) -> str:
        id = f"r{len(self.records)}"
        await self.ask({"id": id, **request})
        answer = await self.answer(id)
        assert answer["type"] == "error", answer
        return str(answer["error"])

    def kinds(self) -> list[str]:
        return [record["type"] for record in self.records]


@asynccontextmanager
async def visiting(folder: Path, steps: Any, *, yes: bool = False, **options: Any) -> AsyncIterator[Visit]:
    """Ends as a client does: by closing its side; afterwards every request has been answered once."""
    model = steps if isinstance(steps, ScriptedAgentModel) else ScriptedAgentModel(steps)
    records: list[Json] = []
    asked, chunks = anyio.create_memory_object_stream[bytes](100)

    def send(record: msgspec.Struct) -> None:
        records.append(json.loads(msgspec.json.encode(record)))

    approvals = Approvals(send)
    serving: list[Serving] = []
    settings: Json = {"preset": preset_named("holdfast"), "window": 100_000} | options
    async with SessionService(MemoryStore()) as sessions:
        chat = Chat(
            sessions,
            model,
            folder=Folder(folder),
            approve=always_yes if yes else approvals.ask,
            listener=lambda event: [one.tell(event) for one in serving],
            **settings,
        )
        async with chat.running(), asked, chunks:
            serving.append(Serving(chat, approvals, send))
            async with anyio.create_task_group() as group:
                group.start_soon(serving[0].run, chunks)
                yield Visit(chat, asked, records)
                await asked.aclose()
