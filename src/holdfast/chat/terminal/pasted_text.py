"""Long texts folded in the input: the editor holds a short mark for each, and the whole text is sent.

An editor that holds thousands of lines wraps and draws them at each key.
"""

from __future__ import annotations

import re

MAX_PASTED_LINES, MAX_PASTED_CHARS = 20, 4_000
"""A longer paste is folded."""
_MAX_LINES, _SHOWN_LINES, _MAX_CHARS = 200, 10, 40_000
"""Of a longer text that is put into the input, as from the history, only the first lines are shown."""
_MARK = re.compile(r"\[pasted [\d,]+ (?:lines?|characters)(?: #\d+)?\]")


class PastedTexts:
    """The folded texts by their marks. A mark that was edited is sent as it is."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def fold_paste(self, text: str) -> str:
        """Returns the text, or a mark for a long one."""
        lines = text.count("\n") + 1
        if lines <= MAX_PASTED_LINES and len(text) <= MAX_PASTED_CHARS:
            return text
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        mark, number = f"[pasted {size}]", 1
        while self._texts.setdefault(mark, text) != text:
            number += 1
            mark = f"[pasted {size} #{number}]"
        return mark

    def fold_text(self, text: str) -> str:
        """Returns the text; of a very long one, the first lines and a mark for the rest."""
        if text.count("\n") < _MAX_LINES and len(text) <= _MAX_CHARS:
            return text
        lines = text.split("\n")
        first = "\n".join(lines[:_SHOWN_LINES])
        if len(lines) <= _SHOWN_LINES or len(first) > MAX_PASTED_CHARS:
            return self.fold_paste(text)
        rest = self.fold_paste("\n".join(lines[_SHOWN_LINES:]))
        return f"{first}\n{rest}"

    def expand(self, text: str) -> str:
        """Returns the text with the whole of what its marks stand for."""
        return _MARK.sub(lambda mark: self._texts.get(mark[0], mark[0]), text) if self._texts else text

    def mark_before(self, text: str) -> str:
        """Returns the mark at the end of a text, so that it is deleted as one; empty if there is none."""
        return next((mark for mark in self._texts if text.endswith(mark)), "")
