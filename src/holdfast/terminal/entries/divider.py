"""A compaction: while it runs, and the line that it draws through the conversation."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.text import Text
from textual.strip import Strip

from ...hooks.events import CompactionCompleted
from ..clean import clean, one_line
from ..drawing import beside, cut, indented, plain_lines, wrapped
from ..look import BOLD, DIM, NAME, QUIET, WARN, Look
from ..numbers import percent, short
from .entry import Entry


class Progress(Entry):
    """What happens now, how much is written, and for how long it has been going on."""

    def __init__(self, tokens: int, asked: bool, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._tokens, self._asked = tokens, asked
        self._clock, self._since = clock, clock()
        self.what = "choosing what to keep"
        self.characters = 0

    def draw(self, width: int, look: Look) -> list[Strip]:
        seconds = int(self._clock() - self._since)
        written = f" {look.signs.dot} {self.characters:,} characters" if self.characters else ""
        why = "" if self._asked else ", the window is nearly full"
        first = Text.assemble(("compacting", BOLD), (f" {short(self._tokens)} tokens{why}", DIM))
        second = f"{one_line(self.what)}{written} {look.signs.dot} {seconds} s {look.signs.dot} Esc stops it"
        strips = [*wrapped(first, width - 4), *plain_lines(second, width - 4, DIM)]
        return indented(beside(f"{look.signs.busy} ", WARN, strips))


class Divider(Entry):
    """Before and after in one line; below it what became of the messages; unfolded, the summary."""

    folds = True

    def __init__(self, done: CompactionCompleted, notice: str = "") -> None:
        super().__init__()
        self._done = done
        self._summary = clean(done.summary or "").strip()
        self.notice = notice
        self.folds = bool(self._summary)

    def draw(self, width: int, look: Look) -> list[Strip]:
        signs = look.signs
        drawn = [self._rule(width, look)]
        drawn += indented(plain_lines(f" {signs.dot} ".join(self._facts()), width - 2, DIM))
        for remark in self._done.remarks:
            drawn += indented(plain_lines(clean(remark), width - 2, DIM))
        if self._summary:
            drawn += self._unfolded(width, look)
        if self.notice:
            drawn += indented(plain_lines(clean(self.notice), width - 2, QUIET))
        return drawn

    def _rule(self, width: int, look: Look) -> Strip:
        done, rule = self._done, look.signs.rule
        sizes = f"{short(done.tokens_before)} {look.signs.arrow} {short(done.tokens_after)} tokens"
        saved = percent(done.tokens_before - done.tokens_after, done.tokens_before)
        rest = f" {look.signs.dot} {saved} less {look.signs.dot} round {done.round} "
        line = Text.assemble((f"{rule * 2} ", DIM), ("compacted ", BOLD), (sizes, NAME), (rest, DIM))
        line.append(rule * max(0, width - line.cell_len), DIM)
        return cut(line, width, look.signs.more)

    def _facts(self) -> list[str]:
        done = self._done
        facts = [f"{done.archived:,} messages archived, {done.kept:,} kept"]
        if done.summarizer and not done.fallback:
            facts.append(f"summary by {one_line(done.summarizer)}")
        if done.fallback:
            facts.append(f"{one_line(done.fallback)} instead of a summary")
        facts.append(f"{done.seconds:.1f} s")
        return facts

    def _unfolded(self, width: int, look: Look) -> list[Strip]:
        count = self._summary.count("\n") + 1
        if self.folded:
            return indented(plain_lines(f"{look.signs.folded} summary, {count} lines (Ctrl-O)", width - 2, DIM))
        head = indented(plain_lines(f"{look.signs.open} summary", width - 2, DIM))
        return head + indented(plain_lines(self._summary, width - 6, DIM), f"    {look.signs.bar} ", DIM)
