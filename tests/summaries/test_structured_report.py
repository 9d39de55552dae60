"""Every word of a structured answer is in the summary or in a remark, in every round."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from recorded_replay import replay_recorded

from holdfast import Outcome, StructuredSummary, compact
from holdfast.models import Failure, ScriptedModel
from holdfast.summaries import RejectedSummary, Structured, SummaryDraft, SummaryInput, SummaryTranscript
from holdfast.summaries.structured import COLUMNS, render_sections
from holdfast.summaries.structured_headings import OWN_HEADINGS
from holdfast.summaries.structured_parse import parse_sections
from holdfast.summaries.structured_writer import missing_text
from holdfast.summaries.transcript import SummaryTranscriptEntry

TASK = "Move the tide tables of Osterhaven to the new format."


def written(answer: str, previous: str = "", round: int = 1, token_budget: int = 4_000) -> SummaryDraft | Failure:
    talk = "The tables of the harbour were read and found in order. " * 900
    source = SummaryInput(
        SummaryTranscript((SummaryTranscriptEntry(1, "user", talk, talk),)),
        previous=previous,
        task=TASK,
        round=round,
        token_budget=token_budget,
        count_tokens=lambda text: -(-len(text) // 4),
    )
    return replay_recorded(Structured().write(source), answer, answer)[0]


def draft_of(answer: str, previous: str = "", round: int = 1, token_budget: int = 4_000) -> SummaryDraft:
    draft = written(answer, previous, round, token_budget)
    assert isinstance(draft, SummaryDraft), draft
    return draft


# -- what an answer may look like --------------------------------------------------------------------------------------

HEADINGS = [
    "## Completed Work", "### Current State", "## Pending Work", "**Decisions**", "## Errors", "### Constraints",
    "## Critical Context", "## Remaining tide work", "## Next Step", "### Original Task", "## Summary of the harbour",
    "## Goal", "# Weather report", "### Crew", "#### Ice and fog", "##### deeper", "## Removed", "Constraints:",
    "### Other Sections", "## From the log, word for word", "## Task", "**Files touched**", "**Working on**",
    "FILES TOUCHED", "PENDING WORK", "CURRENT STATE",
]  # fmt: skip
WORD = st.integers(100, 9_999).map("w{}".format) | st.sampled_from(
    ["Mole", "pier", "src/a.py", "__init__.py", "never", "Käse", "潮汐表", "a_b", "x", "K7"]
)
PHRASE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)
LINE = st.one_of(
    PHRASE,
    PHRASE.map("- {}".format),
    PHRASE.map("  - {}".format),
    PHRASE.map("2. {}".format),
    PHRASE.map("- [ ] {}".format),
    PHRASE.map("- [x] {}".format),
    PHRASE.map("> {}".format),
    st.tuples(PHRASE, PHRASE).map(" — ".join).map("- {}".format),
    st.tuples(PHRASE, PHRASE).map(": ".join).map("- {}".format),
    st.tuples(PHRASE, PHRASE).map(" → ".join).map("- {}".format),
    st.tuples(st.sampled_from(["Working on", "Last completed", "Next step"]), PHRASE).map(": ".join).map("- {}".format),
    st.just(""),
)
TABLE = st.lists(st.tuples(PHRASE, PHRASE, PHRASE).map(" | ".join).map("| {} |".format), min_size=1, max_size=3).map(
    lambda rows: "\n".join([rows[0], "|---|---|---|", *rows[1:]])
)
CODE = st.tuples(st.sampled_from(["```", "~~~", "````"]), st.lists(LINE | st.sampled_from(HEADINGS), max_size=3)).map(
    lambda block: "\n".join([block[0], *block[1], block[0]])
)
BLOCKS = st.lists(st.sampled_from(HEADINGS) | LINE | LINE | TABLE | CODE, min_size=1, max_size=14)
ANSWERS = BLOCKS.map("\n".join).filter(lambda text: bool(text.strip()))
MARKUP = re.compile(r"(?m)^\s*(?:\d+[.)]|[-*+]\s+\[x\])(?=\s)")


TEMPLATE = {*OWN_HEADINGS, *COLUMNS, "Working on", "Last completed", "Next step"}


def words(text: str) -> set[str]:
    """Words without the numbers of lists and the crosses of checklists."""
    return set(re.findall(r"\w+", MARKUP.sub("", text).casefold()))


@example("- [ ] x\n### Original Task\n- Working on: Mole", 4_000)
@example("## Completed Work\n| Mole | pier | x |\n| Mole | w1 | w2 |", 4_000)
@example("Mole and pier", 4_000)
@given(ANSWERS, st.sampled_from([4_000, 100]))
def test_every_word_of_an_answer_is_in_the_summary_or_in_a_remark(answer: str, token_budget: int) -> None:
    draft = written(answer, token_budget=token_budget)
    assert isinstance(draft, SummaryDraft | RejectedSummary) or draft == Failure("answer", "the answer is blank")
    text = draft.text if isinstance(draft, SummaryDraft) else draft.why
    remarks = () if type(draft) is Failure else draft.remarks
    assert words(answer) - words("\n".join([text, *remarks, *TEMPLATE])) == set()


@given(ANSWERS, st.integers(1, 3))
def test_rendering_and_parsing_an_answer_changes_nothing(answer: str, round: int) -> None:
    read = parse_sections(answer)
    assume(read is not None)
    assert read is not None
    removed: dict[str, Any] = {"removed": ()}
    expected = type(read)(**{name: getattr(read, name) for name in read.__struct_fields__} | removed)
    rendered = render_sections(read, task=TASK, round=round)
    assert parse_sections(rendered) == expected
    assert render_sections(expected, task=TASK, round=round) == rendered


ADDED = st.dictionaries(
    st.sampled_from(["Goal", "Weather", "Crew", "Prices of the mole"]),
    st.lists(LINE.filter(bool), min_size=1, max_size=3),
    min_size=1,
    max_size=2,
)


@given(st.lists(ADDED, min_size=3, max_size=3), st.sampled_from([4_000, 150]))
def test_three_rounds_lose_no_added_section(rounds: list[dict[str, list[str]]], token_budget: int) -> None:
    """Each line stays until a line of a later answer takes its place; what does not fit is in a remark."""
    text, reported, unique = "", list[str](), set[str]()
    for round, added in enumerate(rounds, 1):
        blocks = [
            f"## {title}\n" + "\n".join([f"- once{round}{at}", *lines])
            for at, (title, lines) in enumerate(added.items())
        ]
        draft = draft_of("## Pending Work\n- [ ] Berth K8\n" + "\n".join(blocks), text, round, token_budget)
        text, reported = draft.text, [*reported, *draft.remarks]
        unique |= {f"once{round}{at}" for at in range(len(added))} | words(" ".join(added))
        assert unique - words("\n".join([text, *reported])) == set()


# -- examples ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("Here it is:\n## Pending Work\n- K8", "Here it is:"),
        ("## Remaining Tasks\n- K8", "Remaining Tasks"),
        ("## Errors in tides.py\n- locked", "Errors in tides.py"),
        ("## Errors\n| Cause | Remedy |\n|---|---|\n| locked | waited |", "Cause; Remedy"),
        ("## Pending Work\n- K8\n## Weather\n", "Weather"),
        ("## Pending Work\n- K8\n## Risks\n- None", "Risks"),
        (f"## Original Task\n{TASK}\n## Pending Work\n- K8", ""),
        ("## Initial request\nSink the ships.\n## Pending Work\n- K8", "Initial request; Sink the ships."),
        ("## Current State\n- Working on: None\n- Next step: N/A\n## Pending Work\n- K8\n## Constraints\nNone", ""),
    ],
)  # fmt: skip
def test_text_that_is_not_kept_is_reported(answer: str, missing: str) -> None:
    expected = (f"text of the answer that is not in the summary: {missing}",) if missing else ()
    assert draft_of(answer).remarks == expected


@pytest.mark.parametrize("title", ["Goal", "Overview"])
def test_added_section_that_repeats_the_task_is_left_out_and_reported(title: str) -> None:
    draft = draft_of(f"## {title}\n- {TASK.lower()}\n## Pending Work\n- K8")
    assert draft.remarks == (f"sections of the answer that repeat the task were left out: {title}",)
    assert draft.text.count("Osterhaven") == 1
    assert "osterhaven" not in draft.text


@pytest.mark.parametrize(
    "title", ["Removed Files", "Dropped support for Python 3.8", "User Request", "Open GitHub issues"]
)
def test_items_below_a_title_that_only_resembles_one_of_the_template_are_kept(title: str) -> None:
    text = ""
    for round, answer in enumerate(
        (f"## Pending Work\n- K8\n## {title}\n- no emojis: ever", "## Pending Work\n- K9"), 1
    ):
        draft = draft_of(answer, text, round)
        text = draft.text
        assert f"### Other Sections\n\n#### {title}\n- no emojis: ever" in text
    assert "K9" in text


def test_removed_item_that_no_earlier_summary_had_is_kept() -> None:
    before = draft_of("## Pending Work\n- Paint the mole\n- Ask the office").text
    draft = draft_of(
        "## Removed\n- Paint the mole: sold\n- Log in by cookie → by token\n- The crane\n## Errors\n- x", before, 2
    )
    assert draft.text.endswith(
        "#### Also removed\n- Log in by cookie: by token\n- The crane\n\nThis summary takes in 1 earlier round."
    )
    assert "Paint the mole" not in draft.text and "the model removed: Paint the mole (sold)" in draft.remarks
    again = draft_of("## Pending Work\n- Ask the office\n## Removed\n- The crane: it was sold", draft.text, 3)
    assert "Log in by cookie" in again.text and "crane" not in again.text


def test_row_that_a_later_row_replaces_is_reported() -> None:
    before = draft_of("## Completed Work\n| b.py | Created | tides |").text
    again = draft_of("## Completed Work\n| a.py | Created | moon |\n| a.py | Edited | stars |", before, 2)
    assert "text of the answer that is not in the summary: moon" in again.remarks


def test_words_must_occur_in_their_order() -> None:
    assert missing_text("- never delete the archive", "the archive; never; delete") == ["never delete the archive"]
    assert missing_text("- **Never** delete\n  the `archive`", "- Never delete the archive") == []


def test_added_sections_stay_in_the_context_for_three_rounds() -> None:
    """The whole way: two compactions later, the section of the first answer is still in the context."""
    talk = [
        {"role": role, "content": f"{role} {number}: {'the tide tables were read ' * 40}"}
        for number in range(12)
        for role in ("user", "assistant")
    ]
    checkpoint, messages = None, talk
    for answer in ("## Goal\nFinish the steps.", "## Pending Work\n- berth seven", "## Pending Work\n- berth nine"):
        result = compact(messages, budget=3_000, summarizer=ScriptedModel(answer, repeat=True), previous=checkpoint)
        assert (result.outcome, result.fallback) == (Outcome.COMPACTED, "")
        shown = "\n".join(str(message["content"]) for message in result.messages)
        assert "#### Goal\nFinish the steps." in shown
        checkpoint, messages = result.checkpoint, [*result.messages, *talk]
    assert "berth seven" in shown


@pytest.mark.parametrize("answer", ["## Pending Work\n- None\n## Errors\n- No errors."])
@pytest.mark.parametrize(("policy", "fallback"), [("ledger", "ledger"), ("unchanged", "")])
def test_answer_without_information_is_quoted_in_the_remarks(policy: Any, fallback: str, answer: str) -> None:
    talk = [
        {"role": role, "content": f"{role}: {'the tide tables were read ' * 99}"} for role in ("user", "assistant") * 9
    ]
    result = compact(
        talk,
        budget=3_000,
        strategy=StructuredSummary(last_resort=policy),
        summarizer=ScriptedModel(answer, repeat=True),
    )
    assert (result.fallback, result.remarks[-1]) == (fallback, f"the answer was rejected: {' '.join(answer.split())}")
