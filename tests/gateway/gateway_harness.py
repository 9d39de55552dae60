"""Test harness: a gateway on a port of its own, and a client that sends its whole history with each request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from holdfast import MemoryStore, SessionService
from holdfast.gateway import Gateway, GatewayOptions
from holdfast.messages import Json, Message, Text, Tool, ToolResult, encode_all
from holdfast.models.anthropic import Anthropic
from holdfast.models.calls import Failure, StepCall, StepReply
from holdfast.models.gemini import Gemini
from holdfast.models.openai import OpenAIChat, OpenAIResponses

FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")
READ = Tool("read_file", "Reads a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
SYSTEM = "You keep the harbour's files."


class RunningGateway:
    """A gateway that listens."""

    def __init__(self, gateway: Gateway, port: int) -> None:
        self.gateway, self.sessions = gateway, gateway.sessions
        self.url = f"http://127.0.0.1:{port}"
        self._clients: list[AsyncOpenAI | AsyncAnthropic] = []

    def openai(self, key: str = "sk-harbor") -> AsyncOpenAI:
        """Returns a client of the SDK that is closed with the gateway."""
        self._clients.append(client := AsyncOpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0))
        return client

    def anthropic(self, key: str = "sk-harbor") -> AsyncAnthropic:
        """Returns a client of the SDK that is closed with the gateway."""
        self._clients.append(client := AsyncAnthropic(base_url=self.url, api_key=key, max_retries=0))
        return client

    async def close_clients(self) -> None:
        for client in self._clients:
            await client.close()

    def model(self, format: str, name: str = "harbor") -> Any:
        """Returns a model of this format behind the gateway, through the provider's SDK."""
        match format:
            case "openai-chat":
                return OpenAIChat(name, base_url=f"{self.url}/v1", api_key="sk-harbor")
            case "openai-responses":
                return OpenAIResponses(name, base_url=f"{self.url}/v1", api_key="sk-harbor")
            case "anthropic":
                return Anthropic(name, base_url=self.url, api_key="sk-harbor")
        return Gemini(name, base_url=self.url, api_key="sk-harbor")


@asynccontextmanager
async def run_gateway(
    upstream: str,
    *,
    sessions: SessionService | None = None,
    window: int | None = None,
    preset: str = "holdfast",
    **options: Any,
) -> AsyncIterator[RunningGateway]:
    """Runs a gateway before this upstream."""
    service = sessions or SessionService(MemoryStore())
    service.window = window or service.window
    service.use_preset(preset)
    how = GatewayOptions(upstreams={"": upstream}, port=0, **options)
    gateway = Gateway(how, service)
    stop, ports = anyio.Event(), list[int]()
    started = anyio.Event()

    def on_start(port: int) -> None:
        ports.append(port)
        started.set()

    async with anyio.create_task_group() as group:
        group.start_soon(gateway.run, stop, on_start)
        await started.wait()
        running = RunningGateway(gateway, ports[0])
        try:
            yield running
        finally:
            await running.close_clients()
            stop.set()


class ClientConversation:
    """A client that keeps its own list of messages and sends all of it each time, as agents do."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.messages: list[Json] = []

    def say(self, text: str) -> None:
        self.messages += encode_all([Message("user", (Text(text),))], self.model.format)

    async def step(self, results: Sequence[str] = ()) -> StepReply:
        """Sends the history; appends the reply and the results of its calls."""
        call = StepCall(self.messages, SYSTEM, (READ,), max_tokens=500)
        reply = await self.model.step(call, lambda _: None)
        assert not isinstance(reply, Failure), reply
        self.messages = [*self.messages, *reply.messages]
        if reply.calls:
            answers = tuple(
                ToolResult(one.id, (Text(text),), False, one.name)
                for one, text in zip(reply.calls, results or ["done"] * len(reply.calls), strict=True)
            )
            self.messages += encode_all([Message("tool", answers)], self.model.format)
        return reply
