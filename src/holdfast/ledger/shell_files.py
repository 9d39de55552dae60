"""File changes in patches and shell commands, and search output: agents with only a shell read and write through it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from shlex import shlex
from typing import Literal

import msgspec

_SEARCH_MARK = re.compile(r"[<-]{7} SEARCH|(=======)|[>+]{7} REPLACE")
_PATCH_HEADER = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")
ChangeKind = Literal["part", "whole", "deleted", "unseen"]
"""Edited in part, written whole, deleted, or changed by a script whose effect is not visible."""
_PATCH_KINDS: dict[str, ChangeKind] = {"Update": "part", "Add": "whole", "Delete": "deleted"}


class FileChange(msgspec.Struct, frozen=True):
    """A change of one file: the text removed and the text inserted."""

    path: str
    old: str = ""
    new: str = ""
    kind: ChangeKind = "part"


def parse_patch(patch: str) -> Iterator[FileChange]:
    """Yields the changes of an `apply_patch` text, one per file."""
    path, kind, lines = "", "", list[str]()
    for line in patch.splitlines():
        if header := _PATCH_HEADER.match(line):
            if path:
                yield _change(path, _PATCH_KINDS[kind], lines)
            path, kind, lines = header[2].strip(), header[1], []
        else:
            lines.append(line)
    if path:
        yield _change(path, _PATCH_KINDS[kind], lines)


def _change(path: str, kind: ChangeKind, lines: list[str]) -> FileChange:
    old = "\n".join(line[1:] for line in lines if line[:1] in ("-", " "))
    new = "\n".join(line[1:] for line in lines if line[:1] in ("+", " "))
    return FileChange(path, old, new, kind)


def parse_diff(path: str, diff: str) -> FileChange:
    """Parses a diff of one file: SEARCH/REPLACE blocks, or lines marked + and -."""
    lines = diff.splitlines()
    marks = [_SEARCH_MARK.match(line) for line in lines]
    if not any(marks):
        return _change(path, "part", [line for line in lines if line[:3] not in ("---", "+++")])
    sides: dict[bool, list[str]] = {False: [], True: []}
    is_new = False
    for line, mark in zip(lines, marks, strict=True):
        if mark:
            is_new = mark[1] is not None
        else:
            sides[is_new].append(line)
    return FileChange(path, "\n".join(sides[False]), "\n".join(sides[True]))


_PRINT_COMMAND = re.compile(
    r"\s*(?:(?:test|\[) -[ef] \S+(?: \])?\s*&&\s*)?(?:cd\s+([^\s'\"]+)\s*&&\s*)?"
    r"(?:(?:sed -n|cat|head|tail|nl|(?:grep|rg)(?=.*\s-[ABC]\s?\d))\b"
    r"(?:\s+(?:-\S+|'[^']*'|\"[^\"]*\"|\d+(?:,(?:\d+|\$)p)?))*\s+|git show [^\s:]+:)"
    r"((?:[\w./@~+-]|\\\$)+)\s*(?:[|;&]|$)"
)
"""Commands that print one file or a part of it, including a search with context lines."""
_FILE_PATH = re.compile(r"(?!/dev/|/proc/).*(?:\.\w+|/[\w.-]*[\w-])$|[A-Z][\w-]+$")
"""A path, or a name like Makefile; not the end of an option."""
_SEARCH_COMMAND = re.compile(r"\s*(?:cd\s+[^\s'\"]+\s*&&\s*)?(?:(?:git\s+)?grep|rg|ag|ack)\s")
"""A search at the start of a command; behind a pipe it would search output, not files."""
_GIT_SHOW = re.compile(
    r"\s*(?:cd\s+[^\s'\"]+\s*&&\s*)?git\s+(?:-\S+\s+|-C\s+\S+\s+)*(?:diff|show|log|blame|stash show)\b"
)
_LOG_SUFFIXES = (".log", ".out")
_WRITE_HINT = re.compile(r"\bcat\b.*>|\btee\s|\b(?:echo|printf)\s.*>|\bsed\s.*-i|\bcd\s|\brm\s")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_SHELL_SEPARATORS = frozenset(";&|()")
_MAX_SHELL_LINE_CHARS, _MAX_WRITE_LINES = 4_000, 200
"""Limits of the analysis: characters of a line, and lines of a command that may write."""


def printed_path(command: str, folder: str = "") -> str | None:
    """Returns the path of the file that a command prints in a folder; None for logs, which count as output."""
    shown = _PRINT_COMMAND.match(command)
    if shown is None or shown[2].endswith(_LOG_SUFFIXES) or not _FILE_PATH.match(shown[2]):
        return None
    if is_search_command(command) and "." not in shown[2]:  # a folder
        return None
    return _join_path(_join_path(folder, shown[1] or ""), shown[2].replace("\\$", "$"))


def is_search_command(command: str) -> bool:
    """Whether a command searches in files."""
    return _SEARCH_COMMAND.match(command) is not None


def shows_file_versions(command: str) -> bool:
    """Whether a command prints versions of files, as git diff and git show do."""
    return _GIT_SHOW.match(command) is not None


def parse_file_writes(command: str, folder: str = "") -> tuple[str, tuple[FileChange, ...]]:
    """Returns the command without here-documents that it writes to files, and the file changes it makes in a folder."""
    rest: list[str] = []
    changes: list[FileChange] = []
    analysed = 0
    for line, text in _split_heredocs(command):
        rest.append(line)
        into: list[FileChange] = []
        may_write = analysed < _MAX_WRITE_LINES and _WRITE_HINT.search(line, 0, _MAX_SHELL_LINE_CHARS)
        analysed += bool(may_write)
        for words in _simple_commands(line[:_MAX_SHELL_LINE_CHARS]) if may_write else ():
            if words[0] == "cd" and len(words) == 2:
                folder = _join_path(folder, words[1])
            into += [FileChange(_join_path(folder, path), new=text, kind=kind) for path, kind in _write_targets(words)]
        changes += into
        if text and not into:
            rest.append(text)
    return "\n".join(rest), tuple(changes)


def _join_path(folder: str, path: str) -> str:
    if not folder or path.startswith(("/", "~")):
        return path
    return f"{folder.rstrip('/')}/{path.removeprefix('./')}" if path else folder


def _split_heredocs(command: str) -> Iterator[tuple[str, str]]:
    """Yields each line with its here-document."""
    lines = iter(command.splitlines())
    for line in lines:
        text = []
        if heredoc := _HEREDOC.search(line):
            for inside in lines:
                if inside.strip() == heredoc[2]:
                    break
                text.append(inside)
        yield line, "\n".join(text)


def _simple_commands(line: str) -> Iterator[list[str]]:
    """Yields the words of each command on a line; nothing if the line is not valid shell."""
    lexer = shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return
    for between, group in groupby(words, key=lambda word: bool(word) and _SHELL_SEPARATORS.issuperset(word)):
        if not between:
            yield list(group)


def _write_targets(words: list[str]) -> Iterator[tuple[str, ChangeKind]]:
    """Yields the files that one command writes, edits or deletes."""
    program, *given = words[1:] if words[:2] == ["git", "rm"] else words
    if program in ("cat", "echo", "printf"):
        for before, sign, path in zip(words, given, given[1:], strict=False):
            if sign in (">", ">>") and before != "2" and not path.startswith("/dev/"):
                yield path, "whole" if sign == ">" else "part"
    elif program == "tee":
        stop = next((place for place, word in enumerate(given) if word.startswith(("<", ">"))), len(given))
        kind: ChangeKind = "part" if "-a" in given else "whole"
        yield from ((path, kind) for path in given[:stop] if not path.startswith(("-", "/dev/")))
    elif program == "rm":
        yield from ((path, "deleted") for path in given if path and path[0] != "-")
    elif program == "sed" and any(word.startswith(("-i", "--in-place")) for word in given):
        scripts = [place + 1 for place, word in enumerate(given) if word in ("-e", "-f", "--expression")]
        names = [word for place, word in enumerate(given) if word and word[0] != "-" and place not in scripts]
        yield from ((path, "unseen") for path in names[not scripts :])


_MATCH = re.compile(r"([\w./@+-]*[\w-]\.\w{1,6})([:-])(\d{1,6})\2(.*)")
_MAX_CANDIDATES = 50
"""Paths with the same base name that are compared, at most."""


def parse_match(line: str) -> tuple[str, int, str] | None:
    """Parses `path:12:text` and `path-13-text` of search output into path, line number and text."""
    found = _MATCH.match(line)
    return (found[1], int(found[3]), found[4]) if found else None


def resolve_path(path: str, alike: Sequence[str]) -> str:
    """Returns the newest known path that ends in this relative path, else the path itself."""
    ending = "/" + path.removeprefix("./")
    newest = reversed(alike[-_MAX_CANDIDATES:])
    return next((known for known in newest if known == path or known.endswith(ending)), path)
