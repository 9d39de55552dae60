"""Transcript entries: prompts, command output, compactions and notes; each draws itself at a given width."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Literal

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.strip import Strip

from ...errors import plain_reason
from ...hooks.events import CompactionCompleted
from ...io.text import sanitize, sanitize_input, sanitize_line
from ..commands.base import Table, lay_out
from .copying import WHOLE, Span, copied_text
from .drawing import (
    format_count,
    format_percent,
    indent_lines,
    truncate_text,
    with_marker,
    wrap_plain,
    wrap_text,
)
from .theme import ACCENT, BOLD, DIM, ERROR, MUTED, WARNING, ChatTheme

__all__ = [
    "CommandOutputEntry",
    "CompactionEntry",
    "CompactionProgressEntry",
    "NoteEntry",
    "PromptEntry",
    "SessionHeaderEntry",
    "TerminalEntry",
]

log = logging.getLogger("holdfast")


class TerminalEntry:
    """Base of transcript entries; caches its lines until it changes or the width does."""

    tight = False
    """True if no blank line separates it from another tight entry."""
    foldable = False
    """True if it can be unfolded to show more."""

    def __init__(self) -> None:
        self.folded = True
        self.number = 0
        """Number of the event that it begins to show, if known: entries before it show the events before."""
        self.lines: list[Strip] = []
        """Lines as last drawn."""
        self._drawn_width = 0
        self._failed: Strip | None = None
        """Drawn in its place after it could not be drawn: another try could hang again."""

    def fits(self, width: int) -> bool:
        return self._drawn_width == width

    def invalidate(self) -> None:
        self._drawn_width = 0

    def set_folded(self, folded: bool) -> None:
        if self.foldable and folded != self.folded:
            self.folded = folded
            self.invalidate()

    def redraw(self, width: int, theme: ChatTheme) -> None:
        try:
            self.lines = self.draw(width, theme) if self._failed is None else [self._failed]
        except Exception as problem:  # else the session could not be opened again
            log.exception("an entry could not be drawn")
            why = sanitize_line(f"  {theme.symbols.failure} This cannot be drawn: {plain_reason(problem)}.")
            self._failed = Strip([Segment(f"  {why}", ERROR)])
            self.lines = [self._failed]
        self._drawn_width = width

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        raise NotImplementedError

    @property
    def source(self) -> str | None:
        """The text that it shows, as written; None if only what is drawn can be copied."""
        return None

    @property
    def plain_text(self) -> str:
        """The source if there is one, else what is drawn."""
        drawn = copied_text((strip, WHOLE) for strip in self.lines)
        return sanitize(drawn if self.source is None else self.source, tabs=True).strip("\n")

    def copied(self, spans: Sequence[Span | None]) -> str:
        """Returns what a selection copies, given the selected columns of each line: the source if it has all."""
        selected = [(strip, span) for strip, span in zip(self.lines, spans, strict=True) if span is not None]
        text = copied_text(selected)
        if (source := self.source) is None or text.strip() != copied_text(
            (strip, WHOLE) for strip in self.lines
        ).strip():
            return text
        return source


class CompactionProgressEntry(TerminalEntry):
    """A running compaction: current step, characters written, elapsed seconds."""

    def __init__(self, tokens: int, manual: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._tokens, self._manual = tokens, manual
        self._clock, self._started = clock, clock()
        self.what = "choosing what to keep"
        self.characters = 0

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        seconds = int(self._clock() - self._started)
        written = f" {theme.symbols.dot} {self.characters:,} characters" if self.characters else ""
        why = "" if self._manual else ", the window is nearly full"
        first = Text.assemble(("compacting", BOLD), (f" {format_count(self._tokens)} tokens{why}", DIM))
        second = f"{sanitize_line(self.what)}{written} {theme.symbols.dot} {seconds} s {theme.symbols.dot} Esc stops it"
        strips = [*wrap_text(first, width - 4), *wrap_plain(second, width - 4, DIM)]
        return indent_lines(with_marker(f"{theme.symbols.busy} ", WARNING, strips))


class CompactionEntry(TerminalEntry):
    """A finished compaction: tokens before and after, message counts, and, unfolded, the summary."""

    foldable = True

    def __init__(self, done: CompactionCompleted, notice: str = "") -> None:
        super().__init__()
        self._done = done
        self._summary = sanitize(done.summary or "").strip()
        self.notice = notice
        self.foldable = bool(self._summary)

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbols = theme.symbols
        drawn = [self._rule(width, theme)]
        drawn += indent_lines(wrap_plain(f" {symbols.dot} ".join(self._facts()), width - 2, DIM))
        for remark in self._done.remarks:
            drawn += indent_lines(wrap_plain(sanitize(remark), width - 2, DIM))
        if self._summary:
            drawn += self._summary_lines(width, theme)
        if self.notice:
            drawn += indent_lines(wrap_plain(sanitize(self.notice), width - 2, MUTED))
        return drawn

    def _rule(self, width: int, theme: ChatTheme) -> Strip:
        done, rule = self._done, theme.symbols.rule
        sizes = f"{format_count(done.tokens_before)} {theme.symbols.arrow} {format_count(done.tokens_after)} tokens"
        saved = format_percent(done.tokens_before - done.tokens_after, done.tokens_before)
        rest = f" {theme.symbols.dot} {saved} less {theme.symbols.dot} round {done.round} "
        line = Text.assemble((f"{rule * 2} ", DIM), ("compacted ", BOLD), (sizes, ACCENT), (rest, DIM))
        line.append(rule * max(0, width - line.cell_len), DIM)
        return truncate_text(line, width, theme.symbols.ellipsis)

    def _facts(self) -> list[str]:
        done = self._done
        live = bool(done.seconds or done.kept)  # one that was read from the log has neither
        facts = [f"{done.archived:,} messages archived" + (f" (Ctrl-G), {done.kept:,} kept" if live else "")]
        if done.summarizer and not done.fallback:
            facts.append(f"summary by {sanitize_line(done.summarizer)}")
        if done.fallback:
            facts.append(f"{sanitize_line(done.fallback)} instead of a summary")
        return [*facts, f"{done.seconds:.1f} s"] if live else facts

    def _summary_lines(self, width: int, theme: ChatTheme) -> list[Strip]:
        count = self._summary.count("\n") + 1
        if self.folded:
            return indent_lines(
                wrap_plain(f"{theme.symbols.folded} summary, {count} line{'s' * (count != 1)} (Ctrl-O)", width - 2, DIM)
            )
        head = indent_lines(wrap_plain(f"{theme.symbols.unfolded} summary", width - 2, DIM))
        return head + indent_lines(wrap_plain(self._summary, width - 6, DIM), f"    {theme.symbols.gutter} ", DIM)


NoteTone = Literal["quiet", "aside", "warning", "problem"]
_NOTE_STYLES: dict[NoteTone, Style] = {"quiet": DIM, "aside": MUTED, "warning": WARNING, "problem": ERROR}


class NoteEntry(TerminalEntry):
    """A short notice or error."""

    tight = True

    def __init__(self, text: str, tone: NoteTone = "quiet") -> None:
        super().__init__()
        self.text, self._tone = sanitize(text).strip(), tone

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        strips = wrap_plain(self.text, width - 4, _NOTE_STYLES[self._tone])
        symbol = {"warning": "! ", "problem": f"{theme.symbols.failure} "}.get(self._tone, f"{theme.symbols.dot} ")
        return indent_lines(with_marker(symbol, _NOTE_STYLES[self._tone], strips))


_ORIGIN_LABELS = {"handed_off": "handoff", "forked": "branch"}


class SessionHeaderEntry(TerminalEntry):
    """Title, folder, model and age of the session, and the main keys."""

    def __init__(self, how: str, title: str, folder: str, model: str, age: str = "") -> None:
        super().__init__()
        self._title = sanitize_line(title) or "New session"
        used = "" if not age else "last used just now" if age == "now" else f"last used {age} ago"
        self._about = [part for part in (*map(sanitize_line, (folder, model)), used, _ORIGIN_LABELS.get(how)) if part]

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        dot = f" {theme.symbols.dot} "
        title = truncate_text(Text(self._title, BOLD), width - 2, theme.symbols.ellipsis)
        keys = dot.join(("/help lists the commands", "Esc stops", "Ctrl-O unfolds", "Ctrl-D quits"))
        return indent_lines(
            [title, *wrap_plain(dot.join(self._about), width - 2, DIM), *wrap_plain(keys, width - 2, DIM)]
        )


class CommandOutputEntry(TerminalEntry):
    """Output of a command, laid out for the width of the screen; labels are dim."""

    tight = True

    def __init__(self, *blocks: str | Table) -> None:
        super().__init__()
        self._blocks = [block if isinstance(block, Table) else sanitize(block).strip("\n") for block in blocks]

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        lines = (Text.assemble((line[:label], DIM), line[label:]) for line, label in lay_out(self._blocks, width - 2))
        return indent_lines(strip for line in lines for strip in wrap_text(line, width - 2))


_PROMPT_LINES = 12
"""Lines shown of a long folded prompt."""


class PromptEntry(TerminalEntry):
    """A prompt or command of the user; a waiting prompt is shown with its reason."""

    def __init__(self, text: str, waiting: str = "") -> None:
        super().__init__()
        self.text = text
        self.waiting, self.tight = waiting, bool(waiting)
        """Reason why it is not delivered yet; empty once it is."""
        self._lines = sanitize(text).strip("\n").split("\n")
        self.foldable = len(self._lines) > _PROMPT_LINES

    @property
    def source(self) -> str:
        return sanitize_input(self.text)

    @property
    def plain_text(self) -> str:
        return f"> {super().plain_text}"

    def set_waiting(self, why: str) -> None:
        self.waiting, self.tight = why, bool(why)
        self.invalidate()

    def mark_delivered(self) -> None:
        self.set_waiting("")

    def draw(self, width: int, theme: ChatTheme) -> list[Strip]:
        symbol = f"{theme.symbols.prompt} "
        if self.waiting:
            line = Text.assemble((f"{self.waiting}: ", DIM), (sanitize_line(self.text), MUTED))
            return with_marker(symbol, DIM, [truncate_text(line, width - 2, theme.symbols.ellipsis)])
        is_command = self.text.startswith(("/", "!"))
        shown = self._lines[:_PROMPT_LINES] if self.folded else self._lines
        strips = wrap_plain("\n".join(shown), width - 2, ACCENT if is_command else BOLD)
        drawn = with_marker(symbol, DIM if is_command else ACCENT, strips)
        if left := len(self._lines) - len(shown):
            drawn += indent_lines(
                wrap_plain(f"{theme.symbols.folded} {left:,} more line{'s' * (left != 1)}", width - 2, DIM)
            )
        return drawn
