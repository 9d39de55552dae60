"""What an answer to a call says beside its output: that the user refused it, or answers, or that it failed."""

from __future__ import annotations

import re

from ..messages import ToolResult

_REFUSED = re.compile(r"The user doesn't want to proceed with this tool use\.")
_SAYING = re.compile(r"the user said:\n(.*)", re.DOTALL)
_ASKS_USER = re.compile(r"ask_?(?:the_?)?(?:user|human|follow_?up)|request_user_input", re.IGNORECASE)
"""What tools are called by which an agent asks its user something."""
_EXIT = re.compile(r"^(?:(?:Process|Command) exited with code|Exit code:?) ([0-9]{1,4})$", re.MULTILINE)
_HEAD = 400


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
    exited = _EXIT.search(result.text, 0, _HEAD)
    return result.is_error or (exited is not None and int(exited[1]) != 0)
