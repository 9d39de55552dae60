"""Renderers of a summary (P5, S11, G5, W10, L15)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.messages import Message, is_aside, is_framed, strip_frame
from holdfast.summaries import (
    SHADOW_PROMPT,
    SUMMARY_PREFIX,
    AsExchange,
    AsReply,
    AsSystem,
    AsUser,
    SummaryRenderer,
    as_assistant,
)

RENDERERS: dict[str, SummaryRenderer] = {
    "user": AsUser(),
    "reply": AsReply(),
    "exchange": AsExchange(),
    "system": AsSystem(),
    "assistant": as_assistant,
}
each_renderer = pytest.mark.parametrize("render", RENDERERS.values(), ids=RENDERERS)
SUMMARY = "## Session Summary (Compaction Round 2)\n\nThe pier is mended."


def shown(notes: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(note.role, strip_frame(note)) for note in notes]


def test_p5_as_user_has_a_prefix() -> None:
    assert shown(AsUser()(SUMMARY)) == [("user", f"{SUMMARY_PREFIX}\n\n{SUMMARY}")]
    assert "not a request" in SUMMARY_PREFIX
    assert shown(AsUser("Before:")(SUMMARY)) == [("user", f"Before:\n\n{SUMMARY}")]


def test_s11_as_reply_has_a_shadow_prompt() -> None:
    """Only the assistant's message has content (S12)."""
    notes = AsReply()(SUMMARY)
    assert shown(notes) == [("user", SHADOW_PROMPT), ("assistant", SUMMARY)]
    assert [is_aside(note) for note in notes] == [True, False]
    assert shown(AsReply("Well?")(SUMMARY))[0] == ("user", "Well?")


def test_g5_as_exchange_has_an_acknowledgement() -> None:
    notes = AsExchange()(SUMMARY)
    assert [note.role for note in notes] == ["user", "assistant"]
    assert SUMMARY in strip_frame(notes[0])
    assert [is_aside(note) for note in notes] == [False, True]


def test_w10_as_system_is_a_system_message() -> None:
    assert shown(AsSystem()(SUMMARY)) == [("system", f"Compacted context summary:\n\n{SUMMARY}")]


def test_l15_as_assistant_begins_with_its_title() -> None:
    ((role, text),) = shown(as_assistant(SUMMARY))
    assert (role, text.splitlines()[0]) == ("assistant", "## Session Summary (Compaction Round 2)")


@each_renderer
@given(text=st.text())
def test_every_rendering_is_framed_and_verbatim(render: SummaryRenderer, text: str) -> None:
    """A frame with a digest that is verified before it is trusted."""
    notes = render(text)
    assert all(map(is_framed, notes))
    (content,) = [note for note in notes if not is_aside(note)]
    assert strip_frame(content).endswith(text)


@each_renderer
def test_h6_rendering_is_deterministic(render: SummaryRenderer) -> None:
    """H6"""
    assert render(SUMMARY) == render(SUMMARY)
    assert render(SUMMARY) != render(SUMMARY + " ")
