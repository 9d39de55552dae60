"""Parsing of an answer with a summary and a state delta (W5)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.summaries.state import LIST_CAPS, StateChange, StateDelta
from holdfast.summaries.state_writer import StateAnswer, answer_schema, parse_answer

SUMMARY = 'KEY FACTS:\n- Berth K7 is "free"\n\nCONVERSATION FLOW:\n- Asked, answered\n\nOPEN THREADS:\n- none'
DELTA = {"tasks": [{"id": "t1", "text": "Mend K7", "status": "done"}], "removed": ["d2"]}
ANSWER = {"summary": SUMMARY, "state_delta": DELTA}
READ = StateAnswer(SUMMARY, StateDelta(tasks=(StateChange("Mend K7", "t1", "done"),), removed=("d2",)))
WHOLE = json.dumps(ANSWER)
ALONE = json.dumps(DELTA, indent=2)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        json.dumps(ANSWER, indent=2),
        f"```json\n{WHOLE}\n```",
        f"Here it is:\n\n```\n{WHOLE}\n```\nAnything else?",
        f"Here it is: {WHOLE} That is all.",
        f'<think>{{"summary": "no"}}</think>\n{WHOLE}',
        f"{WHOLE}}}",
        json.dumps({"result": ANSWER}),
        f"{SUMMARY}\n\n```json\n{ALONE}\n```",
        f"{SUMMARY}\n\n{ALONE}",
        f"Sure.\n\n{SUMMARY}\n\n```json\n{json.dumps({'state_delta': DELTA})}\n```\nDone.",
        f"```json\n{ALONE}\n```\n\n{SUMMARY}",
        WHOLE.replace("]}}", "],},}"),
        WHOLE.replace("\\n", "\n"),
    ],
)
def test_parse_answer_accepts_common_shapes(text: str) -> None:
    """W5: a replacement summary and a delta, in one object or one after the other."""
    assert parse_answer(text) == READ


def test_parse_answer_fixes_typographic_quotes() -> None:
    assert parse_answer("{“summary”: “All is well”, “state_delta”: {“risks”: [“Storm”,]}}") == StateAnswer(
        "All is well", StateDelta(risks=(StateChange("Storm"),))
    )


def test_parse_answer_fixes_nothing_inside_strings() -> None:
    assert parse_answer('{"summary": "“a, ]” and , }", "state_delta": {"risks": [],},}').summary == "“a, ]” and , }"


@pytest.mark.parametrize(
    ("delta", "read"),
    [
        ({}, StateDelta()),
        (None, StateDelta()),
        ({"tasks": None, "unheard": [1]}, StateDelta()),
        ({"tasks": ["Mend K7"]}, StateDelta(tasks=(StateChange("Mend K7"),))),
        (
            {"tasks": [{"text": "A", "status": "In Progress", "owner": 3}]},
            StateDelta(tasks=(StateChange("A", "", "in_progress"),)),
        ),
        (
            {"tasks": [{"id": "t1", "text": None, "status": "completed"}]},
            StateDelta(tasks=(StateChange("", "t1", "done"),)),
        ),
        ({"tasks": [{"text": " "}, "two\nlines"]}, StateDelta(tasks=(StateChange("two lines"),))),
        ({"removed": [{"id": "t1"}, {"text": "B"}, " c "]}, StateDelta(removed=("t1", "B", "c"))),
    ],
)
def test_parse_answer_normalizes_delta(delta: Any, read: StateDelta) -> None:
    assert parse_answer(json.dumps({"summary": "s", "state_delta": delta})) == StateAnswer("s", read)


def test_parse_answer_clips_long_entries_and_lists() -> None:
    delta = {"risks": [f"{number} " + "x" * 600 for number in range(60)]}
    risks = parse_answer(json.dumps({"summary": "s", "state_delta": delta})).delta
    assert risks is not None and len(risks.risks) == 50
    assert all(len(change.text) == 500 and change.text.endswith("x…") for change in risks.risks)


@pytest.mark.parametrize(
    ("delta", "read", "problem"),
    [
        ({"tasks": [{"text": 3}, "Mend K7"]}, StateDelta(tasks=(StateChange("Mend K7"),)), "an entry of `tasks`"),
        ({"tasks": "Mend K7"}, StateDelta(tasks=(StateChange("Mend K7"),)), ""),
        ({"tasks": [{"text": "A", "status": "lost"}]}, StateDelta(tasks=(StateChange("A"),)), ""),
        ([], None, "`state_delta` is no object"),
        ({"removed": [3, "t1"]}, StateDelta(removed=("t1",)), "an entry of `removed`"),
    ],
)
def test_unreadable_entry_is_reported_and_the_others_are_kept(delta: Any, read: Any, problem: str) -> None:
    found = parse_answer(json.dumps({"summary": SUMMARY, "state_delta": delta}))
    assert (found.summary, found.delta) == (SUMMARY, read)
    assert found.problem.startswith(problem) and bool(found.problem) == bool(problem)


@pytest.mark.parametrize(
    ("text", "summary", "problem"),
    [
        (SUMMARY, SUMMARY, "there is no JSON object"),
        (f'{SUMMARY}\n{{"a": 1}}\nmore', f'{SUMMARY}\n{{"a": 1}}\nmore', "its JSON object has none of"),
        (f'{SUMMARY}\n\n```json\n{{"state_delta": {{"tasks": [', SUMMARY, "cannot be read"),
        (f'{{"summary": {json.dumps(SUMMARY)}, "state_delta": {{"tasks": [oops', SUMMARY, "cannot be read"),
        ('{"summary": "cut off in the mid', "", "cannot be read"),
        ('{"summary": "He said "no" and", "state_delta": 3', "", "cannot be read"),
        ('{"a": 1}', "", "its JSON object has none of"),
        ("{summary: 'x'}", "", "there is no JSON object"),
        ('["a"]', "", "there is no JSON object"),
        ("```json\n[]\n```", "", "there is no JSON object"),
        (json.dumps({"summary": "s"}), "s", "`state_delta` is missing"),
        ("", "", "there is no JSON object"),
        ('{"a":' * 100_000, "", "cannot be read"),
    ],
)
def test_parse_answer_problem_is_one_line_and_raw_json_is_no_summary(text: str, summary: str, problem: str) -> None:
    read = parse_answer(text)
    assert (read.summary, read.delta) == (summary, None)
    assert problem in read.problem and "\n" not in read.problem


def test_parse_answer_recovers_delta_from_broken_json() -> None:
    text = '{"summary": "He said "no"", "state_delta": {"risks": ["Storm"]}}'
    assert parse_answer(text) == StateAnswer(
        "", StateDelta(risks=(StateChange("Storm"),)), "`summary` is missing or is no text"
    )


@given(st.text() | st.lists(st.sampled_from([*WHOLE, "{", '"summary"', "```", "\n", "“", ",", "}"])).map("".join))
def test_parse_answer_accepts_any_text(text: str) -> None:
    read = parse_answer(text)
    assert read.problem or (read.delta is not None and read.summary)
    assert not read.summary.startswith("{")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*LIST_CAPS, "id", "text", "status"]), inner)
    ),
    max_leaves=12,
)


@given(JSON_VALUES, st.text(min_size=1).filter(str.strip))
def test_parse_answer_any_delta_is_parsed_or_reported(value: Any, summary: str) -> None:
    read = parse_answer(json.dumps({"summary": summary, "state_delta": value}))
    assert read.summary == summary.strip()
    assert read.delta is not None or read.problem


def test_answer_schema_names_every_field_and_is_one_that_providers_take() -> None:
    """Every property is required, and there is no other."""
    written = str(answer_schema())
    assert all(name in written for name in (*LIST_CAPS, "summary", "state_delta", "removed", "in_progress"))
    assert written.count("'additionalProperties': False") == written.count("'required': [") == written.count("'object'")
