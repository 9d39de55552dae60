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
from .command import OnOutput
from .files import AgentTool, PlannedChange
from .permissions import PermissionRules, Verdict

log = logging.getLogger("holdfast")
INVALID_JSON = "invalid_json"
"""Holds the arguments of a call that are not a JSON object, since providers accept nothing else."""
_MAX_LINE = 2_000
Permission = Literal["yes", "no", "always"]
"""`always` also allows later calls under the request's rule, in this folder."""


class PermissionRequest(msgspec.Struct, frozen=True):
    """Asks the user to allow a tool call."""

    tool: str
    line: str
    """The call in one line."""
    call: ToolCall
    change: PlannedChange | None = None
    """What would be written to which file."""
    rule: str | None = None
    """What `always` would allow; None if it would allow too much."""
    about: str = ""
    """What the rule matches, with an example of what it does not; or why there is none."""


Approve = Callable[[PermissionRequest], Awaitable[Permission]]
"""Decides on a call that changes something, or that reads in a folder that is not trusted.

It may raise `refusal` in place of returning `no`.
"""


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
        named = None if tool is None else tool.schema.get("properties")
        first = next(iter(named if isinstance(named, dict) else given), "")
        return " ".join(str(given.get(first, "")).split())[:_MAX_LINE]

    async def run(self, call: ToolCall, on_output: OnOutput | None = None) -> ToolAnswer:
        """Runs a call and returns its result without lone surrogates, which stores cannot encode.

        `on_output` is called with pieces of the output of a tool that streams it.
        """
        answer = await self._answer(call, on_output)
        return msgspec.structs.replace(answer, text=replace_lone_surrogates(answer.text))

    async def _answer(self, call: ToolCall, on_output: OnOutput | None) -> ToolAnswer:
        if self._recall is not None and call.name in TOOL_NAMES:
            return await self._recall.run(call.name, call.arguments)
        try:
            answer = await self._run(call, on_output)
            return answer if isinstance(answer, ToolAnswer) else ToolAnswer(answer)
        except HoldfastError as problem:
            return ToolAnswer(f"Error: {problem}", is_error=True)
        except OSError as problem:
            return ToolAnswer(f"Error: {problem.strerror or problem} ({problem.filename or call.name})", is_error=True)
        except Exception as problem:
            log.exception("tool %s failed", call.name)
            return ToolAnswer(f"Error: {call.name} failed: {plain_reason(problem)}", is_error=True)

    async def _run(self, call: ToolCall, on_output: OnOutput | None) -> str | ToolAnswer:
        tool = self._tools.get(call.name)
        if tool is None:
            raise InvalidInput(
                f"There is no tool {call.name!r}: use one of {', '.join(t.name for t in self.definitions)}."
            )
        if INVALID_JSON in call.arguments_dict:
            raise InvalidInput("The arguments are not a valid JSON object, so nothing was run: make the call again.")
        kind = tool.arguments
        arguments = call.arguments_dict if isinstance(kind, dict) else parse_arguments(call.arguments, kind)
        planned = await tool.plan(arguments) if tool.plan is not None else None
        verdict = self._permissions.check(call, planned) if tool.changes else self._permissions.check_read()
        if not verdict.allowed:
            await self._require_approval(call, planned, verdict)
        if tool.streams:
            return await tool.run(arguments, on_output)
        return await tool.run(arguments if planned is None else planned)

    async def _require_approval(self, call: ToolCall, change: PlannedChange | None, verdict: Verdict) -> None:
        tool = f"{call.name} "
        rule = " and ".join(rule if not place else rule.removeprefix(tool) for place, rule in enumerate(verdict.rules))
        request = PermissionRequest(call.name, self.describe(call), call, change, rule or None, verdict.about)
        permission = await self._approve(request)
        if permission == "no":
            raise refusal()
        if permission == "always":
            for rule in verdict.rules:
                self._permissions.add(rule)


def refusal(words: str = "") -> InvalidInput:
    """Returns the error of a call that the user refused, with words of the user for the model."""
    if not (words := words.strip()):
        return InvalidInput("The user did not allow this: ask what to do instead.")
    return InvalidInput(f"The user did not allow this. The user's words: {words}")


async def approve_all(request: PermissionRequest) -> Permission:
    """Allows every call without asking the user."""
    return "yes"
