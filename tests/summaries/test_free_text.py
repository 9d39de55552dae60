"""FreeText: the prompt, its order, and the roll-up of long answers (S12, W7)."""

from __future__ import annotations

from typing import Any

import pytest
from recorded_replay import replay_recorded

from holdfast.models import Failure, Reply
from holdfast.summaries import RECURSIVE_TASK, SYSTEM_PROMPT, FreeText, SummaryDraft, SummaryInput, SummaryTranscript
from holdfast.summaries.free_text import roll_up
from holdfast.summaries.transcript import SummaryTranscriptEntry

LONG = "word " * 400


def transcript(*texts: str, start: int = 1) -> SummaryTranscript:
    return SummaryTranscript(
        tuple(SummaryTranscriptEntry(number, "user", text, text) for number, text in enumerate(texts, start))
    )


def summary_input(**more: Any) -> SummaryInput:
    options: dict[str, Any] = {
        "conversation": transcript("Mend the pier. " * 300),
        "token_budget": 200,
        "count_tokens": words,
    }
    return SummaryInput(**options | more)


def words(text: str) -> int:
    return len(text.split())


def test_free_text_short_answer_is_the_summary() -> None:
    draft, calls = replay_recorded(FreeText().write(summary_input()), "They mended the pier.")
    assert draft == SummaryDraft("They mended the pier.")
    (call,) = calls
    assert (call.system, call.max_tokens, call.temperature, call.purpose) == (SYSTEM_PROMPT, 13_107, None, "summary")


@pytest.mark.parametrize(
    ("writer", "asked"),
    [
        (FreeText(), "the one thing the assistant was about to do, with the exact file, command or edit"),
        (FreeText(), "the last command or edit, and how it ended"),
        (FreeText(RECURSIVE_TASK), "how the last step ended and what is half done, the one thing that was about to be"),
    ],
)
def test_prompt_asks_for_the_state_of_the_work_and_the_next_step(writer: FreeText, asked: str) -> None:
    _, (call,) = replay_recorded(writer.write(summary_input()), "x")
    assert asked in call.prompt


def test_s12_prompt_orders_previous_summary_conversation_and_upcoming() -> None:
    """S12: each part has its own delimiters, and the last is not to be summarised."""
    _, (call,) = replay_recorded(
        FreeText().write(
            summary_input(previous="They met at the quay.", upcoming=transcript("And the mole?", start=9))
        ),
        "x",
    )
    positions = [call.prompt.index(text) for text in ("They met at the quay.", "Mend the pier.", "And the mole?")]
    assert positions == sorted(positions)
    assert "do not summarise it" in call.prompt
    assert "The earlier summary will be thrown away" in call.prompt
    assert "<earlier-summary-" in call.prompt
    assert "<upcoming-" in call.prompt


def test_prompt_omits_empty_previous_and_upcoming() -> None:
    _, (call,) = replay_recorded(FreeText().write(summary_input()), "x")
    assert "earlier" not in call.prompt
    assert "upcoming" not in call.prompt


def test_p1_prompt_contains_user_instructions() -> None:
    _, (call,) = replay_recorded(FreeText().write(summary_input(instructions="Keep the tide of 6:40.\n")), "x")
    assert "which take precedence:\nKeep the tide of 6:40.\n\n" in call.prompt


@pytest.mark.parametrize(("token_budget", "tokens"), [(100_000, "4,000"), (500, "400"), (0, "1")])
def test_requested_length_is_limited_by_token_budget(token_budget: int, tokens: str) -> None:
    work = FreeText().write(summary_input(token_budget=token_budget))
    assert next(work)[0].prompt.endswith(f"Write at most {tokens} tokens.")


def test_free_text_task_system_and_limits_are_configurable() -> None:
    """S11: the system prompt can be replaced."""
    writer = FreeText("Say it in verse.", "You are a poet.", max_tokens=None, temperature=0.9)
    _, (call,) = replay_recorded(writer.write(summary_input()), "x")
    assert (call.system, call.max_tokens, call.temperature) == ("You are a poet.", None, 0.9)
    assert "Say it in verse." in call.prompt


def test_free_text_returns_failure_of_the_call() -> None:
    down = Failure("auth", "no key")
    assert replay_recorded(FreeText().write(summary_input()), down)[0] == down


def test_free_text_remarks_omitted_messages() -> None:
    conversation = transcript(*(f"m{number}x " * 40 for number in range(30)))
    draft, _ = replay_recorded(
        FreeText().write(summary_input(conversation=conversation)), Failure("overflow"), "They talked."
    )
    assert isinstance(draft, SummaryDraft)
    assert draft.remarks[0].endswith("notes replaced them")


# -- roll-up of long summaries (W7) ------------------------------------------------------------------------------------


def test_w7_summary_over_budget_is_rolled_up_by_a_second_call() -> None:
    draft, calls = replay_recorded(FreeText().write(summary_input()), LONG, "Short.")
    assert draft == SummaryDraft("Short.")
    assert [call.purpose for call in calls] == ["summary", "rollup"]
    assert LONG.strip() in calls[1].prompt
    assert "in at most 200 tokens" in calls[1].prompt
    assert "Mend the pier" not in calls[1].prompt, "the conversation is not repeated"


def test_w7_rollup_still_too_long_fails() -> None:
    failure, calls = replay_recorded(FreeText().write(summary_input()), LONG, LONG, "Short.")
    assert failure == Failure("answer", "the summary is longer than the 200 tokens there are for it")
    assert len(calls) == 2


def test_w7_summary_at_its_limit_is_not_rolled_up() -> None:
    assert replay_recorded(roll_up("a b c", summary_input(), 3, None)) == ("a b c", [])


def test_w7_rollup_failure_is_returned() -> None:
    failure, calls = replay_recorded(FreeText().write(summary_input()), LONG, *[Failure("overflow", "too long")] * 9)
    assert (failure, len(calls)) == (Failure("overflow", "too long"), 2)


def test_w7_blank_rollup_is_retried_once() -> None:
    draft, calls = replay_recorded(FreeText().write(summary_input()), LONG, "", "Short.")
    assert (draft, [call.purpose for call in calls]) == (SummaryDraft("Short."), ["summary", "rollup", "rollup"])


def test_w7_rollup_answer_is_capped_by_the_window() -> None:
    """The answer limit is capped as well: otherwise a small model would refuse the call."""
    _, calls = replay_recorded(FreeText().write(summary_input(summarizer_window=4_000)), LONG, Reply("Short."))
    assert [call.max_tokens for call in calls] == [1_700, 1_700]
