"""Approval of a tool call: a preview of the change, and the keys y, n and a."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ...agent.tools import Permission, PermissionRequest
from ...io.text import escape_controls, sanitize_line
from .theme import BOLD, DIM, ERROR, PLAIN, SUCCESS, WARNING

_DIFF_CONTEXT = 2
"""Unchanged lines shown around a change."""
_PREVIEW_LINES = 12
"""Lines shown of a new file."""
_PREVIEW_CHARS = 20_000


def approval_preview(question: PermissionRequest) -> Text:
    """Renders what the tool would do, with control characters visible and omissions marked."""
    given = question.call.arguments_dict
    match question.tool, given:
        case "edit_file", {"path": str(path), "old": str(old), "new": str(new)}:
            lines = [Text(sanitize_line(path), BOLD), *_diff_preview(old, new)]
        case "write_file", {"path": str(path), "content": str(content)}:
            lines = list(_file_preview(path, content))
        case "run_command", {"command": str(command)}:
            lines = [Text(f"$ {escape_controls(command)[:_PREVIEW_CHARS]}", BOLD)]
        case _:
            lines = [Text(escape_controls(f"{name}: {value}")[:_PREVIEW_CHARS], PLAIN) for name, value in given.items()]
    return Text("\n").join(lines)


def _diff_preview(old: str, new: str) -> Iterator[Text]:
    before, after = (escape_controls(text[:_PREVIEW_CHARS]).split("\n") for text in (old, new))
    groups = difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(_DIFF_CONTEXT)
    for number, group in enumerate(groups):
        if number:
            yield Text("  ...", DIM)
        for kind, *span in group:
            first, last, new_first, new_last = span
            if kind == "equal":
                yield from (Text(f"  {line}", DIM) for line in before[first:last])
            else:
                yield from (Text(f"- {line}", ERROR) for line in before[first:last])
                yield from (Text(f"+ {line}", SUCCESS) for line in after[new_first:new_last])


def _file_preview(path: str, content: str) -> Iterator[Text]:
    lines = escape_controls(content).removesuffix("\n").split("\n")
    size = f"{len(lines):,} line{'s' if len(lines) != 1 else ''}, {len(content):,} characters"
    yield Text.assemble((sanitize_line(path), BOLD), (f"  {size}", DIM))
    yield from (Text(f"+ {line[:_PREVIEW_CHARS]}", SUCCESS) for line in lines[:_PREVIEW_LINES])
    if (left := len(lines) - _PREVIEW_LINES) > 0:
        yield Text(f"  and {left:,} more lines", DIM)


_ANSWER_KEYS: dict[str, Permission] = {"y": "yes", "n": "no", "a": "always"}


class ApprovalPrompt(Widget, can_focus=True):
    """Widget that replaces the input while a question is open."""

    DEFAULT_CSS = """
    ApprovalPrompt {
        height: auto; display: none; border-top: solid ansi_bright_black;
        background: ansi_default; color: ansi_default;
    }
    ApprovalPrompt > VerticalScroll { height: auto; max-height: 40vh; scrollbar-size: 0 0; padding: 0 2; }
    ApprovalPrompt Static { background: ansi_default; color: ansi_default; }
    """

    class Answered(Message):
        def __init__(self, permission: Permission) -> None:
            super().__init__()
            self.permission = permission

    def __init__(self) -> None:
        super().__init__()
        self.question: PermissionRequest | None = None
        self._head, self._body, self._keys = Static(), Static(), Static()
        self._scroll = VerticalScroll(self._body, can_focus=False)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._scroll
        yield self._keys

    def ask(self, question: PermissionRequest | None) -> None:
        """Shows a question; None hides the widget."""
        self.question, self.display = question, question is not None
        if question is None:
            return
        tool = sanitize_line(question.tool)
        self._head.update(Text.assemble(("? ", WARNING), "May the agent use ", (tool, BOLD), "?"))
        self._body.update(approval_preview(question))
        keys = Text("  ")
        for key, what in (("y", "yes"), ("n", "no"), ("a", f"always {tool}"), ("Esc", "stop")):
            keys.append(key, BOLD).append(f" {what}   ", DIM)
        self._keys.update(keys)
        self._scroll.scroll_home(animate=False)

    def page(self, direction: int) -> None:
        (self._scroll.scroll_page_up if direction < 0 else self._scroll.scroll_page_down)(animate=False)

    def on_key(self, event: events.Key) -> None:
        answer = _ANSWER_KEYS.get((event.character or "").lower())
        match event.key:
            case _ if answer is not None:
                self.post_message(self.Answered(answer))
            case "up":
                self._scroll.scroll_up(animate=False)
            case "down":
                self._scroll.scroll_down(animate=False)
            case _:
                return
        event.stop()
