"""Summaries of other tools in a context: carried on, neither the user's words nor a message to cut (L5, L15, P5)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import MemoryStore, SessionService, compact, preset
from holdfast.compaction.presets import PRESETS
from holdfast.messages import decode_all, encode_all, is_foreign_summary
from holdfast.models import ModelCall, ScriptedModel
from holdfast.strategies import KeepLast, Summary
from holdfast.summaries import AsUser, FreeText
from holdfast.triggers import always

FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")
BODY = "The pier of Osterhaven is mended, the mole is next. " * 80
LAYER = (
    "## Session Summary (Compaction Round 3)\n\n### Original Task\nMend the harbour.\n\n### Completed Work\n"
    "| File/Component | Action | Description |\n|---|---|---|\n| src/pier.py | Modified | piles |\n\n"
    f"### Key Technical Decisions\n- {BODY}"
)
OPENINGS = {
    "layer": ("assistant", LAYER),
    "claude code": (
        "user",
        "This session is being continued from a previous conversation that ran out of context. The summary below "
        f"covers the earlier portion of the conversation.\n\nAnalysis:\n{BODY}",
    ),
    "codex": (
        "user",
        "Another language model started to solve this problem and produced a summary of its thinking process. "
        f"Use this to build on the work that has already been done.\n{BODY}",
    ),
    "pi": (
        "user",
        "The conversation history before this point was compacted into the following summary:\n\n<summary>\n"
        f"{BODY}\n\n<modified-files>\n/srv/quay.py\n</modified-files>\n</summary>",
    ),
    "pi's document": ("user", f"Another language model worked on this task and produced a summary. Use this:\n{BODY}"),
}
each = pytest.mark.parametrize(("role", "text"), OPENINGS.values(), ids=OPENINGS)
SECTIONS = (
    "## Current State\n- Working on: the mole at Osterhaven\n\n## Pending Work\n- [ ] Paint the crane red\n\n"
    "## Key Decisions\n- Heights are in centimetres\n\n## Errors & Resolutions\n- locked → waited"
)
FRAMES: dict[str, list[dict[str, Any]]] = {
    "goat": [
        {"role": "user", "content": f"[COMPACT SUMMARY]\n{SECTIONS}"},
        {"role": "assistant", "content": "Understood."},
    ],
    "workstream": [{"role": "system", "content": f"Compacted context summary:\n{SECTIONS}"}],
    "spring": [
        {"role": "user", "content": "Summarize the conversation we had so far."},
        {"role": "assistant", "content": SECTIONS},
    ],
    "claude code": [{"role": "user", "content": f"{OPENINGS['claude code'][1].partition('Analysis')[0]}{SECTIONS}"}],
    "codex": [{"role": "user", "content": f"{OPENINGS['codex'][1].partition(BODY)[0]}{SECTIONS}"}],
    "pi": [{"role": "user", "content": OPENINGS["pi"][1].replace(BODY, SECTIONS)}],
    "layer": [
        {
            "role": "assistant",
            "content": f"## Session Summary (Compaction Round 1)\n\n### Original Task\nMend it.\n\n{SECTIONS}\n\n"
            "This summary incorporates context from 2 previous compaction rounds.",
        }
    ],
}
STATED = ("the mole at Osterhaven", "Paint the crane red", "Heights are in centimetres", "locked → waited")
SUMMARIZING = [name for name in PRESETS if preset(name).strategy is not None]


def talk(first: int, count: int) -> list[dict[str, Any]]:
    turns = range(first, first + count)
    return [
        message
        for number in turns
        for message in (
            {"role": "user", "content": f"Request {number}, please."},
            {"role": "assistant", "content": f"Done with {number}. " + "It rains on the pier. " * 40},
        )
    ]


def in_format(messages: list[dict[str, Any]], format: str) -> list[dict[str, Any]]:
    return encode_all(decode_all(messages, "openai-chat")[0], format)


def texts(messages: Any, format: str) -> list[str]:
    return [message.text for message in decode_all(list(messages), format)[0]]


@pytest.mark.sampled(8)
@pytest.mark.parametrize("format", FORMATS)
@each
def test_l5_ledger_carries_the_summary_on_whole_and_not_as_the_users_words(role: str, text: str, format: str) -> None:
    given = in_format([{"role": role, "content": text}, *talk(1, 12)], format)
    result = compact(given, budget=4_000, target=3_000, format=format, estimator="chars/4", trigger=always)
    shown = texts(result.messages, format)
    page = next(one for one in shown if one.startswith("[Notes on the earlier conversation"))
    assert text in shown
    assert "mole is next" not in page
    assert result.round == (4 if text is LAYER else 2)
    again = compact([*result.messages, *in_format(talk(20, 12), format)], budget=4_000, target=3_000, format=format)
    assert text in texts(again.messages, format) and again.round == result.round + 1


@each
def test_s12_model_gets_the_summary_as_the_earlier_one_and_not_as_a_message(role: str, text: str) -> None:
    asked: list[ModelCall] = []

    def answer(call: ModelCall) -> str:
        asked.append(call)
        return "The mole is being mended."

    strategy = Summary(KeepLast(2), FreeText(), AsUser(), last_resort="unchanged")
    given = [{"role": role, "content": text}, *talk(1, 12)]
    options: dict[str, Any] = {"budget": 9_000, "strategy": strategy, "trigger": always}
    result = compact(given, summarizer=ScriptedModel(answer), **options)
    before, _, conversation = asked[0].prompt.partition("The conversation to summarise:")
    assert text.strip() in before and "mole is next" not in conversation
    summary = texts(result.messages, "openai-chat")[0]
    assert "### The task\nMend the harbour." in summary if text is LAYER else "### The task\nRequest 1" in summary
    assert ("pier.py" in summary, "/srv/: quay.py" in summary) == (text is LAYER, "quay.py" in text)


def forgets(call: ModelCall) -> str:
    """An answer that mentions nothing of what was before, in the form that the prompt asks for."""
    if "state_delta" in call.prompt:
        return '{"summary": "KEY FACTS\\n- They talked.", "state_delta": {}}'
    return "### Current State\n- Working on: it" if "### Completed Work" in call.prompt else "## Done\n- They talked."


@pytest.mark.sampled
@pytest.mark.parametrize("carried", [True, False], ids=["messages alone", "checkpoint"])
@pytest.mark.parametrize("policy", SUMMARIZING)
@pytest.mark.parametrize("frame", FRAMES)
def test_h3_items_of_the_summary_survive_a_model_that_forgets_them(frame: str, policy: str, carried: bool) -> None:
    """In every preset, from every tool; its frame counts as a round and is not the user's task."""
    messages, checkpoint, result = list(FRAMES[frame]), None, None
    for start in (1, 13, 25):
        messages = [*messages, *talk(start, 12)]
        model = ScriptedModel(forgets, repeat=True)
        options: dict[str, Any] = {"budget": 8_000, "target": 4_000, "trigger": always, "min_saving": 0.0}
        previous = {} if carried else {"previous": checkpoint}
        result = compact(messages, preset=policy, summarizer=model, **options, **previous)
        messages, checkpoint = list(result.messages), result.checkpoint
    assert result is not None and result.round == 4
    shown = "\n".join(texts(messages, "openai-chat"))
    assert [item for item in STATED if item not in shown] == []
    assert "COMPACT SUMMARY" not in shown and "Summarize the conversation" not in shown
    assert "incorporates" not in shown and "- This summary" not in shown


@pytest.mark.anyio
@pytest.mark.parametrize("frame", FRAMES)
async def test_frame_appended_to_a_session_is_no_turn(frame: str) -> None:
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create()
        await sessions.append(session.id, [*FRAMES[frame], *talk(1, 20)])
        result = await sessions.compact(session.id, budget=4_000, target=2_600)
        shown = "\n".join(str(message["content"]) for message in await sessions.context(session.id))
        assert result.round == 2 and STATED[0] in shown
        assert "Mend it." in shown if frame == "layer" else "\nRequest 1, please." in shown


def test_question_about_something_else_is_the_users() -> None:
    """Only a question about the conversation itself makes a pair with its reply."""
    pair = [
        {"role": "user", "content": "Summarize the README of this repository."},
        {"role": "assistant", "content": BODY},
    ]
    result = compact([*pair, *talk(1, 12)], budget=4_000, target=3_000, estimator="chars/4", trigger=always)
    assert "Summarize the README" in texts(result.messages, "openai-chat")[0]


def test_p22_opencodes_question_and_summary_open_a_context() -> None:
    pair = [{"role": "user", "content": "What did we do so far?"}, {"role": "assistant", "content": BODY}]
    result = compact([*pair, *talk(1, 12)], budget=4_000, target=3_000, estimator="chars/4", trigger=always)
    assert BODY in texts(result.messages, "openai-chat")
    assert "What did we do" not in next(
        one for one in texts(result.messages, "openai-chat") if one.startswith("[Notes")
    )


def test_question_in_the_middle_of_a_conversation_is_the_users() -> None:
    asked = [{"role": "user", "content": "What did we do so far?"}, {"role": "assistant", "content": BODY}]
    given = [*talk(1, 2), *asked, *talk(3, 8)]
    result = compact(given, budget=3_000, target=1_500, estimator="chars/4", trigger=always)
    assert "What did we do so far?" in texts(result.messages, "openai-chat")[0]


def test_summary_after_the_users_words_states_no_task() -> None:
    """Only a summary that opens the context may say what was asked before it."""
    given = [*talk(1, 4), {"role": "assistant", "content": LAYER}, *talk(5, 8)]
    result = compact(given, budget=4_000, target=3_000, estimator="chars/4", trigger=always)
    page = next(one for one in texts(result.messages, "openai-chat") if one.startswith("[Notes"))
    assert "## Task [1]\nRequest 1, please." in page


def test_tool_output_is_never_a_summary() -> None:
    (message,) = decode_all([{"role": "tool", "tool_call_id": "1", "content": LAYER}], "openai-chat")[0]
    assert not is_foreign_summary(message)


@pytest.mark.anyio
async def test_l5_summary_appended_to_a_session_is_no_turn() -> None:
    async with SessionService(MemoryStore()) as sessions:
        session = await sessions.create()
        await sessions.append(session.id, [{"role": "user", "content": OPENINGS["pi"][1]}, *talk(1, 12)])
        result = await sessions.compact(session.id, budget=4_000, target=2_600)
        shown = [str(message["content"]) for message in await sessions.context(session.id)]
        assert result.round == 2 and OPENINGS["pi"][1] in shown
