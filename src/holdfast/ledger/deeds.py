"""What a tool call does, told by the shape of its arguments: read, change, run, search, plan, or something else.

No tool is known by its name: agents name their tools as they like, but a path with old and new text is an
edit everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

import msgspec

from ..messages import ToolCall
from .changes import Change, changes_in, replaced
from .folders import base_name
from .lines import is_wrapping
from .shell_files import is_search, printed_file, written
from .shortening import BRIEF, clipped

DeedKind = Literal["read", "edit", "write", "run", "search", "plan", "step", "progress", "other"]

_PATHS = ("file_path", "path", "filePath", "notebook_path", "file", "filename", "target_file")
_COMMANDS = ("command", "cmd", "script", "shell_command")
_SEARCHES = ("pattern", "query", "regex", "q", "search_query", "queries")
_OLD = ("old_string", "old_str", "oldText", "old_text", "oldString", "old")
_NEW = ("new_string", "new_str", "newText", "new_text", "newString", "new", "insert_text")
_CONTENT = ("content", "contents", "file_text", "new_source")
_EDITOR = ("view", "create", "insert", "str_replace")
_EDITOR_MOVES = ("rename", "undo_edit")
"""Commands of an editor that is one tool with a path, not of a shell: some show or change text, some do not."""
_DELETES = re.compile(r"(?:delete|remove)_?file", re.IGNORECASE)
"""Only by its name is a call with nothing but a path known that takes the file away."""
_SHELLS = ("bash", "sh", "zsh", "dash")
_PLANS = ("todos", "plan")
_LISTS = ("tasks", "items", "steps")
"""A plan only if each entry has the state of a step: an order has items, too."""
_STEP = ("content", "step", "title", "subject", "task", "text")
_STEP_ID = ("taskId", "task_id", "todo_id", "step_id")
_BRIEF = 200
_FINISHED = ("completed", "complete", "done", "finished", "closed", "deleted", "cancelled", "canceled", "skipped")
_OPEN = ("pending", "in_progress", "in-progress", "todo", "open", "not_started", "blocked")
_LONGEST_PATH, _LONGEST_COMMAND, _LONGEST_PATCH = 1_000, 320, 400_000


class Deed(msgspec.Struct, frozen=True):
    """One tool call, as a person would tell it."""

    kind: DeedKind
    tool: str
    subject: str = ""
    """The path, the command, the pattern, or short arguments."""
    changes: tuple[Change, ...] = ()
    command: str = ""
    """The command, where it is one short line."""
    plan: tuple[tuple[str, str], ...] = ()
    """Steps of a plan, each with its state; where one moved on, its number."""


def deed_of(call: ToolCall) -> Deed:
    given = call.object
    path, command = _first(given, _PATHS), _first(given, _COMMANDS)
    if not _is_line(path, _LONGEST_PATH):
        path = ""
    if not path and not command and (planned := _planned(call.name, given)):
        return planned
    if path and (command == "delete" or _DELETES.search(call.name)):
        return Deed("other", call.name, _brief(given), (Change(path, kind="deleted"),))
    if path and command in _EDITOR_MOVES:
        return Deed("other", call.name, _brief(given))
    if path and command in _EDITOR:
        command = ""
    if path and (pairs := list(_replacements(given))):
        change = Change(path, "\n".join(old for old, _ in pairs), "\n".join(new for _, new in pairs))
        return Deed("edit", call.name, path, (change,))
    if path and (diff := _first(given, ("diff",))):
        return Deed("edit", call.name, path, (replaced(path, diff[:_LONGEST_PATCH]),))
    texts = (text for text in (command, *given.values()) if isinstance(text, str))
    patch = next((text for text in texts if "*** Begin Patch" in text), None)
    if patch is not None:
        return _patched(call.name, patch[:_LONGEST_PATCH])
    if command:
        return _ran(call.name, command)
    if path and any(isinstance(given.get(key), str) for key in _CONTENT):
        return Deed("write", call.name, path, (Change(path, new=_first(given, _CONTENT), kind="whole"),))
    if search := _first(given, _SEARCHES):
        return Deed("search", call.name, f"{search} in {path}" if path else search)
    if path and (text := _first(given, ("text",))):
        return _with_text(call.name, path, text)
    if path:
        return Deed("read", call.name, path)
    return Deed("other", call.name, _brief(given))


def _ran(tool: str, command: str) -> Deed:
    brief = command if _is_line(command.strip(), _LONGEST_COMMAND) else ""
    if shown := printed_file(command):
        return Deed("read", tool, shown, command=brief)
    said, changes = written(command[:_LONGEST_PATCH])
    return Deed("search" if is_search(command) else "run", tool, said, changes, command=brief)


def _with_text(tool: str, path: str, text: str) -> Deed:
    """One line is looked for; several are put into the file."""
    if _is_line(text, _LONGEST_COMMAND):
        return Deed("search", tool, f"{text} in {path}")
    return Deed("write", tool, path, (Change(path, new=text, kind="whole"),))


def _is_line(text: str, longest: int) -> bool:
    return len(text) <= longest and text.splitlines() in ([], [text])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _first(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = given.get(key)
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
            return str(value[-1]) if base_name(value[0]) in _SHELLS else " ".join(value)
    return ""


def _planned(tool: str, given: Mapping[str, Any]) -> Deed | None:
    """A whole plan, one more step of it, or a step's new state."""
    if (steps := tuple(_steps(given))) or any(given.get(key) == [] for key in _PLANS):
        return Deed("plan", tool, plan=steps)
    status, step = given.get("status"), _first(given, _STEP_ID)
    if isinstance(status, str) and step:
        return Deed("progress", tool, _brief(given), plan=((step, status),))
    subject = given.get("subject")
    if isinstance(subject, str) and "activeForm" in given:
        return Deed("step", tool, plan=((_one_line(subject), "pending"),))
    return None


def _steps(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in (*_PLANS, *_LISTS):
        steps = given.get(key)
        entries = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
        if key in _PLANS or all(str(step.get("status")).lower() in (*_OPEN, *_FINISHED) for step in entries):
            for step in entries:
                if said := _first(step, _STEP):
                    yield _one_line(said), _one_line(str(step.get("status") or "pending"))


def is_finished(status: str) -> bool:
    """Is this the state of a step that nobody has to do any more?"""
    return status.lower() in _FINISHED


def _replacements(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = given.get("edits")
    for edit in (given, *(edits if isinstance(edits, list) else ())):
        if isinstance(edit, dict) and (pair := (_first(edit, _OLD), _first(edit, _NEW))) != ("", ""):
            yield pair


def _patched(tool: str, patch: str) -> Deed:
    changes = tuple(change for change in changes_in(patch) if _is_line(change.path, _LONGEST_PATH))
    return Deed("edit", tool, changes[0].path if changes else "", changes)


def _brief(given: Mapping[str, Any]) -> str:
    """Short arguments on one line: ids, amounts and dates are what a service's calls are made of."""
    return ", ".join(
        f"{key}={value}"
        for key, value in given.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and _is_short(value)
    )


def _is_short(value: str | int | float) -> bool:
    """Asked without writing out a number of a million digits."""
    return value.bit_length() <= 3 * _BRIEF if isinstance(value, int) else len(str(value)) <= _BRIEF


def called(deed: Deed, answer: str) -> str:
    """A call and how its answer begins, on one line."""
    lines = filter(str.strip, answer[:_LONGEST_PATH].splitlines())
    begins = next((line for line in lines if not is_wrapping(line) and line != "Output:"), "")
    return f"{clipped(_one_line(f'{deed.tool}: {deed.subject}'), BRIEF)} → {clipped(_one_line(begins), BRIEF // 2)}"
