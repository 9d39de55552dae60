"""Asking for a summary: once more where the answer is none, with less where it is too much, and then no more (P9)."""

from __future__ import annotations

from typing import Any

import pytest
from heard import heard
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Failure, ModelCall, Reply
from holdfast.calls import Answer, FailureKind
from holdfast.messages import Media
from holdfast.summaries import Material, Transcript
from holdfast.summaries.asking import Asked, ask
from holdfast.summaries.transcript import Entry

OVERFLOW = Failure("overflow", "prompt is too long")
PICTURE = Media("image", "image/png", data="iVBORw0KGgo=")


def conversation(count: int, size: int = 400, media: tuple[Media, ...] = ()) -> Transcript:
    """Messages with names of their own, every second one a result that can be told in brief."""
    return Transcript(
        tuple(
            Entry(at, "user", f"m{at}x ".ljust(size, "."), f"m{at}x " if at % 2 else f"m{at}x ".ljust(size, "."))
            for at in range(1, count + 1)
        ),
        media,
    )


def material(told: Transcript, **more: Any) -> Material:
    options: dict[str, Any] = {"room": 600, "measure": lambda text: -(-len(text) // 4)}
    return Material(told, **options | more)


class Run:
    """One question asked to its end; the calls that were made are kept."""

    def __init__(
        self, given: Material, *answers: Answer | str, allowed: int | None = 1_000, usable: Any = None
    ) -> None:

        def question(told: Transcript, notes: str) -> ModelCall:
            return ModelCall(f"{notes}\n{told.text}", "Write.", allowed)

        self.asked, self.calls = heard(ask(question, given, *([usable] if usable else [])), *answers)


def test_a_good_answer_is_taken_at_once() -> None:
    run = Run(material(conversation(3)), "They mended the pier.")
    assert (run.asked, len(run.calls)) == (Asked(Reply("They mended the pier.")), 1)
    assert run.asked.remarks == ()


def test_an_answer_that_is_none_is_asked_for_once_more_with_the_reason() -> None:
    run = Run(material(conversation(3)), "", "They mended the pier.")
    assert run.asked.answer == Reply("They mended the pier.")
    assert run.calls[1].prompt.startswith(run.calls[0].prompt)
    assert "could not be used: the answer is blank" in run.calls[1].prompt
    assert "at most 600 tokens" in run.calls[1].prompt


def test_and_no_more_than_once() -> None:
    run = Run(material(conversation(3)), "", "", "They mended the pier.")
    assert (run.asked.answer, len(run.calls)) == (Failure("answer", "the answer is blank"), 2)


def test_what_a_writer_cannot_use_is_a_flaw_like_any_other() -> None:
    run = Run(material(conversation(3)), "prose", "more prose", usable=lambda text: "it has no headings")
    assert run.asked.answer == Failure("answer", "it has no headings")
    assert "it has no headings" in run.calls[1].prompt


@pytest.mark.parametrize("kind", ["timeout", "auth", "transport", "request", "call_budget", "no_model"])
def test_what_nothing_here_can_help_is_for_the_caller_to_know(kind: FailureKind) -> None:
    run = Run(material(conversation(9)), Failure(kind, "no"))
    assert (run.asked.answer, len(run.calls)) == (Failure(kind, "no"), 1)


def test_what_was_too_long_is_told_with_less_until_there_is_no_less() -> None:
    """(behaviour 8) Pictures, results, and three times the oldest; never the same twice."""
    run = Run(material(conversation(40, media=(PICTURE,))), *[OVERFLOW] * 20)
    assert run.asked.answer == OVERFLOW
    assert len(run.calls) == 6
    assert len({(call.prompt, call.media) for call in run.calls}) == 6
    assert run.calls[1] == ModelCall(run.calls[0].prompt, "Write.", 1_000)
    assert all("m40x" in call.prompt for call in run.calls)


def test_one_long_message_is_not_sent_again_as_it_was() -> None:
    run = Run(material(Transcript((Entry(1, "user", "x" * 9_000, "x" * 9_000),))), *[OVERFLOW] * 9)
    assert (run.asked.answer, len(run.calls)) == (OVERFLOW, 1)


def test_pictures_that_are_not_taken_are_all_that_is_left_out() -> None:
    run = Run(material(conversation(4, media=(PICTURE,))), Failure("media", "no images"), "They mended the pier.")
    assert [call.media for call in run.calls] == [(PICTURE,), ()]
    assert run.calls[0].prompt == run.calls[1].prompt


def test_notes_stand_for_what_is_left_out_and_the_person_is_told() -> None:
    def notes_on(characters: int) -> str:
        return f"notes of {characters}"

    run = Run(material(conversation(40), notes_on=notes_on), OVERFLOW, OVERFLOW, "They mended the pier.")
    assert [call.prompt.startswith("notes of ") for call in run.calls] == [False, False, True]
    assert 0 < run.asked.left_out < 40
    (remark,) = run.asked.remarks
    assert remark.startswith(f"{run.asked.left_out} of the oldest messages were too much to read")


# -- a window that is known -----------------------------------------------------------------------------------------


def tokens(call: ModelCall) -> int:
    return -(-len(call.prompt) // 4) + -(-len(call.system) // 4)


@given(st.integers(1, 120), st.integers(300, 9_000), st.sampled_from([None, 50, 1_000, 100_000]))
def test_a_known_window_holds_the_question_and_its_answer(count: int, window: int, allowed: int | None) -> None:
    """What fails anyway is not sent; a single message is sent in any case."""
    run = Run(material(conversation(count), reads=window), "They mended the pier.", allowed=allowed)
    (call,) = run.calls
    assert run.asked.left_out + call.prompt.count("USER:") == count
    assert tokens(call) + (call.max_tokens or 0) <= window or run.asked.left_out == count - 1
    assert (call.max_tokens is None) == (allowed is None)


def test_a_known_window_is_filled_and_not_left_half_empty() -> None:
    run = Run(material(conversation(400), reads=20_000), "They mended the pier.")
    assert run.asked.left_out
    assert tokens(run.calls[0]) > 0.6 * 20_000


def test_the_answer_stays_within_a_known_window_when_the_question_was_still_too_long() -> None:
    """The estimate was another tokenizer's: less is told, and the answer's limit is not forgotten."""
    run = Run(material(conversation(100), reads=4_000), OVERFLOW, OVERFLOW, "They mended.", allowed=100_000)
    assert [call.max_tokens for call in run.calls] == [1_700] * 3
    sizes = [len(call.prompt) for call in run.calls]
    assert sizes == sorted(set(sizes), reverse=True)


def test_a_window_that_the_failure_names_is_met_in_one_step() -> None:
    run = Run(material(conversation(100)), Failure("overflow", "too long", window=4_000), "They mended the pier.")
    assert len(run.calls) == 2
    assert tokens(run.calls[1]) + (run.calls[1].max_tokens or 0) <= 4_000


def test_windows_named_again_and_again_end() -> None:
    """Each smaller than the one before: bounded by what there is to leave out."""
    run = Run(material(conversation(60)), *[Failure("overflow", "no", window=size) for size in range(9_000, 0, -90)])
    assert isinstance(run.asked.answer, Failure)
    assert len(run.calls) < 30
