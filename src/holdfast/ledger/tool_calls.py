"""Classifies tool calls by the shape of their arguments, and their results.

No tool is known by its name: agents name their tools freely, but a path with old and new text is an edit everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..messages import Message, ToolCall, ToolResult
from .files import base_name, is_path
from .lines import is_wrapper_line, split_reminders
from .shell_files import FileChange, is_search_command, parse_diff, parse_file_writes, parse_patch, printed_path
from .text import BRIEF_CHARS, clip, clip_to_line, take_fitting

ToolActionKind = Literal["read", "edit", "write", "run", "search", "plan", "step", "progress", "other"]
_PATH_KEYS = ("file_path", "path", "filePath", "notebook_path", "file", "filename", "target_file")
_COMMAND_KEYS = ("command", "cmd", "script", "shell_command")
_FOLDER_KEYS = ("workdir", "cwd", "working_directory")
_SEARCH_KEYS = ("pattern", "query", "regex", "q", "search_query", "queries")
_OLD_TEXT_KEYS = ("old_string", "old_str", "oldText", "old_text", "oldString", "old")
_NEW_TEXT_KEYS = ("new_string", "new_str", "newText", "new_text", "newString", "new", "insert_text")
_CONTENT_KEYS = ("content", "contents", "file_text", "new_source")
_EDITOR_COMMANDS = ("view", "create", "insert", "str_replace")
_OTHER_EDITOR_COMMANDS = ("rename", "undo_edit")
"""Commands of an editor tool that takes a path (not shell commands): those that show or change text, and others."""
_DELETE_TOOL = re.compile(r"(?:delete|remove)_?file", re.IGNORECASE)
"""Tool names that delete a file: with only a path as argument, the shape of the call does not tell."""
_SHELLS = ("bash", "sh", "zsh", "dash")
_PLAN_KEYS = ("todos", "plan")
_LIST_KEYS = ("tasks", "items", "steps")
"""Count as a plan only if every entry has a step's status: an order has items, too."""
_STEP_TEXT_KEYS = ("content", "step", "title", "subject", "task", "text")
_STEP_ID_KEYS = ("taskId", "task_id", "todo_id", "step_id")
_MAX_ARGUMENT_CHARS = 200
_MAX_WORDS_CHARS, _MAX_VALUE_CHARS, _MAX_VALUES_CHARS = 100, 80, 120
"""Characters of a reply's text, of one value of its calls, and of all values of a call, among the last steps."""
_FORM_SCALE = 2
"""The newest step of a series has so many times the room of another."""
_MIN_SHARED_CHARS = 20
"""A shorter beginning that two like calls share is not left out."""
CUT_TEXT = "[…] "
"""Begins a text of which the last steps leave out what a newer step shows."""
CUT_PATH = "[…]/"
"""Begins a path of which the last steps show only the end."""
_DROPPED = ("deleted", "cancelled", "canceled", "skipped")
_FINISHED = ("completed", "complete", "done", "finished", "closed", *_DROPPED)
_OPEN = ("pending", "in_progress", "in-progress", "todo", "open", "not_started", "blocked")
_MAX_PATH_CHARS, _MAX_COMMAND_CHARS, _MAX_PATCH_CHARS = 1_000, 320, 400_000


class ToolAction(msgspec.Struct, frozen=True):
    """A classified tool call."""

    kind: ToolActionKind
    tool: str
    subject: str = ""
    """The path, the command, the search pattern, or the short arguments."""
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    """The command, if it is one short line."""
    folder: str = ""
    """The folder that the call names for its command."""
    plan: tuple[tuple[str, str], ...] = ()
    """Steps of a plan with their status; for `progress`, the step's number and its new status."""


def classify_call(call: ToolCall) -> ToolAction:
    """Determines what a tool call does: read, edit, write, run, search, plan, or something else."""
    given = call.arguments_dict
    path, command = _first_text(given, _PATH_KEYS), _first_text(given, _COMMAND_KEYS)
    if not _is_line(path, _MAX_PATH_CHARS):
        path = ""
    if not path and not command and (planned := _classify_plan(call.name, given)):
        return planned
    if path and (command == "delete" or _DELETE_TOOL.search(call.name)):
        return ToolAction("other", call.name, _short_arguments(given), (FileChange(path, kind="deleted"),))
    if path and command in _OTHER_EDITOR_COMMANDS:
        return ToolAction("other", call.name, _short_arguments(given))
    if path and command in _EDITOR_COMMANDS:
        command = ""
    if path and (pairs := list(_replacements(given))):
        change = FileChange(path, "\n".join(old for old, _ in pairs), "\n".join(new for _, new in pairs))
        return ToolAction("edit", call.name, path, (change,))
    if path and (diff := _first_text(given, ("diff",))):
        return ToolAction("edit", call.name, path, (parse_diff(path, diff[:_MAX_PATCH_CHARS]),))
    texts = (text for text in (command, *given.values()) if isinstance(text, str))
    patch = next((text for text in texts if "*** Begin Patch" in text), None)
    if patch is not None:
        parsed = parse_patch(patch[:_MAX_PATCH_CHARS])
        changes = tuple(change for change in parsed if _is_line(change.path, _MAX_PATH_CHARS))
        return ToolAction("edit", call.name, changes[0].path if changes else "", changes)
    if command:
        folder = _first_text(given, _FOLDER_KEYS)
        return _classify_command(call.name, command, folder if folder.startswith(("/", "~")) else "")
    if path and any(isinstance(given.get(key), str) for key in _CONTENT_KEYS):
        return ToolAction(
            "write", call.name, path, (FileChange(path, new=_first_text(given, _CONTENT_KEYS), kind="whole"),)
        )
    if search := _first_text(given, _SEARCH_KEYS):
        return ToolAction("search", call.name, f"{search} in {path}" if path else search)
    if path and (text := _first_text(given, ("text",))):  # one line is searched for, several are written to the file
        if _is_line(text, _MAX_COMMAND_CHARS):
            return ToolAction("search", call.name, f"{text} in {path}")
        return ToolAction("write", call.name, path, (FileChange(path, new=text, kind="whole"),))
    if path:
        return ToolAction("read", call.name, path)
    return ToolAction("other", call.name, _short_arguments(given))


def _classify_command(tool: str, command: str, folder: str) -> ToolAction:
    brief = command if _is_line(command.strip(), _MAX_COMMAND_CHARS) else ""
    if shown := printed_path(command, folder):
        return ToolAction("read", tool, shown, command=brief, folder=folder)
    subject, changes = parse_file_writes(command[:_MAX_PATCH_CHARS], folder)
    return ToolAction(
        "search" if is_search_command(command) else "run", tool, subject, changes, command=brief, folder=folder
    )


def _is_line(text: str, longest: int) -> bool:
    return len(text) <= longest and text.splitlines() in ([], [text])


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _first_text(given: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        if not (value := given.get(key)):
            continue
        if isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return str(value[-1]) if base_name(value[0]) in _SHELLS else " ".join(value)
    return ""


def _classify_plan(tool: str, given: Mapping[str, Any]) -> ToolAction | None:
    """Recognizes a whole plan, an added step, or a changed status."""
    if (steps := tuple(_plan_steps(given))) or any(given.get(key) == [] for key in _PLAN_KEYS):
        return ToolAction("plan", tool, plan=steps)
    status, step = given.get("status"), _first_text(given, _STEP_ID_KEYS)
    if isinstance(status, str) and step:
        return ToolAction("progress", tool, _short_arguments(given), plan=((step, status),))
    subject = given.get("subject")
    if isinstance(subject, str) and "activeForm" in given:
        return ToolAction("step", tool, plan=((_one_line(subject), "pending"),))
    return None


def _plan_steps(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key in (*_PLAN_KEYS, *_LIST_KEYS):
        steps = given.get(key)
        entries = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
        if key in _PLAN_KEYS or all(str(step.get("status")).lower() in (*_OPEN, *_FINISHED) for step in entries):
            for step in entries:
                if text := _first_text(step, _STEP_TEXT_KEYS):
                    yield _one_line(text), _one_line(str(step.get("status") or "pending"))


def is_finished(status: str) -> bool:
    """Whether this status means that nothing is left to do."""
    return status.lower() in _FINISHED


def is_dropped(status: str) -> bool:
    """Whether this status means that a step was given up."""
    return status.lower() in _DROPPED


def _replacements(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    edits = given.get("edits")
    for edit in (given, *(edits if isinstance(edits, list) else ())):
        if isinstance(edit, dict) and (
            pair := (_first_text(edit, _OLD_TEXT_KEYS), _first_text(edit, _NEW_TEXT_KEYS))
        ) != ("", ""):
            yield pair


def _short_arguments(given: Mapping[str, Any]) -> str:
    """Joins the short arguments, such as ids, amounts and dates, on one line."""
    return ", ".join(
        f"{key}={value}"
        for key, value in given.items()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and _is_short(value)
    )


def _is_short(value: str | int | float) -> bool:
    """Tests the length without converting a huge integer to decimal digits."""
    return (
        value.bit_length() <= 3 * _MAX_ARGUMENT_CHARS
        if isinstance(value, int)
        else len(str(value)) <= _MAX_ARGUMENT_CHARS
    )


def describe_call(action: ToolAction, output: str) -> str:
    """Renders a call and the first line of its output on one line."""
    lines = filter(str.strip, output[:_MAX_PATH_CHARS].splitlines())
    first = next((line for line in lines if not is_wrapper_line(line) and line != "Output:"), "")
    called = f"{action.tool}: {action.subject}" if action.subject else action.tool
    return f"{clip_to_line(called, BRIEF_CHARS)} → {clip_to_line(first)}"


def are_alike(first: Sequence[ToolCall], second: Sequence[ToolCall]) -> bool:
    """Whether two replies make the same calls but for their values."""
    return [(call.name, *call.arguments_dict) for call in first] == [
        (call.name, *call.arguments_dict) for call in second
    ]


def describe_step(
    texts: Iterable[str], calls: Sequence[ToolCall], newer: Sequence[ToolCall] = (), *, form: bool = False
) -> str:
    """Renders what a reply said and called, shortened, on short lines.

    Of like calls in a row, the newest are the `form`, which has more room; the others show what differs from `newer`.
    """
    words = [brief for text in texts if (brief := clip_to_line(text, _MAX_WORDS_CHARS))]
    if not are_alike(calls, newer):
        newer = calls[:0]
    after = [call.arguments_dict for call in newer] or [{}] * len(calls)
    called = (line for call, later in zip(calls, after, strict=True) for line in _brief_call(call, later, form))
    return "\n".join([*words, *called])


def _brief_call(call: ToolCall, newer: Mapping[str, Any], form: bool) -> list[str]:
    """Returns the tool's name and the beginnings of the call's values, a line each."""
    scale = _FORM_SCALE if form else 1
    values = (
        _brief_value(_without_shared(value, newer.get(key)), scale * _MAX_VALUE_CHARS)
        for key, value in call.arguments_dict.items()
    )
    return [call.name, *take_fitting(filter(None, values), scale * _MAX_VALUES_CHARS)]


def _without_shared(value: object, newer: object) -> object:
    """Returns a long text without the words at its beginning that the same value of a newer call has, too."""
    if not isinstance(value, str) or not isinstance(newer, str) or len(value) <= _MAX_VALUE_CHARS or is_path(value):
        return value
    shared = next((at for at, (one, other) in enumerate(zip(value, newer, strict=False)) if one != other), len(newer))
    start = max(value.rfind(blank, 0, shared) for blank in " \n")
    return CUT_TEXT + value[start + 1 :] if start >= _MIN_SHARED_CHARS and shared < len(value) else value


def _brief_value(value: object, longest: int) -> str:
    """Returns the beginning of a text, the end of a path, or a number; nothing for other values."""
    if isinstance(value, int | float):
        return str(value) if not isinstance(value, bool) and _is_short(value) else ""
    if not isinstance(value, str):
        return ""
    if len(value) > _MAX_VALUE_CHARS and is_path(value):
        _, folder, end = value[-_MAX_VALUE_CHARS:].partition("/")
        return f"{CUT_PATH}{end}" if folder else base_name(value)[:_MAX_PATH_CHARS]
    return clip_to_line(value, longest)


_REJECTION = re.compile(r"The user doesn't want to proceed with this tool use\.")
_REJECTION_REPLY = re.compile(r"the user said:\n(.*)", re.DOTALL)
_ASKS_USER = re.compile(
    r"(?:(?<![A-Za-z])ask|Ask)_?(?i:the_?)?(?i:user|human|follow_?up)(?![a-z])|(?i:request_user_input)"
)
"""Names of tools that ask the user a question; not of tools that list tasks or users."""
_EXIT_CODE = re.compile(r"^(?:(?:Process|Command) exited with code|Exit code:?) ([0-9]{1,4})$", re.MULTILINE)
_STATUS_CHARS, _RESULT_SCAN_CHARS = 400, 40_000
_OUTCOME_CHARS = 60
"""Characters shown at the end of a result of one line."""
_FAILURE_START = re.compile(r"\W*(?:tool_use_)?(?:error|failed|failure|could not|cannot|unable)\b", re.IGNORECASE)
_PATCH_APPLIED = "Success. Updated the following files"
"""Output of a successful patch, whatever else ran in the same command."""
_WRITE_FAILED = re.compile(
    r"['\"]?: (?:Permission denied|No such file or directory|Read-only file system|(?:Is|Not) a directory"
    r"|No space left on device|Operation not permitted)"
)


def is_rejected_by_user(result: ToolResult) -> bool:
    """Whether the user rejected the call, so that it was not run."""
    return result.is_error and _REJECTION.match(result.text) is not None


def user_reply_in(result: ToolResult, tool: str) -> str:
    """Returns the user's words when rejecting a call or answering a tool's question; else an empty string."""
    if is_rejected_by_user(result):
        reply = _REJECTION_REPLY.search(result.text)
        return reply[1].strip() if reply else ""
    return result.text.strip() if _ASKS_USER.search(tool) and not result.is_error else ""


def find_user_replies(messages: Iterable[Message]) -> Iterator[tuple[int, int]]:
    """Yields where results are that hold the user's own words or refusal: index of the message and of the part."""
    tools: dict[str, str] = {}
    for index, message in enumerate(messages):
        for place, part in enumerate(message.parts):
            if isinstance(part, ToolCall):
                tools[part.id] = part.name
            elif isinstance(part, ToolResult) and (
                is_rejected_by_user(part) or user_reply_in(part, tools.get(part.call_id, ""))
            ):
                yield index, place


def has_failed(result: ToolResult) -> bool:
    """Whether a call failed, by its error flag or by the exit code before its output."""
    return result.is_error or bool(failed_exit_line(result))


def failed_exit_line(result: ToolResult) -> str:
    """Returns the line before the output that gives an exit code other than 0, else an empty string."""
    head = result.text[:_STATUS_CHARS]
    exited = _EXIT_CODE.search(head) if "code" in head else None  # rare: a substring test saves the search
    return exited[0] if exited and int(exited[1]) else ""


def had_no_effect(result: ToolResult) -> bool:
    """Whether a call only failed: by its error flag or exit code, or by a short output that starts with an error."""
    return has_failed(result) or (len(result.text) <= _STATUS_CHARS and _FAILURE_START.match(result.text) is not None)


def outcome_lines(result: ToolResult) -> list[str]:
    """Returns the line that says how a call ended: the beginning of a failure, else the end; nothing if it is long."""
    beginning = result.text[:_STATUS_CHARS].lstrip()
    if _FAILURE_START.match(beginning):
        return [clip(beginning.partition("\n")[0], BRIEF_CHARS)]
    end = split_reminders(result.text[-_RESULT_SCAN_CHARS:])[0].rstrip()
    _, several, last = end[-2 * BRIEF_CHARS :].rpartition("\n")
    if len(last) > BRIEF_CHARS:
        return []
    return [last] if several else list(filter(None, [last[-_OUTCOME_CHARS:].partition(" ")[2]]))


def is_applied(change: FileChange, result: ToolResult, *, by_command: bool) -> bool:
    """Whether the result confirms a file change; a failed command may still have written some of its files."""
    text = result.text
    if by_command:
        name, failures = base_name(change.path), _WRITE_FAILED.finditer(text, 0, _RESULT_SCAN_CHARS)
        return not any(text.endswith(name, 0, failure.start()) for failure in failures)
    return _PATCH_APPLIED in text or not had_no_effect(result)
