"""What an answer to a call says beside its output: that the user refused it, or answers, or that it failed."""

from __future__ import annotations

import re

from ..messages import ToolResult
from .changes import Change
from .folders import base_name

_REFUSED = re.compile(r"The user doesn't want to proceed with this tool use\.")
_SAYING = re.compile(r"the user said:\n(.*)", re.DOTALL)
_ASKS_USER = re.compile(
    r"(?:(?<![A-Za-z])ask|Ask)_?(?i:the_?)?(?i:user|human|follow_?up)(?![a-z])|(?i:request_user_input)"
)
"""What tools are called by which an agent asks its user something; not those that tell of tasks and users."""
_EXIT = re.compile(r"^(?:(?:Process|Command) exited with code|Exit code:?) ([0-9]{1,4})$", re.MULTILINE)
_HEAD, _LOOKED_AT = 400, 40_000
_ERROR = re.compile(r"\W*(?:tool_use_)?(?:error|failed|failure|could not|cannot|unable)\b", re.IGNORECASE)
_APPLIED = "Success. Updated the following files"
"""What is said of a patch, whatever is run after it in the same command."""
_NOT_WRITTEN = re.compile(
    r"['\"]?: (?:Permission denied|No such file or directory|Read-only file system|(?:Is|Not) a directory"
    r"|No space left on device|Operation not permitted)"
)


def is_refused(result: ToolResult) -> bool:
    """Did the user forbid the call? Then nothing was done."""
    return result.is_error and _REFUSED.match(result.text) is not None


def said_by_user(result: ToolResult, tool: str) -> str:
    """What the user said instead of letting a call through, or when a tool asked."""
    if is_refused(result):
        said = _SAYING.search(result.text)
        return said[1].strip() if said else ""
    return result.text.strip() if _ASKS_USER.search(tool) and not result.is_error else ""


def has_failed(result: ToolResult) -> bool:
    """By its mark, or by the exit code that stands before the output."""
    head = result.text[:_HEAD]
    exited = _EXIT.search(head) if "code" in head else None  # seldom: a quick look saves the search
    return result.is_error or (exited is not None and int(exited[1]) != 0)


def did_nothing(result: ToolResult) -> bool:
    """Did a call do nothing but fail? Not every format has a mark for it, but then it says so at once, in few words."""
    return has_failed(result) or (len(result.text) <= _HEAD and _ERROR.match(result.text) is not None)


def is_made(change: Change, result: ToolResult, *, by_command: bool) -> bool:
    """Was a file changed, by what was answered? Where a command failed, it may have been another part of it."""
    text = result.text
    if by_command:
        name, refusals = base_name(change.path), _NOT_WRITTEN.finditer(text, 0, _LOOKED_AT)
        return not any(text.endswith(name, 0, refused.start()) for refused in refusals)
    return _APPLIED in text or not did_nothing(result)
