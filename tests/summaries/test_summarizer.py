"""run_summarizer: retries invalid answers once, reduces the input after an overflow, and is bounded (P9)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_replay import replay_recorded

from holdfast.messages import Media
from holdfast.models import Failure, ModelCall, Reply
from holdfast.models.calls import Answer, FailureKind
from holdfast.summaries import SummaryInput, SummaryTranscript
from holdfast.summaries.summarizer import SummarizerResult, run_summarizer
from holdfast.summaries.transcript import SummaryTranscriptEntry

OVERFLOW = Failure("overflow", "prompt is too long")
PICTURE = Media("image", "image/png", data="iVBORw0KGgo=")


def conversation(count: int, size: int = 400, media: tuple[Media, ...] = ()) -> SummaryTranscript:
    """Messages with distinct names; every second one has a shorter brief form."""
    return SummaryTranscript(
        tuple(
            SummaryTranscriptEntry(
                number,
                "user",
                f"m{number}x ".ljust(size, "."),
                f"m{number}x " if number % 2 else f"m{number}x ".ljust(size, "."),
            )
            for number in range(1, count + 1)
        ),
        media,
    )


def summary_input(transcript: SummaryTranscript, **more: Any) -> SummaryInput:
    options: dict[str, Any] = {"token_budget": 600, "count_tokens": lambda text: -(-len(text) // 4)}
    return SummaryInput(transcript, **options | more)


class Run:
    """Runs the summarizer to its end and records the calls."""

    def __init__(
        self, given: SummaryInput, *answers: Answer | str, max_tokens: int | None = 1_000, validate: Any = None
    ) -> None:

        def build(transcript: SummaryTranscript, notes: str) -> ModelCall:
            return ModelCall(f"{notes}\n{transcript.text}", "Write.", max_tokens)

        self.result, self.calls = replay_recorded(
            run_summarizer(build, given, *([validate] if validate else [])), *answers
        )


def test_run_summarizer_valid_answer_takes_one_call() -> None:
    run = Run(summary_input(conversation(3)), "They mended the pier.")
    assert (run.result, len(run.calls)) == (SummarizerResult(Reply("They mended the pier.")), 1)
    assert run.result.remarks == ()


def test_run_summarizer_invalid_answer_is_retried_with_the_reason() -> None:
    run = Run(summary_input(conversation(3)), "", "They mended the pier.")
    assert run.result.answer == Reply("They mended the pier.")
    assert run.calls[1].prompt.startswith(run.calls[0].prompt)
    assert "could not be used: the answer is blank" in run.calls[1].prompt
    assert "at most 600 tokens" in run.calls[1].prompt


def test_run_summarizer_second_invalid_answer_fails() -> None:
    run = Run(summary_input(conversation(3)), "", "", "They mended the pier.")
    assert (run.result.answer, len(run.calls)) == (Failure("answer", "the answer is blank"), 2)


def test_run_summarizer_custom_validation_rejects_answer() -> None:
    run = Run(summary_input(conversation(3)), "prose", "more prose", validate=lambda text: "it has no headings")
    assert run.result.answer == Failure("answer", "it has no headings")
    assert run.result.rejected == "more prose"
    assert "it has no headings" in run.calls[1].prompt


@pytest.mark.parametrize("kind", ["timeout", "auth", "transport", "request", "call_budget", "no_model"])
def test_run_summarizer_other_failures_are_returned_at_once(kind: FailureKind) -> None:
    run = Run(summary_input(conversation(9)), Failure(kind, "no"))
    assert (run.result.answer, len(run.calls)) == (Failure(kind, "no"), 1)


def test_run_summarizer_overflow_reduces_input_until_exhausted() -> None:
    """(behaviour 8) Drops images, results, and three times the oldest messages; never sends the same input twice."""
    run = Run(summary_input(conversation(40, media=(PICTURE,))), *[OVERFLOW] * 20)
    assert run.result.answer == OVERFLOW
    assert len(run.calls) == 6
    assert len({(call.prompt, call.media) for call in run.calls}) == 6
    assert run.calls[1] == ModelCall(run.calls[0].prompt, "Write.", 1_000)
    assert all("m40x" in call.prompt for call in run.calls)


def test_run_summarizer_single_message_overflow_is_not_repeated() -> None:
    run = Run(
        summary_input(SummaryTranscript((SummaryTranscriptEntry(1, "user", "x" * 9_000, "x" * 9_000),))),
        *[OVERFLOW] * 9,
    )
    assert (run.result.answer, len(run.calls)) == (OVERFLOW, 1)


def test_run_summarizer_refused_media_are_dropped_only() -> None:
    run = Run(summary_input(conversation(4, media=(PICTURE,))), Failure("media", "no images"), "They mended the pier.")
    assert [call.media for call in run.calls] == [(PICTURE,), ()]
    assert run.calls[0].prompt == run.calls[1].prompt


def test_run_summarizer_omitted_messages_are_replaced_by_notes_and_remarked() -> None:
    def make_notes(characters: int) -> str:
        return f"notes of {characters}"

    run = Run(summary_input(conversation(40), make_notes=make_notes), OVERFLOW, OVERFLOW, "They mended the pier.")
    assert [call.prompt.startswith("notes of ") for call in run.calls] == [False, False, True]
    assert 0 < run.result.left_out < 40
    (remark,) = run.result.remarks
    assert remark.startswith(f"{run.result.left_out} of the oldest messages did not fit into the summarizer's input")


# -- a window that is known -----------------------------------------------------------------------------------------


def tokens(call: ModelCall) -> int:
    return -(-len(call.prompt) // 4) + -(-len(call.system) // 4)


@given(st.integers(1, 120), st.integers(300, 9_000), st.sampled_from([None, 50, 1_000, 100_000]))
def test_run_summarizer_known_window_holds_prompt_and_answer(count: int, window: int, max_tokens: int | None) -> None:
    """Nothing is sent that would overflow; a single message is sent in any case."""
    run = Run(
        summary_input(conversation(count), summarizer_window=window), "They mended the pier.", max_tokens=max_tokens
    )
    (call,) = run.calls
    assert run.result.left_out + call.prompt.count("USER:") == count
    assert tokens(call) + (call.max_tokens or 0) <= window or run.result.left_out == count - 1
    assert (call.max_tokens is None) == (max_tokens is None)


def test_run_summarizer_known_window_is_well_filled() -> None:
    run = Run(summary_input(conversation(400), summarizer_window=20_000), "They mended the pier.")
    assert run.result.left_out
    assert tokens(run.calls[0]) > 0.6 * 20_000


def test_run_summarizer_overflow_in_known_window_keeps_answer_limit() -> None:
    """The estimate came from another tokenizer: the input shrinks, and the answer limit stays."""
    run = Run(
        summary_input(conversation(100), summarizer_window=4_000),
        OVERFLOW,
        OVERFLOW,
        "They mended.",
        max_tokens=100_000,
    )
    assert [call.max_tokens for call in run.calls] == [1_700] * 3
    sizes = [len(call.prompt) for call in run.calls]
    assert sizes == sorted(set(sizes), reverse=True)


def test_run_summarizer_window_from_failure_is_met_in_one_step() -> None:
    run = Run(summary_input(conversation(100)), Failure("overflow", "too long", window=4_000), "They mended the pier.")
    assert len(run.calls) == 2
    assert tokens(run.calls[1]) + (run.calls[1].max_tokens or 0) <= 4_000


def test_run_summarizer_shrinking_windows_terminate() -> None:
    """Each window is smaller than the one before; the number of calls is bounded by the messages."""
    run = Run(
        summary_input(conversation(60)), *[Failure("overflow", "no", window=size) for size in range(9_000, 0, -90)]
    )
    assert isinstance(run.result.answer, Failure)
    assert len(run.calls) < 30
