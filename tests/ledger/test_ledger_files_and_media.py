"""Files by absolute path with their status (P13); images by path, or a placeholder (P12)."""

from __future__ import annotations

import json
from typing import Any

from ledger_helpers import Messages, filler, notes_on, section, tool_use, user

from holdfast.ledger import HistoryExtractor, parse_page
from holdfast.ledger.headings import FILES
from holdfast.ledger.tool_calls import classify_call
from holdfast.messages import ToolCall, decode_all

PATCH = "*** Begin Patch\n*** Update File: /srv/app/routes.py\n@@\n-old()\n+new()\n*** End Patch"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def worked() -> Messages:
    return [
        user("Tidy up the service."),
        *tool_use("1", "Read", "1\timport os", file_path="/srv/app/settings.py"),
        *tool_use("2", "Edit", "ok", file_path="/srv/app/settings.py", old_string="import os", new_string="import sys"),
        *tool_use("3", "str_replace", "ok", path="/srv/app/settings.py", old_str="sys", new_str="os"),
        *tool_use("4", "write_file", "ok", path="/srv/app/new/tides.py", content="TIDES = 12\n"),
        *tool_use("5", "apply_patch", "Done", input=PATCH),
        *tool_use("6", "shell", "MIT", command="cat /srv/LICENSE.txt"),
        *tool_use("7", "view_image", "an image of 3 kB", path="/srv/shots/harbour.png"),
        *filler(20),
        user("And now?"),
    ]


def test_files_section_lists_each_file_by_folder_with_status() -> None:
    files = section(notes_on(worked(), 2_000), FILES)
    assert "/srv/app/: routes.py (edited 1×), settings.py (edited 2×)" in files
    assert "/srv/app/new/: tides.py (written)" in files
    assert "/srv/: LICENSE.txt" in files


def test_image_read_by_path_is_listed_as_file() -> None:
    assert "/srv/shots/: harbour.png" in section(notes_on(worked(), 2_000), FILES)


def attached(name: str | None = None) -> Messages:
    url = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    file = {"type": "file", "file": {"filename": name, "file_data": f"data:application/pdf;base64,{PNG}"}}
    return [
        user("Look at what I send you."),
        {"role": "user", "content": [{"type": "text", "text": "This is the berth."}, file if name else url]},
        *filler(20),
        user("What did you see?"),
    ]


def test_attached_media_is_listed_with_its_message_number() -> None:
    assert "Attached: image: image/png [2]" in section(notes_on(attached()), FILES)
    assert "Attached: file: tides.pdf [2]" in section(notes_on(attached("tides.pdf")), FILES)


def test_image_in_tool_result_is_listed() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    messages = [
        {"role": "user", "content": "Show me the harbour."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "camera", "input": {"zoom": 2}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [picture]}]},
        *[{"role": role, "content": "words " * 300} for _ in range(12) for role in ("assistant", "user")],
    ]
    assert "Attached: image: image/png [3]" in section(notes_on(messages), FILES)


def test_attachments_survive_parsing_and_carry() -> None:
    page = notes_on(attached())
    assert [(line.text, line.place) for line in parse_page(page).attached] == [("image: image/png", 2)]
    history = HistoryExtractor()
    decoded = decode_all(attached(), "openai-chat")[0]
    history.read(decoded, range(1, len(decoded) + 1))
    again = HistoryExtractor(history.ledger())
    assert [line.place for line in again.attached] == [2]


def action(tool: str, **arguments: Any) -> tuple[str, str]:
    found = classify_call(ToolCall("1", tool, json.dumps(arguments)))
    return found.kind, found.subject


def test_classify_call_uses_arguments_not_tool_name() -> None:
    assert action("x", file_path="/a/b.py") == ("read", "/a/b.py")
    assert action("x", path="/a/b.py", new_str="1", old_str="") == ("edit", "/a/b.py")
    assert action("x", filePath="/a/b.py", content="text") == ("write", "/a/b.py")
    assert action("x", command="make test") == ("run", "make test")
    assert action("x", command=["bash", "-lc", "make test"]) == ("run", "make test")
    assert action("x", cmd="sed -n '1,5p' src/a.py") == ("read", "src/a.py")
    assert action("x", pattern="def go", path="src") == ("search", "def go in src")
    assert action("x", order="A-17", amount=4500) == ("other", "order=A-17, amount=4500")
    assert action("x", path="two\nlines", size=1)[0] == "other"
    assert action("x") == ("other", "")


def test_command_printing_one_file_is_a_read() -> None:
    for command in (
        "cat src/a.py",
        "nl -ba src/a.py | sed -n '1,40p'",
        "git show origin/main:src/a.py | head -50",
        'grep -n -A 30 "class A" src/a.py',
        "rg -C3 'def go' src/a.py",
    ):
        assert action("x", command=command) == ("read", "src/a.py")
    for command in (
        "git show HEAD",
        "git log -- src/a.py",
        "cat src/a.py src/b.py",
        "python a.py",
    ):
        assert action("x", command=command) == ("run", command)
    assert action("x", command="grep -n go src/a.py") == ("search", "grep -n go src/a.py")


def test_image_data_never_appears_in_notes() -> None:
    unreadable = {"type": "image_url", "image_url": {"url": "data:;base64" + "x" * 400}}
    shown = {"role": "user", "content": [{"type": "text", "text": "Look at this chart."}, unreadable]}
    page = notes_on([user("Start."), shown, *filler(20), user("And now?")])
    assert "base64" not in page
    assert any(line.startswith("Attached: image") for line in section(page, FILES))


def test_file_named_by_a_relative_and_an_absolute_path_is_listed_once() -> None:
    """A patch names it relative to a folder that the call does not give; a command names the folder."""
    read = tool_use("1", "exec_command", "old()", cmd="cat app/routes.py", workdir="/srv")
    patch = tool_use("2", "apply_patch", "Done", input=PATCH.replace("/srv/", ""))
    for steps in ([*read, *patch], [*patch, *read]):
        page = notes_on([user("Tidy up."), *steps, *filler(20), user("And now?")])
        assert section(page, FILES) == ["/srv/app/: routes.py (edited 1×)"]
