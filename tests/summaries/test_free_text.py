"""A summary in the model's own words: what is asked, in which order, and what if the answer is too long (S12, W7)."""

from __future__ import annotations

from typing import Any

import pytest
from heard import heard

from holdfast import Failure, FreeText, Reply
from holdfast.summaries import SYSTEM, Draft, Material, Transcript
from holdfast.summaries.free_text import rolled_up
from holdfast.summaries.transcript import Entry

LONG = "word " * 400


def told(*texts: str, start: int = 1) -> Transcript:
    return Transcript(tuple(Entry(at, "user", text, text) for at, text in enumerate(texts, start)))


def material(**more: Any) -> Material:
    options: dict[str, Any] = {"conversation": told("Mend the pier. " * 300), "room": 200, "measure": words}
    return Material(**options | more)


def words(text: str) -> int:
    return len(text.split())


def test_a_short_answer_is_the_summary() -> None:
    draft, calls = heard(FreeText().write(material()), "They mended the pier.")
    assert draft == Draft("They mended the pier.")
    (call,) = calls
    assert (call.system, call.max_tokens, call.temperature, call.purpose) == (SYSTEM, 13_107, None, "summary")


def test_s12_prior_summary_then_conversation_then_what_comes_next() -> None:
    """S12: each between its own marks, and the last of them not to be summarised."""
    _, (call,) = heard(
        FreeText().write(material(previous="They met at the quay.", upcoming=told("And the mole?", start=9))), "x"
    )
    places = [call.prompt.index(text) for text in ("They met at the quay.", "Mend the pier.", "And the mole?")]
    assert places == sorted(places)
    assert "do not summarise it" in call.prompt
    assert "The earlier summary will be thrown away" in call.prompt
    assert "<earlier-summary-" in call.prompt
    assert "<upcoming-" in call.prompt


def test_where_there_is_nothing_before_and_nothing_next_neither_is_spoken_of() -> None:
    _, (call,) = heard(FreeText().write(material()), "x")
    assert "earlier" not in call.prompt
    assert "upcoming" not in call.prompt


def test_p1_the_persons_instructions_are_asked_for_above_all() -> None:
    _, (call,) = heard(FreeText().write(material(instructions="Keep the tide of 6:40.\n")), "x")
    assert "mind this above all:\nKeep the tide of 6:40.\n\n" in call.prompt


@pytest.mark.parametrize(("room", "tokens"), [(100_000, "4,000"), (500, "400"), (0, "1")])
def test_no_more_is_asked_for_than_there_is_room(room: int, tokens: str) -> None:
    work = FreeText().write(material(room=room))
    assert next(work)[0].prompt.endswith(f"Write at most {tokens} tokens.")


def test_task_prompt_and_limits_are_settings() -> None:
    """S11: the system prompt can be replaced."""
    writer = FreeText("Say it in verse.", "You are a poet.", allowed=None, temperature=0.9)
    _, (call,) = heard(writer.write(material()), "x")
    assert (call.system, call.max_tokens, call.temperature) == ("You are a poet.", None, 0.9)
    assert "Say it in verse." in call.prompt


def test_a_failure_is_handed_on() -> None:
    down = Failure("auth", "no key")
    assert heard(FreeText().write(material()), down)[0] == down


def test_how_much_was_left_out_is_remarked() -> None:
    conversation = told(*(f"m{at}x " * 40 for at in range(30)))
    draft, _ = heard(FreeText().write(material(conversation=conversation)), Failure("overflow"), "They talked.")
    assert isinstance(draft, Draft)
    assert draft.remarks[0].endswith("the summary has them from notes")


# -- too long for its place (W7) ------------------------------------------------------------------------------------


def test_w7_a_summary_over_its_room_is_written_again_by_a_pass_of_its_own() -> None:
    draft, calls = heard(FreeText().write(material()), LONG, "Short.")
    assert draft == Draft("Short.")
    assert [call.purpose for call in calls] == ["summary", "rollup"]
    assert LONG.strip() in calls[1].prompt
    assert "in at most 200 tokens" in calls[1].prompt
    assert "Mend the pier" not in calls[1].prompt, "the conversation is not told again"


def test_w7_one_that_is_still_too_long_is_a_failure() -> None:
    failure, calls = heard(FreeText().write(material()), LONG, LONG, "Short.")
    assert failure == Failure("answer", "the summary is longer than the 200 tokens there are for it")
    assert len(calls) == 2


def test_w7_one_that_just_fits_is_left_alone() -> None:
    assert heard(rolled_up("a b c", material(), 3, None)) == ("a b c", [])


def test_w7_a_rollup_that_fails_is_a_failure_too() -> None:
    failure, calls = heard(FreeText().write(material()), LONG, *[Failure("overflow", "too long")] * 9)
    assert (failure, len(calls)) == (Failure("overflow", "too long"), 2)


def test_w7_a_rollup_that_comes_to_nothing_is_asked_for_once_more() -> None:
    draft, calls = heard(FreeText().write(material()), LONG, "", "Short.")
    assert (draft, [call.purpose for call in calls]) == (Draft("Short."), ["summary", "rollup", "rollup"])


def test_w7_a_rollup_keeps_within_the_window_of_its_model() -> None:
    """Its answer's limit too: else a small model would refuse what it could well do."""
    _, calls = heard(FreeText().write(material(reads=4_000)), LONG, Reply("Short."))
    assert [call.max_tokens for call in calls] == [1_700, 1_700]
