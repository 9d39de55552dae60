"""Structured: prompt, verbatim task, merging with the previous summary, token budget (L6, L7)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded_replay import replay_recorded

from holdfast.models.calls import Answer
from holdfast.summaries import RejectedSummary, Structured, SummaryDraft, SummaryInput, SummaryTranscript
from holdfast.summaries.structured import UNKNOWN_TASK
from holdfast.summaries.structured_parse import parse_sections
from holdfast.summaries.structured_writer import SCHEMA
from holdfast.summaries.transcript import SummaryTranscriptEntry

TASK = "Move the tide tables\nof Osterhaven to the new format, by Friday."
ANSWER = """\
### Completed Work
| File/Component | Action | Description |
| --- | --- | --- |
| /srv/tides.py | Edited | reads the new format |

### Key Technical Decisions
- Tables stay in UTC because the pilots want it

### Current State
- Working on: the berths
- Last completed: the tides
- Next step: run make K7

### Pending Work
- [ ] Check berth K7
"""


def summary_input(**more: Any) -> SummaryInput:
    talk = "The tables of the harbour were read and found in order. " * 400
    options: dict[str, Any] = {
        "conversation": SummaryTranscript((SummaryTranscriptEntry(1, "user", talk, talk),)),
        "task": TASK,
        "token_budget": 2_000,
        "count_tokens": lambda text: -(-len(text) // 4),
    }
    return SummaryInput(**options | more)


class Run:
    """Writes one summary and records the calls."""

    def __init__(self, given: SummaryInput, *answers: Answer | str, writer: Structured | None = None) -> None:
        self.result, self.calls = replay_recorded((writer or Structured()).write(given), *answers)

    @property
    def draft(self) -> SummaryDraft:
        assert isinstance(self.result, SummaryDraft), self.result
        return self.result


def task_in(text: str) -> str:
    return text.partition("### Original Task\n")[2].partition("\n\n### Current State")[0]


def test_l6_prompt_has_limits_and_headings() -> None:
    """At most 800 tokens asked, 1,000 allowed, temperature 0.3, all headings (also those of P24), no code blocks."""
    (call,) = Run(summary_input(), ANSWER).calls
    assert (call.max_tokens, call.temperature) == (1_000, 0.3)
    assert call.prompt.endswith("Write at most 800 tokens.")
    for heading in (
        "Completed Work",
        "Key Technical Decisions",
        "Current State",
        "Pending Work",
        "Errors & Resolutions",
        "Constraints",
        "Critical Context",
    ):
        assert f"### {heading}\n" in call.prompt
    assert "No code blocks" in call.prompt
    assert "exact path" in call.prompt


def test_l6_rendered_summary() -> None:
    assert Run(summary_input(), ANSWER).draft == SummaryDraft(
        f"## Session Summary (Compaction Round 1)\n\n### Original Task\n{TASK}\n\n"
        "### Current State\n- Working on: the berths\n- Last completed: the tides\n- Next step: run make K7\n\n"
        "### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n"
        "| /srv/tides.py | Edited | reads the new format |\n\n"
        "### Key Technical Decisions\n- Tables stay in UTC because the pilots want it\n\n"
        "### Pending Work\n- [ ] Check berth K7"
    )


def test_prompt_asks_for_the_state_of_the_work_and_the_next_step_first() -> None:
    (call,) = Run(summary_input(), ANSWER).calls
    asked = call.prompt.partition("### Current State\n")[2].partition("\n\n### Completed Work\n")[0]
    assert asked.splitlines() == [
        "- Working on: what is under way, and what of it is half done",
        "- Last completed: the last command or edit, and how it ended",
        "- Next step: the one thing the assistant was about to do, with the exact file, command or edit",
    ]


def test_p13_prompt_lists_files_from_the_log() -> None:
    (call,) = Run(summary_input(files="/srv/: tides.py (edited 2×)"), ANSWER).calls
    assert "Files that were touched, from the log:\n/srv/: tides.py (edited 2×)" in call.prompt


def test_answer_without_sections_is_retried_once_and_then_kept_as_text() -> None:
    run = Run(summary_input(), "They moved the tables, and all is well.", ANSWER)
    assert "none of the headings that were asked for" in run.calls[1].prompt
    assert "berth K7" in run.draft.text
    prose = Run(summary_input(previous=run.draft.text, round=2), "They moved.", "They moved\nall.").draft
    assert "#### Overview\nThey moved\nall." in prose.text and "berth K7" in prose.text
    assert "the answer has none of the headings that were asked for: it is kept as text" in prose.remarks


def test_l6_data_is_requested_and_merged_by_ids() -> None:
    """The schema has the same sections, and an answer in its form gives the same summary."""
    first = Run(summary_input(), ANSWER)
    assert first.calls[0].schema == SCHEMA
    data = {
        "current_state": {"working_on": "the berths", "last_completed": "the tides", "next_step": "run make K7"},
        "completed_work": [
            {"id": "", "file_or_component": "/srv/tides.py", "action": "Edited", "description": "reads the new format"}
        ],
        "key_technical_decisions": [{"id": "", "text": "Tables stay in UTC because the pilots want it"}],
        "pending_work": [{"id": "", "text": "Check berth K7"}],
        "errors_and_resolutions": [],
        "constraints": [],
        "critical_context": [],
        "other_sections": [],
        "removed": [],
    }
    assert [*data] == [*SCHEMA["properties"]]
    assert Run(summary_input(), json.dumps(data)).draft.text == first.draft.text
    later = data | {
        "pending_work": [{"id": "p1", "text": "Check berth | K7 twice"}, {"id": "", "text": "None"}],
        "completed_work": [{"id": "w1", "file_or_component": "", "action": "", "description": ""}],
        "key_technical_decisions": [],
        "other_sections": [{"title": "Weather", "text": "Storm\n## Pending Work\n- a crane"}],
        "removed": [{"id": "d1", "reason": "the pilots left"}],
    }
    run = Run(summary_input(previous=first.draft.text, round=2), json.dumps(later))
    assert "- [ ] [p1] Check berth K7" in run.calls[0].prompt
    assert "| [w1] /srv/tides.py | Edited |" in run.calls[0].prompt
    assert "### Pending Work\n- [ ] Check berth | K7 twice\n\n### Other" in run.draft.text
    assert "| /srv/tides.py | Edited | reads the new format |" in run.draft.text
    assert "#### Weather\nStorm\n\\## Pending Work\n- a crane" in run.draft.text
    assert run.draft.remarks == ("the model removed: Tables stay in UTC because the pilots want it (the pilots left)",)


@pytest.mark.parametrize(
    "blank",
    [
        "### Current State\n\n### Pending Work",
        "### Current State\n- Working on: None\n\n### Pending Work\n- [ ] No pending work\n\n### Errors\nNo errors.",
        "## Completed Work\n| File | Action | Description |\n|---|---|---|",
        f"## Goal\n{TASK}",
        "## Pending Work\n… and 3 earlier items: see the archive",
    ],
)
def test_s13_answer_with_nothing_below_its_headings_is_no_summary(blank: str) -> None:
    """S13, G6: it is requested once more, as a blank answer is; a previous summary does not make up for it."""
    run = Run(summary_input(), blank, ANSWER)
    assert "it says nothing below its headings" in run.calls[1].prompt
    assert "berth K7" in run.draft.text
    previous = run.draft.text
    assert Run(summary_input(previous=previous, round=2), blank, blank).result == RejectedSummary(
        "answer",
        "it says nothing below its headings",
        remarks=(f"the answer was rejected: {' '.join(blank.split())}",),
    )


def test_answer_with_a_goal_alone_is_kept() -> None:
    draft = Run(summary_input(), "## Goal\nFinish the steps.").draft
    assert draft.text.endswith("\n\n### Other Sections\n\n#### Goal\nFinish the steps.")
    assert draft.remarks == ()


# -- the task (L7) --------------------------------------------------------------------------------------------------


def test_l7_task_is_verbatim_and_outside_the_model_limit() -> None:
    """Regardless of the model's answer and of the model's output limit."""
    task = " ".join(f"Table {number} goes to berth K{number}." for number in range(120))
    run = Run(summary_input(task=task), f"### Original Task\nSomething else altogether\n\n{ANSWER}")
    assert task_in(run.draft.text) == task
    assert "Something else" not in run.draft.text
    assert run.draft.remarks == ("text of the answer that is not in the summary: Something else altogether",)
    assert task not in run.calls[0].prompt


def test_l7_task_is_verbatim_in_every_round() -> None:
    text = Run(summary_input(), ANSWER).draft.text
    for round in range(2, 6):
        text = Run(summary_input(previous=text, round=round), ANSWER).draft.text
        assert task_in(text) == TASK
    assert text.endswith("This summary takes in 4 earlier rounds.")


def test_l7_long_task_is_clipped_and_cited() -> None:
    task = "First of all, mend the pier. " + "And then the next one. " * 900 + "Last of all, light the lamp."
    written = task_in(Run(summary_input(task=task, task_number=1_204), ANSWER).draft.text)
    assert written.startswith("First of all, mend the pier.")
    assert written.endswith("light the lamp. [1,204]")
    assert "[…]" in written
    assert len(written) < 4_200


def test_l7_clipped_task_without_number_has_no_citation() -> None:
    written = task_in(Run(summary_input(task="Mend the pier. " * 900), ANSWER).draft.text)
    assert not written.endswith("]")


@pytest.mark.parametrize("task", ["", "  \n"])
def test_l7_missing_task_is_unknown(task: str) -> None:
    assert task_in(Run(summary_input(task=task), ANSWER).draft.text) == UNKNOWN_TASK


def test_l7_headings_in_a_task_are_not_parsed() -> None:
    task = "## Pending Work\n- [ ] this is the user's own list"
    text = Run(summary_input(task=task), ANSWER).draft.text
    read = parse_sections(text)
    assert read is not None
    assert read.pending == ("Check berth K7",)
    assert task in text


# -- several rounds -------------------------------------------------------------------------------------------------

FORGETS = "### Completed Work\n- None\n\n### Key Technical Decisions\n- The lamp is lit at dusk\n"


def test_l6_previous_summary_is_merged_not_repeated() -> None:
    first = Run(summary_input(), ANSWER).draft.text
    run = Run(summary_input(previous=first, round=2), ANSWER)
    assert "Take the earlier summary in, do not repeat it" in run.calls[0].prompt
    assert run.draft.text.count("Check berth K7") == 1
    assert run.draft.text.count("/srv/tides.py") == 1
    assert run.draft.remarks == ()


def test_l6_dropped_items_are_restored_and_remarked() -> None:
    first = Run(summary_input(), ANSWER).draft.text
    draft = Run(summary_input(previous=first, round=2), FORGETS).draft
    for item in ("/srv/tides.py", "Tables stay in UTC", "Check berth K7", "The lamp is lit at dusk"):
        assert item in draft.text
    (remark,) = draft.remarks
    assert remark.endswith("items of the previous summary were restored: the model gave no reason")


def test_sentence_that_nothing_is_pending_is_not_restored_next_to_pending_work() -> None:
    nothing = "### Pending Work\n- [ ] No pending work\n### Errors & Resolutions\n- No errors occurred."
    first = Run(summary_input(), f"### Current State\n- Working on: x\n{nothing}").draft
    later = "### Pending Work\n- [ ] run lint\n### Errors\n- lint failed with exit 1"
    second = Run(summary_input(previous=first.text, round=2), later).draft
    assert first.remarks == ()
    assert "No pending work" not in first.text + second.text and "No errors" not in first.text + second.text
    assert "- [ ] run lint" in second.text and "- lint failed with exit 1" in second.text


def test_l6_item_removed_with_a_reason_is_gone() -> None:
    first = Run(summary_input(), ANSWER).draft.text
    removed = f"{ANSWER.replace('- [ ] Check berth K7', '- None')}\n### Removed\n- Check berth K7: the person did it\n"
    draft = Run(summary_input(previous=first, round=2), removed).draft
    assert "Check berth K7" not in draft.text
    assert "Removed" not in draft.text
    assert draft.remarks == ("the model removed: Check berth K7 (the person did it)",)


def test_previous_summary_of_another_shape_is_merged_too() -> None:
    run = Run(summary_input(previous="They met at the quay.", round=2), ANSWER)
    assert "They met at the quay." in run.calls[0].prompt
    assert "#### Overview\nThey met at the quay." in run.draft.text
    assert run.draft.remarks == ("1 items of the previous summary were restored: the model gave no reason",)


# -- token budget ----------------------------------------------------------------------------------------------------


def test_items_over_budget_are_dropped_and_counted() -> None:
    rows = "".join(f"| /srv/part{number}.py | Edited | reads the new format |\n" for number in range(200))
    draft = Run(
        summary_input(token_budget=1_200), ANSWER.replace("| /srv/tides.py | Edited | reads the new format |\n", rows)
    ).draft
    assert "earlier items: see the archive" in draft.text
    assert "part199.py" in draft.text
    assert "part0.py" not in draft.text
    assert "Check berth K7" in draft.text, "open work is dropped after completed work"
    (remark,) = draft.remarks
    assert "items did not fit into the summary: /srv/part0.py – Edited – reads the new format; " in remark
    assert all((f"part{number}.py" in draft.text) != (f"part{number}.py" in remark) for number in range(200))


@given(
    st.integers(300, 3_000),
    st.integers(0, 400),
    st.integers(1, 120),
    st.sampled_from(["Mend the pier. ", "修理码头，然后点灯。"]),
)
def test_summary_never_exceeds_its_token_budget(budget: int, length: int, rows: int, words: str) -> None:
    """For any task and any work, with a tokenizer that counts bytes."""

    def count_tokens(text: str) -> int:
        return -(-len(text.encode()) // 4)

    work = "".join(f"- {words}{number}\n" for number in range(rows))
    draft = Run(
        summary_input(token_budget=budget, task=words * length, task_number=7, round=3, count_tokens=count_tokens),
        f"### Completed Work\n{work}\n### Pending Work\n{work}",
    ).draft
    assert count_tokens(draft.text) <= budget
