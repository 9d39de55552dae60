"""OpenAI's compaction protocol: `/responses/compact`, `compaction_trigger`, and thresholds in `context_management`."""

from __future__ import annotations

import time
import uuid
from typing import Any

import msgspec

from ...follow import count_leading_system
from ...messages import Json
from ..protocols import ITEM_PREFIX, CallKind, RequestBody
from .requests import CompactionItem, CompactionRequest, ProtocolRefusal, ReturnedItem, open_last
from .sealed_items import ItemSealer, is_sealed, message_digest

_FIELD = "context_management"
_TRIGGER = "compaction_trigger"
_ITEM_TYPES = ("compaction", "compaction_summary", "context_compaction")
_RETAINED_ROLES = ("user", "system", "developer")
_OPENING_EVENTS = ("response.created", "response.queued", "response.in_progress")
_MIN_THRESHOLD = 1_000


def read_request(
    body: RequestBody, kind: CallKind, sealer: ItemSealer, owner: str, *, native: bool = False
) -> CompactionRequest:
    """Reads and removes what belongs to the protocol; the items of the gateway become their messages.

    With `native`, all but these items is left to the upstream.
    """
    asked = CompactionRequest(now=kind == "compact" and not native)
    if asked.now and body.has_text_alone:
        body.replace("input", [{"type": "message", "role": "user", "content": body.value("input")}])
    if not body.has_all_messages:
        return CompactionRequest()
    asked.threshold = None if native else _read_threshold(body)
    raw, has_trigger = body.messages, not native and _TRIGGER.encode() in body.messages
    if not (asked.now or asked.threshold or has_trigger or ITEM_PREFIX.encode() in raw):
        return asked
    items = [item for item in msgspec.json.decode(raw) if isinstance(item, dict)]
    triggers = [at for at, item in enumerate(items) if has_trigger and item.get("type") == _TRIGGER]
    if triggers and triggers != [len(items) - 1]:
        raise refusal(f"'{_TRIGGER}' must be the final input item.", "input", "invalid_value")
    if triggers:
        asked.now = True
        items.pop()
        body.replace("input", items)
    if asked.now and not items:
        raise refusal("There is nothing to compact: 'input' has no items.", "input", "invalid_value")
    asked.user_messages = [item for item in items if item.get("role") == "user"]
    _expand(body, asked, items, sealer, owner)
    retained = {message_digest(item) for item in items if item.get("role") in _RETAINED_ROLES}
    earlier = asked.returned.item.replaced if asked.returned is not None else ()
    asked.replaced = tuple(sorted(retained.union(earlier)))
    return asked


def _read_threshold(body: RequestBody) -> int | None:
    given = body.value(_FIELD)
    entry = next(
        (one for one in given if isinstance(one, dict) and one.get("type") == "compaction"), None
    ) if isinstance(given, list) else None  # fmt: skip
    if entry is None:
        return None
    body.remove(_FIELD)
    threshold = entry.get("compact_threshold")
    if threshold is None:
        return None
    if not isinstance(threshold, int) or isinstance(threshold, bool) or threshold < _MIN_THRESHOLD:
        raise refusal(
            f"Invalid 'context_management[0].compact_threshold': expected an integer of at least {_MIN_THRESHOLD}.",
            "context_management[0].compact_threshold",
            "integer_below_min_value",
        )
    return threshold


def _expand(body: RequestBody, asked: CompactionRequest, items: list[Json], sealer: ItemSealer, owner: str) -> None:
    """Puts the content of the newest item in place of all that it replaces."""
    own = [at for at, item in enumerate(items) if _is_own(item)]
    if not own:
        return
    item = open_last([items[at]["encrypted_content"] for at in own], sealer, owner, _damaged)
    before, replaced = items[: own[-1]], set(item.replaced)
    leading = count_leading_system(before)
    added = [
        one
        for one in before[leading:]
        if one.get("role") in _RETAINED_ROLES and message_digest(one) not in replaced
    ]  # fmt: skip
    asked.returned = ReturnedItem(item, before[:leading], [*added, *items[own[-1] + 1 :]])
    body.replace("input", [*before[:leading], *asked.returned.messages, *asked.returned.after])


def _is_own(item: Json) -> bool:
    return item.get("type") in _ITEM_TYPES and is_sealed(item.get("encrypted_content"))


def refusal(message: str, param: str | None, code: str, status: int = 400) -> ProtocolRefusal:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return ProtocolRefusal(status, {"error": {"message": message, "type": kind, "param": param, "code": code}})


def _damaged(text: str) -> ProtocolRefusal:
    return refusal(
        "The encrypted content of a compaction item could not be verified. Reason: Encrypted content could not be "
        "decrypted or parsed.",
        "input",
        "invalid_encrypted_content",
    )


def unavailable() -> ProtocolRefusal:
    return refusal("The conversation could not be compacted: try again.", None, "server_error", 503)


# -- replies ---------------------------------------------------------------------------------------------------------


def _wire_item(item: CompactionItem) -> Json:
    return {"id": item.id, "type": "compaction", "encrypted_content": item.sealed}


def _usage(item: CompactionItem) -> Json:
    """The summarizer's input, and the size of the context that the item stands for."""
    taken, made = item.usage.input + item.usage.cache_read + item.usage.cache_write, item.tokens
    return {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": item.usage.cache_read, "cache_write_tokens": item.usage.cache_write},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": taken + made,
    }


def compacted_reply(asked: CompactionRequest, item: CompactionItem) -> Json:
    """Returns the reply of `/responses/compact`: all user messages and the item."""
    return {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response.compaction",
        "created_at": int(time.time()),
        "output": [*map(_retained, asked.user_messages), _wire_item(item)],
        "usage": _usage(item),
    }


def _retained(message: Json) -> Json:
    content = message.get("content")
    parts = [{"type": "input_text", "text": content}] if isinstance(content, str) else content
    name = message.get("id") or f"msg_{message_digest(message).hex()}"
    return {"id": name, "type": "message", "status": "completed", "role": "user", "content": parts}


def triggered_reply(body: RequestBody, item: CompactionItem) -> tuple[Json, list[Json]]:
    """Returns the reply to a `compaction_trigger`, whole and as events of a stream."""
    own = _wire_item(item)
    begun = {
        "id": f"resp_{uuid.uuid4().hex}",
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": body.value("instructions"),
        "metadata": body.value("metadata") or {},
        "model": body.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }
    whole = begun | {"status": "completed", "output": [own], "usage": _usage(item)}
    events: list[Json] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *_item_events(own),
        {"type": "response.completed", "response": whole},
    ]
    return whole, [event | {"sequence_number": number} for number, event in enumerate(events)]


def _item_events(own: Json) -> list[Json]:
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": own},
        {"type": "response.output_item.done", "output_index": 0, "item": own},
    ]


class ResponseEditor:
    """Puts an item before the output of the upstream's reply."""

    def __init__(self, item: CompactionItem) -> None:
        self._own = _wire_item(item)
        self._added = 0
        """Events that were inserted."""

    def edit_event(self, event: Json) -> list[Json]:
        """Returns the events in place of one event of the stream; the item comes before the first of the output."""
        if self._added or event.get("type") in _OPENING_EVENTS:
            return [self._shifted(event)]
        first, inserted = event.get("sequence_number", 0), _item_events(self._own)
        self._added = len(inserted)
        numbered = [one | {"sequence_number": first + number} for number, one in enumerate(inserted)]
        return [*numbered, self._shifted(event)]

    def _shifted(self, event: Json) -> Json:
        changed: dict[str, Any] = {}
        if isinstance(number := event.get("sequence_number"), int):
            changed["sequence_number"] = number + self._added
        if isinstance(index := event.get("output_index"), int):
            changed["output_index"] = index + 1
        if event.get("type") in ("response.completed", "response.incomplete"):
            changed["response"] = self.edit_whole(event["response"])
        return event | changed

    def edit_whole(self, reply: Json) -> Json:
        """Returns a whole reply with the item first."""
        return reply | {"output": [self._own, *(reply.get("output") or [])]}
