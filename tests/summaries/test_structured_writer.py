"""The structured summary as it is asked for and written: the task by code, nothing lost without a reason (L6, L7)."""

from __future__ import annotations

from typing import Any

import pytest
from heard import heard
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Failure, Structured
from holdfast.calls import Answer
from holdfast.summaries import Draft, Material, Transcript
from holdfast.summaries.structured import UNKNOWN_TASK
from holdfast.summaries.structured_text import read_sections
from holdfast.summaries.transcript import Entry

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

### Pending Work
- [ ] Check berth K7
"""


def material(**more: Any) -> Material:
    talk = "The tables of the harbour were read and found in order. " * 400
    options: dict[str, Any] = {
        "conversation": Transcript((Entry(1, "user", talk, talk),)),
        "task": TASK,
        "room": 2_000,
        "measure": lambda text: -(-len(text) // 4),
    }
    return Material(**options | more)


class Run:
    """One summary written; the calls that were made are kept."""

    def __init__(self, given: Material, *answers: Answer | str, writer: Structured | None = None) -> None:
        self.result, self.calls = heard((writer or Structured()).write(given), *answers)

    @property
    def draft(self) -> Draft:
        assert isinstance(self.result, Draft), self.result
        return self.result


def task_in(text: str) -> str:
    return text.partition("### Original Task\n")[2].partition("\n\n### Completed Work")[0]


def test_l6_what_is_asked() -> None:
    """At most 800 tokens asked, 1,000 allowed, temperature 0.3, all headings, no code blocks."""
    (call,) = Run(material(), ANSWER).calls
    assert (call.max_tokens, call.temperature) == (1_000, 0.3)
    assert call.prompt.endswith("Write at most 800 tokens.")
    for heading in (
        "Completed Work",
        "Key Technical Decisions",
        "Current State",
        "Pending Work",
        "Errors & Resolutions",
    ):
        assert f"### {heading}\n" in call.prompt
    assert "No code blocks" in call.prompt
    assert "exact path" in call.prompt


def test_l6_what_is_written() -> None:
    assert Run(material(), ANSWER).draft == Draft(
        f"## Session Summary (Compaction Round 1)\n\n### Original Task\n{TASK}\n\n"
        "### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n"
        "| /srv/tides.py | Edited | reads the new format |\n\n"
        "### Key Technical Decisions\n- Tables stay in UTC because the pilots want it\n\n"
        "### Current State\n- Working on: the berths\n- Last completed: the tides\n\n"
        "### Pending Work\n- [ ] Check berth K7"
    )


def test_p13_files_from_the_log_are_told_to_the_model() -> None:
    (call,) = Run(material(files="/srv/: tides.py (edited 2×)"), ANSWER).calls
    assert "Files that were touched, from the log:\n/srv/: tides.py (edited 2×)" in call.prompt


def test_an_answer_without_any_section_is_asked_for_once_more() -> None:
    run = Run(material(), "They moved the tables, and all is well.", ANSWER)
    assert "none of the headings that were asked for" in run.calls[1].prompt
    assert "berth K7" in run.draft.text
    assert Run(material(), "They moved.", "They moved.").result == Failure(
        "answer", "it has none of the headings that were asked for"
    )


# -- the task (L7) --------------------------------------------------------------------------------------------------


def test_l7_the_task_stands_word_for_word_outside_the_models_limit() -> None:
    """Whatever the model says of it, and though it is longer than what the model may write."""
    task = " ".join(f"Table {number} goes to berth K{number}." for number in range(120))
    run = Run(material(task=task), f"### Original Task\nSomething else altogether\n\n{ANSWER}")
    assert task_in(run.draft.text) == task
    assert "Something else" not in run.draft.text
    assert task not in run.calls[0].prompt


def test_l7_in_every_round() -> None:
    text = Run(material(), ANSWER).draft.text
    for round in range(2, 6):
        text = Run(material(previous=text, round=round), ANSWER).draft.text
        assert task_in(text) == TASK
    assert text.endswith("This summary takes in 4 earlier rounds.")


def test_l7_where_it_cannot_fit_its_head_its_tail_and_where_it_stands() -> None:
    task = "First of all, mend the pier. " + "And then the next one. " * 900 + "Last of all, light the lamp."
    written = task_in(Run(material(task=task, task_place=1_204), ANSWER).draft.text)
    assert written.startswith("First of all, mend the pier.")
    assert written.endswith("light the lamp. [1,204]")
    assert "[…]" in written
    assert len(written) < 4_200


def test_l7_without_a_number_no_reference_is_made_up() -> None:
    written = task_in(Run(material(task="Mend the pier. " * 900), ANSWER).draft.text)
    assert not written.endswith("]")


@pytest.mark.parametrize("task", ["", "  \n"])
def test_l7_unknown_task_if_there_is_none(task: str) -> None:
    assert task_in(Run(material(task=task), ANSWER).draft.text) == UNKNOWN_TASK


def test_l7_headings_in_a_task_are_not_taken_for_ours() -> None:
    task = "## Pending Work\n- [ ] this is the user's own list"
    text = Run(material(task=task), ANSWER).draft.text
    read = read_sections(text)
    assert read is not None
    assert read.pending == ("Check berth K7",)
    assert task in text


# -- round after round ----------------------------------------------------------------------------------------------

FORGETS = "### Completed Work\n- None\n\n### Key Technical Decisions\n- The lamp is lit at dusk\n"


def test_l6_the_previous_summary_is_integrated_not_repeated() -> None:
    first = Run(material(), ANSWER).draft.text
    run = Run(material(previous=first, round=2), ANSWER)
    assert "Take the earlier summary in, do not repeat it" in run.calls[0].prompt
    assert run.draft.text.count("Check berth K7") == 1
    assert run.draft.text.count("/srv/tides.py") == 1
    assert run.draft.remarks == ()


def test_l6_what_the_answer_forgot_is_put_back_and_it_is_said() -> None:
    first = Run(material(), ANSWER).draft.text
    draft = Run(material(previous=first, round=2), FORGETS).draft
    for item in ("/srv/tides.py", "Tables stay in UTC", "Check berth K7", "The lamp is lit at dusk"):
        assert item in draft.text
    (remark,) = draft.remarks
    assert remark.endswith("items of the earlier summary were put back: no reason was given")


def test_l6_what_went_for_a_reason_is_gone() -> None:
    first = Run(material(), ANSWER).draft.text
    removed = f"{ANSWER.replace('- [ ] Check berth K7', '- None')}\n### Removed\n- Check berth K7: the person did it\n"
    draft = Run(material(previous=first, round=2), removed).draft
    assert "K7" not in draft.text
    assert "Removed" not in draft.text


def test_an_earlier_summary_of_another_shape_is_only_told() -> None:
    run = Run(material(previous="They met at the quay.", round=2), ANSWER)
    assert "They met at the quay." in run.calls[0].prompt
    assert "quay" not in run.draft.text


# -- within the room ------------------------------------------------------------------------------------------------


def test_what_has_to_go_for_want_of_room_is_counted() -> None:
    rows = "".join(f"| /srv/part{number}.py | Edited | reads the new format |\n" for number in range(200))
    draft = Run(material(room=1_200), ANSWER.replace("| /srv/tides.py | Edited | reads the new format |\n", rows)).draft
    assert "earlier items: see the archive" in draft.text
    assert "part199.py" in draft.text
    assert "part0.py" not in draft.text
    assert "Check berth K7" in draft.text, "open work goes after work that is done"


@given(
    st.integers(300, 3_000),
    st.integers(0, 400),
    st.integers(0, 120),
    st.sampled_from(["Mend the pier. ", "修理码头，然后点灯。"]),
)
def test_it_never_takes_more_than_its_room(room: int, length: int, rows: int, words: str) -> None:
    """Whatever the task and whatever was done, by a measure that counts Chinese as what it costs."""

    def measure(text: str) -> int:
        return -(-len(text.encode()) // 4)

    work = "".join(f"- {words}{number}\n" for number in range(rows)) or "- None\n"
    draft = Run(
        material(room=room, task=words * length, task_place=7, round=3, measure=measure),
        f"### Completed Work\n{work}\n### Pending Work\n{work}",
    ).draft
    assert measure(draft.text) <= room
