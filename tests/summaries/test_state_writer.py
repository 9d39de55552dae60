"""StateText: three delimited sections in, a summary and a state delta out (W4-W9)."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from recorded_replay import replay_recorded

from holdfast.models import Failure
from holdfast.models.calls import Answer
from holdfast.summaries import RejectedSummary, StateText, SummaryDraft, SummaryInput, SummaryTranscript
from holdfast.summaries.state import LIST_CAPS, WorkstreamState
from holdfast.summaries.state_writer import CHUNK_CHARACTERS, ROLLUP_TOKENS, answer_schema
from holdfast.summaries.transcript import SummaryTranscriptEntry

FACTS = "KEY FACTS:\n- The pier is mended\n\nCONVERSATION FLOW:\n- Asked, answered\n\nOPEN THREADS:\n- none"


def answer(summary: str = FACTS, **delta: Any) -> str:
    return json.dumps({"summary": summary, "state_delta": delta})


def transcript(count: int, size: int = 400) -> SummaryTranscript:
    """Messages with distinct names."""
    texts = [f"m{number}x ".ljust(size, ".") for number in range(1, count + 1)]
    return SummaryTranscript(
        tuple(SummaryTranscriptEntry(number, "user", text, text) for number, text in enumerate(texts, 1))
    )


def summary_input(**more: Any) -> SummaryInput:
    options: dict[str, Any] = {
        "conversation": transcript(9),
        "token_budget": 5_000,
        "count_tokens": lambda text: -(-len(text) // 4),
    }
    return SummaryInput(**options | more)


class Run:
    """Writes one summary and records the calls."""

    def __init__(self, given: SummaryInput, *answers: Answer | str, writer: StateText | None = None) -> None:
        self.result, self.calls = replay_recorded((writer or StateText()).write(given), *answers)

    @property
    def draft(self) -> SummaryDraft:
        assert isinstance(self.result, SummaryDraft), self.result
        return self.result

    @property
    def state(self) -> WorkstreamState:
        return msgspec.convert(self.draft.state, WorkstreamState)


def sections(prompt: str) -> dict[str, str]:
    """The delimited parts by name."""
    return dict(re.findall(r"(?s)<([a-z-]+)-[0-9a-f]{6}>\n(.*?)\n</\1-", prompt))


def test_w6_w7_numbers_are_those_of_the_document() -> None:
    """W6, W7"""
    assert (CHUNK_CHARACTERS, ROLLUP_TOKENS) == (120_000, 80_000)
    assert (StateText().chunk, StateText().rollup) == (120_000, 80_000)


def test_w5_prompt_has_three_delimited_sections() -> None:
    first = Run(summary_input(), answer(tasks=[{"text": "Mend berth K7"}]))
    assert sections(first.calls[0].prompt) == {
        "previous-summary": "(none)",
        "existing-state": "(empty)",
        "new-messages": transcript(9).text,
    }
    second = Run(summary_input(previous=first.draft.text, state=first.draft.state), answer())
    assert sections(second.calls[0].prompt)["previous-summary"] == FACTS
    assert sections(second.calls[0].prompt)["existing-state"] == "TASKS:\n- [t1] Mend berth K7 (open)"
    for heading in ("KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS"):
        assert heading in first.calls[0].prompt


def test_p1_user_instructions_are_outside_the_delimiters() -> None:
    (call,) = Run(summary_input(instructions="Keep the tide of 6:40."), answer()).calls
    assert call.prompt.endswith("which take precedence:\nKeep the tide of 6:40.")


def test_w5_answer_gives_summary_and_state() -> None:
    """The next round gets the summary alone; the rendered text has the state below it."""
    run = Run(summary_input(previous="what was before"), answer(key_decisions=["Tables stay in UTC"]))
    assert run.draft.text == FACTS
    assert run.draft.rendered == f"{FACTS}\n\nSTATE:\nKEY DECISIONS:\n- [d1] Tables stay in UTC"
    assert run.draft.remarks == ()


def test_empty_state_is_not_rendered() -> None:
    assert Run(summary_input(), answer()).draft.rendered == FACTS


def test_w9_caps_hold_after_every_merge() -> None:
    state = None
    for round in range(3):
        delta: dict[str, Any] = {name: [f"{name} {round} {number}" for number in range(12)] for name in LIST_CAPS}
        run = Run(summary_input(state=state), answer(**delta))
        state = run.draft.state
        assert {name: len(getattr(run.state, name)) for name in LIST_CAPS} == LIST_CAPS


# -- chunks (W6) -------------------------------------------------------------------------------------------------


def test_w6_up_to_120_000_characters_takes_one_call() -> None:
    assert len(Run(summary_input(conversation=transcript(290)), answer()).calls) == 1


def test_w6_each_chunk_builds_on_the_previous_summary() -> None:
    """And on the state; every message occurs once."""
    run = Run(
        summary_input(conversation=transcript(700), previous="what was before"),
        answer("KEY FACTS: one", tasks=["Mend berth K7"]),
        answer("KEY FACTS: two", tasks=[{"id": "t1", "text": "Mend berth K7", "status": "done"}]),
        answer("KEY FACTS: three", risks=["Storm"]),
    )
    given = [sections(call.prompt) for call in run.calls]
    assert [text["previous-summary"] for text in given] == ["what was before", "KEY FACTS: one", "KEY FACTS: two"]
    assert [text["existing-state"] for text in given] == [
        "(empty)",
        "TASKS:\n- [t1] Mend berth K7 (open)",
        "TASKS:\n- [t1] Mend berth K7 (done)",
    ]
    assert all(len(text["new-messages"]) <= CHUNK_CHARACTERS for text in given)
    assert "\n\n".join(text["new-messages"] for text in given) == transcript(700).text
    assert run.draft.text == "KEY FACTS: three"
    assert [item.text for item in (*run.state.tasks, *run.state.risks)] == ["Mend berth K7", "Storm"]


def test_w6_failed_chunk_fails_the_summary() -> None:
    """A summary of half the history is not used."""
    down = Failure("transport", "HTTP 529")
    run = Run(summary_input(conversation=transcript(700)), answer(), down, answer())
    assert (run.result, len(run.calls)) == (down, 2)


def test_w6_overflowing_chunk_is_reduced_and_remarked_once() -> None:
    overflow = Failure("overflow", "too long")
    run = Run(summary_input(conversation=transcript(700)), overflow, answer(), overflow, answer(), answer())
    assert len(run.calls) == 5
    assert len(run.draft.remarks) == len(set(run.draft.remarks)) > 0


# -- invalid answers ------------------------------------------------------------------------------------

NO_DELTA = json.dumps({"summary": FACTS})


@pytest.mark.parametrize("wrong", [NO_DELTA, FACTS, answer().replace("}}", "}")[:-1]])
def test_w5_answer_without_a_delta_is_requested_once_more(wrong: str) -> None:
    """As every answer that cannot be used; the next one replaces it."""
    run = Run(summary_input(), wrong, answer("KEY FACTS: other words", risks=["Storm"]))
    assert "Your last answer could not be used" in run.calls[1].prompt
    assert run.draft.text == "KEY FACTS: other words"
    assert [item.text for item in run.state.risks] == ["Storm"]
    assert run.draft.remarks == ()


@pytest.mark.parametrize("again", [FACTS, NO_DELTA, "no", Failure("timeout", "too slow")])
def test_w5_answer_in_prose_leaves_state_and_is_the_summary(again: Answer | str) -> None:
    before = Run(summary_input(), answer(risks=["Storm"])).draft.state
    run = Run(summary_input(state=before), FACTS, again, answer())
    assert len(run.calls) == 2
    assert (run.draft.text, run.draft.state) == ("no" if again == "no" else FACTS, before)
    (remark,) = run.draft.remarks
    assert remark.startswith("of the state delta, this was ignored: ")


def test_w5_entry_that_cannot_be_read_is_remarked_and_the_others_are_merged() -> None:
    wrong = json.dumps({"summary": FACTS, "state_delta": {"tasks": [{"text": 7}, "Mend K7"]}})
    run = Run(summary_input(), wrong)
    assert [item.text for item in run.state.tasks] == ["Mend K7"]
    assert run.draft.remarks == ("of the state delta, this was ignored: an entry of `tasks` cannot be read",)


def test_w5_data_is_requested_by_a_schema() -> None:
    (call,) = Run(summary_input(), answer()).calls
    assert call.schema == answer_schema()


def test_answer_without_summary_fails() -> None:
    run = Run(summary_input(), json.dumps({"state_delta": {}}), json.dumps({"summary": " "}))
    assert run.result == RejectedSummary(
        "answer", "it holds no summary", remarks=('the answer was rejected: {"summary": " "}',)
    )


# -- roll-up (W7) --------------------------------------------------------------------------------------------------


def test_w7_summary_over_limit_is_rolled_up() -> None:
    long = "KEY FACTS: " + "the pier is mended " * 40
    run = Run(summary_input(), answer(long, risks=["Storm"]), "KEY FACTS: mended", writer=StateText(rollup=100))
    assert [call.purpose for call in run.calls] == ["summary", "rollup"]
    assert "in at most 100 tokens" in run.calls[1].prompt
    assert run.draft.text == "KEY FACTS: mended"
    assert "Storm" in run.draft.rendered


def test_w7_token_budget_is_a_limit() -> None:
    long = "KEY FACTS: " + "the pier is mended " * 40
    run = Run(summary_input(token_budget=50), answer(long), long, answer())
    assert run.result == Failure("answer", "the summary is longer than the 50 tokens there are for it")
