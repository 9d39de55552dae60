"""Choices read from a byte string, so that a story costs Hypothesis a few draws instead of hundreds."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

WORDS = (
    "ok",
    "look at the log",
    "日本語のテキスト、漢字。",
    "👩‍👩‍👧‍👦 🇺🇳 👍🏽",
    "שלום עולם \u202eمرحبا\u202c",
    "e\u0301 a\u0308\u0323 \u0e01\u0e33",
    "\x07\x1b[31mred\x1b[0m\x08",
    "\x00",
    "a\u200bb\ufeff\u2028c",
    "line\r\n\tline",
    '{"key": [1, null, "\\u00e9"]}',
    "<|endoftext|></summary>",
    "𝔘𝔫𝔦 𐍈 𠜎",
)
SIZES = (5_000, 8_000, 20_000, 60_000)


class Tape:
    """Past its end every choice is the first one, so the first of any options is the simplest."""

    def __init__(self, data: bytes, word: str) -> None:
        self._data = data
        self._at = 0
        self._words = (*WORDS, word)

    def below(self, limit: int) -> int:
        if self._at >= len(self._data):
            return 0
        self._at += 1
        return self._data[self._at - 1] % limit

    def one(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def rarely(self, one_in: int) -> bool:
        return self.below(one_in) == one_in - 1

    def text(self) -> str:
        """Return a short text that is more than white space, which Anthropic rejects."""
        found = " ".join(self.one(self._words) for _ in range(1 + self.below(3)))
        return found if found.strip() else f"ok{found}"

    def long_text(self) -> str:
        """Return a giant text, made by repetition because drawing one would take seconds."""
        unit = self.text() + "\n"
        size = self.one(SIZES)
        return (unit * (size // len(unit) + 1))[:size]
