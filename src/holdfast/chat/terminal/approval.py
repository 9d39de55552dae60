"""Approval of a tool call: all of what it would do, folded where it is long, and the keys y, n and a."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rich.cells import chop_cells
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from ...agent.tools import Permission, PermissionRequest, PlannedChange
from ...io.text import sanitize_line, split_escapes
from .theme import BOLD, DIM, ERROR, PLAIN, SELECTED, SUCCESS, WARNING

_DIFF_CONTEXT = 2
"""Unchanged lines shown around a change."""
_MAX_COMPARED_LINES = 2_000
"""Longer pieces are shown as replaced, since comparing them line by line would take too long."""
_BODY_SHARE, _MIN_ROWS, _OTHER_ROWS = 0.4, 4, 6
"""Share of the screen's height for what is asked, its smallest number of rows, and those that a small screen keeps."""


_MIN_TEXT = 16
"""Columns for the text of a numbered line; in a narrower one, its further rows are not indented."""


def approval_preview(question: PermissionRequest) -> list[Text]:
    """Returns all of what the tool would do as lines, with control and invisible characters visible."""
    if question.change is not None:
        return list(_change_preview(question.change))
    given = question.call.arguments_dict
    if question.tool == "run_command" and isinstance(command := given.get("command"), str):
        return list(_numbered_lines(command.split("\n")))
    return [_visible(line, PLAIN) for name, value in given.items() for line in f"{name}: {value}".split("\n")]


def _visible(text: str, style: Style) -> Text:
    """Returns the text with an escape for each character that could not be seen, in reverse."""
    line = Text(style=style)
    for piece, is_escape in split_escapes(text):
        line.append(piece, SELECTED if is_escape else "")
    return line


def _numbered_lines(lines: Sequence[str]) -> Iterator[Text]:
    """Yields the lines of a command; several are numbered."""
    if len(lines) == 1:
        yield _visible(f"$ {lines[0]}", BOLD)
        return
    width = len(str(len(lines)))
    for number, line in enumerate(lines, 1):
        yield Text.assemble((f"{number:>{width}} ", DIM), _visible(line, BOLD))


def _change_preview(change: PlannedChange) -> Iterator[Text]:
    """Yields a title and the diff of a file; of a new file, all its lines."""
    before, after, ends = _file_lines(change)
    if change.before is None:
        what = f"new file, {_count(len(after))}"
    else:
        what = f"replaces {_count(len(before))}" if not set(before) & set(after) else ""
    rows = list(_diff(before, after))
    added, removed = (sum(1 for _, sign, _ in rows if sign == one) for one in "+-")
    what = what or f"{removed:,} removed, {added:,} added, of {_count(len(before))}"
    title = WARNING if what.startswith("replaces") else DIM
    yield Text.assemble(_visible(change.name.replace("\n", "\u2028"), BOLD), (f"  {what}{ends}", title))
    width = len(str(max(len(before), len(after), 1)))
    styles = {"+": SUCCESS, "-": ERROR, " ": DIM}
    for number, sign, line in rows:
        text = _visible(f"{sign} {line.removesuffix(_NO_NEWLINE)}", styles[sign])
        remark = ("  (no newline at the end)", WARNING) if line.endswith(_NO_NEWLINE) else ""
        yield Text.assemble((f"{number or '…':>{width}} ", DIM), text, remark)


_NO_NEWLINE = "\n"
"""At the end of a last line that has no newline, where the file has or had one."""


def _file_lines(change: PlannedChange) -> tuple[list[str], list[str], str]:
    """Returns the lines before and after, and a remark; line ends are shown only where they change or are mixed."""
    texts = [one.decode(errors="surrogateescape") for one in (change.before or b"", change.after)]
    before, after = (text.removesuffix("\n").split("\n") if text else [] for text in texts)
    if before and after and texts[0].endswith("\n") != texts[1].endswith("\n"):
        (after if texts[0].endswith("\n") else before)[-1] += _NO_NEWLINE
    ends = {line.endswith("\r") for line in (*before, *after)}
    if ends != {True}:
        return before, after, ""
    return [line[:-1] for line in before], [line[:-1] for line in after], ", CRLF"


def _count(lines: int) -> str:
    return f"{lines:,} line{'s' * (lines != 1)}"


def _diff(before: list[str], after: list[str]) -> Iterator[tuple[int, str, str]]:
    """Yields line number, sign and text of changed lines and those around them; number 0 is a gap."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    first = max(0, start - _DIFF_CONTEXT)
    old, new = before[first : len(before) - end + _DIFF_CONTEXT], after[first : len(after) - end + _DIFF_CONTEXT]
    old, new = old[: len(before) - first], new[: len(after) - first]
    if max(len(old), len(new)) > _MAX_COMPARED_LINES:
        yield from ((number, "-", line) for number, line in enumerate(old, first + 1))
        yield from ((number, "+", line) for number, line in enumerate(new, first + 1))
        return
    groups = difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_DIFF_CONTEXT)
    for place, group in enumerate(groups):
        if place:
            yield 0, " ", ""
        for kind, low, high, new_low, new_high in group:
            if kind == "equal":
                yield from ((first + new_low + at + 1, " ", line) for at, line in enumerate(old[low:high]))
            else:
                yield from ((first + low + at + 1, "-", line) for at, line in enumerate(old[low:high]))
                yield from ((first + new_low + at + 1, "+", line) for at, line in enumerate(new[new_low:new_high]))


def wrap_rows(lines: Sequence[Text], width: int) -> list[tuple[int, Text]]:
    """Breaks lines into rows of a width, character by character; each with the index of its line."""
    rows: list[tuple[int, Text]] = []
    for index, line in enumerate(lines):
        number = line.spans[0].end if line.spans and line.spans[0].style == DIM else 0
        hang = number if width - number >= _MIN_TEXT else 0
        first, *_ = chop_cells(line.plain, max(2, width)) or [""]
        rest = chop_cells(line.plain[len(first) :], max(2, width - hang))
        head, *tail = line.divide(list(accumulate(map(len, [first, *rest[:-1]])))) if rest else [line]
        rows += [(index, head), *((index, Text(" " * hang).append_text(row)) for row in tail)]
    return rows


def fold_rows(rows: Sequence[tuple[int, Text]], room: int) -> list[Text] | None:
    """Returns the first and last rows with a mark between, at ends of lines if it can; None if all of them fit."""
    if len(rows) <= room:
        return None
    begins = [at for at, (index, _) in enumerate(rows) if not at or rows[at - 1][0] != index]
    last = max(1, room // 3)
    head, tail = room - 1 - last, len(rows) - last
    head = max((at for at in begins if 0 < at <= head), default=head)
    tail = min((at for at in begins if at >= tail), default=tail)
    shown, hidden = [*rows[:head], *rows[tail:]], rows[head:tail]
    left = {index for index, _ in hidden} - {index for index, _ in shown}
    characters = sum(len(row) for _, row in hidden)
    mark = f"↓ {len(left):,} more line{'s' * (len(left) != 1)}" if left else f"↓ {characters:,} more characters"
    texts = [row for _, row in shown]
    return [*texts[:head], Text(f"  {mark}", WARNING), *texts[head:]]


_ANSWER_KEYS: dict[str, Permission] = {"y": "yes", "n": "no", "a": "always"}


class ApprovalPrompt(Widget, can_focus=True):
    """Widget that replaces the input while a question is open."""

    DEFAULT_CSS = """
    ApprovalPrompt {
        height: auto; display: none; border-top: solid ansi_bright_black;
        background: ansi_default; color: ansi_default;
    }
    ApprovalPrompt > VerticalScroll { height: auto; scrollbar-size: 0 0; padding: 0 2; }
    ApprovalPrompt > #keys { padding: 0 2; }
    ApprovalPrompt Static { background: ansi_default; color: ansi_default; }
    """

    class Answered(Message):
        def __init__(self, permission: Permission) -> None:
            super().__init__()
            self.permission = permission

    def __init__(self) -> None:
        super().__init__()
        self.question: PermissionRequest | None = None
        self._lines: list[Text] = []
        self._folded = self._unfolded = False
        """Whether some of it is hidden now, and whether the user has unfolded all of it."""
        self._head, self._body, self._keys = Static(), Static(), Static(id="keys")
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
        self._lines, self._unfolded = approval_preview(question), False
        self._draw()
        self._scroll.scroll_home(animate=False)

    def _draw(self) -> None:
        """Draws the question for the screen's size; what does not fit is folded until the user unfolds it."""
        if self.question is None:
            return
        height = self.app.size.height
        room = max(_MIN_ROWS, int(height * _BODY_SHARE), min(2 * _MIN_ROWS, height - _OTHER_ROWS))
        self._scroll.styles.max_height = room
        rows = wrap_rows(self._lines, self.app.size.width - 4)
        folded = None if self._unfolded else fold_rows(rows, room)
        self._folded = folded is not None
        self._body.update(Text("\n").join(folded or [row for _, row in rows]))
        rule = sanitize_line(self.question.rule or "").removeprefix("run_command ")
        keys = Text()
        yes = [("Enter", "show all")] if self._folded else [("y", "yes"), *([("a", f"always {rule}")] if rule else [])]
        for key, what in (*yes, ("n", "no"), ("Esc", "stop")):
            keys.append(key, BOLD).append(f" {what}  ", DIM)
        keys.rstrip()
        self._keys.update(keys)

    def on_resize(self) -> None:
        self._draw()

    def page(self, direction: int) -> None:
        (self._scroll.scroll_page_up if direction < 0 else self._scroll.scroll_page_down)(animate=False)

    def on_key(self, event: events.Key) -> None:
        answer = _ANSWER_KEYS.get((event.character or "").lower())
        match event.key:
            case _ if answer == "no":
                self.post_message(self.Answered("no"))
            case _ if self._folded and (answer or event.key in ("enter", "space", "ctrl+o")):
                self._unfolded = True
                self._draw()
            case _ if answer is not None and (answer == "yes" or (self.question and self.question.rule)):
                self.post_message(self.Answered(answer))
            case "up":
                self._scroll.scroll_up(animate=False)
            case "down":
                self._scroll.scroll_down(animate=False)
            case _:
                return
        event.stop()
