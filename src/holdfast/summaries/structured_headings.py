"""Headings and other lines of a structured summary that the parser takes for structure, not for text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec

from .summarizer import FENCE

TITLE = "Session Summary"
TASK = "Original Task"
STATE = "Current State"
COMPLETED = "Completed Work"
DECISIONS = "Key Technical Decisions"
PENDING = "Pending Work"
ERRORS = "Errors & Resolutions"
CONSTRAINTS = "Constraints"
CONTEXT = "Critical Context"
OTHER = "Other Sections"
REMOVED = "Removed"
OWN_HEADINGS = frozenset((TASK, STATE, COMPLETED, DECISIONS, PENDING, ERRORS, CONSTRAINTS, CONTEXT, OTHER, REMOVED))
OWN_TITLE = re.compile(rf"{TITLE} \(Compaction Round \d+\)")
"""Title of a summary that Holdfast rendered."""
SectionName = Literal[
    "task", "goal", "other", "removed", "next", "pending", "errors", "decisions", "progress", "state", "completed",
    "constraints", "context", "title",
]  # fmt: skip
_TITLES: tuple[tuple[SectionName | None, str], ...] = (
    ("task", r"\b(?:original|initial) (?:user )?(?:task|request|goal)|^task$"),
    ("goal", r"^(?:goals?|objectives?)$"),
    ("other", rf"^{OTHER.casefold()}$"),
    ("removed", r"^(?:items )?(?:removed|dropped)(?: items)?(?: from the (?:earlier|previous) summary)?$"),
    (None, r"\bremoved\b|\bdropped\b"),
    ("next", r"\bnext (?:step|action)\b"),
    ("pending", r"\b(?:pending|next steps|remaining|to-?dos?|open (?:work|tasks|items)|outstanding)\b"),
    (
        "errors",
        r"\berrors?\b|\bresolutions?\b|\bproblems\b"
        r"|^(?:known |unresolved )?issues(?: (?:encountered|found|and|&)(?: |$)|$)",
    ),
    ("decisions", r"\bdecisions?\b"),
    ("progress", r"\bin[- ]progress\b"),
    ("state", r"\bcurrent (?:state|status|work|focus)\b|^(?:state|status|progress)$"),
    ("completed", r"\bcompleted\b|\bwork done\b|\baccomplish\w*|\bfinished\b|^done$"),
    ("constraints", r"\bconstraints?\b|\brequirements?\b|\bpreferences\b|^rules$"),
    ("context", r"\bcontext$|\bcontext and\b|\bnotes\b|\bkey facts\b"),
    ("title", r"\bsummary\b|\bcompaction round\b"),
)
"""The first pattern that a title contains counts; None for titles outside the template."""
_TITLE_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _TITLES)
_FILLER_WORDS = re.compile(
    r"(?:(?:key|technical|critical|important|immediate|optional|work|tasks?|next steps|and|&|resolutions?)\s*)*"
)
_MARKDOWN_HEADING = re.compile(r"\s*+(#{1,6})\s++(.*)$")
_BOLD_HEADING = re.compile(r"\s*(?:\d{1,2}[.)]\s*)?(\*\*|__)((?:(?!\1).)+)\1\s*[:：]?\s*(.*)$")
_NUMBERED_HEADING = re.compile(r"\d{1,2}[.)]\s++(\*\*|__)?(\w[^:：.!?*]{2,60})(?(1)[:：]?\1[:：]?|[:：])\s*+(.*)$")
_BARE_HEADING = re.compile(r"\s*+(?:\d{1,2}[.)]\s*+)?(\w[\w &]{2,40}?)\s*+[:：]?+\s*+$")
_TRAILING = re.compile(r"(?<![\s#])[\s#]++$")
_SURROUNDING = re.compile(r"^[\W_]*(?:\d{1,2}[.):]\s*)?[\W_]*|(?<![\W_])[\W_]++$")
_BOLD_LINE = re.compile(r"\*\*([^*]*[^*.!?])\*\*\s*+[:：]?+\s*+$")
_CAPITALS_LINE = re.compile(r"(?:\d{1,2}[.)]\s*+)?([^\W\d_][\w &/,'’()-]{2,60}?)\s*+[:：]?+\s*+$")
MAX_LEVEL = 6
"""Deepest level of a Markdown heading; the other forms count as deeper."""
BOLD_LEVEL, NUMBERED_LEVEL, CAPITALS_LEVEL, BARE_LEVEL = 7, 8, 9, 10
_MAX_BOLD_WORDS = 4
"""A bold line with more words is a sentence, unless it is exactly a section name."""
_MAX_PLAIN_WORDS = 8
BULLET = re.compile(r"(\s*)(?:[-*+–]\s+|[•·▪◦‣]\s*|\d{1,3}[.)]\s+)(.*)$")
NOISE = re.compile(r"\s*(?:(?:[-*_]\s*){3,}|</?summary>)\s*$")
"""A ruler, or a tag around the whole answer."""
LEFT_OUT_LINE = re.compile(r"…\s*and ([\d,]+) earlier items?: see the archive\.?")
CLOSING_LINE = re.compile(
    r"[*_]*This summary (?:takes in \d+ earlier|incorporates context from \d+ previous compaction) rounds?\.?[*_]*"
)
"""The last line of a summary, ours or that of the layer document."""
_WORDS = re.compile(r"[^\W_]+(?:/[^\W_]+)?")
_RULE = re.compile(r"[-–—*_:\s]+")
_NONE = frozenset(
    "none nothing unknown n/a keine keiner nichts entfällt unbekannt aucun aucune rien néant ninguno ninguna nada 无 無"
    " 没有 暂无 未知 なし".split()
)
_NEGATIONS = _NONE | {"no"}
_TIME = frozenset("yet so far at the moment this time currently right now for else in particular".split())
_NOT = frozenset("not yet applicable known specified stated given provided mentioned".split())
_WORK = frozenset("work task tasks action actions item items step steps to-do todo todos".split())
_SUBJECTS = _WORK | frozenset(
    "error errors issue issues problem problems failures blockers constraint constraints requirement requirements"
    " preferences limitations restrictions decision decisions context information".split()
)
_STATED = frozenset(
    "there is are was were has have had been by user to report note session during conversation or and other further"
    " additional more new next immediate outstanding remaining remain open pending unresolved current specific special"
    " explicit major significant key technical important critical stated specified given provided mentioned noted"
    " recorded reported identified known found encountered occurred observed made taken needed required left".split()
)
_DONE = frozenset("all everything is are was has have been now complete completed done finished".split())


def is_empty_value(text: str) -> bool:
    """Returns whether a text stands for no value, in a cell too."""
    words = set(_WORDS.findall(text.casefold()))
    if text.startswith("\\") or not words:
        return _RULE.fullmatch(text) is not None
    return ("not" in words and len(words) > 1 and words <= _NOT) or (bool(words & _NONE) and words <= _NONE | _TIME)


def is_empty(text: str) -> bool:
    """Returns whether a whole item states only that there is nothing under its heading."""
    if is_empty_value(text) or text.startswith("\\") or not _WORDS.search(text):
        return is_empty_value(text)
    listed = _WORDS.findall(text.casefold())
    words = set(listed)
    if ("no" in words and not words & _SUBJECTS) or listed[0] not in _NEGATIONS | {"there", "currently"}:
        return False
    return bool(words & _NEGATIONS) and words <= _NEGATIONS | _TIME | _SUBJECTS | _STATED


def is_all_done(text: str) -> bool:
    """Returns whether a text states that no work is open."""
    words = set(_WORDS.findall(text.casefold()))
    return bool(words & {"all", "everything"} and words & {"complete", "completed", "done", "finished"}) and (
        words <= _DONE | _WORK
    )


class Heading(msgspec.Struct, frozen=True):
    """A heading line."""

    level: int
    section: SectionName | None
    """None if the summary has no such section."""
    title: str
    rest: str = ""
    """The text after the heading on the same line."""
    plain: bool = False
    """Whether the line is a heading only among others that are written the same way."""


def parse_heading(line: str) -> Heading | None:
    """Parses a Markdown heading, a numbered line that ends with a colon, or a bold or bare section name."""
    if (found := _MARKDOWN_HEADING.match(line)) and (title := _TRAILING.sub("", found[2])):
        return Heading(len(found[1]), _section_named(title), title)
    if found := _NUMBERED_HEADING.match(line):
        section = _section_named(found[2], alone=bool(found[3]))
        if section or not found[3]:
            return Heading(NUMBERED_LEVEL, section, found[2], found[3])
    if found := _BOLD_HEADING.match(line):
        section = _section_named(found[2], alone=bool(found[3]) or len(found[2].split()) > _MAX_BOLD_WORDS)
        return Heading(BOLD_LEVEL, section, found[2], found[3]) if section else None
    if (found := _BARE_HEADING.match(line)) and (section := _section_named(found[1], alone=True)):
        return Heading(CAPITALS_LEVEL if found[1].isupper() else BARE_LEVEL, section, found[1])
    return None


def parse_plain_heading(line: str) -> Heading | None:
    """Parses a line of nothing but capitals, or of bold text that names no section of the template."""
    bold = _BOLD_LINE.match(line)
    found = bold or (_CAPITALS_LINE.match(line) if line.isupper() else None)
    title = found[1].strip(" :：") if found else ""
    section = _section_named(title)
    if not title or (bold and section) or len(title.split()) > _MAX_PLAIN_WORDS:
        return None
    return Heading(BOLD_LEVEL if bold else CAPITALS_LEVEL, section, title, plain=True)


def _section_named(title: str, alone: bool = False) -> SectionName | None:
    words = _SURROUNDING.sub("", title).casefold()
    for name, pattern in _TITLE_PATTERNS:
        if found := pattern.search(words):
            rest = words[: found.start()], words[found.end() :]
            return name if not alone or all(_FILLER_WORDS.fullmatch(part.strip()) for part in rest) else None
    return None


def closing_fence(lines: Sequence[str], start: int, mark: str) -> int | None:
    """Returns the index of the line that closes a code fence, if there is one."""
    for at in range(start, len(lines)):
        found = FENCE.match(lines[at])
        if found and not found[2] and found[1].startswith(mark):
            return at
    return None


def fence_ends(lines: Sequence[str]) -> Callable[[int], int | None]:
    """Returns a function from the index of a line that opens a code fence to that of the line that closes it.

    Each mark is sought to the end of the text only once.
    """
    unclosed: list[str] = []

    def end_of(at: int) -> int | None:
        fence = FENCE.match(lines[at])
        if fence is None or fence[1].startswith(tuple(unclosed)):
            return None
        end = closing_fence(lines, at + 1, fence[1])
        if end is None:
            unclosed.append(fence[1])
        return end

    return end_of


def split_at_headings(text: str) -> Iterator[tuple[Heading | None, list[str]]]:
    """Yields each Markdown heading with its own and the following lines; those before the first have none.

    A heading inside a code block is text.
    """
    lines, at, heading, block = text.splitlines(), 0, None, list[str]()
    end_of = fence_ends(lines)
    while at < len(lines):
        end, found = end_of(at), parse_heading(lines[at])
        if found and found.level <= MAX_LEVEL:
            yield heading, block
            heading, block = found, []
        stop = (at if end is None else end) + 1
        block += lines[at:stop]
        at = stop
    yield heading, block
