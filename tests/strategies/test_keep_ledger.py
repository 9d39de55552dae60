"""The ledger strategy: notes on archived messages, and the newest turns verbatim."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategy_table import CHARS, PROFILES

import histories
from holdfast import KeepLedger, MemoryStore, Outcome, Recall, SessionService, compact
from holdfast.errors import InvalidLimit
from holdfast.ledger import PAGE_OPENING
from holdfast.strategies.ledger import _next_characters
from holdfast.triggers import always

Messages = list[dict[str, Any]]
_CUT = re.compile(r"\[cut: ([\d,]+)\]")
LOG = "\n".join(f"worker-{at} INFO nothing to do" for at in range(300)) + "\nworker-7 ERROR tide_table_K7 is missing"


def called(id: str, text: str, **arguments: Any) -> Messages:
    function = {"name": "read_log", "arguments": json.dumps(arguments)}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": id, "type": "function", "function": function}]}
    return [call, {"role": "tool", "tool_call_id": id, "content": text}]


def working() -> Messages:
    """An agent in the middle of its work: the newest results are large, and the model has not answered yet."""
    steps = [message for at in range(6) for message in called(f"c{at}", LOG.replace("K7", f"K{at}"), worker=at)]
    talk = [{"role": role, "content": f"{role} {at} " * 60} for at in range(6) for role in ("user", "assistant")]
    return [*talk, {"role": "user", "content": "Why does berth K7 fail? See tide_table_K5."}, *steps]


def cut_short(messages: Messages) -> Messages:
    return [message for message in messages if message["role"] == "tool" and _CUT.search(message["content"])]


def test_shortened_result_is_marked_and_cites_the_original() -> None:
    messages = [*working(), {"role": "assistant", "content": "None of the berths has a table."}]
    result = compact(messages, budget=6_000, target=3_000)
    found = cut_short(list(result.messages))
    assert found
    for message in found:
        cited = int(_CUT.search(message["content"])[1].replace(",", ""))  # type: ignore[index]
        assert messages[cited - 1]["tool_call_id"] == message["tool_call_id"]
        whole = messages[cited - 1]["content"].splitlines()
        assert all(line in whole for line in message["content"].splitlines()[1:])


def test_shortened_result_keeps_the_requested_line() -> None:
    result = compact(working(), budget=6_000, target=3_000)
    assert "worker-7 ERROR tide_table_K5 is missing" in json.dumps(result.messages)


@pytest.mark.anyio
async def test_shortened_result_can_be_recalled_in_a_session() -> None:
    async with SessionService(MemoryStore()) as sessions:
        await sessions.create(id="s", format="openai-chat")
        await sessions.append("s", working())
        assert (await sessions.compact("s", always, KeepLedger(3_000))).outcome is Outcome.COMPACTED
        kept = list(await sessions.context("s"))
        recall = Recall(sessions, "s")
        for message in cut_short(kept):
            cited = _CUT.search(message["content"])[1]  # type: ignore[index]
            passage = await recall.read(f"[{cited}]", max_tokens=10_000)
            worker = message["tool_call_id"][1:]
            assert f"worker-7 ERROR tide_table_K{worker} is missing" in passage.text
        page = next(message["content"] for message in kept if message["content"] and PAGE_OPENING in message["content"])
        asked = re.search(r"\[(\d+)\]\nuser 0", page)
        assert asked is not None
        assert "user 0 user 0" in (await recall.read(f"[{asked[1]}]")).text


@pytest.mark.parametrize("profile", PROFILES)
@given(data=st.data(), share=st.floats(0.05, 0.8))
@settings(max_examples=min(60, settings().max_examples))
def test_newest_user_message_is_kept_verbatim(profile: str, data: Any, share: float) -> None:
    ask = "Quote me: 'berth K7 — 12,50 €' 数据 🚢"
    part = {"parts": [{"text": ask}]} if profile == "gemini" else {"content": ask}
    messages: Messages = [*data.draw(histories.wire(profile)), {"role": "user", **part}]
    options: dict[str, Any] = {"estimator": CHARS, "format": profile, "trigger": always}
    size = compact(messages, budget=10**9, **{**options, "trigger": lambda request: False}).tokens_before
    result = compact(messages, budget=10**9, target=max(1, int(size * share)), **options)
    assert ask in json.dumps(result.messages[-1], ensure_ascii=False)


def test_newest_reply_stays_until_the_user_answers_it() -> None:
    """Whole, if it takes no more than three fifths of the room: the user's next words are about it."""
    answer = {
        "role": "assistant",
        "content": "The tide tables are mended. Shall I sound berth K7 next?\n" + "more " * 300,
    }
    asked = {"role": "user", "content": "What did you do?"}
    short, long = (compact([*working(), asked, answer], budget=9_000, target=size).messages for size in (1_500, 400))
    assert short[-2:] == [asked, answer]
    assert long[-1] != answer and asked in long


def test_page_fills_the_available_room() -> None:
    lines = "\n".join(f"reading_{at} = {at * 7}" for at in range(2_000))
    read = {"role": "assistant", "content": "I have read them."}
    messages = [{"role": "user", "content": "Read."}, *called("c", lines), read, {"role": "user", "content": "And?"}]
    result = compact(messages, budget=4_000, target=2_000)
    assert 1_900 <= result.tokens_after <= 2_000


def test_room_beyond_page_limit_goes_to_newest_messages() -> None:
    """Room beyond the largest page goes to verbatim messages."""
    talk = [{"role": role, "content": f"{role} {at} " * 60} for at in range(400) for role in ("user", "assistant")]
    for target in (10_000, 30_000):
        result = compact(talk, budget=100_000, target=target)
        verbatim = [message for message in result.messages if message in talk]
        assert verbatim == talk[-len(verbatim) :]
        assert 0.97 * target <= result.tokens_after <= target


@pytest.mark.parametrize("target", [800, 1_500, 3_000])
def test_summary_larger_than_the_target_is_shortened_next_to_the_page(target: int) -> None:
    """A tool's own summary of a session that is compacted with less room than that summary takes."""
    facts = "\n".join(f"- Berth {at} was sounded at {at * 7} cm." for at in range(600))
    opening = "This session is being continued from a previous conversation that ran out of context."
    summary = {"role": "user", "content": f"{opening}\n1. Mend tide_table_K5.\n{facts}\nNext: sound tide_gauge_Z9."}
    read = {"role": "assistant", "content": "None of the berths has a table."}
    messages = [summary, *working(), read, {"role": "user", "content": "Go on."}]
    result = compact(messages, budget=2 * target, target=target)
    kept, page = result.messages[0]["content"], result.messages[1]["content"]
    assert kept.startswith(f"{opening}\n1. Mend tide_table_K5.") and kept.endswith("Next: sound tide_gauge_Z9.")
    assert page.startswith(PAGE_OPENING)
    assert 0.9 * target <= result.tokens_after <= target
    assert any("summary was shortened" in remark for remark in result.remarks)


@given(st.integers(1, 20_000), st.floats(0.0, 0.97), st.floats(0.05, 1.5))
def test_page_size_is_found_in_few_attempts(room: int, base: float, slope: float) -> None:
    """The first sections of a page hardly shrink with it: `base` is their share of the room."""
    tried: dict[int, int] = {}
    size = 4 * room
    while not any(0.98 * room - 2 <= used <= room for used in tried.values()):
        tried[size] = int(base * room + slope * size)
        size = _next_characters(tried, room)
        assert len(tried) <= 10, tried


def test_newest_message_too_large_gives_cannot_fit() -> None:
    messages = [*working()[:12], {"role": "user", "content": "word " * 20_000}]
    result = compact(messages, budget=4_000)
    assert result.outcome is Outcome.CANNOT_FIT
    assert messages[-1] in result.messages


@pytest.mark.parametrize("limits", [{"max_tokens": 0}, {"max_tokens": -1}])
def test_limits_must_be_positive(limits: dict[str, int]) -> None:
    with pytest.raises(InvalidLimit):
        KeepLedger(**limits)
