"""What the part of a session after a cut says was needed of the part before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from ..messages import Message, ToolResult, is_framed
from ..tokens import CharsPerPiece, Estimator, tokens_in
from .reading import (
    LONGEST_LINE,
    all_lines,
    content_words,
    is_error,
    labels,
    lines_of,
    names_in,
    names_on,
    numbers_before,
    texts,
    words,
)
from .remembered import command, edited_lines, modified_files, read_files, remembered

HORIZON = 40
"""How many tool calls after the cut are looked at."""
ERRORS = 10
USER_CHARACTERS = 800
_MACHINE = (
    *("<", "[Request interrupted", "Caveat:", "This session is being continued", "# AGENTS.md"),
    "Base directory for this skill:",
)


class Needs(msgspec.Struct, frozen=True):
    """What a context must hold at a cut, and where it stood before."""

    names: frozenset[str]
    contexts: dict[str, list[frozenset[str]]]
    """For each needed name, the other words of every line that held it."""
    lines: frozenset[str]
    modified: frozenset[str]
    read: frozenset[str]
    users: tuple[frozenset[str], ...]
    errors: tuple[str, ...]
    commands: frozenset[str]
    known: frozenset[str]
    """Every name before the cut, in tool names, argument keys and line numbers: any other in the result is invented."""
    results: tuple[tuple[int, frozenset[str]], ...]
    """Earlier tool results: their tokens, and the needed names in them."""


def needs(before: Sequence[Message], after: Sequence[Message], estimator: Estimator | None = None) -> Needs:
    """All of it; the estimator of the run counts what would have to be read again."""
    lines = list(dict.fromkeys(all_lines(before)))
    here = [(line, names_on(line)) for line in lines]
    known = frozenset().union(*(names for _, names in here)) if here else frozenset()
    names, edits, again = _needed(after, known, frozenset(lines))
    held: dict[str, list[frozenset[str]]] = {name: [] for name in names}
    for line, inside in here:
        if inside & names and len(said := words(line)) <= LONGEST_LINE:
            for name in inside & names:
                held[name].append(frozenset(said) - set(words(name)))
    calls = [call for message in before for call in message.calls]
    labelled = names_in("\n".join(dict.fromkeys(label for call in calls for label in labels(call))))
    ran = {run for call in calls if (run := command(call))}
    return Needs(
        names=frozenset(names),
        contexts=held,
        lines=edits,
        modified=frozenset(_base(path) for call in calls for path in modified_files(call)),
        read=frozenset(_base(path) for call in calls for path in read_files(call)),
        users=tuple(_asked(before)),
        errors=_last_errors(before),
        commands=frozenset(again & ran),
        known=known | labelled | numbers_before(before),
        results=tuple(_results(before, names, estimator or CharsPerPiece())),
    )


def _needed(
    after: Sequence[Message], known: frozenset[str], lines: frozenset[str]
) -> tuple[set[str], frozenset[str], set[str]]:
    """Names that come back before a text gives them anew; lines that are edited and commands that are run again."""
    supplied: set[str] = set()
    names: set[str] = set()
    edits: set[str] = set()
    again: set[str] = set()
    calls = 0
    for message in after:
        if is_framed(message):
            continue
        for call in message.calls:
            calls += 1
            for text in remembered(call):
                names |= (names_in(text) & known) - supplied
            edits.update(line for line in edited_lines(call) if line in lines)
            if said := command(call):
                again.add(said)
        if calls >= HORIZON:
            break
        for text in _supplied(message):
            supplied |= names_in(text)
    return names, frozenset(edits), again


def _supplied(message: Message) -> Iterator[str]:
    """What came to the agent from outside: its own words are what it remembered."""
    if message.role != "assistant":
        yield from texts(message)


def _base(path: str) -> str:
    return PurePosixPath(path).name or path


def user_texts(messages: Sequence[Message]) -> list[str]:
    """What the user said, without what a tool says in the user's name."""
    said = [message.text.strip() for message in messages if message.role == "user" and not is_framed(message)]
    return [text for text in said if text and not text.startswith(_MACHINE)]


def _asked(before: Sequence[Message]) -> Iterator[frozenset[str]]:
    for text in user_texts(before):
        if content := content_words(text[:USER_CHARACTERS]):
            yield frozenset(content)


def _last_errors(before: Sequence[Message]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for message in reversed(before):
        for part in reversed(message.parts):
            if isinstance(part, ToolResult):
                for line in reversed(list(lines_of(part.text))):
                    if line not in found and is_error(line):
                        found[line] = None
                        if len(found) == ERRORS:
                            return tuple(found)
    return tuple(found)


def _results(before: Sequence[Message], names: set[str], estimator: Estimator) -> list[tuple[int, frozenset[str]]]:
    found = []
    for message in before:
        for result in message.results:
            text = result.text
            if inside := names_in(text) & names:
                found.append((tokens_in(estimator, text), frozenset(inside)))
    return found
