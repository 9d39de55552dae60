"""Lines, the units that a ledger selects: splits text, finds error lines, separates user text from program text."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Literal

import msgspec
from msgspec import structs

from ..messages import is_request

LineKind = Literal["user", "said", "asked", "wrote", "file", "output", "name"]
"""Origin of a line: user text, assistant text ("said"), call arguments ("asked"), text written to a file, a file's
content, tool output; or a single name taken from a line."""
FILE_KINDS: tuple[LineKind, ...] = ("file", "wrote")
"""Lines of files."""
_MAX_DIGITS = 6
_NUMBERED = re.compile(rf"\s*+(\d{{1,{_MAX_DIGITS}}})(→|\t|:(?=\t| [ \t]))(.*)")
_WRAPPER_STARTS = (
    *("<system", "</system", "Chunk ID: ", "Wall time: ", "Process exited", "Original token", "index ", "[cut: "),
    *("<usage>", "tool_uses: ", "duration_ms: "),
)
"""`[cut: …]` begins a result that an earlier compaction shortened."""
_WRAPPER = re.compile(
    r"</?system-reminder>|Chunk ID: \w+|Wall time: [\d.]+ seconds|Process exited with code 0|Original token count: \d+"
    r"|index [0-9a-f]{7,40}\.\.[0-9a-f]{7,40}(?: \d+)?|\[cut: [\d,]+\]"
    r"|<usage>total_tokens: \d+|tool_uses: \d+|duration_ms: \d+</usage>"
)
_BREAKS = re.compile(r"[\s,;|。！？，]")
_ESCAPED_ENDS = re.compile(r"(?<!\\)(?:(?:(?:\\r)?\\n){2,}|(?:\\r)?\\n(?![a-z0-9_])|(?<![\w:])(?:\\r)?\\n)")
"""Between two words it may be part of a path."""
_TOKEN = re.compile(r"[^\s,;|。！？，]+[\s,;|。！？，]*")
_MAX_LINE_CHARS, _PIECE_CHARS = 320, 160
_SHINGLE = re.compile(r"\b(?=(\w.{15}))\w+")
_BLOCK_CHARS = 65_536
_SCAN_CHARS = 400_000
"""Characters read of one text, at most, half from each end: bounds the work on a huge result."""


class LedgerLine(msgspec.Struct, array_like=True, gc=False):
    """A line that may be kept, with its origin."""

    text: str
    kind: LineKind
    source: str
    """The path or command it is listed under; empty for user and assistant text."""
    place: int
    """Number of its message in the session or history."""
    number: int
    """Line number in its file or text."""
    time: int
    """Extractor tick at which it was read: about one tick a tool call."""
    offset: int = 0
    """Characters read up to and including it."""
    batch_size: int = 1
    """Number of lines in the same text."""
    whole: bool = True
    """False for a piece of an over-long line."""
    occurrences: int = 1
    """How often it was read since it was last changed."""
    part: int = 0
    """Index of its message part, for parallel tool results."""


def is_wrapper_line(line: str) -> bool:
    """Whether a line is only a wrapper around tool output, without information."""
    return line.startswith(_WRAPPER_STARTS) and _WRAPPER.fullmatch(line) is not None


NumberedLine = tuple[int, str, bool]
"""Line number, text, and whether it is a whole line."""


def split_lines(text: str) -> list[NumberedLine]:
    """Splits a text into lines, and over-long lines into pieces."""
    split = split_whole_lines(text)
    if len(text) <= _MAX_LINE_CHARS or max([len(line) for _, line, _ in split], default=0) <= _MAX_LINE_CHARS:
        return split
    found: list[NumberedLine] = []
    for number, line, _ in split:
        if len(line) <= _MAX_LINE_CHARS:
            found.append((number, line, True))
        else:
            found += [(number, piece, whole) for piece, whole in _pieces(line)]
    return found


def split_whole_lines(text: str) -> list[NumberedLine]:
    """Returns the non-blank lines with their numbers: those printed by a file viewer, else counted."""
    lines = text.splitlines() if len(text) <= _BLOCK_CHARS else list(_split_in_blocks(text))
    return _number_lines(text, lines, range(len(lines)))


def find_shingles(text: str) -> list[str]:
    """Returns the characters from the start of each word on, as many as tell whether another text repeats them."""
    return _SHINGLE.findall(text)


def unseen_share(shingles: Sequence[str], seen: Container[str]) -> float:
    """Returns the share of a text that other texts do not show, by its shingles; a very short text counts as unseen."""
    return sum([shingle not in seen for shingle in shingles]) / len(shingles) if shingles else 1.0


def _number_lines(text: str, lines: list[str], places: Iterable[int]) -> list[NumberedLine]:
    """Returns the non-blank ones of the lines at these places, with the number that a viewer or a search printed before
    them, without it, else counted. Before a tab, numbers must be consecutive: the first column of a table seldom is."""
    arrows, others = "→" in text, "\t" in text or ":  " in text
    if not arrows and not others:
        return [(at + 1, stripped, True) for at in places if (stripped := lines[at].rstrip())]
    found: list[NumberedLine] = []
    for at in places:
        number, line = at + 1, lines[at]
        shown, arrow, rest = line.partition("→") if arrows else ("", "", "")  # half the time of the pattern
        if arrow and (digits := shown.lstrip()).isdecimal() and len(digits) <= _MAX_DIGITS:
            number, line = int(digits), rest
        elif (
            others
            and (match := _NUMBERED.match(line))
            and (match[2] != "\t" or _is_consecutive(lines, at, int(match[1])))
        ):
            number, line = int(match[1]), match[3]
        if stripped := line.rstrip():
            found.append((number, stripped, True))
    return found


def _is_consecutive(lines: list[str], at: int, number: int) -> bool:
    """Whether the line before or after this one has the number before or after it."""
    before = _NUMBERED.match(lines[at - 1]) if at else None
    after = _NUMBERED.match(lines[at + 1]) if at + 1 < len(lines) else None
    return (before is not None and int(before[1]) == number - 1) or (after is not None and int(after[1]) == number + 1)


def _pieces(line: str) -> Iterator[tuple[str, bool]]:
    """Splits an over-long line at the escaped line ends of a quoted text, and what is still too long between words.

    A line of a quoted text is whole.
    """
    for one in filter(str.strip, _ESCAPED_ENDS.split(line)):
        if len(one) <= _MAX_LINE_CHARS:
            yield one.rstrip(), True
        else:
            yield from ((piece, False) for piece in _split_words(one))


def _split_words(line: str) -> Iterator[str]:
    """Splits a line between words; words longer than a piece are dropped."""
    piece = ""
    for token in _TOKEN.findall(line):
        if len(piece) + len(token) > _PIECE_CHARS:
            if piece.strip():
                yield piece.strip()
            piece = ""
        if len(token) <= _PIECE_CHARS:
            piece += token
    if piece.strip():
        yield piece.strip()


def _split_in_blocks(text: str) -> Iterator[str]:
    """Splits a huge text block by block: one call would hold the interpreter lock for too long."""
    if len(text) > _SCAN_CHARS:
        half = _SCAN_CHARS // 2
        yield from _split_in_blocks(text[: _last_break(text, 0, half)])
        text = text[_next_break(text, len(text) - half) :]
    start = 0
    while start < len(text):
        end = _end_of_block(text, start)
        yield from text[start:end].splitlines()
        start = end


def _end_of_block(text: str, start: int) -> int:
    """Returns the end of a line, else of a word, so that no name is cut."""
    end = start + _BLOCK_CHARS
    if end >= len(text):
        return len(text)
    newline = text.rfind("\n", start, end)
    if newline >= start:
        return newline + 1
    last = _last_break(text, start, end)
    return last if last > start else _next_break(text, end)


def _last_break(text: str, start: int, end: int) -> int:
    return next((at for at in range(end, start, -1) if _BREAKS.match(text, at - 1)), start)


def _next_break(text: str, start: int) -> int:
    found = _BREAKS.search(text, start)
    return found.start() if found else len(text)


ToolOutput = tuple[str, LedgerLine]
"""The text of a tool result, and a template with the fields its lines share."""
_ERROR_WORDS = (
    *("error", "fail", "exception", "traceback", "panic", "fatal", "undefined", "cannot", "denied", "unable"),
    *("refused", "not found", "no such", "timed out", "fehler", "erreur", "échec", "ошибка"),
)
_UNSPACED_ERROR_WORDS = ("错误", "失败", "エラー", "오류")
_ERROR_PATTERN = re.compile(
    rf"(?i:\b(?:{'|'.join(_ERROR_WORDS)})(?:s|ed|ked|ing|ures?)?\b)"
    rf"|_(?:error|exception)s?\b|\w(?:Error|Exception)s?\b|{'|'.join(_UNSPACED_ERROR_WORDS)}"
)
_PASSED = re.compile(
    r"\s*(?:=== (?:RUN|PAUSE|CONT|NAME)\b|--- (?:PASS|SKIP):|\(pass\) |[✓✔√] )|\S+::\S+ PASSED\b|test \S+ \.\.\. ok$"
)
"""A test runner's line on a test that began or passed, whatever its name says of errors."""
_NO_REPORT = re.compile(
    r"\s*(?:// |\|.*\|$|--?[a-zA-Z][\w-]*(?:[, =<\[]|$)|func )|.*(?:[!=]==? undefined\b|[,)] error\)?(?: \{.*|,)?$)"
)
"""A line of code, of a table or of a command's help that an output quotes: it names errors and reports none."""
_NO_FAILURES = re.compile(r"(?i)\b(?:0|no|without) (?:fail\w*|errors?)\b")
_COMPARES = re.compile(r"(?i)\b(?:expect\w*|want\w*|should|must|but|got|instead)\b")
"""In a line that says that no error was expected, there was one."""
_UNFINISHED = re.compile(r"(?i)\brunning (?:in (?:the )?background|with (?:session )?id)\b")
_OPENING_CHARS = 400
_MAX_ERROR_CHARS, _ERROR_SCAN_CHARS = 400, 40_000
_MAX_ERRORS = 40


def find_error_lines(text: str, kind: LineKind = "output") -> Iterator[tuple[int, str]]:
    """Yields the lines that report an error, last first, with their numbers; of a file, also those that name one."""
    end = text if len(text) <= _ERROR_SCAN_CHARS else text[-_ERROR_SCAN_CHARS:].partition("\n")[2]
    lowered = end.lower()
    words = [word for word in (*_ERROR_WORDS, *_UNSPACED_ERROR_WORDS) if word in lowered]  # faster than the pattern
    if not words:
        return
    lines = end.splitlines()
    places = [at for at in range(len(lines) - 1, -1, -1) if any(word in lines[at].lower() for word in words)]
    for number, line, _ in _number_lines(end, lines, places):
        if len(line) <= _MAX_ERROR_CHARS and _names_error(line) and (kind == "file" or _is_report(line)):
            yield number, line


def _names_error(line: str) -> bool:
    return _ERROR_PATTERN.search(line) is not None and not _PASSED.match(line)


def _is_report(line: str) -> bool:
    """Whether a line of output that names an error reports one; not quoted code, nor that there were none."""
    if _NO_REPORT.match(line):
        return False
    if not _NO_FAILURES.search(line) or _COMPARES.search(line):
        return True
    return _ERROR_PATTERN.search(_NO_FAILURES.sub("", line)) is not None


def shows_no_error(output: str) -> bool:
    """Whether a whole output is known to report no error: not that of a command that still runs, nor a long one."""
    if len(output) > _ERROR_SCAN_CHARS or _UNFINISHED.search(output, 0, _OPENING_CHARS):
        return False
    return not any(_names_error(line) and _is_report(line) for line in output.splitlines())


def latest_error_lines(outputs: Sequence[ToolOutput], earlier: dict[str, LedgerLine]) -> dict[str, LedgerLine]:
    """Returns the newest error lines of these and earlier results; a repeated line counts where it came last."""
    found: dict[str, LedgerLine] = {}
    for text, template in reversed(outputs):
        for number, error in find_error_lines(text, template.kind):
            found.setdefault(error.strip(), structs.replace(template, text=error, number=number))
        if len(found) >= _MAX_ERRORS:
            break
    before = [(error, line) for error, line in earlier.items() if error not in found]
    return dict([*before, *reversed(found.items())][-_MAX_ERRORS:])


_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


def split_reminders(text: str) -> tuple[str, str]:
    """Splits a tool result into its own text and the notes to the model that a program put into it."""
    if "<system-reminder>" not in text:
        return text, ""
    return _REMINDER.sub("", text), "\n".join(_REMINDER.findall(text))


_MAX_TASK_CANDIDATES = 4
"""Number of first user messages among which the task is searched."""
EMPTY_REPLY = "No response requested."
"""Placeholder for an empty assistant turn."""


def find_task(users: Sequence[LedgerLine]) -> LedgerLine | None:
    """Returns the user's first request, skipping general rules and slash commands."""
    asked = (line for line in users[:_MAX_TASK_CANDIDATES] if not line.text or is_request(line.text))
    return next(asked, users[0] if users else None)


CONSTRAINT = re.compile(
    r"(?i)\b(?:always|never|must(?:n't)?|don't|do not|only|from now on|make sure|no longer|at (?:least|most)|"
    r"immer|niemals|nie|nur|muss|müssen|nicht|kein\w*|ab jetzt|toujours|jamais|doit|siempre|nunca|debe)\b"
    r"|必须|不要|不能|始终|一定|只能|دائما|أبدا|يجب|لا ت"
)
SENTENCE = re.compile(r"[^.!?。！？؟\n]+(?:[.!?](?!\s|$)[^.!?。！？؟\n]*)*[.!?。！？؟]*")


def find_constraints(text: str) -> list[str]:
    """Returns the sentences of a user's text that are worded as rules."""
    if not CONSTRAINT.search(text):
        return []
    return [sentence.strip() for sentence in SENTENCE.findall(text) if CONSTRAINT.search(sentence)]
