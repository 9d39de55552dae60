"""A tool call in one line, with what it gave when it is unfolded."""

from __future__ import annotations

from typing import Literal

from rich.text import Text
from textual.strip import Strip

from ..clean import clean, one_line
from ..drawing import beside, cut, indented, plain_lines
from ..look import BAD, BOLD, DIM, GOOD, PLAIN, WARN, Look
from .entry import Entry

_SHOWN = 80
"""Lines of an answer that are shown unfolded."""
_MOST = 40_000
_WIDEST, _NARROW = 0.65, 40
"""How much of a line a call may take, so that it can be passed over at a glance; less is never cut."""
_STYLES = {"running": WARN, "ok": GOOD, "failed": BAD, "stopped": WARN}


class ToolLine(Entry):
    tight = True

    def __init__(self, call: str, name: str, line: str) -> None:
        super().__init__()
        self.call = call
        self.state: Literal["running", "ok", "failed", "stopped"] = "running"
        self._name, self._line = one_line(name)[:60], one_line(line)
        self._asked = False
        self._answer: list[str] = []
        self._count = 0

    def ask(self, asked: bool) -> None:
        """Is the person asked whether it may run?"""
        self._asked = asked
        self.changed()

    def finish(self, text: str, *, failed: bool) -> None:
        self.state = "failed" if failed else "ok"
        self._count = len(text.splitlines())
        self._answer = clean(text[:_MOST]).rstrip().split("\n") if text.strip() else []
        self.folds = bool(self._answer)
        self.changed()

    def stop(self) -> None:
        self.state = "stopped"
        self.changed()

    def draw(self, width: int, look: Look) -> list[Strip]:
        drawn = [self._head(width, look)]
        if not self.folded:
            answer = plain_lines("\n".join(self._answer[:_SHOWN]), width - 6, DIM)
            drawn += indented(answer, f"    {look.signs.bar} ", DIM)
            if (left := self._count - min(len(self._answer), _SHOWN)) > 0:
                drawn += plain_lines(f"    {look.signs.more} {left:,} more lines", width, DIM)
        return drawn

    def _head(self, width: int, look: Look) -> Strip:
        signs = look.signs
        sign = {"running": signs.busy, "ok": signs.good}.get(self.state, signs.bad)
        end = f" {signs.dot} {self._end()}"
        room = width - 4 - len(end)
        head = Text.assemble((self._name, BOLD if self.state == "running" else PLAIN))
        if self._line:
            head.append(f" {self._line}", DIM)
            room = min(room, max(_NARROW, int(width * _WIDEST)))
        if head.cell_len > room:
            head.truncate(max(room - len(signs.more), 0))
            head.append(signs.more, DIM)
        failed = BAD if self.state == "failed" else DIM
        return indented(beside(f"{sign} ", _STYLES[self.state], [cut(head.append(end, failed), width - 4, "")]))[0]

    def _end(self) -> str:
        if self.state in ("running", "stopped"):
            return "waits for you" if self._asked and self.state == "running" else self.state
        lines = "1 line" if self._count == 1 else f"{self._count:,} lines"
        return f"failed, {lines}" if self.state == "failed" else lines
