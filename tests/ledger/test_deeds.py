"""What a call does is told by the shape of its arguments, whoever made the tool (P13, H3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ledger_story import Messages, noise, notes_on, section, used, user

from holdfast.agent.tools.files import file_tools
from holdfast.agent.tools.folder import Folder
from holdfast.ledger import Notebook
from holdfast.ledger.deeds import Deed, deed_of
from holdfast.ledger.headings import COMMANDS, FILES, PLAN
from holdfast.messages import ToolCall, decode_all

PATH = "tidebook/bookings.py"


def deed(tool: str, **arguments: Any) -> Deed:
    return deed_of(ToolCall("1", tool, json.dumps(arguments)))


def noted(*messages: Messages) -> Notebook:
    decoded, _ = decode_all([user("Go."), *(message for group in messages for message in group)], "openai-chat")
    notebook = Notebook()
    notebook.read(decoded, range(1, len(decoded) + 1))
    return notebook


OURS = {
    "read_file": ({"path": PATH}, "read"),
    "list_files": ({"path": ".", "pattern": "*.py"}, "search"),
    "search_files": ({"text": "def hold", "path": "tidebook"}, "search"),
    "edit_file": ({"path": PATH, "old": "low = 1", "new": "low = 2"}, "edit"),
    "write_file": ({"path": PATH, "content": "low = 1\n"}, "write"),
}


def test_our_own_tools_are_understood(tmp_path: Path) -> None:
    assert {tool.name for tool in file_tools(Folder(tmp_path))} == set(OURS)
    assert {name: deed(name, **arguments).kind for name, (arguments, _) in OURS.items()} == {
        name: kind for name, (_, kind) in OURS.items()
    }


@pytest.mark.parametrize(
    ("arguments", "kind", "new"),
    [
        ({"command": "view", "path": PATH}, "read", None),
        ({"command": "create", "path": PATH, "file_text": "low = 1"}, "write", "low = 1"),
        ({"command": "insert", "path": PATH, "insert_line": 3, "insert_text": "low = 1"}, "edit", "low = 1"),
        ({"command": "str_replace", "path": PATH, "old_str": "low = 0", "new_str": "low = 1"}, "edit", "low = 1"),
    ],
)
def test_an_editor_that_is_one_tool(arguments: dict[str, Any], kind: str, new: str | None) -> None:
    found = deed("str_replace_based_edit_tool", **arguments)
    assert (found.kind, found.subject) == (kind, PATH)
    assert [change.new for change in found.changes] == ([] if new is None else [new])


def test_what_an_editor_does_is_no_command() -> None:
    messages = [user("Go."), *used("1", "editor", "ok", command="create", path=PATH, file_text="low = 1")]
    messages += used("2", "editor", "ok", command="delete", path="tidebook/old.py")
    page = notes_on([*messages, *noise(20), user("And?")])
    assert section(page, COMMANDS) == []
    assert section(page, FILES) == ["tidebook/: bookings.py (written)"]


@pytest.mark.parametrize("shell", ["bash", "/bin/bash", "/usr/bin/zsh"])
def test_a_shell_is_one_wherever_it_lies(shell: str) -> None:
    assert deed("shell", command=[shell, "-lc", "cat src/tides.py"]).subject == "src/tides.py"


@pytest.mark.parametrize(
    "diff",
    [
        "<<<<<<< SEARCH\nlow = 1\n=======\nlow = 2\n>>>>>>> REPLACE",
        "------- SEARCH\nlow = 1\n=======\nlow = 2\n+++++++ REPLACE",
        "--- a/tides.py\n+++ b/tides.py\n-low = 1\n+low = 2",
    ],
)
def test_a_diff_takes_out_and_puts_in(diff: str) -> None:
    (change,) = deed("replace_in_file", path=PATH, diff=diff).changes
    assert (change.path, change.old, change.new) == (PATH, "low = 1", "low = 2")


TODOS = used("1", "TodoWrite", "ok", todos=[{"content": "Mend the parser", "status": "in_progress"}])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("create_order", {"items": [{"title": "Lamp", "quantity": 2}]}),
        ("create_order", {"items": [{"title": "Lamp", "status": "backordered"}]}),
        ("create_ticket", {"subject": "Refund", "description": "for Ada"}),
        ("update_ticket", {"task_id": "T-9911", "status": "closed"}),
        ("update_ticket", {"task_id": "7", "status": "closed"}),
        ("update_ticket", {"task_id": "9" * 5_000, "status": "closed"}),
    ],
)
def test_a_services_call_is_no_plan_and_its_answer_is_noted(tool: str, arguments: dict[str, Any]) -> None:
    notebook = noted(TODOS, used("2", tool, "done under ORD-88123", **arguments))
    assert notebook.steps.all == [("Mend the parser", "in_progress")]
    assert "ORD-88123" in notebook.names and "done under ORD-88123" in notebook.lines


def test_a_plan_stays_when_a_service_is_called() -> None:
    messages = [user("Go."), *TODOS, *used("2", "create_order", "ok", items=[{"title": "Lamp"}])]
    assert section(notes_on([*messages, *noise(20), user("And?")]), PLAN) == ["- Mend the parser (in_progress)"]


def test_a_number_without_end_is_not_written_out() -> None:
    given = {"amount": 12, "reference": 2**100_000}
    asked = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "pay", "input": given}]}
    (message,), _ = decode_all([asked], "anthropic")
    assert deed_of(message.calls[0]).subject == "amount=12"
