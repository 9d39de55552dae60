"""A turn starts at a user's own words or media, never at what a program puts on the user's side."""

from __future__ import annotations

from typing import Any

import pytest
from boundary_wire import HI, Chat, Claude, Gemini, Json, Messages, Responses

from edge_stories import Approval, item
from holdfast import compact
from holdfast.context import View
from holdfast.messages import CONTINUE, OPENING, decode_all, encode_all, framed_message, starts_turn
from holdfast.tokens import estimator_for
from holdfast.triggers import always

PNG = "iVBORw0KGgo="
IMAGE = item("input_image", image_url=f"data:image/png;base64,{PNG}")
NOTE = encode_all([framed_message("notes")], "openai-chat")[0]
TURNS: dict[str, tuple[str, Json]] = {
    "words": ("openai-chat", Chat.user),
    "words in a part": ("openai-responses", {"role": "user", "content": [item("input_text", text="hi")]}),
    "a picture": ("openai-responses", {"role": "user", "content": [IMAGE]}),
    "a document of text": (
        "anthropic",
        Claude.by_user(item("document", source={"type": "text", "media_type": "text/plain", "data": "hi"})),
    ),
    "an uploaded file": ("anthropic", Claude.by_user(item("container_upload", file_id="file_1"))),
    "a part that nobody knows": ("openai-chat", {"role": "user", "content": [item("hologram", data="x")]}),
    "words beside a program's part": ("anthropic", Claude.by_user(item("tool_removal", tool={}), Claude.text)),
    "words to Gemini": ("gemini", HI),
}
NO_TURNS: dict[str, tuple[str, Json]] = {
    "a reply": ("openai-chat", Chat.reply),
    "a system message": ("openai-chat", Chat.system),
    "a result": ("openai-chat", Chat.results("a")),
    "results in the user's role": ("anthropic", Claude.results("a")),
    "a function's response": ("gemini", Gemini.results("a")),
    "an approval": ("openai-responses", Approval.response),
    "a trigger of compaction": ("openai-responses", item("compaction_trigger")),
    "more tools": ("openai-responses", item("additional_tools", role="developer", tools=[])),
    "another configuration": ("openai-responses", item("configuration_update", reasoning={"effort": "low"})),
    "a tool that is added": ("anthropic", Claude.by_user(item("tool_addition", tool={}))),
    "the state of a browser": ("anthropic", Claude.by_user(item("browser_state", tabs=[]))),
    "a note": ("openai-chat", NOTE),
    "an inserted opening": ("openai-chat", encode_all([OPENING], "openai-chat")[0]),
    "an inserted prompt": ("openai-chat", encode_all([CONTINUE], "openai-chat")[0]),
    "a summary of another tool": (
        "openai-chat",
        {"role": "user", "content": "This session is being continued from a previous conversation that ran out."},
    ),
}


@pytest.mark.parametrize(("format", "message"), TURNS.values(), ids=TURNS)
def test_turn_starts_at_the_users_own(format: str, message: Json) -> None:
    (decoded,), _ = decode_all([message], format)
    assert starts_turn(decoded)


@pytest.mark.parametrize(("format", "message"), NO_TURNS.values(), ids=NO_TURNS)
def test_no_turn_starts_at_what_a_program_wrote(format: str, message: Json) -> None:
    (decoded,), _ = decode_all([message], format)
    assert not starts_turn(decoded)


@pytest.mark.parametrize(("format", "message"), [*TURNS.values(), *NO_TURNS.values()], ids=[*TURNS, *NO_TURNS])
def test_view_counts_the_same_turns(format: str, message: Json) -> None:
    decoded, _ = decode_all([message], format)
    view = View(estimator_for("chars/4"), format=format)
    view.load(decoded, ["a"])
    assert view.turns == ([0] if starts_turn(decoded[0]) else [])


def test_user_message_before_an_approval_is_the_newest_one() -> None:
    """It is the task: the ledger's notes quote it, and no cut loses it."""
    history: Messages = [Responses.user | {"content": f"step {n}: " + "words " * 200} for n in range(30)]
    wanted: dict[str, Any] = {"role": "user", "content": "Restore the backup of May 4th, nothing else."}
    messages = [*history, wanted, Approval.request, Approval.response]
    result = compact(messages, budget=10**6, target=800, trigger=always, format="openai-responses")
    assert result.messages[-3:] == [wanted, Approval.request, Approval.response]
