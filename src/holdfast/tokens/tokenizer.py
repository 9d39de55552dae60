"""Real tokens, counted offline; and an honest guess where the tokenizer cannot be had."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache

from ..errors import InvalidInput
from ..messages import Media, Message, Part, ToolCall, ToolResult
from .estimator import part_text

MESSAGE_OVERHEAD = 4
"""Tokens that a provider adds around one message: its role and separators."""
CALL_OVERHEAD = 8
"""Tokens around one tool call or result: its id and framing."""
IMAGE_TOKENS = 1_200
"""About what the large providers charge for a picture of a screen."""
PIECE, _BACK = 65_536, 4_096
_CUT = re.compile(r"\n(?=[^\W\d_])|[^\W\d_](?= [^\W\d_])")
"""Between two lines or two words: every vocabulary's tokens end there."""
ENCODINGS = ("o200k_base", "cl100k_base", "llama3", "qwen3", "deepseek_v3", "mistral_v3")


class Tokenizer:
    """Counts with the vocabulary of a model family; what is not text is charged a flat estimate."""

    def __init__(self, encoding: str = "o200k_base") -> None:
        if encoding not in ENCODINGS:
            raise InvalidInput(f"{encoding!r} is not a tokenizer: use one of {', '.join(ENCODINGS)}.")
        self.name = encoding
        self._count: Callable[[str], int] | None = None

    def measure(self, message: Message) -> int:
        return MESSAGE_OVERHEAD + sum(map(self._part, message.parts))

    def _part(self, part: Part) -> int:
        if isinstance(part, Media):
            return _media_tokens(part)
        units = self.measure_text(part_text(part))
        if isinstance(part, ToolCall):
            return units + CALL_OVERHEAD
        if isinstance(part, ToolResult):
            return units + CALL_OVERHEAD + sum(_media_tokens(item) for item in part.content if isinstance(item, Media))
        return units

    def measure_text(self, text: str) -> int:
        if not text:
            return 0
        if self._count is None:
            self._count = load(self.name)
        return self._count(text)

    def tokens(self, units: int) -> int:
        return units


def _media_tokens(media: Media) -> int:
    if media.kind == "image" or media.data is None:
        return IMAGE_TOKENS
    return max(IMAGE_TOKENS, len(media.data) // 40)


@cache
def load(encoding: str) -> Callable[[str], int]:
    """A counting function for this vocabulary, loaded once in a process."""
    try:
        from splintr import Tokenizer as Vocabulary
    except ImportError:
        return guess
    encode = Vocabulary.from_pretrained(encoding).encode_ordinary  # a special token's name is only text here

    def count(text: str) -> int:
        try:
            return sum([len(encode(piece)) for piece in _pieces(text)])
        except UnicodeEncodeError:
            return count(text.encode(errors="replace").decode())

    return count


def _pieces(text: str) -> Iterator[str]:
    """A huge text in parts, cut where no token goes across: encoding one holds up every other thread."""
    start = 0
    while len(text) - start > PIECE:
        end = start + PIECE
        found = next((cut for cut in _CUT.finditer(text, end - _BACK, end)), None)
        end = found.end() if found else end
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def guess(text: str) -> int:
    """Without a tokenizer: English and code at 3.6 characters a token, other scripts by their bytes."""
    wide = len(text.encode(errors="replace")) - len(text)
    return -(-len(text) * 5 // 18) + wide // 5
