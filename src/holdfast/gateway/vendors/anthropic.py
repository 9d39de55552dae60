"""Anthropic's compaction protocols: `context_management` with its edits, and `compaction: summarize` on demand."""

from __future__ import annotations

import uuid
from typing import Any

import msgspec

from ...errors import InvalidInput
from ...follow import CACHE_MARK
from ...messages import Json
from ..protocols import ITEM_PREFIX, CallKind, RequestBody
from ..thinking import content_blocks, strip_thinking
from .context_editing import read_edits
from .requests import CompactionItem, CompactionRequest, ProtocolRefusal, ReturnedItem, open_last
from .sealed_items import ItemSealer, is_sealed, text_digest

BETAS = frozenset(("context-management-2025-06-27", "compact-2026-01-12", "compact-2026-09-04"))
"""Values of `anthropic-beta` that only these protocols need."""
_EDITS, _ON_DEMAND = "context_management", "compaction"
_DEFAULT_TRIGGER, _MIN_TRIGGER = 150_000, 50_000
_MAX_INSTRUCTIONS = 16_384
_ZERO = {"input_tokens": 0, "output_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def read_request(
    body: RequestBody, kind: CallKind, sealer: ItemSealer, owner: str, *, native: bool = False
) -> CompactionRequest:
    """Reads and removes what belongs to the protocols; the blocks of the gateway become their messages.

    With `native`, all but these blocks is left to the upstream.
    """
    if not body.has_all_messages:
        return CompactionRequest()
    asked = CompactionRequest()
    on_demand, management = (None, None) if native else (body.value(_ON_DEMAND), body.value(_EDITS))
    if on_demand is not None:
        body.remove(_ON_DEMAND)
        if kind != "count":
            _read_on_demand(asked, body, on_demand)
    if management is not None:
        _read_management(asked, body, management)
    if kind == "count":
        asked.threshold = None
    if ITEM_PREFIX.encode() in body.messages or asked.now:
        messages = [one for one in msgspec.json.decode(body.messages) if isinstance(one, dict)]
        if asked.now and _has_open_call(messages):
            raise refusal(
                "compaction: the last assistant turn has a tool call without its result", "compaction_incomplete_turn"
            )
        if asked.now and not any(message.get("content") for message in messages):
            raise refusal("compaction: there is nothing to summarize", "compaction_nothing_to_summarize")
        _expand(body, asked, messages, sealer, owner)
    return asked


def _read_on_demand(asked: CompactionRequest, body: RequestBody, given: Any) -> None:
    if not isinstance(given, dict) or given.get("type") != "summarize":
        raise refusal("compaction.type: Input should be 'summarize'")
    instructions = given.get("instructions")
    if instructions is not None and (not isinstance(instructions, str) or len(instructions) > _MAX_INSTRUCTIONS):
        raise refusal(f"compaction.instructions: String should have at most {_MAX_INSTRUCTIONS} characters")
    output, choice = body.value("output_config") or {}, body.value("tool_choice") or {}
    budget = output.get("task_budget") or {}
    conflicts = {
        _EDITS: body.value(_EDITS) is not None,
        "stop_sequences": bool(body.value("stop_sequences")),
        "output_config.format": output.get("format") is not None,
        "output_config.task_budget.remaining": budget.get("remaining") is not None,
        "tool_choice": choice.get("type") in ("any", "tool"),
    }
    if wrong := next((name for name, is_set in conflicts.items() if is_set), None):
        raise refusal(f"compaction: cannot be used together with {wrong}")
    asked.now, asked.instructions = True, (instructions or "").strip() or None


def _read_management(asked: CompactionRequest, body: RequestBody, given: Any) -> None:
    edits = given.get("edits") if isinstance(given, dict) else None
    try:
        asked.edits = read_edits(edits, body.model)
    except InvalidInput as problem:
        raise refusal(str(problem)) from None
    asked.reports_edits = True
    body.remove(_EDITS)
    for edit in edits if isinstance(edits, list) else ():
        if not isinstance(edit, dict) or edit.get("type") != "compact_20260112":
            continue
        trigger = edit.get("trigger") or {}
        threshold = trigger.get("value", _DEFAULT_TRIGGER) if isinstance(trigger, dict) else None
        if not isinstance(threshold, int) or isinstance(threshold, bool) or threshold < _MIN_TRIGGER:
            raise refusal(
                "context_management.edits.compact_20260112.trigger.value: Input should be greater than or equal to "
                f"{_MIN_TRIGGER}"
            )
        asked.threshold, asked.pause = threshold, edit.get("pause_after_compaction") is True
        asked.instructions = edit.get("instructions") or None


def _has_open_call(messages: list[Json]) -> bool:
    last = messages[-1] if messages else {}
    return last.get("role") == "assistant" and any(block.get("type") == "tool_use" for block in content_blocks(last))


def _expand(body: RequestBody, asked: CompactionRequest, messages: list[Json], sealer: ItemSealer, owner: str) -> None:
    """Puts the content of the newest block in place of itself and of all before it."""
    own = [
        (at, place, block)
        for at, message in enumerate(messages)
        for place, block in enumerate(content_blocks(message))
        if block.get("type") == "compaction" and (_sealed(block) is not None)
    ]
    if not own:
        return
    signed = [place for place in own if is_sealed(place[2].get("signature"))]
    if len(signed) > 1:
        raise refusal("messages: there is more than one compaction block", "compaction_block_ambiguous")
    if signed and signed[0][:2] != (0, 0):
        raise refusal("messages: a compaction block must come first", "compaction_block_misplaced")
    at, place, block = own[-1]
    item = open_last([str(_sealed(found[2])) for found in own], sealer, owner, _damaged)
    if signed and text_digest(str(block.get("content"))) != item.summary:
        raise refusal(
            f"messages.{at}.content.{place}: the content of the compaction block was changed",
            "compaction_content_mismatch",
        )
    rest = messages[at]["content"][place + 1 :]
    after = [*([messages[at] | {"content": rest}] if rest else []), *messages[at + 1 :]]
    asked.returned = ReturnedItem(item, [], after, block.get(CACHE_MARK))
    # Without the session it is not known which thinking was made after the compaction: none of it is sent.
    body.replace("messages", [*asked.returned.messages, *map(strip_thinking, after)])


def _sealed(block: Json) -> str | None:
    return next((text for field in ("signature", "encrypted_content") if is_sealed(text := block.get(field))), None)


def refusal(message: str, code: str | None = None, status: int = 400) -> ProtocolRefusal:
    error: Json = {"type": "invalid_request_error" if status < 500 else "overloaded_error", "message": message}
    if code is not None:
        error["details"] = {"error_code": code}
    return ProtocolRefusal(status, {"type": "error", "error": error, "request_id": f"req_{uuid.uuid4().hex}"})


def _damaged(text: str) -> ProtocolRefusal:
    return refusal("messages: Invalid signature in a `compaction` block", "compaction_signature_invalid")


def unavailable() -> ProtocolRefusal:
    return refusal("The conversation could not be compacted: try again.", "compaction_unavailable", 529)


# -- replies ---------------------------------------------------------------------------------------------------------


def _wire_block(item: CompactionItem, asked: CompactionRequest) -> Json:
    field = "signature" if asked.now else "encrypted_content"
    return {"type": "compaction", "content": item.summary, field: item.sealed}


def _iteration(item: CompactionItem) -> Json:
    """Tokens of the summarizer; none were used without a model."""
    used = item.usage
    return {
        "type": "compaction",
        "input_tokens": used.input,
        "output_tokens": used.output,
        "cache_creation_input_tokens": used.cache_write,
        "cache_read_input_tokens": used.cache_read,
    }


def _block_events(item: CompactionItem, asked: CompactionRequest) -> list[Json]:
    """Returns the events of the block: whole at its start on demand, else in one delta."""
    block, stop = _wire_block(item, asked), {"type": "content_block_stop", "index": 0}
    if asked.now:
        return [{"type": "content_block_start", "index": 0, "content_block": block}, stop]
    empty = {"type": "compaction", "content": None, "encrypted_content": None}
    return [
        {"type": "content_block_start", "index": 0, "content_block": empty},
        {"type": "content_block_delta", "index": 0, "delta": block | {"type": "compaction_delta"}},
        stop,
    ]


def compacted_reply(body: RequestBody, asked: CompactionRequest, item: CompactionItem) -> tuple[Json, list[Json]]:
    """Returns the reply that has only the block, whole and as events of a stream."""
    usage = _ZERO | {"iterations": [_iteration(item)]}
    managed: Json = {"context_management": {"applied_edits": []}} if asked.reports_edits else {}
    begun: Json = {
        "id": f"msg_{uuid.uuid4().hex}",
        "type": "message",
        "role": "assistant",
        "model": body.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": _ZERO,
    }
    ended = {"stop_reason": "compaction", "stop_sequence": None}
    whole = begun | ended | {"content": [_wire_block(item, asked)], "usage": usage} | managed
    events: list[Json] = [
        {"type": "message_start", "message": begun},
        *_block_events(item, asked),
        {"type": "message_delta", "delta": ended, "usage": usage} | managed,
        {"type": "message_stop"},
    ]
    return whole, events


class MessageEditor:
    """Puts a compaction block before the content of the upstream's reply, and the applied edits into it."""

    def __init__(self, asked: CompactionRequest, item: CompactionItem | None, applied: list[Json]) -> None:
        self._asked = asked
        self._item = item
        self._managed: Json = {"context_management": {"applied_edits": applied}} if asked.reports_edits else {}
        self._usage: Json = {}

    def edit_event(self, event: Json) -> list[Json]:
        """Returns the events in place of one event of the stream."""
        match event.get("type"):
            case "message_start":
                self._usage = event.get("message", {}).get("usage") or {}
                return [event, *([] if self._item is None else _block_events(self._item, self._asked))]
            case "message_delta":
                usage = self._with_iterations(self._usage | (event.get("usage") or {}), event.get("usage") or {})
                return [event | {"usage": usage} | self._managed]
        if self._item is not None and isinstance(index := event.get("index"), int):
            return [event | {"index": index + 1}]
        return [event]

    def edit_whole(self, reply: Json) -> Json:
        """Returns a whole reply with block, iterations and applied edits."""
        if reply.get("type") != "message":
            return reply
        usage = reply.get("usage") or {}
        changed: Json = {"usage": self._with_iterations(usage, usage)} | self._managed
        if self._item is not None:
            changed["content"] = [_wire_block(self._item, self._asked), *(reply.get("content") or [])]
        return reply | changed

    def _with_iterations(self, counts: Json, usage: Json) -> Json:
        """Returns usage with one entry for the compaction and one for the upstream's reply."""
        if self._item is None:
            return usage
        message = {"type": "message"} | {name: counts.get(name) or 0 for name in _ZERO}
        return usage | {"iterations": [_iteration(self._item), *(usage.get("iterations") or [message])]}


class CountEditor:
    """Adds the tokens before the edits to the reply of `count_tokens`."""

    def __init__(self, applied: list[Json]) -> None:
        self._cleared = sum(edit["cleared_input_tokens"] for edit in applied)

    def edit_event(self, event: Json) -> list[Json]:
        return [event]

    def edit_whole(self, reply: Json) -> Json:
        if not isinstance(counted := reply.get("input_tokens"), int):
            return reply
        return reply | {"context_management": {"original_input_tokens": counted + self._cleared}}
