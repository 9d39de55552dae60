"""Test harness: an RPC connection in this process, with a scripted model."""

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
from holdfast.agent.tools import WorkingFolder, approve_all
from holdfast.chat import Chat
from holdfast.chat.rpc.server import ClientApprovals, RpcConnection
from holdfast.compaction.presets import preset
from holdfast.models import ScriptedAgentModel

Json = dict[str, Any]


class RpcClient:
    """Sends requests to an `RpcConnection` and collects its records."""

    def __init__(self, chat: Chat, send: ObjectSendStream[bytes], records: list[Json]) -> None:
        self.chat = chat
        self.records = records
        self._send = send
        self._seen = 0

    async def send_lines(self, *lines: bytes) -> None:
        """Sends lines in one chunk, without waiting for answers."""
        await self._send.send(b"".join(line + b"\n" for line in lines))

    async def send(self, *requests: Json) -> None:
        await self.send_lines(*(json.dumps(request).encode() for request in requests))

    async def wait_for_response(self, id: Any) -> Json:
        """Waits for the response or error of a request."""
        return await self.wait_for(
            lambda record: record["type"] in ("response", "error") and record.get("id", "") == id
        )

    async def wait_for_event(self, kind: str, **fields: Any) -> Json:
        """Waits for the next event of this type, after those already waited for."""
        found = await self.wait_for(
            lambda record: record["type"] == kind and fields.items() <= record.items(), self._seen
        )
        self._seen = self.records.index(found) + 1
        return found

    async def wait_for(self, wanted: Any, start: int = 0) -> Json:
        with anyio.fail_after(30):
            while True:
                for record in self.records[start:]:
                    if wanted(record):
                        return record
                await anyio.sleep(0.002)

    async def request(self, **request: Any) -> Json:
        """Sends a request; returns the data of its response."""
        id = f"r{len(self.records)}"
        await self.send({"id": id, **request})
        answer = await self.wait_for_response(id)
        assert answer["type"] == "response", answer
        assert (answer["command"], answer["ok"]) == (request["type"], True)
        data: Json = answer["data"]
        return data

    async def request_error(self, **request: Any) -> str:
        id = f"r{len(self.records)}"
        await self.send({"id": id, **request})
        answer = await self.wait_for_response(id)
        assert answer["type"] == "error", answer
        return str(answer["error"])

    def record_types(self) -> list[str]:
        return [record["type"] for record in self.records]


@asynccontextmanager
async def rpc_client(folder: Path, steps: Any, *, yes: bool = False, **options: Any) -> AsyncIterator[RpcClient]:
    """Opens a connection in this process; closes its input at the end, after which every request is answered."""
    model = steps if isinstance(steps, ScriptedAgentModel) else ScriptedAgentModel(steps)
    records: list[Json] = []
    sender, chunks = anyio.create_memory_object_stream[bytes](100)

    def send(record: msgspec.Struct) -> None:
        records.append(json.loads(msgspec.json.encode(record)))

    approvals = ClientApprovals(send)
    connections: list[RpcConnection] = []
    settings: Json = {"preset": preset("holdfast"), "window": 100_000} | options
    async with SessionService(MemoryStore()) as sessions:
        chat = Chat(
            sessions,
            model,
            folder=WorkingFolder(folder),
            approve=approve_all if yes else approvals.ask,
            listener=lambda event: [one.handle_event(event) for one in connections],
            **settings,
        )
        async with chat.running(), sender, chunks:
            connections.append(RpcConnection(chat, approvals, send))
            async with anyio.create_task_group() as group:
                group.start_soon(connections[0].run, chunks)
                yield RpcClient(chat, sender, records)
                await sender.aclose()
