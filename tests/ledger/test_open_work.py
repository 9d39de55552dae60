"""What is still to be done, from whatever tool an agent plans with (H3)."""

from __future__ import annotations

from typing import Any

import pytest
from ledger_story import Messages, noise, notes_on, section, used, user

from holdfast import compact
from holdfast.ledger.headings import PLAN

TODOS = [
    {"content": "Read the log", "status": "completed", "activeForm": "Reading the log"},
    {"content": "Mend the parser", "status": "in_progress", "activeForm": "Mending the parser"},
    {"content": "Write a test", "status": "pending", "activeForm": "Writing a test"},
]
STEPS = [{"step": todo["content"], "status": todo["status"]} for todo in TODOS]


def planned(*calls: tuple[str, dict[str, Any]]) -> list[str]:
    messages: Messages = [user("Do it step by step.")]
    for at, (tool, arguments) in enumerate(calls):
        messages += used(f"p{at}", tool, "ok", **arguments)
    return section(notes_on([*messages, *noise(20), user("And now?")]), PLAN)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("TodoWrite", {"todos": TODOS}),
        ("update_plan", {"plan": STEPS, "explanation": "so far"}),
        ("x", {"steps": STEPS}),
    ],
)
def test_a_list_of_steps_shows_what_is_open_and_what_is_done(tool: str, arguments: dict[str, Any]) -> None:
    assert planned((tool, arguments)) == [
        "- Mend the parser (in_progress)",
        "- Write a test (pending)",
        "Done: Read the log",
    ]


def test_the_newest_list_counts() -> None:
    later = [{**todo, "status": "completed"} for todo in TODOS[:2]] + TODOS[2:]
    assert planned(("TodoWrite", {"todos": TODOS}), ("TodoWrite", {"todos": later})) == [
        "- Write a test (pending)",
        "Done: Read the log; Mend the parser",
    ]


def test_tasks_that_are_made_and_changed_one_by_one() -> None:
    made = [("TaskCreate", {"subject": todo["content"], "description": "…", "activeForm": "…"}) for todo in TODOS]
    changed = [
        ("TaskUpdate", {"taskId": "1", "status": "completed"}),
        ("TaskUpdate", {"taskId": "2", "status": "in_progress"}),
    ]
    assert planned(*made, *changed) == [
        "- Mend the parser (in_progress)",
        "- Write a test (pending)",
        "Done: Read the log",
    ]


def test_when_all_is_done_it_says_so() -> None:
    done = [{**todo, "status": "completed"} for todo in TODOS]
    assert planned(("TodoWrite", {"todos": done}))[0] == "- nothing: every step of the plan is done"


def test_a_step_of_several_lines_is_told_on_one() -> None:
    assert planned(("update_plan", {"plan": [{"step": "look\n  twice\r\nat it", "status": "pending"}]})) == [
        "- look twice at it (pending)"
    ]


@pytest.mark.parametrize("odd", [None, "x", [], ["x"], [None], [{"content": ""}], {"a": 1}, [{"content": 3}]])
def test_what_is_no_plan_is_not_taken_for_one(odd: Any) -> None:
    assert planned(("update_plan", {"plan": odd})) == []


def test_a_plan_that_was_emptied_is_no_longer_open() -> None:
    assert planned(("TodoWrite", {"todos": TODOS}), ("TodoWrite", {"todos": []})) == []


@pytest.mark.parametrize("status", ["complete", "Done", "skipped", "canceled", "COMPLETED"])
def test_a_step_is_done_however_it_is_spelt(status: str) -> None:
    steps = [{"content": "Mend the parser", "status": status}, {"content": "Write a test", "status": "pending"}]
    assert planned(("TodoWrite", {"todos": steps})) == ["- Write a test (pending)", "Done: Mend the parser"]


def test_by_a_page_alone_no_step_is_marked_that_has_lost_its_number() -> None:
    names = ["alpha step", "beta step", "gamma step", "delta step"]
    made = [used(f"m{at}", "TaskCreate", "ok", subject=name, activeForm="…") for at, name in enumerate(names)]
    done = [used(f"d{at}", "TaskUpdate", "ok", taskId=at, status="completed") for at in ("1", "2")]
    first = compact(
        [user("Do it."), *(one for call in [*made, *done] for one in call), *noise(20), user("Go on.")],
        budget=1_500,
        target=1_500,
    )
    more = [*first.messages, *used("u3", "TaskUpdate", "ok", taskId="3", status="completed"), *noise(20), user("And?")]
    told = section(notes_on(more), PLAN)
    assert told[-1] == "Done: alpha step; beta step"
    assert "- delta step (pending)" in told
