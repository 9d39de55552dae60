"""Text patterns of the lab: lines, words, names, error lines. They are independent of the ledger's on purpose, but
the ledger's terms are set by what the lab finds needed, on the learning half of the sessions."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from itertools import pairwise

from ..messages import Message, Text, ToolCall, ToolResult

_NUMBERED = re.compile(r"^\s*\d+(?:→|\t|: ?\t)")
_WORD = re.compile(r"\w+")
_NAME = re.compile(
    r"(?<![\w@.#-])[\w@.#-]{301,}+"  # longer than any name: data
    r"|("
    r"[\w@-]++(?:\.[\w-]++)*\.[a-z][a-z0-9]{0,4}(?!\w|\((?!\d))"  # a file, also before a place: tides.ts(10,34)
    r"|#\d++"
    r"|\bv?\d++\.\d++\.\d++(?:[.-]\w++)*+"
    r"|[^\W\d_][^\W_]*+_\w++|\b_\w++"  # with an underscore
    r"|\b[a-z]++[A-Z]\w*+|\b[A-Z][a-z0-9]++[A-Z]\w*+|\b[A-Z]{2,}+[a-z]\w*+"  # with an inner capital
    r"|\b[^\W\d_]++\d\w*+"  # with a digit
    r"|\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b"
    r"|\b\d{4,}+\b"
    r")|[^\W\d_]\w*+|[\d_]++|[@-]++"  # no name begins further inside these
)
_ESCAPED = re.compile(r"(?<![\w:\\])(?:\\+[nrt])+|(?<!\\)(?:\\+[nrt](?:\\+[nrt])+|\\+[nrt](?=[A-Z]))")
"""An escaped line end or tab in quoted text: its letter is not part of the next name."""
_ENDINGS = frozenset(
    "c cc cfg conf cpp cs css csv env go gz h hpp html ini java js json jsonl jsx kt lock log lua md mjs mod mts php"
    " png proto py rb rs rst scss sh sql sum svg swift tmpl toml ts tsx txt vue xml yaml yml zig".split()
)
_ERROR = re.compile(
    r"\b(?:errors?|fail(?:s|ed|ure|ures|ing)?|exceptions?|traceback|panic(?:ked)?|fatal|undefined|cannot|denied|"
    r"not found|no such file|unable to|refused|timed out)\b|Error\b|Exception\b",
    re.IGNORECASE,
)
_STOP = frozenset(
    "about after again also because been before being could does doing down each from have having here into just like"
    " more most need only other over please same should some such than that their them then there these they this"
    " those through under until very want were what when where which while will with would your".split()
)
LONGEST_LINE = 60
"""Longer lines (in words) give no context for a name."""
_CACHE_SIZE = 1 << 16
"""Cache size in lines: contestants keep the same ones."""


def lines_of(text: str) -> Iterator[str]:
    """Lines without a file viewer's line numbers."""
    for line in text.splitlines():
        if stripped := _NUMBERED.sub("", line).strip():
            yield stripped


def line_numbers_in(messages: Iterable[Message]) -> frozenset[str]:
    """Leading numbers of lines, from a file viewer or a table's first column."""
    split = (line for message in messages for text in message_texts(message) for line in text.splitlines())
    return frozenset(found[0].strip(" \t→:") for line in split if (found := _NUMBERED.match(line)))


def message_texts(message: Message) -> Iterator[str]:
    """All texts of a message that a model reads."""
    for part in message.parts:
        if isinstance(part, Text | ToolResult):
            yield part.text
        elif isinstance(part, ToolCall):
            yield from argument_values(part)


def plain_text(message: Message, results: int | None = None, arguments: int | None = None) -> str:
    """A message as plain text, a call as its tool name and its argument values; limits are in characters."""
    return "\n".join(_plain_texts(message, results, arguments))


def _plain_texts(message: Message, results: int | None, arguments: int | None) -> Iterator[str]:
    for part in message.parts:
        if isinstance(part, Text):
            yield part.text
        elif isinstance(part, ToolResult):
            yield part.text[:results]
        elif isinstance(part, ToolCall):
            yield part.name
            yield from (value[:arguments] for value in argument_values(part))


def argument_values(call: ToolCall) -> Iterator[str]:
    for _, value in call_arguments(call):
        yield value


def call_arguments(call: ToolCall, closed: Container[str] = ()) -> Iterator[tuple[str, str]]:
    """Argument texts of a call with their keys; does not descend into objects under `closed` keys."""
    stack: list[tuple[str, object]] = [("", call.arguments_dict)]
    while stack:
        key, value = stack.pop()
        if isinstance(value, dict) and key not in closed:
            stack.extend((str(name), inner) for name, inner in value.items())
        elif isinstance(value, list):
            stack.extend((key, inner) for inner in value)
        elif isinstance(value, str | int | float) and not isinstance(value, bool):
            yield key, str(value)


def call_labels(call: ToolCall) -> Iterator[str]:
    """Tool name and argument keys of a call."""
    yield call.name
    stack: list[object] = [call.arguments_dict]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            yield from map(str, value)
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)


@lru_cache(_CACHE_SIZE)
def names_on(line: str) -> frozenset[str]:
    """Names on one line; names never span lines."""
    return frozenset(names_in(line))


def names_in(text: str) -> set[str]:
    """File names, identifiers with an inner capital, underscore or digit, ids, issue numbers, versions."""
    if "\\" in text:
        text = _ESCAPED.sub(" ", text)
    return set(filter(_is_name, _NAME.findall(text)))


def _is_name(found: str) -> bool:
    if "." in found and not found[0].isdigit() and not found.startswith(("v", "#")):
        return found.rpartition(".")[2] in _ENDINGS
    return len(found) >= 3


def split_words(text: str) -> list[str]:
    return _WORD.findall(text)


def content_words(text: str) -> set[str]:
    """Words longer than three letters without stop words; in scripts without spaces, character pairs."""
    found: set[str] = set()
    for word in _WORD.findall(text.lower()):
        if word.isascii():
            if len(word) > 3 and word not in _STOP:
                found.add(word)
        elif ord(max(word)) > 0x2E7F:
            found.update(a + b for a, b in pairwise(word))
        elif len(word) > 3:
            found.add(word)
    return found


@lru_cache(_CACHE_SIZE)
def content_words_on(line: str) -> frozenset[str]:
    """The content words of one line."""
    return frozenset(content_words(line))


def is_error(line: str) -> bool:
    return _ERROR.search(line) is not None


def all_lines(messages: Iterable[Message]) -> Iterator[str]:
    for message in messages:
        for text in message_texts(message):
            yield from lines_of(text)
