"""Asking before something is changed: what it would do, and y, n or a."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ..agent.tools import Permission, Question
from .clean import one_line
from .look import BOLD, DIM, WARN
from .preview import preview

_ANSWERS: dict[str, Permission] = {"y": "yes", "n": "no", "a": "always"}


class Approval(Widget, can_focus=True):
    """Stands in the place of the input while it asks."""

    DEFAULT_CSS = """
    Approval {
        height: auto; display: none; border-top: solid ansi_bright_black;
        background: ansi_default; color: ansi_default;
    }
    Approval > VerticalScroll { height: auto; max-height: 40vh; scrollbar-size: 0 0; padding: 0 2; }
    Approval Static { background: ansi_default; color: ansi_default; }
    """

    class Answered(Message):
        def __init__(self, permission: Permission) -> None:
            super().__init__()
            self.permission = permission

    def __init__(self) -> None:
        super().__init__()
        self.question: Question | None = None
        self._head, self._body, self._keys = Static(), Static(), Static()
        self._scroll = VerticalScroll(self._body, can_focus=False)

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._scroll
        yield self._keys

    def ask(self, question: Question | None) -> None:
        """Show a question; none takes the last one away."""
        self.question, self.display = question, question is not None
        if question is None:
            return
        tool = one_line(question.tool)
        self._head.update(Text.assemble(("? ", WARN), "May the agent use ", (tool, BOLD), "?"))
        self._body.update(preview(question))
        keys = Text("  ")
        for key, what in (("y", "yes"), ("n", "no"), ("a", f"always {tool}"), ("Esc", "stop")):
            keys.append(key, BOLD).append(f" {what}   ", DIM)
        self._keys.update(keys)
        self._scroll.scroll_home(animate=False)

    def page(self, direction: int) -> None:
        (self._scroll.scroll_page_up if direction < 0 else self._scroll.scroll_page_down)(animate=False)

    def on_key(self, event: events.Key) -> None:
        answer = _ANSWERS.get((event.character or "").lower())
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
