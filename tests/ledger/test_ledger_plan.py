"""The open plan, from any planning tool (H3)."""

from __future__ import annotations

from typing import Any

import pytest
from ledger_helpers import Messages, filler, notes_on, page_of, section, tool_use, user

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
        messages += tool_use(f"p{at}", tool, "ok", **arguments)
    return section(notes_on([*messages, *filler(20), user("And now?")]), PLAN)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("TodoWrite", {"todos": TODOS}),
        ("update_plan", {"plan": STEPS, "explanation": "so far"}),
        ("x", {"steps": STEPS}),
    ],
)
def test_plan_section_shows_open_and_done_steps(tool: str, arguments: dict[str, Any]) -> None:
    assert planned((tool, arguments)) == [
        "- Mend the parser (in_progress)",
        "- Write a test (pending)",
        "Done: Read the log",
    ]


def test_plan_section_uses_the_newest_list() -> None:
    later = [{**todo, "status": "completed"} for todo in TODOS[:2]] + TODOS[2:]
    assert planned(("TodoWrite", {"todos": TODOS}), ("TodoWrite", {"todos": later})) == [
        "- Write a test (pending)",
        "Done: Read the log; Mend the parser",
    ]


def test_plan_section_tracks_tasks_created_and_updated_singly() -> None:
    made = [("TaskCreate", {"subject": todo["content"], "description": "…", "activeForm": "…"}) for todo in TODOS]
    changed = [
        ("TaskUpdate", {"taskId": "1", "status": "completed"}),
        ("TaskUpdate", {"taskId": "2", "status": "in_progress"}),
    ]
    assert planned(*made, *changed) == [
        "- #2 Mend the parser (in_progress)",
        "- #3 Write a test (pending)",
        "Done: #1 Read the log",
    ]


def test_plan_section_when_all_done_states_it() -> None:
    done = [{**todo, "status": "completed"} for todo in TODOS]
    assert planned(("TodoWrite", {"todos": done}))[0] == "- nothing: every step of the plan is done"


def test_plan_step_of_several_lines_is_joined() -> None:
    assert planned(("update_plan", {"plan": [{"step": "look\n  twice\r\nat it", "status": "pending"}]})) == [
        "- look twice at it (pending)"
    ]


@pytest.mark.parametrize("odd", [None, "x", [], ["x"], [None], [{"content": ""}], {"a": 1}, [{"content": 3}]])
def test_malformed_plan_is_ignored(odd: Any) -> None:
    assert planned(("update_plan", {"plan": odd})) == []


def test_emptied_plan_is_not_shown() -> None:
    assert planned(("TodoWrite", {"todos": TODOS}), ("TodoWrite", {"todos": []})) == []


@pytest.mark.parametrize(
    ("status", "title"),
    [
        ("complete", "Done"),
        ("Done", "Done"),
        ("COMPLETED", "Done"),
        ("skipped", "Dropped"),
        ("canceled", "Dropped"),
        ("deleted", "Dropped"),
    ],
)
def test_step_status_is_recognized_in_any_spelling(status: str, title: str) -> None:
    """A step that was given up is not listed as done."""
    steps = [{"content": "Mend the parser", "status": status}, {"content": "Write a test", "status": "pending"}]
    assert planned(("TodoWrite", {"todos": steps})) == ["- Write a test (pending)", f"{title}: Mend the parser"]


def test_plan_parsed_from_page_follows_updates_by_number() -> None:
    """The number of a step stands on the page: an agent changes its status by it."""
    names = ["alpha step", "beta step", "gamma step", "delta step"]
    made = [tool_use(f"m{at}", "TaskCreate", "ok", subject=name, activeForm="…") for at, name in enumerate(names)]
    changes = (("1", "completed"), ("2", "deleted"))
    done = [tool_use(f"d{at}", "TaskUpdate", "ok", taskId=at, status=status) for at, status in changes]
    first = compact(
        [user("Do it."), *(one for call in [*made, *done] for one in call), *filler(20), user("Go on.")],
        budget=1_500,
        target=1_500,
    )
    more = [
        *first.messages,
        *tool_use("u3", "TaskUpdate", "ok", taskId="3", status="completed"),
        *tool_use("m5", "TaskCreate", "ok", subject="epsilon step", activeForm="…"),
        *filler(20),
        user("And?"),
    ]
    assert section(notes_on(more), PLAN) == [
        "- #4 delta step (pending)",
        "- #5 epsilon step (pending)",
        "Done: #3 gamma step; #1 alpha step",
        "Dropped: #2 beta step",
    ]


def test_plan_on_a_page_is_not_counted_again_from_the_messages_that_stay() -> None:
    """Without the checkpoint, the page and the trail state the same calls."""
    made = [tool_use(f"m{at}", "TaskCreate", "ok", subject=f"step {at}", activeForm="…") for at in range(3)]
    shown: Messages = [user("Do it."), *filler(20), *(one for call in made for one in call)]
    for at in range(4):
        shown = list(compact([*shown, *filler(2, 100 * at)], budget=1_500, target=1_500).messages)
    assert section(page_of(shown), PLAN)[:3] == [f"- #{at + 1} step {at} (pending)" for at in range(3)]
    assert len(section(page_of(shown), PLAN)) == 3


def test_plan_given_whole_after_single_steps_starts_numbering_anew() -> None:
    made = [("TaskCreate", {"subject": f"step {at}", "activeForm": "…"}) for at in range(2)]
    again = [
        ("TaskCreate", {"subject": "last step", "activeForm": "…"}),
        ("TaskUpdate", {"taskId": "1", "status": "done"}),
    ]
    assert planned(*made, ("TodoWrite", {"todos": TODOS[2:]}), *again) == [
        "- Write a test (pending)",
        "Done: #1 last step",
    ]
    assert planned(*made, ("TaskUpdate", {"taskId": "7", "status": "done"}))[0] == "- #1 step 0 (pending)"
