"""Approval of a tool call: all of what it would do, and keys that allow it once its end was on the screen."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, Static

from ...agent.tools import Permission, PermissionRequest, PlannedChange
from ...io.text import TAB_SIZE, sanitize_line, split_escapes
from .theme import BOLD, DIM, ERROR, MUTED, PLAIN, SELECTED, SUCCESS, WARNING

_DIFF_CONTEXT = 2
"""Unchanged lines shown around a change."""
_MAX_COMPARED_LINES = 2_000
"""Longer pieces are shown as replaced, since comparing them line by line would take too long."""
_BODY_SHARE, _MIN_ROWS, _OTHER_ROWS = 0.5, 8, 6
"""Share of the screen's height for what is asked until it is scrolled, the number of rows that it has where there is
room, and the rows of the screen that it leaves to others."""


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


_BLANKS = re.compile("\t| {33,}|([\u00a0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000])\\1*")
"""Tabs, long runs of spaces, and blanks that look like a space."""


def _visible(text: str, style: Style) -> Text:
    """Returns the text with a mark for what could not be seen or told from a space, in reverse."""
    line, start, column = Text(style=style), 0, 0
    for found in _BLANKS.finditer(text):
        column += _append_escaped(line, text[start : found.start()])
        blank, start = found[0], found.end()
        if blank == "\t":
            blanks = -(column + 1) % TAB_SIZE
            line.append("→", SELECTED).append(" " * blanks)
            column += 1 + blanks
        else:
            name = "␣" if blank[0] == " " else f"\\u{ord(blank[0]):04x}"
            mark = f"{name}×{len(blank):,}" if len(blank) > 1 else name
            line.append(mark, SELECTED)
            column += cell_len(mark)
    _append_escaped(line, text[start:])
    return line


def _append_escaped(line: Text, text: str) -> int:
    """Appends the text with its escapes in reverse; returns the columns that it takes."""
    columns = 0
    for piece, is_escape in split_escapes(text):
        line.append(piece, SELECTED if is_escape else "")
        columns += cell_len(piece)
    return columns


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


_ANSWER_KEYS: dict[str, Permission] = {"y": "yes", "n": "no", "a": "always"}
_SCROLL_KEYS = {"up": -1, "down": 1}
_PAGE_KEYS = ("enter", "space", "ctrl+o")


class ApprovalPrompt(Widget, can_focus=True):
    """Widget that replaces the input while a question is open."""

    DEFAULT_CSS = """
    ApprovalPrompt {
        height: auto; display: none; border-top: solid ansi_bright_black; padding: 0 2;
        background: ansi_default; color: ansi_default;
    }
    ApprovalPrompt Static { background: ansi_default; color: ansi_default; }
    ApprovalPrompt Input, ApprovalPrompt Input:focus {
        display: none; border: none; height: 1; padding: 0; background: ansi_default; color: ansi_default;
    }
    """

    class Answered(Message):
        def __init__(self, permission: Permission, words: str = "") -> None:
            super().__init__()
            self.permission, self.words = permission, words

    def __init__(self) -> None:
        super().__init__()
        self.question: PermissionRequest | None = None
        self._lines: list[Text] = []
        self._rows: list[tuple[int, Text]] = []
        self._width = self._top = self._seen = 0
        """Of the rows; the first row on the screen; and how many from the first on have been on it."""
        self._is_scrolled = False
        """Whether the user has scrolled: then it takes the whole screen."""
        self._head, self._body, self._position, self._keys = Static(), Static(), Static(), Static()
        self._words = Input(placeholder="What should the agent do instead? Enter sends, Esc goes back", compact=True)

    def compose(self) -> ComposeResult:
        yield from (self._head, self._body, self._position, self._keys, self._words)

    def ask(self, question: PermissionRequest | None) -> None:
        """Shows a question; None hides the widget."""
        self.question, self.display = question, question is not None
        self._end_words()
        if question is None:
            return
        rule = "always: " if question.rule else ""
        about = [Text(f"{rule}{sanitize_line(question.about)}", MUTED)] if question.about else []
        self._lines = [*approval_preview(question), *about]
        self._rows, self._width, self._top, self._seen, self._is_scrolled = [], 0, 0, 0, False
        self._draw()

    @property
    def _room(self) -> int:
        height = self.app.size.height
        most = max(1, height - _OTHER_ROWS)
        return most if self._is_scrolled else min(most, max(_MIN_ROWS, int(height * _BODY_SHARE)))

    @property
    def _is_complete(self) -> bool:
        """Whether all of it has been on the screen."""
        return self._seen >= len(self._rows)

    def _draw(self) -> None:
        """Draws the rows that fit; after a change of width, from the line that was at the top."""
        if self.question is None:
            return
        if (width := self.app.size.width - 4) != self._width:
            rows = wrap_rows(self._lines, width)
            if self._rows:
                line, was_complete = self._rows[self._top][0], self._is_complete
                self._top = next(at for at, (index, _) in enumerate(rows) if index == line)
                self._seen = len(rows) if was_complete else self._top
            self._rows, self._width = rows, width
        rows = self._rows
        self._top = max(0, min(self._top, len(rows) - self._room))
        end = min(len(rows), self._top + self._room)
        self.call_after_refresh(self._count_seen, rows, end)
        self._body.update(Text("\n").join(row for _, row in rows[self._top : end]))
        self._position.display = len(rows) > self._room
        more = "" if end == len(rows) else "  ↓ Space: more"
        tool = sanitize_line(self.question.tool)
        head = Text.assemble(("? ", WARNING), "May the agent use ", (tool, BOLD), "?")
        place = Text(f"lines {self._top + 1:,}-{end:,} of {len(rows):,}{more}", WARNING)
        for widget, text in ((self._head, head), (self._position, place)):
            text.truncate(max(1, width), overflow="ellipsis")  # a row each, so that all of it fits the screen
            widget.update(text)
        self._draw_keys()

    def _count_seen(self, rows: list[tuple[int, Text]], end: int) -> None:
        """Called once these rows are on the screen: a key that came before does not answer."""
        if rows is self._rows and end > self._seen:
            self._seen = end
            self._draw_keys()

    def _draw_keys(self) -> None:
        if self.question is None:
            return
        keys = Text()
        rule = sanitize_line(self.question.rule or "").removeprefix("run_command ")
        allow = [("y", "yes"), *([("a", f"always {rule}")] if rule else [])] if self._is_complete else []
        for key, what in (*allow[:1], ("n", "no"), ("Esc", "stop"), *allow[1:]):
            keys.append(key, BOLD).append(f" {what}  ", DIM)
        keys.rstrip()
        keys.truncate(max(1, self._width), overflow="ellipsis")
        self._keys.update(keys)

    def on_resize(self) -> None:
        self._draw()

    def page(self, direction: int) -> None:
        """Scrolls by what fits, so that no row is passed over."""
        self._scroll_rows(direction * self._room)

    def _scroll_rows(self, rows: int) -> None:
        self._top = max(0, min(self._top + rows, self._seen, len(self._rows) - 1))
        self._is_scrolled = self._is_scrolled or len(self._rows) > self._room
        self._draw()

    def on_mouse_scroll_down(self) -> None:
        self._scroll_rows(1)

    def on_mouse_scroll_up(self) -> None:
        self._scroll_rows(-1)

    def on_key(self, event: events.Key) -> None:
        if self._words.display:
            return
        answer = _ANSWER_KEYS.get((event.character or "").lower())
        if answer == "no":
            self._words.display, self._keys.display = True, False
            self._words.focus()
        elif answer is not None:
            if self._is_complete and (answer == "yes" or (self.question and self.question.rule)):
                self.post_message(self.Answered(answer))
        elif event.key in _SCROLL_KEYS:
            self._scroll_rows(_SCROLL_KEYS[event.key])
        elif event.key in _PAGE_KEYS:
            self.page(1)
        else:
            return
        event.stop()
        event.prevent_default()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.post_message(self.Answered("no", event.value.strip()))

    def cancel_words(self) -> bool:
        """Ends the typing of words to a refusal; returns False if none are typed."""
        if not self._words.display:
            return False
        self._end_words()
        self.focus()
        return True

    def _end_words(self) -> None:
        self._words.value = ""
        self._words.display, self._keys.display = False, True
