"""Anthropic's context edits on any upstream: old tool results and thinking are cleared from what is forwarded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from ...errors import InvalidInput
from ...messages import Edit, Json, Replace, patch
from ..thinking import content_blocks, has_thinking, strip_thinking

CLEARED = "[Old tool result cleared to save context: run the tool again if it is needed.]"
_KEEPS_THINKING = re.compile(r"opus-4-[5-9]|opus-[5-9]|sonnet-4-[6-9]|sonnet-[5-9]|fable|mythos")
"""Models that keep all thinking unless the edit names a number of turns."""
Measure = Callable[[Json], int]


class ClearToolUses(msgspec.Struct, frozen=True):
    """`clear_tool_uses_20250919`."""

    trigger: int = 100_000
    counts_uses: bool = False
    """Whether the trigger counts tool uses, not input tokens."""
    keep: int = 3
    clear_at_least: int = 0
    excluded: frozenset[str] = frozenset()
    inputs: bool | frozenset[str] = False
    """Whether the calls' inputs are cleared, too: of all tools or of these."""

    def clears_input(self, tool: str | None) -> bool:
        """Whether the input of a cleared call to this tool is cleared, too."""
        return tool is not None and (tool in self.inputs if isinstance(self.inputs, frozenset) else self.inputs)


class ContextEdits(msgspec.Struct, frozen=True):
    """The edits of one request that clear something."""

    tool_uses: ClearToolUses | None = None
    thinking_turns: int | None = None
    """Newest turns whose thinking is kept; None keeps all."""

    def __bool__(self) -> bool:
        return self.tool_uses is not None or self.thinking_turns is not None

    def apply(self, messages: list[Json], tokens: int, measure: Measure) -> tuple[list[Json], list[Json]]:
        """Returns the messages with the edits applied, and the `applied_edits` of the reply.

        Thinking is bound to all that precedes it: after a cleared result none of it is sent.
        """
        applied: list[Json] = []
        if self.thinking_turns is not None:
            edited, turns = _clear_thinking(messages, self.thinking_turns)
            if turns:
                saved = _difference(messages, edited, measure)
                applied.append(
                    {
                        "type": "clear_thinking_20251015",
                        "cleared_thinking_turns": turns,
                        "cleared_input_tokens": saved,
                    }
                )
                messages, tokens = edited, tokens - saved
        if self.tool_uses is not None:
            edited, uses = _clear_tool_uses(messages, self.tool_uses, tokens)
            saved = _difference(messages, edited, measure)
            if uses and saved >= self.tool_uses.clear_at_least:
                applied.append(
                    {"type": "clear_tool_uses_20250919", "cleared_tool_uses": uses, "cleared_input_tokens": saved}
                )
                messages = list(map(strip_thinking, edited))
        return messages, applied


def _difference(before: Sequence[Json], after: Sequence[Json], measure: Measure) -> int:
    pairs = zip(before, after, strict=True)
    return max(0, sum(measure(old) - measure(new) for old, new in pairs if old is not new))


def read_edits(given: Any, model: str) -> ContextEdits:
    """Reads the edits of a request that clear something; compactions and unknown edits are not among them."""
    tool_uses, turns = None, None
    for edit in given if isinstance(given, list) else ():
        match edit:
            case {"type": "clear_tool_uses_20250919"}:
                tool_uses = _read_tool_uses(edit)
            case {"type": "clear_thinking_20251015"}:
                keep = edit.get("keep")
                if keep is None:
                    turns = None if _KEEPS_THINKING.search(model) else 1
                elif keep == "all" or (isinstance(keep, dict) and keep.get("type") == "all"):
                    turns = None
                else:
                    turns = _value(keep, "clear_thinking_20251015.keep", least=1)
    return ContextEdits(tool_uses, turns)


def _read_tool_uses(edit: Json) -> ClearToolUses:
    name, given = "clear_tool_uses_20250919", {key: value for key, value in edit.items() if value is not None}
    inputs = given.get("clear_tool_inputs", False)
    trigger = given.get("trigger", {"type": "input_tokens", "value": ClearToolUses.trigger})
    return ClearToolUses(
        trigger=_value(trigger, f"{name}.trigger", least=1),
        counts_uses=isinstance(trigger, dict) and trigger.get("type") == "tool_uses",
        keep=_value(given.get("keep", {"value": ClearToolUses.keep}), f"{name}.keep", least=0),
        clear_at_least=_value(given.get("clear_at_least", {"value": 0}), f"{name}.clear_at_least", least=0),
        excluded=frozenset(map(str, given.get("exclude_tools", ()))),
        inputs=frozenset(map(str, inputs)) if isinstance(inputs, list) else bool(inputs),
    )


def _value(given: Any, where: str, least: int) -> int:
    value = given.get("value") if isinstance(given, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"context_management.edits.{where}.value: Input should be an integer of at least {least}")
    return value


# -- the edits -------------------------------------------------------------------------------------------------------


def _is_turn(message: Json) -> bool:
    """Whether a message begins a turn: one of the user that is not only tool results."""
    blocks = content_blocks(message)
    return message.get("role") == "user" and (not blocks or any(b.get("type") != "tool_result" for b in blocks))


def _clear_thinking(messages: list[Json], keep: int) -> tuple[list[Json], int]:
    """Clears the thinking of all but the newest turns that have some: a leading run, never a hole."""
    turn, turns = 0, list[int]()
    for message in messages:
        turn += _is_turn(message)
        turns.append(turn)
    thought = sorted({turn for turn, message in zip(turns, messages, strict=True) if has_thinking(message)})
    cleared = set(thought[: max(0, len(thought) - keep)])
    edited = [
        strip_thinking(message) if turn in cleared else message for turn, message in zip(turns, messages, strict=True)
    ]
    return edited, len(cleared)


def _clear_tool_uses(messages: list[Json], how: ClearToolUses, tokens: int) -> tuple[list[Json], int]:
    uses = [block for message in messages for block in content_blocks(message) if block.get("type") == "tool_use"]
    if (len(uses) if how.counts_uses else tokens) <= how.trigger:
        return messages, 0
    cleared = {
        str(use.get("id")): str(use.get("name"))
        for use in uses[: max(0, len(uses) - how.keep)]
        if use.get("name") not in how.excluded
    }
    seen: set[str] = set()
    edits = [list(_edits(message, cleared, how, seen)) for message in messages]
    return [patch(message, own) if own else message for message, own in zip(messages, edits, strict=True)], len(seen)


def _edits(message: Json, cleared: dict[str, str], how: ClearToolUses, seen: set[str]) -> Iterator[Edit]:
    for at, block in enumerate(content_blocks(message)):
        is_result = block.get("type") == "tool_result" and block.get("content") != CLEARED
        if is_result and (use := block.get("tool_use_id")) in cleared:
            seen.add(str(use))
            yield Replace(("content", at, "content"), CLEARED)
        is_call = block.get("type") == "tool_use" and block.get("input")
        if is_call and how.clears_input(cleared.get(str(block.get("id")))):
            yield Replace(("content", at, "input"), {})
