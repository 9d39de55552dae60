"""The tools of one agent: what it may do, and how each call is answered."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from ...errors import HoldfastError, InvalidInput
from ...messages import Tool, ToolCall, whole_characters
from ...recall import Recall
from ...recall.calls import Answer, read_arguments
from ...recall.tools import TOOL_NAMES, TOOLS
from .tool import AgentTool

log = logging.getLogger("holdfast")
_WIDEST = 200
Permission = Literal["yes", "no", "always"]
"""`always` is for every call of this tool from now on."""


class Question(msgspec.Struct, frozen=True):
    """What a person is asked before something is changed."""

    tool: str
    line: str
    call: ToolCall


Approve = Callable[[Question], Awaitable[Permission]]


class Toolbox:
    """Runs calls. Whatever goes wrong is an answer too: the model can do something about it."""

    def __init__(self, tools: Iterable[AgentTool], approve: Approve, recall: Recall | None = None) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._approve = approve
        self._recall = recall
        self._allowed: set[str] = set()

    @property
    def told(self) -> tuple[Tool, ...]:
        """The tools as a model is told of them."""
        own = tuple(tool.told for tool in self._tools.values())
        return own + (TOOLS if self._recall is not None else ())

    def line(self, call: ToolCall) -> str:
        """A call in one line: the tool's first argument says what it is about."""
        tool, given = self._tools.get(call.name), call.object
        first = next(iter(given if tool is None else tool.arguments.__struct_fields__), "")
        return " ".join(str(given.get(first, "")).split())[:_WIDEST]

    async def run(self, call: ToolCall) -> Answer:
        """The answer to a call, with no half characters in it: a store could not keep them."""
        answer = await self._answer(call)
        return Answer(whole_characters(answer.text), answer.is_error)

    async def _answer(self, call: ToolCall) -> Answer:
        if self._recall is not None and call.name in TOOL_NAMES:
            return await self._recall.run(call.name, call.arguments)
        try:
            return Answer(await self._run(call))
        except HoldfastError as problem:
            return Answer(f"Error: {problem}", is_error=True)
        except OSError as problem:
            return Answer(f"Error: {problem.strerror or problem} ({problem.filename or call.name})", is_error=True)
        except Exception as problem:
            log.exception("the tool %s broke", call.name)
            return Answer(f"Error: {call.name} broke ({type(problem).__name__}: {problem})", is_error=True)

    async def _run(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise InvalidInput(f"There is no tool {call.name!r}: use one of {', '.join(t.name for t in self.told)}.")
        arguments = read_arguments(call.arguments, tool.arguments)
        if tool.changes and tool.name not in self._allowed:
            permission = await self._approve(Question(tool.name, self.line(call), call))
            if permission == "no":
                raise InvalidInput("The person did not allow this: ask what to do instead.")
            if permission == "always":
                self._allowed.add(tool.name)
        return await tool.run(arguments)


async def always_yes(question: Question) -> Permission:
    """For those who said beforehand that nobody need be asked."""
    return "yes"
