"""The previous summary as passed back to a model: from the checkpoint, or read from the notes (S12)."""

from __future__ import annotations

import pytest

from holdfast.context import Checkpoint
from holdfast.messages import Message, Opaque, assistant, framed_message, user
from holdfast.strategies.summary import previous_summary
from holdfast.summaries import LOG_HEADING, AsExchange, AsReply, AsSystem, AsUser, SummaryRenderer, as_assistant
from sized import request_for

SUMMARY = "The pier is mended.\n\nThe mole is next."
RENDERERS: dict[str, SummaryRenderer] = {
    "user": AsUser(),
    "reply": AsReply(),
    "exchange": AsExchange(),
    "system": AsSystem(),
    "assistant": as_assistant,
}


def summary_from(*notes: Message, summary: str | None = None) -> str:
    request = request_for([{"role": "user", "content": "go on"}])
    request.view.checkpoint = Checkpoint(summary=summary)
    return previous_summary(request, notes)


def test_s12_previous_summary_is_passed_back_verbatim() -> None:
    """Without prefix, state and restored facts, which the model did not write."""
    assert summary_from(*AsUser()(f"{SUMMARY}\n\nSTATE: …"), summary=SUMMARY) == SUMMARY


@pytest.mark.parametrize("renderer", RENDERERS.values(), ids=RENDERERS)
def test_s12_previous_summary_without_checkpoint_is_read_from_notes(renderer: SummaryRenderer) -> None:
    """Only the half of a pair that holds the summary."""
    assert summary_from(*renderer(SUMMARY)) == SUMMARY


@pytest.mark.parametrize("renderer", RENDERERS.values(), ids=RENDERERS)
def test_previous_summary_excludes_restored_facts(renderer: SummaryRenderer) -> None:
    """Restored facts come from the log in every round: a summary that included them would grow without bound."""
    assert summary_from(*renderer(f"{SUMMARY}\n\n{LOG_HEADING}\n\n### The user said\n[3] Never.")) == SUMMARY


def test_previous_summary_joins_notes_in_order() -> None:
    assert summary_from(*AsUser()("one"), *AsReply()("two"), framed_message("three")) == "one\n\ntwo\n\nthree"


def test_s12_foreign_pair_yields_the_assistants_half() -> None:
    assert summary_from(user("Summarise the conversation we had so far."), assistant(SUMMARY)) == SUMMARY


def test_note_before_assistant_note_is_not_its_question() -> None:
    assert summary_from(*AsUser()("one"), *as_assistant("two")) == "one\n\ntwo"


def test_vendor_compaction_yields_its_content() -> None:
    vendor = Message("assistant", (Opaque("compaction", {"content": SUMMARY}, "anthropic"),))
    hidden = Message("assistant", (Opaque("compaction", {"encrypted_content": "gAAA"}, "openai-responses"),))
    assert summary_from(vendor) == SUMMARY
    assert summary_from(hidden) == ""


def test_previous_summary_without_notes_is_empty() -> None:
    assert summary_from() == ""


def test_modified_note_is_returned_whole() -> None:
    """Its frame no longer verifies, so no part of it is stripped."""
    (note,) = AsUser()(SUMMARY)
    text = note.text.replace("mended", "sunk")
    assert summary_from(user(text)) == text
