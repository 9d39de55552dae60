"""Files by absolute path with what was done to them (P13); pictures by path, or a placeholder (P12)."""

from __future__ import annotations

import json
from typing import Any

from ledger_story import Messages, noise, notes_on, section, used, user

from holdfast.ledger import Notebook, reread
from holdfast.ledger.deeds import deed_of
from holdfast.ledger.headings import FILES
from holdfast.messages import ToolCall, decode_all

PATCH = "*** Begin Patch\n*** Update File: /srv/app/routes.py\n@@\n-old()\n+new()\n*** End Patch"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def worked() -> Messages:
    return [
        user("Tidy up the service."),
        *used("1", "Read", "1\timport os", file_path="/srv/app/settings.py"),
        *used("2", "Edit", "ok", file_path="/srv/app/settings.py", old_string="import os", new_string="import sys"),
        *used("3", "str_replace", "ok", path="/srv/app/settings.py", old_str="sys", new_str="os"),
        *used("4", "write_file", "ok", path="/srv/app/new/tides.py", content="TIDES = 12\n"),
        *used("5", "apply_patch", "Done", input=PATCH),
        *used("6", "shell", "MIT", command="cat /srv/LICENSE.txt"),
        *used("7", "view_image", "an image of 3 kB", path="/srv/shots/harbour.png"),
        *noise(20),
        user("And now?"),
    ]


def test_every_file_stands_under_its_folder_with_what_was_done_to_it() -> None:
    files = section(notes_on(worked(), 2_000), FILES)
    assert "/srv/app/: routes.py (edited 1×), settings.py (edited 2×)" in files
    assert "/srv/app/new/: tides.py (written)" in files
    assert "/srv/: LICENSE.txt" in files


def test_a_picture_that_came_by_path_is_named_by_it() -> None:
    assert "/srv/shots/: harbour.png" in section(notes_on(worked(), 2_000), FILES)


def attached(name: str | None = None) -> Messages:
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    file = {"type": "file", "file": {"filename": name, "file_data": f"data:application/pdf;base64,{PNG}"}}
    return [
        user("Look at what I send you."),
        {"role": "user", "content": [{"type": "text", "text": "This is the berth."}, file if name else url]},
        *noise(20),
        user("What did you see?"),
    ]


def test_an_attached_picture_leaves_a_placeholder_that_says_where_it_was() -> None:
    assert "Attached: image: image/png [2]" in section(notes_on(attached()), FILES)
    assert "Attached: file: tides.pdf [2]" in section(notes_on(attached("tides.pdf")), FILES)


def test_a_picture_in_a_tool_result_is_noted_too() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    messages = [
        {"role": "user", "content": "Show me the harbour."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "camera", "input": {"zoom": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [picture]}]},
        *[{"role": role, "content": "words " * 300} for _ in range(12) for role in ("assistant", "user")],
    ]
    assert "Attached: image: image/png [3]" in section(notes_on(messages), FILES)


def test_the_placeholder_is_carried_on_and_read_back() -> None:
    page = notes_on(attached())
    assert [(line.text, line.place) for line in reread(page).attached] == [("image: image/png", 2)]
    notebook = Notebook()
    decoded = decode_all(attached(), "openai-chat")[0]
    notebook.read(decoded, range(1, len(decoded) + 1))
    again = Notebook(notebook.ledger())
    assert [line.place for line in again.attached] == [2]


def deed(tool: str, **arguments: Any) -> tuple[str, str]:
    told = deed_of(ToolCall("1", tool, json.dumps(arguments)))
    return told.kind, told.subject


def test_what_a_call_does_is_told_by_its_arguments_not_by_its_name() -> None:
    assert deed("x", file_path="/a/b.py") == ("read", "/a/b.py")
    assert deed("x", path="/a/b.py", new_str="1", old_str="") == ("edit", "/a/b.py")
    assert deed("x", filePath="/a/b.py", content="text") == ("write", "/a/b.py")
    assert deed("x", command="make test") == ("run", "make test")
    assert deed("x", command=["bash", "-lc", "make test"]) == ("run", "make test")
    assert deed("x", cmd="sed -n '1,5p' src/a.py") == ("read", "src/a.py")
    assert deed("x", pattern="def go", path="src") == ("search", "def go in src")
    assert deed("x", order="A-17", amount=4500) == ("other", "order=A-17, amount=4500")
    assert deed("x", path="two\nlines", size=1)[0] == "other"
    assert deed("x") == ("other", "")


def test_a_command_that_prints_one_file_reads_it() -> None:
    for command in (
        "cat src/a.py",
        "nl -ba src/a.py | sed -n '1,40p'",
        "git show origin/main:src/a.py | head -50",
        'grep -n -A 30 "class A" src/a.py',
        "rg -C3 'def go' src/a.py",
    ):
        assert deed("x", command=command) == ("read", "src/a.py")
    for command in (
        "git show HEAD",
        "git log -- src/a.py",
        "cat src/a.py src/b.py",
        "python a.py",
    ):
        assert deed("x", command=command) == ("run", command)
    assert deed("x", command="grep -n go src/a.py") == ("search", "grep -n go src/a.py")


def test_the_data_of_a_picture_never_get_into_the_notes() -> None:
    unreadable = {"type": "image_url", "image_url": {"url": "data:;base64" + "x" * 400}}
    shown = {"role": "user", "content": [{"type": "text", "text": "Look at this chart."}, unreadable]}
    page = notes_on([user("Start."), shown, *noise(20), user("And now?")])
    assert "base64" not in page
    assert any(line.startswith("Attached: image") for line in section(page, FILES))
