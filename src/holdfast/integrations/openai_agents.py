"""OpenAI Agents SDK: a `Session` that keeps the log of a conversation, and a `Model` that compacts inside a run.

    session = HoldfastSession("thread-1", window=200_000, store="agent.db")
    agent = Agent(name="Clerk", model=session.model(OpenAIResponsesModel(...)))
    await Runner.run(agent, "…", session=session)

The session alone compacts between runs. It takes the place of `OpenAIResponsesCompactionSession` and
`ToolOutputTrimmer`, for models of any provider.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio

from ..agent import Keeper
from ..errors import UnknownSession
from ..messages import Json, to_json
from ..messages.frameworks import not_installed
from ..sessions.origin import listed_events
from ..tokens import Usage
from .conversation import RECALL_TOOLS, AgentConversation, AgentConversations, find_overflow

try:
    from agents import FunctionTool, Model, ModelResponse, ModelSettings
except ModuleNotFoundError as problem:
    raise not_installed("openai-agents") from problem

if TYPE_CHECKING:
    from agents import Tool
    from agents.memory import SessionSettings

    from ..compaction import PolicyLike
    from ..hooks.events import CompactionEvent
    from ..stores import StoreLike
    from ..types import SummarizerLike

__all__ = ["HoldfastModel", "HoldfastSession"]
_FORMAT = "openai-responses"
_NOT_COMPARED = frozenset(("id", "status"))
"""Fields in which an item that the runner saves may differ from the one that it sends."""


class HoldfastSession:
    """A session of the SDK whose log is complete and whose items are compacted.

    Without a `store` the log is in memory. Items that are removed (`pop_item`, `clear_session`) stay in the store, in
    the session as it was before; the session continues as a fork of it.
    """

    def __init__(
        self,
        session_id: str,
        *,
        window: int | None = None,
        model: str | None = None,
        preset: PolicyLike = "holdfast",
        summarizer: SummarizerLike | None = None,
        store: StoreLike | None = None,
        listen: Callable[[CompactionEvent], object] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = None
        self._conversations = AgentConversations(
            window=window,
            model=model,
            preset=preset,
            summarizer=summarizer,
            store="memory:" if store is None else store,
            listen=listen,
        )
        self._sessions = self._conversations.sessions
        self._keeper: Keeper | None = None
        self._base: list[Json] = []
        """The items that the newest run started from."""
        self._logged: Counter[str] = Counter()
        """Items in the log since then."""
        self._unsaved: Counter[str] = Counter()
        """Those of them that the runner has sent, but not saved yet."""
        self._usage: Usage | None = None
        """What the provider reported for the newest reply."""
        self._working = anyio.Lock()

    def report(self, usage: Usage) -> None:
        """Records what the provider reported for a reply whose items come next."""
        self._usage = usage

    def model(self, model: Model) -> HoldfastModel:
        """Wraps a model, so that the items it is sent inside a run are compacted as well."""
        return HoldfastModel(model, session=self)

    # -- the protocol of the SDK ----------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Returns the compacted items, or the newest of them."""
        items: list[Any] = await self._run(self._start)
        return items if limit is None else items[max(0, len(items) - limit) :]

    async def add_items(self, items: list[Any]) -> None:
        """Appends items to the log, unless the model wrapper has appended them before it sent them."""
        await self._run(lambda: self._append(items, saving=True))

    async def pop_item(self) -> Any:
        """Removes the newest item by continuing in a fork that ends before it; returns it."""
        return await self._run(self._pop)

    async def clear_session(self) -> None:
        """Continues with an empty session; the log so far stays in the store."""
        await self._run(lambda: self._continue_in_new(None))

    # -- on the loop of the conversations -------------------------------------------------------------

    async def _run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def locked() -> Any:
            async with self._working:
                return await work()

        return await self._conversations.arun(locked)

    async def _open(self) -> Keeper:
        """Opens the newest fork of the session, or creates the session."""
        if self._keeper is None:
            name = self.session_id
            try:
                for number in count(2):
                    await self._sessions.get(name)
                    current, name = name, f"{self.session_id}~{number}"
            except UnknownSession:
                if name == self.session_id:
                    current = (await self._sessions.create(id=name, format=_FORMAT)).id
            self._keeper = self._conversations.keeper(current, format=_FORMAT)
        return self._keeper

    async def _start(self) -> list[Json]:
        self._base = list((await (await self._open()).prepare_step()).messages)
        self._logged.clear()
        self._unsaved.clear()
        return list(self._base)

    async def _append(self, items: list[Any], *, saving: bool) -> None:
        keeper = await self._open()
        new = []
        for item in items:
            key = _key(item)
            if saving and self._unsaved[key]:
                self._unsaved[key] -= 1
                continue
            new.append(item)
            self._logged[key] += 1
            self._unsaved[key] += not saving
        reply = max((place for place, item in enumerate(new, 1) if _is_reply(item)), default=0)
        if reply:
            await self._sessions.append(keeper.session_id, new[:reply], usage=self._usage)
            self._usage = None
        if new[reply:]:
            await self._sessions.append(keeper.session_id, new[reply:])

    async def aprepare(self, items: list[Json]) -> list[Json]:
        """Returns the items to send: appends to the log those that it does not have, and compacts if it is due."""
        return list(await self._run(lambda: self._prepare(items)))

    async def _prepare(self, items: list[Json]) -> list[Json]:
        if items[: len(self._base)] != self._base:
            return items  # not a continuation of this session, as after an input filter
        seen: Counter[str] = Counter()
        new = []
        for item in items[len(self._base) :]:
            seen[key := _key(item)] += 1
            if seen[key] > self._logged[key]:
                new.append(item)
        await self._append(new, saving=False)
        return list((await (await self._open()).prepare_step()).messages)

    async def arecover(self, problem: BaseException, items: list[Json]) -> list[Json] | None:
        """Returns smaller items after a prompt was rejected as too long; None for other errors."""
        failure = find_overflow(problem)

        async def compacted() -> list[Json] | None:
            assert failure is not None
            recovery = await (await self._open()).on_overflow(failure)
            return list(recovery.context.messages) if recovery.retry and recovery.context is not None else None

        return await self._run(compacted) if failure is not None else None

    async def _pop(self) -> Any:
        events = await listed_events(self._sessions, (await self._open()).session_id)
        if not events:
            return None
        await self._continue_in_new(events[-2].id if len(events) > 1 else None)
        return events[-1].message

    async def _continue_in_new(self, last: str | None) -> None:
        """Continues in a fork that ends with this event, or in an empty session."""
        current = (await self._open()).session_id
        number = int(current.rpartition("~")[2]) if current != self.session_id else 1
        name = f"{self.session_id}~{number + 1}"
        if last is None:
            await self._sessions.create(id=name, format=_FORMAT)
        else:
            await self._sessions.fork(current, last, id=name)
        self._keeper = self._conversations.keeper(name, format=_FORMAT)

    def recall_tools(self) -> list[Tool]:
        """Returns tools to search and read everything in this session, compacted or not."""
        return [self._recall_tool(tool.name, tool.description, tool.parameters) for tool in RECALL_TOOLS]

    def _recall_tool(self, name: str, description: str, parameters: Json) -> Tool:
        async def invoke(_context: Any, arguments: str) -> str:
            async def answer() -> str:
                return await self._conversations.recall((await self._open()), name, arguments)

            return str(await self._run(answer))

        return FunctionTool(name, description, parameters, invoke, strict_json_schema=False)


class HoldfastModel(Model):
    """A model whose input is compacted, and sent once more if it is too long even so.

    Without a session, the runner keeps the items of a run, and what is sent of them is compacted.
    """

    def __init__(self, model: Model, *, session: HoldfastSession | None = None, **options: Any) -> None:
        self.inner = model
        self._session = session
        self._conversations = AgentConversations(**options)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: Any,
        *rest: Any,
        **more: Any,
    ) -> ModelResponse:
        """Calls the model with compacted items."""
        items = _as_items(input)
        given = (model_settings, tools, *rest)
        conversation = self._conversation(system_instructions, tools)
        sent = await conversation.aprepare(items)
        try:
            reply = await self.inner.get_response(system_instructions, sent, *given, **more)
        except Exception as problem:
            smaller = await conversation.arecover(problem, items)
            if smaller is None:
                raise
            reply = await self.inner.get_response(system_instructions, smaller, *given, **more)
        conversation.report(_usage(reply.usage))
        return reply

    async def stream_response(
        self,
        system_instructions: str | None,
        input: Any,
        model_settings: ModelSettings,
        tools: Any,
        *rest: Any,
        **more: Any,
    ) -> AsyncIterator[Any]:
        """Streams a reply to compacted items."""
        items = _as_items(input)
        given = (model_settings, tools, *rest)
        conversation = self._conversation(system_instructions, tools)
        sent, started = await conversation.aprepare(items), False
        try:
            async for event in self.inner.stream_response(system_instructions, sent, *given, **more):
                started = True
                _report_streamed(conversation, event)
                yield event
            return
        except Exception as problem:
            smaller = None if started else await conversation.arecover(problem, items)
            if smaller is None:
                raise
        async for event in self.inner.stream_response(system_instructions, smaller, *given, **more):
            yield event

    async def close(self) -> None:
        """Closes the wrapped model."""
        await self.inner.close()

    def _conversation(self, system: str | None, tools: Any) -> AgentConversation | HoldfastSession:
        if self._session is not None:
            return self._session
        return self._conversations.conversation(
            f"run-{id(asyncio.current_task())}",
            model=getattr(self.inner, "model", None),
            system=system,
            tools=lambda: [_definition(tool) for tool in tools],
            format=_FORMAT,
        )


def _report_streamed(conversation: AgentConversation | HoldfastSession, event: Any) -> None:
    if event.type == "response.completed" and event.response.usage is not None:
        conversation.report(_usage(event.response.usage))


def _is_reply(item: Json) -> bool:
    return item.get("role") == "assistant" or item.get("type") in ("reasoning", "function_call")


def _as_items(given: Any) -> list[Json]:
    return [{"role": "user", "content": given}] if isinstance(given, str) else list(given)


def _usage(reported: Any) -> Usage:
    return Usage(input=reported.input_tokens, output=reported.output_tokens)


def _definition(tool: Any) -> Json:
    names = ("name", "description", "params_json_schema")
    return {name: getattr(tool, name) for name in names if getattr(tool, name, None)}


def _key(item: Json) -> str:
    return to_json({name: value for name, value in sorted(item.items()) if name not in _NOT_COMPARED})
