"""The form in which texts and queries meet, and how a found place is shown."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

SNIPPET = 160
"""About how many characters of context a hit shows."""

_CONTROLS = dict.fromkeys((*range(32), 127), " ")


def fold(text: str) -> str:
    """Without case, without the many ways to write one character, and with a blank for each control character."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).casefold()
    return text.lower().translate(_CONTROLS)


def snippet(text: str, words: Sequence[str]) -> str:
    """The surroundings of the first word found, on one line; of the place where most words stand close together."""
    at = _place(text, words)
    start = max(0, at - SNIPPET // 3)
    end = start + SNIPPET
    piece = " ".join(text[start:end].split())
    return ("…" if start else "") + piece + ("…" if end < len(text) else "")


def _place(text: str, words: Sequence[str]) -> int:
    pattern = re.compile("|".join(re.escape(word) for word in words), re.IGNORECASE)
    found = [(match.start(), match[0].lower()) for match in pattern.finditer(text)]
    if not found:
        return _folded_place(text, words)
    best, most, first = found[0][0], 0, 0
    for last, (end, _) in enumerate(found):
        while end - found[first][0] > SNIPPET // 2:
            first += 1
        near = len({word for _, word in found[first : last + 1]}) if last - first < 50 else 0
        if near > most:
            best, most = found[first][0], near
    return best


def _folded_place(text: str, words: Sequence[str]) -> int:
    """Where a word stands that is found only in another writing: `STRASSE` in `Straße`."""
    folded, starts = "", []
    for place, character in enumerate(text):
        piece = fold(character)
        folded += piece
        starts += [place] * len(piece)
    found = [at for word in words if (at := folded.find(word)) >= 0]
    return starts[min(found)] if found else 0
