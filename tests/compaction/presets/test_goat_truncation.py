"""Goat's fallback: the newest 40 % of the messages behind a note, with the acknowledgement (G4, G5, G6)."""

from __future__ import annotations

from typing import Any

from holdfast import Outcome, check, compact
from holdfast.models import ScriptedModel
from holdfast.models.calls import Failure
from holdfast.triggers import always


def talk(count: int, words: int) -> list[dict[str, Any]]:
    return [{"role": ("user", "assistant")[n % 2], "content": f"berth {n} " + "tide " * words} for n in range(count)]


def compact_without_model(messages: list[dict[str, Any]], **options: Any) -> Any:
    broken = ScriptedModel(Failure("overloaded", "no berth"), repeat=True)
    return compact(messages, preset="goat", trigger=always, summarizer=broken, **options)


def test_g6_failed_summary_keeps_the_newest_40_percent_with_the_acknowledgement() -> None:
    messages = talk(100, 1_500)
    result = compact_without_model(messages)
    assert result.outcome is Outcome.COMPACTED and result.fallback == "truncation"
    note, acknowledgement, *kept = result.messages
    assert kept == messages[60:]
    assert "[Earlier conversation left out: 60 messages" in note["content"] and "berth 0 " in note["content"]
    assert (note["role"], acknowledgement["role"]) == ("user", "assistant")
    assert check(result.messages, "openai-chat") == []


def test_g6_forced_compaction_of_a_small_context_is_truncated_too() -> None:
    messages = talk(40, 150)
    result = compact_without_model(messages)
    assert result.outcome is Outcome.COMPACTED
    assert result.messages[2:] == messages[24:]


def test_g6_second_failure_counts_all_messages_once() -> None:
    first = compact_without_model(talk(40, 150))
    more = [*first.messages, *talk(40, 150)]
    second = compact_without_model(more, previous=first.checkpoint)
    notes = [message for message in second.messages if "left out" in message["content"]]
    assert len(notes) == 1 and "left out: 5" in notes[0]["content"]


def test_g6_too_large_messages_are_truncated_by_tokens() -> None:
    messages = talk(10, 60_000)
    result = compact_without_model(messages)
    assert result.fallback == "truncation" and result.tokens_after < result.tokens_before
    assert messages[-2] in result.messages, "the newest user message stays"
