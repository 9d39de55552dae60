"""The tools of one agent: their definitions, permissions and execution."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import msgspec

from ...errors import HoldfastError, InvalidInput, plain_reason
from ...messages import Tool, ToolCall, replace_lone_surrogates
from ...recall import Recall
from ...recall.tools import TOOL_NAMES, ToolAnswer, offered_tools, parse_arguments
from .files import AgentTool, PlannedChange
from .permissions import PermissionRules, rule_for

log = logging.getLogger("holdfast")
INVALID_JSON = "invalid_json"
"""Holds the arguments of a call that are not a JSON object, since providers accept nothing else."""
_MAX_LINE = 200
Permission = Literal["yes", "no", "always"]
"""`always` also allows later calls under the request's rule, in this folder."""


class PermissionRequest(msgspec.Struct, frozen=True):
    """Asks the user to allow a tool call that changes something."""

    tool: str
    line: str
    """The call in one line."""
    call: ToolCall
    change: PlannedChange | None = None
    """What would be written to which file."""
    rule: str | None = None
    """What `always` would allow; None if it would allow too much."""


Approve = Callable[[PermissionRequest], Awaitable[Permission]]
"""Decides on a tool call that changes something."""


class Toolbox:
    """Runs tool calls. Failures become error results, so that the model can react to them."""

    def __init__(
        self,
        tools: Iterable[AgentTool],
        approve: Approve,
        recall: Recall | None = None,
        permissions: PermissionRules | None = None,
    ) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._approve = approve
        self._recall = recall
        self._permissions = permissions or PermissionRules()

    @property
    def definitions(self) -> tuple[Tool, ...]:
        """Tool definitions to send to a model."""
        own = tuple(tool.definition for tool in self._tools.values())
        return own + (offered_tools(self._recall) if self._recall is not None else ())

    def describe(self, call: ToolCall) -> str:
        """Returns the first argument of a call as one line."""
        tool, given = self._tools.get(call.name), call.arguments_dict
        first = next(iter(given if tool is None else tool.arguments.__struct_fields__), "")
        return " ".join(str(given.get(first, "")).split())[:_MAX_LINE]

    async def run(self, call: ToolCall) -> ToolAnswer:
        """Runs a call and returns its result without lone surrogates, which stores cannot encode."""
        answer = await self._answer(call)
        return ToolAnswer(replace_lone_surrogates(answer.text), answer.is_error)

    async def _answer(self, call: ToolCall) -> ToolAnswer:
        if self._recall is not None and call.name in TOOL_NAMES:
            return await self._recall.run(call.name, call.arguments)
        try:
            return ToolAnswer(await self._run(call))
        except HoldfastError as problem:
            return ToolAnswer(f"Error: {problem}", is_error=True)
        except OSError as problem:
            return ToolAnswer(f"Error: {problem.strerror or problem} ({problem.filename or call.name})", is_error=True)
        except Exception as problem:
            log.exception("tool %s failed", call.name)
            return ToolAnswer(f"Error: {call.name} failed: {plain_reason(problem)}", is_error=True)

    async def _run(self, call: ToolCall) -> str:
        tool = self._tools.get(call.name)
        if tool is None:
            raise InvalidInput(
                f"There is no tool {call.name!r}: use one of {', '.join(t.name for t in self.definitions)}."
            )
        if INVALID_JSON in call.arguments_dict:
            raise InvalidInput("The arguments are not a valid JSON object, so nothing was run: make the call again.")
        arguments = parse_arguments(call.arguments, tool.arguments)
        planned = await tool.plan(arguments) if tool.plan is not None else None
        if tool.changes and not self._permissions.allows(call):
            await self._require_approval(
                PermissionRequest(tool.name, self.describe(call), call, planned, rule_for(call))
            )
        return await tool.run(arguments if planned is None else planned)

    async def _require_approval(self, request: PermissionRequest) -> None:
        permission = await self._approve(request)
        if permission == "no":
            raise InvalidInput("The user did not allow this: ask what to do instead.")
        if permission == "always" and request.rule is not None:
            self._permissions.add(request.rule)


async def approve_all(request: PermissionRequest) -> Permission:
    """Allows every call without asking the user."""
    return "yes"
