"""What a shell command does to files: agents that have only a shell read and write with it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from shlex import shlex

from .changes import Change, ChangeKind

_PRINTS = re.compile(
    r"\s*(?:(?:test|\[) -[ef] \S+(?: \])?\s*&&\s*)?(?:cd\s+([^\s'\"]+)\s*&&\s*)?"
    r"(?:(?:sed -n|cat|head|tail|nl|(?:grep|rg)(?=.*\s-[ABC]\s?\d))\b"
    r"(?:\s+(?:-\S+|'[^']*'|\"[^\"]*\"|\d+))*\s+|git show [^\s:]+:)"
    r"((?:[\w./@~+-]|\\\$)+)\s*(?:[|;&]|$)"
)
"""Commands that print one file, or a part of it: a search with its surroundings is one."""
_FILE = re.compile(r"(?!/dev/|/proc/).*(?:\.\w+|/[\w.-]*[\w-])$|[A-Z][\w-]+$")
"""A path, or a name like Makefile: not the end of an option."""
_SEARCHES = re.compile(r"\s*(?:cd\s+[^\s'\"]+\s*&&\s*)?(?:(?:git\s+)?grep|rg|ag|ack)\s")
"""A search behind a pipe goes through output, not through files."""
_VERSIONS = re.compile(
    r"\s*(?:cd\s+[^\s'\"]+\s*&&\s*)?git\s+(?:-\S+\s+|-C\s+\S+\s+)*(?:diff|show|log|blame|stash show)\b"
)
_LOGS = (".log", ".out")
_WRITES = re.compile(r"\bcat\b.*>|\btee\s|\b(?:echo|printf)\s.*>|\bsed\s.*-i|\bcd\s|\brm\s")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_BETWEEN = frozenset(";&|()")
_LONGEST, _MOST = 4_000, 200
"""Of a line so many characters, and of a command so many lines that may write: no more is looked at."""


def printed_file(command: str) -> str | None:
    """The file that a command prints. A log is output, wherever it lies."""
    shown = _PRINTS.match(command)
    if shown is None or shown[2].endswith(_LOGS) or not _FILE.match(shown[2]):
        return None
    if is_search(command) and "." not in shown[2]:  # a folder
        return None
    return _from(shown[1] or "", shown[2].replace("\\$", "$"))


def is_search(command: str) -> bool:
    """Does a command look for something in files?"""
    return _SEARCHES.match(command) is not None


def shows_versions(command: str) -> bool:
    """Is what a command prints what files held at some time?"""
    return _VERSIONS.match(command) is not None


def written(command: str) -> tuple[str, tuple[Change, ...]]:
    """A command without the text that it puts into files, and the files that it says it writes or edits."""
    rest: list[str] = []
    changes: list[Change] = []
    folder, looked_at = "", 0
    for line, text in _with_texts(command):
        rest.append(line)
        into: list[Change] = []
        may_write = looked_at < _MOST and _WRITES.search(line, 0, _LONGEST)
        looked_at += bool(may_write)
        for words in _simple_commands(line[:_LONGEST]) if may_write else ():
            if words[0] == "cd" and len(words) == 2:
                folder = _from(folder, words[1])
            into += [Change(_from(folder, path), new=text, kind=kind) for path, kind in _targets(words)]
        changes += into
        if text and not into:
            rest.append(text)
    return "\n".join(rest), tuple(changes)


def _from(folder: str, path: str) -> str:
    return path if not folder or path.startswith(("/", "~")) else f"{folder.rstrip('/')}/{path}"


def _with_texts(command: str) -> Iterator[tuple[str, str]]:
    """Each line, with the text behind it that it announces."""
    lines = iter(command.splitlines())
    for line in lines:
        text = []
        if announced := _HEREDOC.search(line):
            for inside in lines:
                if inside.strip() == announced[2]:
                    break
                text.append(inside)
        yield line, "\n".join(text)


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The words of each command on a line. What is not a line of shell has none."""
    lexer = shlex(line, posix=True, punctuation_chars=";&|()<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        words = list(lexer)
    except ValueError:
        return
    for between, group in groupby(words, key=lambda word: bool(word) and _BETWEEN.issuperset(word)):
        if not between:
            yield list(group)


def _targets(words: list[str]) -> Iterator[tuple[str, ChangeKind]]:
    """The files that one command writes, changes or takes away."""
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
