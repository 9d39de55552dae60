"""What the part of a session after a cut says was needed of the part before."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

import msgspec

from ..messages import Message, ToolCall, ToolResult, is_framed, is_from_user
from ..tokens import CharsPerPiece, Estimator, count_tokens
from .text import (
    LONGEST_LINE,
    all_lines,
    call_arguments,
    call_labels,
    content_words,
    is_error,
    line_numbers_in,
    lines_of,
    message_texts,
    names_in,
    names_on,
    split_words,
)

_OLD_TEXT_KEYS = frozenset("old_string old_str oldText old_text old search_text".split())
_PATH_KEYS = frozenset(
    "file_path path notebook_path filePath filename file paths files dir directory workdir cwd".split()
)
_COMMAND_KEYS = frozenset("command cmd script".split())
_SEARCH_KEYS = frozenset("pattern query regex glob include search symbol url".split())
_NEW_TEXT_KEYS = frozenset(
    "new_string new_str newText new_text content contents text body prompt description title subject message plan"
    " todos activeForm thought explanation chars input insert_text file_text code".split()
)
_DECISION_KEYS = frozenset("status timeout yield_time_ms max_output_tokens".split())
"""Keys of values the agent decides at each call: never recalled."""
_HEREDOC_START = re.compile(r"<<-?\s*+['\"]?(\w++)")
_FIRST_WORD = re.compile(r"^[^\S\n]*+(\w++)", re.MULTILINE)
_NEW_PROSE = re.compile(
    r"(?P<flag>(?:--(?:description|body|title|message|notes|comment|summary|subject|reason)[= ]|(?<![\w-])-m ))"
    r"""\s*+(?:"(?:[^"\\]|\\.)*+"|'[^']*+')"""
)
"""Texts that a command writes: a description, a commit's message."""
_COMMENT = re.compile(r"(?m)(?:^|(?<=[ \t]))#[ \t].*$")
_RANGE = re.compile(r"(?P<tool>\bsed -n |\b(?:head|tail) )(?:-[cn] ?)?['\"]?[-+]?\d++(?:,\+?\d++)?p?['\"]?")
"""Line numbers and counts, which an agent decides at each call."""
_INSTALL = re.compile(
    r"(?P<tool>\b(?:pip3?|npm|pnpm|yarn|apt(?:-get)?|brew|gem) (?:install|add|i)\b)"
    r"(?:[ \t]++(?:-[qyUDg]+|--[a-z][a-z-]*|[\w@.\[\]=<>~^'\"-]++)(?=[ \t\n;&|)]|$)(?<! -r)(?<! -e))+"
)
"""Packages are installed by their public names."""
_PATCHED_FILE = re.compile(r"^\*\*\* (?:Update|Delete|Add) File: (.+)$", re.MULTILINE)


def recalled_texts(call: ToolCall) -> Iterator[str]:
    """Argument texts that refer to existing content, not to newly written content."""
    found = [(key, value) for key, value in call_arguments(call, closed=_NEW_TEXT_KEYS) if key not in _DECISION_KEYS]
    coding = any(
        key in _OLD_TEXT_KEYS or key in _COMMAND_KEYS or key in _PATH_KEYS or key in _SEARCH_KEYS for key, _ in found
    )
    for key, value in found:
        if key in _NEW_TEXT_KEYS or not value:
            if (patch := _patch_body(value)) is not None:
                yield "\n".join(_old_side(patch))
        elif key in _COMMAND_KEYS:
            yield _without_new_text(value)
        elif key in _OLD_TEXT_KEYS or key in _PATH_KEYS or key in _SEARCH_KEYS or not coding:
            if (patch := _patch_body(value)) is not None:
                yield "\n".join(_old_side(patch))
            elif len(value) <= 400 or key in _OLD_TEXT_KEYS:
                yield value


def _without_new_text(command: str) -> str:
    """A command without the text it writes, ranges of lines and packages to install; for a patch, only its old side."""
    if (patch := _patch_body(command)) is not None:
        return "\n".join(_old_side(patch))
    command = _COMMENT.sub("", _NEW_PROSE.sub(r"\g<flag>", "".join(_outside_heredocs(command))))
    return _INSTALL.sub(r"\g<tool>", _RANGE.sub(r"\g<tool>", command))


def _outside_heredocs(command: str) -> Iterator[str]:
    """The command outside here-documents; one without an end marker is not a here-document."""
    lines: dict[str, list[tuple[int, ...]]] = {}
    for found in _FIRST_WORD.finditer(command):
        lines.setdefault(found[1], []).append(found.span())
    end = line_end = 0
    for opened in _HEREDOC_START.finditer(command):
        if line_end < opened.end():
            line_end = command.find("\n", opened.end())
        if line_end < 0:
            break
        ends = lines.get(opened[1], [])
        place = bisect_left(ends, (line_end + 2,))
        if opened.start() >= end and place < len(ends):
            yield command[end : opened.start()]
            end = ends[place][1]
    yield command[end:]


def _patch_body(text: str) -> str | None:
    """The body of an apply_patch block."""
    _, _, begun = text.partition("*** Begin Patch\n")
    patch, ended, _ = begun.partition("*** End Patch")
    return patch if ended else None


def _old_side(patch: str) -> Iterator[str]:
    for line in patch.splitlines():
        if line.startswith("*** ") and not line.startswith("*** Add"):
            yield line.partition(": ")[2]
        elif line[:1] in ("-", " "):
            yield line[1:]


def edited_lines(call: ToolCall) -> Iterator[str]:
    """Old-text lines of an edit, which must be known verbatim."""
    for key, value in call_arguments(call):
        if key in _OLD_TEXT_KEYS:
            yield from _substantial_lines(value)
        elif (patch := _patch_body(value)) is not None:
            yield from _substantial_lines("\n".join(line[1:] for line in patch.splitlines() if line[:1] in ("-", " ")))


def _substantial_lines(text: str) -> Iterator[str]:
    """Lines longer than a bracket or two."""
    return (line for line in lines_of(text) if len(line) >= 12)


def modified_files(call: ToolCall) -> Iterator[str]:
    found = dict(call_arguments(call))
    if _OLD_TEXT_KEYS & found.keys() or call.name.lower() in ("write", "create", "write_file", "edit", "multiedit"):
        yield from (found[key] for key in ("file_path", "path", "notebook_path", "filePath") if key in found)
    for value in found.values():
        if (patch := _patch_body(value)) is not None:
            yield from _PATCHED_FILE.findall(patch)


def read_files(call: ToolCall) -> Iterator[str]:
    found = dict(call_arguments(call))
    if call.name.lower() in ("read", "view", "read_file", "cat", "open_file"):
        yield from (found[key] for key in ("file_path", "path", "filePath") if key in found)


def command_of(call: ToolCall) -> str | None:
    """The one-line command of a call."""
    for key, value in call_arguments(call):
        if key in _COMMAND_KEYS and "\n" not in (command := value.strip()) and command:
            return command
    return None


HORIZON = 40
"""Tool calls after the cut that are examined."""
MAX_ERRORS = 10
USER_CHARACTERS = 800
_MACHINE_PREFIXES = (
    *("<", "[Request interrupted", "Caveat:", "This session is being continued", "# AGENTS.md"),
    "Base directory for this skill:",
)


class NeededItems(msgspec.Struct, frozen=True):
    """Items from before a cut that the messages after it need."""

    names: frozenset[str]
    contexts: dict[str, list[frozenset[str]]]
    """For each needed name, the other words of every line that contained it."""
    lines: frozenset[str]
    modified: frozenset[str]
    read: frozenset[str]
    users: tuple[frozenset[str], ...]
    errors: tuple[str, ...]
    commands: frozenset[str]
    known: frozenset[str]
    """Every name before the cut, including tool names, argument keys and line numbers: others are invented."""
    results: tuple[tuple[int, frozenset[str]], ...]
    """Earlier tool results: token count and the needed names in each."""


def find_needed(before: Sequence[Message], after: Sequence[Message], estimator: Estimator | None = None) -> NeededItems:
    """Finds all needed items; the estimator counts tool results that would be read again."""
    lines = list(dict.fromkeys(all_lines(before)))
    here = [(line, names_on(line)) for line in lines]
    known = frozenset().union(*(names for _, names in here)) if here else frozenset()
    names, edits, later_commands = _needed_later(after, known, frozenset(lines))
    held: dict[str, list[frozenset[str]]] = {name: [] for name in names}
    for line, inside in here:
        if inside & names and len(line_words := split_words(line)) <= LONGEST_LINE:
            for name in inside & names:
                held[name].append(frozenset(line_words) - set(split_words(name)))
    calls = [call for message in before for call in message.calls]
    labelled = names_in("\n".join(dict.fromkeys(label for call in calls for label in call_labels(call))))
    ran = {command for call in calls if (command := command_of(call))}
    return NeededItems(
        names=frozenset(names),
        contexts=held,
        lines=edits,
        modified=frozenset(_base_name(path) for call in calls for path in modified_files(call)),
        read=frozenset(_base_name(path) for call in calls for path in read_files(call)),
        users=tuple(_user_word_sets(before)),
        errors=_last_errors(before),
        commands=frozenset(later_commands & ran),
        known=known | labelled | line_numbers_in(before),
        results=tuple(_results_with_names(before, names, estimator or CharsPerPiece())),
    )


def _needed_later(
    after: Sequence[Message], known: frozenset[str], lines: frozenset[str]
) -> tuple[set[str], frozenset[str], set[str]]:
    """Known names used before a new message supplies them; edited lines; commands run."""
    supplied: set[str] = set()
    names: set[str] = set()
    edits: set[str] = set()
    commands: set[str] = set()
    calls = 0
    for message in after:
        if is_framed(message):
            continue
        for call in message.calls:
            calls += 1
            for text in recalled_texts(call):
                names |= (names_in(text) & known) - supplied
            edits.update(line for line in edited_lines(call) if line in lines)
            if command := command_of(call):
                commands.add(command)
        if calls >= HORIZON:
            break
        for text in _external_texts(message):
            supplied |= names_in(text)
    return names, frozenset(edits), commands


def _external_texts(message: Message) -> Iterator[str]:
    """Texts that reached the agent from outside; its own words do not count."""
    if message.role != "assistant":
        yield from message_texts(message)


def _base_name(path: str) -> str:
    return PurePosixPath(path).name or path


def user_texts(messages: Sequence[Message]) -> list[str]:
    """Texts of the user, without those a tool writes in the user's name."""
    texts = [message.text.strip() for message in messages if is_from_user(message) and not is_framed(message)]
    return [text for text in texts if text and not text.startswith(_MACHINE_PREFIXES)]


def _user_word_sets(before: Sequence[Message]) -> Iterator[frozenset[str]]:
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
                        if len(found) == MAX_ERRORS:
                            return tuple(found)
    return tuple(found)


def _results_with_names(
    before: Sequence[Message], names: set[str], estimator: Estimator
) -> list[tuple[int, frozenset[str]]]:
    found = []
    for message in before:
        for result in message.results:
            text = result.text
            if inside := names_in(text) & names:
                found.append((count_tokens(estimator, text), frozenset(inside)))
    return found
