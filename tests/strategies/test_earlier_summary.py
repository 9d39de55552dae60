"""The summary so far, as it goes back to a model: as it was written, or as far as the notes tell it (S12)."""

from __future__ import annotations

import pytest

from holdfast import AsExchange, AsReply, AsSystem, AsUser, as_assistant
from holdfast.messages import Message, Opaque, assistant, framed, user
from holdfast.strategies.earlier_summary import earlier_summary
from holdfast.summaries import HEADING, Rendering
from holdfast.view import Checkpoint
from sized import request_for

SUMMARY = "The pier is mended.\n\nThe mole is next."
WAYS: dict[str, Rendering] = {
    "user": AsUser(),
    "reply": AsReply(),
    "exchange": AsExchange(),
    "system": AsSystem(),
    "assistant": as_assistant,
}


def told(*notes: Message, summary: str | None = None) -> str:
    request = request_for([{"role": "user", "content": "go on"}])
    request.view.checkpoint = Checkpoint(summary=summary)
    return earlier_summary(request, notes)


def test_s12_what_a_model_wrote_goes_back_as_it_wrote_it() -> None:
    """Not as it was shown: prefix, state and what was put back are not its words."""
    assert told(*AsUser()(f"{SUMMARY}\n\nSTATE: …"), summary=SUMMARY) == SUMMARY


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_s12_where_that_did_not_come_along_the_notes_tell_it_without_their_dress(way: Rendering) -> None:
    """Only the half of a pair that says something."""
    assert told(*way(SUMMARY)) == SUMMARY


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_what_was_put_back_under_it_is_not_part_of_it(way: Rendering) -> None:
    """It comes from the log again, every round: a summary that took it in would grow for ever."""
    assert told(*way(f"{SUMMARY}\n\n{HEADING}\n\n### The user said\n[3] Never.")) == SUMMARY


def test_several_notes_are_told_in_their_order() -> None:
    assert told(*AsUser()("one"), *AsReply()("two"), framed("three")) == "one\n\ntwo\n\nthree"


def test_s12_of_others_pairs_the_assistants_half_tells() -> None:
    assert told(user("Summarise the conversation we had so far."), assistant(SUMMARY)) == SUMMARY


def test_a_note_of_ours_before_an_assistants_note_is_not_its_question() -> None:
    assert told(*AsUser()("one"), *as_assistant("two")) == "one\n\ntwo"


def test_what_a_vendor_compacted_is_told_by_its_content() -> None:
    vendor = Message("assistant", (Opaque("compaction", {"content": SUMMARY}, "anthropic"),))
    hidden = Message("assistant", (Opaque("compaction", {"encrypted_content": "gAAA"}, "openai-responses"),))
    assert told(vendor) == SUMMARY
    assert told(hidden) == ""


def test_where_there_is_none_there_is_none() -> None:
    assert told() == ""


def test_a_note_that_somebody_changed_is_told_as_it_stands() -> None:
    """Its frame no longer verifies, so nothing in it is known to be dress."""
    (note,) = AsUser()(SUMMARY)
    text = note.text.replace("mended", "sunk")
    assert told(user(text)) == text
