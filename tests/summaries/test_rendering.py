"""The ways a summary is shown, all of them notes of ours (P5, S11, G5, W10, L15)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import AsExchange, AsReply, AsSystem, AsUser, as_assistant
from holdfast.messages import Message, is_aside, is_framed, unframed
from holdfast.summaries import PREFIX, SHADOW_PROMPT, Rendering

WAYS: dict[str, Rendering] = {
    "user": AsUser(),
    "reply": AsReply(),
    "exchange": AsExchange(),
    "system": AsSystem(),
    "assistant": as_assistant,
}
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
SUMMARY = "## Session Summary (Compaction Round 2)\n\nThe pier is mended."


def shown(notes: tuple[Message, ...]) -> list[tuple[str, str]]:
    return [(note.role, unframed(note)) for note in notes]


def test_p5_a_user_message_with_a_prefix_that_says_what_it_is() -> None:
    assert shown(AsUser()(SUMMARY)) == [("user", f"{PREFIX}\n\n{SUMMARY}")]
    assert "not a request" in PREFIX
    assert shown(AsUser("Before:")(SUMMARY)) == [("user", f"Before:\n\n{SUMMARY}")]


def test_s11_a_shadow_prompt_and_the_summary_as_its_answer() -> None:
    """Only the assistant's half tells anything (S12)."""
    notes = AsReply()(SUMMARY)
    assert shown(notes) == [("user", SHADOW_PROMPT), ("assistant", SUMMARY)]
    assert [is_aside(note) for note in notes] == [True, False]
    assert shown(AsReply("Well?")(SUMMARY))[0] == ("user", "Well?")


def test_g5_the_summary_and_a_word_that_it_was_read() -> None:
    notes = AsExchange()(SUMMARY)
    assert [note.role for note in notes] == ["user", "assistant"]
    assert SUMMARY in unframed(notes[0])
    assert [is_aside(note) for note in notes] == [False, True]


def test_w10_a_system_message() -> None:
    assert shown(AsSystem()(SUMMARY)) == [("system", f"Compacted context summary:\n\n{SUMMARY}")]


def test_l15_an_assistant_message_whose_first_line_tells_what_it_is() -> None:
    ((role, text),) = shown(as_assistant(SUMMARY))
    assert (role, text.splitlines()[0]) == ("assistant", "## Session Summary (Compaction Round 2)")


@each_way
@given(text=st.text())
def test_whatever_it_says_it_is_known_as_ours_and_said_word_for_word(way: Rendering, text: str) -> None:
    """DESIGN rule 8: a frame with a digest that is verified before it is trusted."""
    notes = way(text)
    assert all(map(is_framed, notes))
    (telling,) = [note for note in notes if not is_aside(note)]
    assert unframed(telling).endswith(text)


@each_way
def test_the_same_summary_is_shown_in_the_same_bytes(way: Rendering) -> None:
    """H6"""
    assert way(SUMMARY) == way(SUMMARY)
    assert way(SUMMARY) != way(SUMMARY + " ")
