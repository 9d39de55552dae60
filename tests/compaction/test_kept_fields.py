"""H6: on real sessions of every format, what is kept keeps its bytes, and what is edited keeps its other fields."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from holdfast import PruneToolResults, check, compact
from holdfast.errors import Outcome
from holdfast.messages import FORMATS, Json, Message, Part, Reasoning, encode_all, rules_for
from holdfast.strategies import KeepTrail
from real_sessions import each_nth_session, history

BUDGET = 12_000
MARK = {"type": "ephemeral"}
CITATIONS = [{"type": "char_location", "cited_text": "berth 7", "document_index": 0}]
WAYS: dict[str, dict[str, Any]] = {
    "ledger": {"budget": BUDGET},
    "prune": {"budget": 10**9, "trigger": lambda _: True, "strategy": PruneToolResults(500, 0)},
    "trail": {"budget": BUDGET, "strategy": KeepTrail(6_000)},
}
Sizes = Counter[str]


def payloads_of(messages: list[Message], format: str, luck: random.Random) -> list[Json]:
    """Encodes a history with thinking, citations, cache marks and unknown fields, and a number for each message."""
    own = [_with_thinking(message, format, luck) for message in messages]
    payloads = copy.deepcopy(encode_all(own, format))
    for number, payload in enumerate(payloads):
        _add_noise(payload, luck)
        payload["x_number"] = number
    return payloads


def _with_thinking(message: Message, format: str, luck: random.Random) -> Message:
    parts: list[Part] = [part for part in message.parts if not isinstance(part, Reasoning)]
    if message.role == "assistant" and parts and luck.random() < 0.5:
        encrypted = (
            {"encrypted": "e", "id": f"rs_{luck.random()}"} if format == "openai-responses" else {"signature": "s"}
        )
        parts.insert(0, Reasoning("hm", origin=format, **encrypted))
    return Message(message.role, tuple(parts))


def _add_noise(fields: Json, luck: random.Random) -> None:
    for name in ("content", "parts"):
        for block in fields[name] if isinstance(fields.get(name), list) else ():
            if isinstance(block, dict) and "type" in block and luck.random() < 0.5:
                block["cache_control"] = MARK
                if block["type"] in ("text", "output_text"):
                    block["citations"] = CITATIONS
    if luck.random() < 0.5:
        fields["x_unknown"] = {"deep": [1, None, "é"]}


def is_edited(before: Any, after: Any) -> bool:
    """Whether the second was made of the first: by other texts, and without some items of lists or empty fields."""
    if isinstance(before, dict) and isinstance(after, dict):
        if before.get("role") == "system":  # a format may allow no system message there
            before = before | {"role": after.get("role")}
        left = [name for name in before if name in after]
        return left == list(after) and all(is_edited(before[name], after[name]) for name in left)
    if isinstance(before, list) and isinstance(after, list):
        rest = iter(before)
        return all(any(is_edited(one, kept) for one in rest) for kept in after)
    if isinstance(after, str) and ("[cut: " in after or "[Old tool result" in after):
        return True
    return bool(after == before or after is None)


@pytest.mark.sampled(30)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("format", FORMATS)
@each_nth_session(24, 5)
def test_h6_kept_messages_keep_their_bytes_and_edited_ones_their_fields(path: Path, format: str, way: str) -> None:
    luck = random.Random(f"{path.name} {format}")
    given = payloads_of(history(path)[:300], format, luck)
    before = list(map(json.dumps, given))
    result = compact(given, format=format, estimator="chars/4", **WAYS[way])
    sizes = Sizes()
    for payload in result.messages:
        if (number := payload.get("x_number")) is None:
            continue  # a note
        if json.dumps(payload) == before[number]:
            sizes["untouched"] += 1
        else:
            sizes["edited"] += 1
            assert is_edited(given[number], payload), (given[number], payload)
    assert list(map(json.dumps, given)) == before
    assert check(result.messages, format) == []
    if result.outcome is Outcome.COMPACTED:
        assert sizes["untouched"] or sizes["edited"]
        assert sizes["edited"] or not rules_for(format).signed_reasoning
