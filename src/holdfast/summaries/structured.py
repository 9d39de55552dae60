"""Structured summaries: the sections, their headings, and how they are rendered."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from .summarizer import REASONING_TAG

TITLE = "Session Summary"
TASK = "Original Task"
COMPLETED = "Completed Work"
DECISIONS = "Key Technical Decisions"
STATE = "Current State"
PENDING = "Pending Work"
ERRORS = "Errors & Resolutions"
CONSTRAINTS = "Constraints"
CONTEXT = "Critical Context"
REMOVED = "Removed"
WORKING_ON = "Working on"
LAST_COMPLETED = "Last completed"
COLUMNS = ("File/Component", "Action", "Description")
UNKNOWN_TASK = "Unknown task"
SectionName = Literal[
    "task", "removed", "pending", "errors", "decisions", "progress", "state", "completed", "constraints", "context",
    "title",
]  # fmt: skip
_TITLES: tuple[tuple[SectionName, str], ...] = (
    ("task", r"\b(?:original|initial|user|user's) (?:user )?(?:task|request|goal)|^(?:task|request|goal|objective)$"),
    ("removed", r"\bremoved\b|\bdropped\b"),
    ("pending", r"\b(?:pending|next steps?|remaining|to-?dos?|open (?:work|tasks|items)|outstanding)\b"),
    ("errors", r"\berrors?\b|\bresolutions?\b|\bproblems\b|\bissues\b"),
    ("decisions", r"\bdecisions?\b"),
    ("progress", r"\bin[- ]progress\b"),
    ("state", r"\bcurrent (?:state|status|work|focus)\b|^(?:state|status|progress)$"),
    ("completed", r"\bcompleted\b|\bwork done\b|\baccomplish\w*|\bfinished\b|^done$"),
    ("constraints", r"\bconstraints?\b|\brequirements?\b|\bpreferences\b|^rules$"),
    ("context", r"\bcontext$|\bcontext and\b|\bnotes\b|\bkey facts\b"),
    ("title", r"\bsummary\b|\bcompaction round\b"),
)
_TITLE_PATTERNS = tuple((name, re.compile(pattern)) for name, pattern in _TITLES)
_FILLER_WORDS = re.compile(r"(?:(?:key|technical|critical|important|work|and|&|resolutions?)\s*)*")
_MARKDOWN_HEADING = re.compile(r"\s*(#{1,6})\s+(.+?)[\s#]*$")
_BOLD_HEADING = re.compile(r"\s*(?:\d{1,2}[.)]\s*)?(\*\*|__)((?:(?!\1).)+)\1\s*[:：]?\s*(.*)$")
_BARE_HEADING = re.compile(r"\s*(?:\d{1,2}[.)]\s*)?(\w[\w &]{2,40}?)\s*[:：]?\s*$")
_SURROUNDING = re.compile(r"^[\W_]*(?:\d{1,2}[.):]\s*)?[\W_]*|[\W_]+$")
_BOLD_LEVEL, BARE_LEVEL = 7, 8
_MAX_BOLD_WORDS = 4
"""A bold line with more words is a sentence, unless it is exactly a section name."""
FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+-]*)\s*$")
LEFT_OUT_LINE = re.compile(r"…\s*and ([\d,]+) earlier items?: see the archive\.?")
CLOSING_LINE = re.compile(r"This summary takes in \d+ earlier rounds?\.")
EMPTY_ITEM = re.compile(
    r"(?i)[*_(\[]*(?:none(?: yet| so far)?|n/?a|not applicable|nothing(?: yet| so far)?)[.)\]*_]*|[-–—*_:\s]+"
)


class CompletedWork(msgspec.Struct, frozen=True):
    """A row of the table of completed work."""

    subject: str
    action: str = ""
    description: str = ""

    @property
    def text(self) -> str:
        """The row as one line."""
        return " – ".join(filter(None, (self.subject, self.action, self.description)))


class RemovedItem(msgspec.Struct, frozen=True):
    """An item that the model removed, and its reason."""

    item: str
    reason: str


class SummarySections(msgspec.Struct, frozen=True, kw_only=True):
    """A structured summary without its task, which code adds."""

    completed: tuple[CompletedWork, ...] = ()
    decisions: tuple[str, ...] = ()
    working_on: str = ""
    last_completed: str = ""
    pending: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    removed: tuple[RemovedItem, ...] = ()
    """Only in a model's answer; never rendered."""
    left_out: int = 0
    """Items dropped for lack of room, over all rounds."""


class Heading(msgspec.Struct, frozen=True):
    """A heading line."""

    level: int
    section: SectionName | None
    """None if the summary has no such section."""
    title: str
    rest: str = ""
    """The text after the heading on the same line."""


def parse_heading(line: str) -> Heading | None:
    """Parses a Markdown heading, or a bold or bare line that is exactly a section name."""
    if found := _MARKDOWN_HEADING.match(line):
        return Heading(len(found[1]), _section_named(found[2]), found[2])
    if found := _BOLD_HEADING.match(line):
        section = _section_named(found[2], alone=bool(found[3]) or len(found[2].split()) > _MAX_BOLD_WORDS)
        return Heading(_BOLD_LEVEL, section, found[2], found[3]) if section else None
    if (found := _BARE_HEADING.match(line)) and (section := _section_named(found[1], alone=True)):
        return Heading(BARE_LEVEL, section, found[1])
    return None


def _section_named(title: str, alone: bool = False) -> SectionName | None:
    words = _SURROUNDING.sub("", title).casefold()
    for name, pattern in _TITLE_PATTERNS:
        if found := pattern.search(words):
            rest = words[: found.start()], words[found.end() :]
            return name if not alone or all(_FILLER_WORDS.fullmatch(part.strip()) for part in rest) else None
    return None


def render_sections(sections: SummarySections, *, task: str, round: int) -> str:
    """Renders the whole summary: title, verbatim task, sections, and a line that counts earlier rounds."""
    return "\n\n".join(
        [
            f"## {TITLE} (Compaction Round {round})",
            f"### {TASK}\n{_fence_task(task) if task.strip() else UNKNOWN_TASK}",
            render_body(sections),
            *([f"This summary takes in {_pluralize(round - 1, 'earlier round')}."] if round > 1 else []),
        ]
    )


def render_body(sections: SummarySections) -> str:
    """Renders the sections without title and task."""
    state = (f"{WORKING_ON}: {_or_none(sections.working_on)}", f"{LAST_COMPLETED}: {_or_none(sections.last_completed)}")
    rows = [row for row in sections.completed if one_line(row.text)]
    blocks = [
        (COMPLETED, _table(rows) if rows else "- None"),
        (DECISIONS, _bullet_list(sections.decisions) or "- None"),
        (STATE, "\n".join(f"- {line}" for line in state)),
        (PENDING, _bullet_list(sections.pending, "- [ ] ") or "- None"),
        (ERRORS, _bullet_list(sections.errors)),
        (CONSTRAINTS, _bullet_list(sections.constraints)),
        (CONTEXT, _bullet_list(sections.context)),
    ]
    parts = [f"### {title}\n{text}" for title, text in blocks if text]
    if sections.left_out:
        parts.append(f"… and {_pluralize(sections.left_out, 'earlier item')}: see the archive")
    return "\n\n".join(parts)


def _pluralize(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _fence_task(task: str) -> str:
    """Puts a task with headings, fences or reasoning tags into a code fence, so that the parser ignores them."""
    if not any(parse_heading(line) or FENCE.match(line) or REASONING_TAG.match(line) for line in task.splitlines()):
        return task
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", task) or [""]))
    return f"{fence}\n{task}\n{fence}"


def _bullet_list(items: Iterable[str], bullet: str = "- ") -> str:
    return "\n".join(bullet + escape_item(item) for item in items if one_line(item))


def _or_none(text: str) -> str:
    return escape_item(text) if one_line(text) else "None"


def _table(rows: Iterable[CompletedWork]) -> str:
    lines = [COLUMNS, *((_cell(row.subject), _cell(row.action), _cell(row.description)) for row in rows)]
    head, *written = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([head, "|---" * len(COLUMNS) + "|", *written])


def _cell(text: str) -> str:
    return re.sub(r"(\\*)\|", r"\1\1\\|", escape_item(text))


def one_line(text: str) -> str:
    """Joins the lines of a text, since an item is one line."""
    return " ".join(line.strip() for line in text.splitlines()).strip()


def escape_item(text: str) -> str:
    """Puts a backslash before an item that the parser would take for "none", a ruler or a count."""
    text = one_line(text)
    return f"\\{text}" if _is_structure(text.lstrip("\\")) else text


def unescape_item(text: str) -> str:
    return text[1:] if text.startswith("\\") and _is_structure(text.lstrip("\\")) else text


def _is_structure(text: str) -> bool:
    return bool(EMPTY_ITEM.fullmatch(text) or LEFT_OUT_LINE.fullmatch(text))
