"""Token estimators: the protocol, the offline tokenizer, the character rules of known systems, and running sums.

Without the tokenizer package, a heuristic takes the tokenizer's place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ..errors import InvalidInput
from ..messages import (
    Media,
    Message,
    Opaque,
    Part,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    compact_json_length,
    decode_all,
    to_json,
)
from .opaque import counted_json

if TYPE_CHECKING:
    from splintr import AnyTokenizer


@runtime_checkable
class Estimator(Protocol):
    """Measures messages in units that add up, so that a running sum is enough.

    Rounding happens once, in `tokens`: a rule over a whole conversation then needs only constant work per
    message.
    """

    name: str

    def measure(self, message: Message) -> int:
        """Returns the units of a message, its role and tool calls included."""
        ...

    def measure_text(self, text: str) -> int:
        """Returns the units of a text alone."""
        ...

    def tokens(self, units: int) -> int:
        """Converts a sum of units to tokens."""
        ...


class CallableEstimator:
    """Estimator from a callable from text to tokens, called with the text of each part."""

    def __init__(self, count: Callable[[str], int]) -> None:
        self.name = f"callable:{getattr(count, '__qualname__', type(count).__name__)}"
        self._count = count

    def measure(self, message: Message) -> int:
        return sum(self.measure_text(counted_text(part)) for part in message.parts)

    def measure_text(self, text: str) -> int:
        if not text:
            return 0
        count = self._count(text)
        if not isinstance(count, int | float) or not 0 <= count < math.inf:
            raise InvalidInput(f"The estimator returned {count!r}: it must return a number of tokens, 0 or more.")
        return math.ceil(count)

    def tokens(self, units: int) -> int:
        return units


def count_tokens(estimator: Estimator, text: str | None) -> int:
    """Returns the tokens of one text; none is 0."""
    return estimator.tokens(estimator.measure_text(text)) if text else 0


def part_text(part: Part) -> str:
    """Returns all text of a part that a model reads."""
    match part:
        case Text() | Reasoning():
            return part.text
        case ToolCall():
            return part.name + part.arguments_json
        case ToolResult():
            texts = all(type(item) is Text for item in part.content)
            return part.text if texts else to_json(list(map(part_text, part.content)))
        case Opaque():
            return to_json(part.data)
        case _:
            return ""


def counted_text(part: Part) -> str:
    """Returns the text by which a part is counted: all that a model reads, and what is encrypted as its length."""
    match part:
        case Opaque():
            return to_json(counted_json(part)[0])
        case ToolResult() if not all(type(item) is Text for item in part.content):
            return _items_json(part)
        case _:
            return part_text(part)


def _items_json(result: ToolResult) -> str:
    """Encodes the content of a result as a list, without media."""
    return to_json([counted_json(item)[0] if isinstance(item, Opaque) else part_text(item) for item in result.content])


def result_length(result: ToolResult) -> int:
    """Returns the length of a result: of its text, or of the JSON of its content if that is more than one text."""
    content = result.content
    if len(content) == 1 and type(only := content[0]) is Text:
        return len(only.text)
    return len(_items_json(result)) if content else 0


def opaque_length(part: Opaque) -> int:
    """Returns the bytes by which a part that is kept as it came is counted."""
    return len(counted_text(part).encode(errors="replace"))


class CharsPerPiece:
    """ceil(characters / 4) of each piece separately, plus 2 per message for its role.

    Nothing for media and reasoning; what no codec reads counts by its bytes, so that nothing large is free.
    """

    name = "chars/4"

    def measure(self, message: Message) -> int:
        parts = message.parts
        if len(parts) == 1:
            if type(only := parts[0]) is Text:
                return 2 - (-len(only.text) // 4)
            if type(only) is ToolResult:
                return 2 - (-result_length(only) // 4)
        total = 2
        for part in parts:
            if type(part) is ToolResult:
                total -= -result_length(part) // 4
            elif type(part) is ToolCall:
                given = part.arguments
                size = compact_json_length(given) if type(given) is str else len(part.arguments_json)
                total -= -len(part.name) // 4 + -size // 4
            elif type(part) is Text:
                total -= -len(part.text) // 4
            elif type(part) is Opaque:
                total -= -opaque_length(part) // 4
        return total

    def measure_text(self, text: str) -> int:
        return -(-len(text) // 4)

    def tokens(self, units: int) -> int:
        return units


def _length(message: Message) -> int:
    parts = message.parts
    if len(parts) == 1 and type(only := parts[0]) is Text:
        return len(only.text)
    return sum([opaque_length(part) if type(part) is Opaque else len(counted_text(part)) for part in parts])


class CharsPerMessage:
    """floor(characters / 4) of a message's content, plus 4 per message."""

    name = "chars/4+4"

    def measure(self, message: Message) -> int:
        return _length(message) // 4 + 4

    def measure_text(self, text: str) -> int:
        return len(text) // 4

    def tokens(self, units: int) -> int:
        return units


class CharsPerConversation:
    """characters / 3 over the whole conversation, rounded up once."""

    name = "chars/3"

    def measure(self, message: Message) -> int:
        return _length(message)

    def measure_text(self, text: str) -> int:
        return len(text)

    def tokens(self, units: int) -> int:
        return -(-units // 3)


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
        units = self.measure_text(counted_text(part)) + _media_tokens(part)
        if isinstance(part, ToolCall):
            return units + CALL_OVERHEAD
        if isinstance(part, ToolResult):
            return units + CALL_OVERHEAD + sum(map(_media_tokens, part.content))
        return units

    def measure_text(self, text: str) -> int:
        if not text:
            return 0
        if self._count is None:
            self._count = load_counter(self.name)
        return self._count(text)

    def tokens(self, units: int) -> int:
        return units


def _media_tokens(part: Part) -> int:
    match part:
        case Media(data=str(data)) if part.kind != "image":
            return max(IMAGE_TOKENS, len(data) // 40)
        case Media():
            return IMAGE_TOKENS
        case Opaque():
            return IMAGE_TOKENS * counted_json(part)[1]
        case _:
            return 0


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


_BY_NAME: dict[str, Callable[[], Estimator]] = {
    CharsPerPiece.name: CharsPerPiece,
    CharsPerMessage.name: CharsPerMessage,
    CharsPerConversation.name: CharsPerConversation,
}


def estimator_for(given: Estimator | Callable[[str], int] | str | None) -> Estimator:
    """Returns an estimator, given one, its name, or a callable from text to tokens; the tokenizer by default."""
    if given is None:
        return Tokenizer()
    if isinstance(given, str):
        if given in _BY_NAME:
            return _BY_NAME[given]()
        if given in ENCODINGS:
            return Tokenizer(given)
        names = ", ".join([*_BY_NAME, *ENCODINGS])
        raise InvalidInput(f"{given!r} is not an estimator: use one of {names}, or a callable from text to tokens.")
    if isinstance(given, Estimator):
        return given() if isinstance(given, type) else given
    if callable(given):
        return CallableEstimator(given)
    raise InvalidInput(f"An estimator is a name, an object or a callable from text to tokens, not {given!r}.")


class TokenSums:
    """Units of one view by one estimator; `cumulative[i]` is the sum over the first i live messages."""

    def __init__(self, estimator: Estimator, prompt_overhead: Sequence[str | Message] = ()) -> None:
        self.estimator = estimator
        self.overhead = measure_prompt(estimator, prompt_overhead)
        """Units of the system prompt and the tool definitions."""
        self.head: list[int] = []
        self.cumulative = [0]

    def snapshot(self) -> TokenSums:
        """Returns an independent copy."""
        duplicate = copy(self)
        duplicate.head, duplicate.cumulative = list(self.head), list(self.cumulative)
        return duplicate

    def sliced(self, start: int, units: Mapping[int, int]) -> TokenSums:
        """Returns the sums of the live messages from `start` on, of which some have new sizes."""
        part, ends = copy(self), self.cumulative
        offset, part.cumulative = ends[start], []
        for index in sorted(units):
            part.cumulative += [end - offset for end in ends[start + len(part.cumulative) : index + 1]]
            offset += ends[index + 1] - ends[index] - units[index]
        part.cumulative += [end - offset for end in ends[start + len(part.cumulative) :]]
        return part

    def measure_head(self, head: Sequence[Message], known: Mapping[int, int] = {}) -> None:
        """Measures the head; `known` has sizes by the identity of their message."""
        measure = self.estimator.measure
        self.head = [known[id(message)] if id(message) in known else measure(message) for message in head]

    def load(self, messages: Sequence[Message]) -> None:
        self.cumulative = list(accumulate(map(self.estimator.measure, messages), initial=0))

    def add(self, message: Message, units: int | None = None) -> None:
        self.cumulative.append(self.cumulative[-1] + (self.estimator.measure(message) if units is None else units))

    def catch_up(self, messages: Sequence[Message]) -> None:
        """Measures the messages that were appended since the last call."""
        for index in range(len(self.cumulative) - 1, len(messages)):
            self.add(messages[index])

    @property
    def units(self) -> int:
        return self.overhead + sum(self.head) + self.cumulative[-1]


def measure_prompt(estimator: Estimator, parts: Sequence[str | Message]) -> int:
    """Returns the units of the parts of a prompt."""
    return sum(estimator.measure_text(part) if isinstance(part, str) else estimator.measure(part) for part in parts)


def prompt_overhead(system: Any, tools: Any) -> tuple[str | Message, ...]:
    """Returns the system prompt and the text of the tools, which take room in the window next to the messages.

    A prompt that is a list of messages has the same size as those messages in a conversation.
    """
    parts: list[str | Message] = []
    if isinstance(system, list) and all(isinstance(item, Mapping) and "role" in item for item in system):
        parts += decode_all(system)[0]
    elif system:
        parts.append(system if isinstance(system, str) else to_json(_plain(system)))
    if tools:
        parts.append(to_json(_plain(tools)))
    return tuple(parts)


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value
