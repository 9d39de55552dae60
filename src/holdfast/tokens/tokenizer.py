"""Offline tokenizer, with a heuristic where the tokenizer package is not installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..messages import Media, Message, Part, ToolCall, ToolResult
from .estimators import part_text

if TYPE_CHECKING:
    from splintr import AnyTokenizer

MESSAGE_OVERHEAD = 4
"""Tokens that a provider adds around one message: its role and separators."""
CALL_OVERHEAD = 8
"""Tokens around one tool call or result: its id and framing."""
IMAGE_TOKENS = 1_200
"""Approximate charge of the large providers for a screenshot."""
CHUNK_CHARACTERS, _LOOKBACK = 65_536, 4_096
_CUT = re.compile(r"\n(?=[^\W\d_])|[^\W\d_](?= [^\W\d_])")
"""Between two lines or two words: no token of any vocabulary crosses it."""
_SPECIAL_START, _ID_BYTES = 2, 4
"""First characters by which names of special tokens are found; bytes of one token in a flat encoding."""
ENCODINGS = ("o200k_base", "cl100k_base", "llama3", "qwen3", "deepseek_v3", "mistral_v3")
"""Vocabularies of the offline tokenizer."""


class Tokenizer:
    """Counts tokens with the vocabulary of a model family; media get a flat estimate."""

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
            self._count = load_counter(self.name)
        return self._count(text)

    def tokens(self, units: int) -> int:
        return units


def _media_tokens(media: Media) -> int:
    if media.kind == "image" or media.data is None:
        return IMAGE_TOKENS
    return max(IMAGE_TOKENS, len(media.data) // 40)


@cache
def load_vocabulary(encoding: str) -> AnyTokenizer:
    """Returns a vocabulary, loaded once per process; it remembers the words that it has encoded."""
    from splintr import Tokenizer as Vocabulary

    return Vocabulary.from_pretrained(encoding)


@cache
def load_counter(encoding: str) -> Callable[[str], int]:
    """Returns the counting function of a vocabulary, the heuristic without the tokenizer package."""
    try:
        vocabulary = load_vocabulary(encoding)
    except ImportError:
        return heuristic_count
    encode, encode_flat = vocabulary.encode_ordinary, vocabulary.encode_flat
    special = {name[:_SPECIAL_START] for name in vocabulary.special_tokens()}

    def count_chunk(chunk: str) -> int:
        if any(start in chunk for start in special):
            return len(encode(chunk))  # names of special tokens are plain text
        return len(encode_flat(chunk)) // _ID_BYTES  # takes three quarters of the time, and other threads run meanwhile

    def count(text: str) -> int:
        try:
            return count_chunk(text) if len(text) <= CHUNK_CHARACTERS else sum(map(count_chunk, _chunks(text)))
        except UnicodeEncodeError:
            return count(text.encode(errors="replace").decode())

    return count


def _chunks(text: str) -> Iterator[str]:
    """Splits a huge text where no token crosses: encoding it in one call would block every other thread."""
    start = 0
    while len(text) - start > CHUNK_CHARACTERS:
        end = start + CHUNK_CHARACTERS
        found = next((cut for cut in _CUT.finditer(text, end - _LOOKBACK, end)), None)
        end = found.end() if found else end
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def heuristic_count(text: str) -> int:
    """Estimates tokens without a tokenizer: ASCII at 3.6 characters per token, other scripts by their bytes."""
    wide = len(text.encode(errors="replace")) - len(text)
    return -(-len(text) * 5 // 18) + wide // 5
