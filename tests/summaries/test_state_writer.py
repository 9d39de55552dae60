"""The workstream's writer: three marked sections in, a summary and changes to a state out (W4-W9)."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from heard import heard

from holdfast import Failure
from holdfast.calls import Answer
from holdfast.summaries import Draft, Material, StateText, Transcript
from holdfast.summaries.state import CAPS, State
from holdfast.summaries.state_writer import CHUNK, ROLLUP
from holdfast.summaries.transcript import Entry

FACTS = "KEY FACTS:\n- The pier is mended\n\nCONVERSATION FLOW:\n- Asked, answered\n\nOPEN THREADS:\n- none"


def answer(summary: str = FACTS, **delta: Any) -> str:
    return json.dumps({"summary": summary, "state_delta": delta})


def told(count: int, size: int = 400) -> Transcript:
    """Messages with names of their own."""
    texts = [f"m{at}x ".ljust(size, ".") for at in range(1, count + 1)]
    return Transcript(tuple(Entry(at, "user", text, text) for at, text in enumerate(texts, 1)))


def material(**more: Any) -> Material:
    options: dict[str, Any] = {
        "conversation": told(9),
        "room": 5_000,
        "measure": lambda text: -(-len(text) // 4),
    }
    return Material(**options | more)


class Run:
    """One summary written; the calls that were made are kept."""

    def __init__(self, given: Material, *answers: Answer | str, writer: StateText | None = None) -> None:
        self.result, self.calls = heard((writer or StateText()).write(given), *answers)

    @property
    def draft(self) -> Draft:
        assert isinstance(self.result, Draft), self.result
        return self.result

    @property
    def state(self) -> State:
        return msgspec.convert(self.draft.state, State)


def sections(prompt: str) -> dict[str, str]:
    """What stands between marks, by name."""
    return dict(re.findall(r"(?s)<([a-z-]+)-[0-9a-f]{6}>\n(.*?)\n</\1-", prompt))


def test_the_numbers_are_the_documents() -> None:
    """W6, W7"""
    assert (CHUNK, ROLLUP) == (120_000, 80_000)
    assert (StateText().chunk, StateText().rollup) == (120_000, 80_000)


def test_w5_previous_summary_state_and_new_messages_are_three_marked_sections() -> None:
    first = Run(material(), answer(tasks=[{"text": "Mend berth K7"}]))
    assert sections(first.calls[0].prompt) == {
        "previous-summary": "(none)",
        "existing-state": "(empty)",
        "new-messages": told(9).text,
    }
    second = Run(material(previous=first.draft.text, state=first.draft.state), answer())
    assert sections(second.calls[0].prompt)["previous-summary"] == FACTS
    assert sections(second.calls[0].prompt)["existing-state"] == "TASKS:\n- [t1] Mend berth K7 (open)"
    for heading in ("KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS"):
        assert heading in first.calls[0].prompt


def test_p1_the_persons_instructions_stand_outside_the_marks() -> None:
    (call,) = Run(material(instructions="Keep the tide of 6:40."), answer()).calls
    assert call.prompt.endswith("mind this above all:\nKeep the tide of 6:40.")


def test_w5_a_replacement_summary_and_a_delta_come_back() -> None:
    """The summary goes back to the model by itself; what is shown has the state under it."""
    run = Run(material(previous="what was before"), answer(key_decisions=["Tables stay in UTC"]))
    assert run.draft.text == FACTS
    assert run.draft.shown == f"{FACTS}\n\nSTATE:\nKEY DECISIONS:\n- [d1] Tables stay in UTC"
    assert run.draft.remarks == ()


def test_where_the_state_is_empty_nothing_is_said_of_it() -> None:
    assert Run(material(), answer()).draft.shown == FACTS


def test_w9_caps_hold_after_every_merge() -> None:
    state = None
    for round in range(3):
        delta: dict[str, Any] = {name: [f"{name} {round} {at}" for at in range(12)] for name in CAPS}
        run = Run(material(state=state), answer(**delta))
        state = run.draft.state
        assert {name: len(getattr(run.state, name)) for name in CAPS} == CAPS


# -- in pieces (W6) -------------------------------------------------------------------------------------------------


def test_w6_up_to_120_000_characters_one_call_is_enough() -> None:
    assert len(Run(material(conversation=told(290)), answer()).calls) == 1


def test_w6_over_120_000_characters_each_piece_builds_on_the_summary_so_far() -> None:
    """And on the state so far; every message is told once."""
    run = Run(
        material(conversation=told(700), previous="what was before"),
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
    assert all(len(text["new-messages"]) <= CHUNK for text in given)
    assert "\n\n".join(text["new-messages"] for text in given) == told(700).text
    assert run.draft.text == "KEY FACTS: three"
    assert [item.text for item in (*run.state.tasks, *run.state.risks)] == ["Mend berth K7", "Storm"]


def test_w6_a_piece_that_fails_fails_it_all() -> None:
    """Half a history is no summary."""
    down = Failure("transport", "HTTP 529")
    run = Run(material(conversation=told(700)), answer(), down, answer())
    assert (run.result, len(run.calls)) == (down, 2)


def test_w6_a_piece_that_is_too_much_is_told_with_less_and_it_is_said_once() -> None:
    overflow = Failure("overflow", "too long")
    run = Run(material(conversation=told(700)), overflow, answer(), overflow, answer(), answer())
    assert len(run.calls) == 5
    assert len(run.draft.remarks) == len(set(run.draft.remarks)) > 0


# -- answers that cannot be used ------------------------------------------------------------------------------------

NO_DELTA = json.dumps({"summary": FACTS})
WRONG = json.dumps({"summary": FACTS, "state_delta": {"tasks": [{"text": 7}]}})


@pytest.mark.parametrize("wrong", [NO_DELTA, WRONG, FACTS, answer().replace("}}", "}")[:-1]])
def test_w5_a_delta_that_cannot_be_read_is_asked_for_once_more(wrong: str) -> None:
    """The summary is the first answer's: only the changes are taken from the second."""
    run = Run(material(), wrong, answer("KEY FACTS: other words", risks=["Storm"]))
    assert [call.purpose for call in run.calls] == ["summary", "repair"]
    assert wrong in run.calls[1].prompt
    assert run.draft.text == FACTS
    assert [item.text for item in run.state.risks] == ["Storm"]
    assert run.draft.remarks == ()


@pytest.mark.parametrize("again", [WRONG, "no", Failure("timeout", "too slow")])
def test_w5_a_delta_that_is_refused_leaves_the_state_and_keeps_the_summary(again: Answer | str) -> None:
    before = Run(material(), answer(risks=["Storm"])).draft.state
    run = Run(material(state=before), WRONG, again, answer())
    assert len(run.calls) == 2
    assert (run.draft.text, run.draft.state) == (FACTS, before)
    (remark,) = run.draft.remarks
    assert remark.startswith("the changes to the state could not be read and were refused: ")


def test_an_answer_without_a_summary_is_no_answer() -> None:
    run = Run(material(), json.dumps({"state_delta": {}}), json.dumps({"summary": " "}))
    assert run.result == Failure("answer", "it holds no summary")


def test_a_repair_keeps_within_the_window_of_its_model() -> None:
    run = Run(material(reads=4_000), WRONG, answer())
    assert [call.max_tokens for call in run.calls] == [1_700, 1_700]


# -- too long (W7) --------------------------------------------------------------------------------------------------


def test_w7_a_summary_over_its_limit_is_rolled_up_by_a_pass_of_its_own() -> None:
    long = "KEY FACTS: " + "the pier is mended " * 40
    run = Run(material(), answer(long, risks=["Storm"]), "KEY FACTS: mended", writer=StateText(rollup=100))
    assert [call.purpose for call in run.calls] == ["summary", "rollup"]
    assert "in at most 100 tokens" in run.calls[1].prompt
    assert run.draft.text == "KEY FACTS: mended"
    assert "Storm" in run.draft.shown


def test_w7_room_is_a_limit_too() -> None:
    long = "KEY FACTS: " + "the pier is mended " * 40
    run = Run(material(room=50), answer(long), long, answer())
    assert run.result == Failure("answer", "the summary is longer than the 50 tokens there are for it")
