"""The structured summary: what it holds, what its sections are called, and how it is written (L6, L15, P24)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import msgspec

from .thoughts import OPENING

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
_KNOWN = tuple((name, re.compile(pattern)) for name, pattern in _TITLES)
_WORDED = re.compile(r"(?:(?:key|technical|critical|important|work|and|&|resolutions?)\s*)*")
_MARKED = re.compile(r"\s*(#{1,6})\s+(.+?)[\s#]*$")
_BOLD = re.compile(r"\s*(?:\d{1,2}[.)]\s*)?(\*\*|__)((?:(?!\1).)+)\1\s*[:：]?\s*(.*)$")
_BARE = re.compile(r"\s*(?:\d{1,2}[.)]\s*)?(\w[\w &]{2,40}?)\s*[:：]?\s*$")
_AROUND = re.compile(r"^[\W_]*(?:\d{1,2}[.):]\s*)?[\W_]*|[\W_]+$")
_BOLD_LEVEL, BARE_LEVEL = 7, 8
_SHORT = 4
"""A bold line of more words is a sentence, unless it is exactly a name."""

FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+-]*)\s*$")
LEFT_OUT = re.compile(r"…\s*and ([\d,]+) earlier items?: see the archive\.?")
CLOSING = re.compile(r"This summary takes in \d+ earlier rounds?\.")
NOTHING = re.compile(
    r"(?i)[*_(\[]*(?:none(?: yet| so far)?|n/?a|not applicable|nothing(?: yet| so far)?)[.)\]*_]*|[-–—*_:\s]+"
)


class Work(msgspec.Struct, frozen=True):
    """One row of what was done."""

    subject: str
    action: str = ""
    description: str = ""

    @property
    def text(self) -> str:
        """The row as one line."""
        return " – ".join(filter(None, (self.subject, self.action, self.description)))


class Removal(msgspec.Struct, frozen=True):
    """What a model says it took out, and why."""

    item: str
    reason: str


class Sections(msgspec.Struct, frozen=True, kw_only=True):
    """A structured summary without its task, which code puts in (L7)."""

    completed: tuple[Work, ...] = ()
    decisions: tuple[str, ...] = ()
    working_on: str = ""
    last_completed: str = ""
    pending: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    removed: tuple[Removal, ...] = ()
    """Only in an answer: it is never written."""
    left_out: int = 0
    """Items that had to go for want of room, in all rounds."""


class Heading(msgspec.Struct, frozen=True):
    """A line that begins a section."""

    level: int
    section: SectionName | None
    """None: a section that the summary does not have."""
    title: str
    rest: str = ""
    """What stands on the same line."""


def heading_of(line: str) -> Heading | None:
    """The heading that a line is: with marks; bold or bare only where the name is one of ours."""
    if found := _MARKED.match(line):
        return Heading(len(found[1]), _section(found[2]), found[2])
    if found := _BOLD.match(line):
        section = _section(found[2], alone=bool(found[3]) or len(found[2].split()) > _SHORT)
        return Heading(_BOLD_LEVEL, section, found[2], found[3]) if section else None
    if (found := _BARE.match(line)) and (section := _section(found[1], alone=True)):
        return Heading(BARE_LEVEL, section, found[1])
    return None


def _section(title: str, alone: bool = False) -> SectionName | None:
    words = _AROUND.sub("", title).casefold()
    for name, pattern in _KNOWN:
        if found := pattern.search(words):
            rest = words[: found.start()], words[found.end() :]
            return name if not alone or all(_WORDED.fullmatch(part.strip()) for part in rest) else None
    return None


def write_sections(sections: Sections, *, task: str, round: int) -> str:
    """The whole summary with its task as it was said, and a last line that counts the rounds before (L6, L7)."""
    return "\n\n".join(
        [
            f"## {TITLE} (Compaction Round {round})",
            f"### {TASK}\n{_apart(task) if task.strip() else UNKNOWN_TASK}",
            write_body(sections),
            *([f"This summary takes in {_counted(round - 1, 'earlier round')}."] if round > 1 else []),
        ]
    )


def write_body(sections: Sections) -> str:
    """The sections alone: what a model's limit is about."""
    state = (f"{WORKING_ON}: {_or_none(sections.working_on)}", f"{LAST_COMPLETED}: {_or_none(sections.last_completed)}")
    rows = [work for work in sections.completed if folded(work.text)]
    blocks = [
        (COMPLETED, _table(rows) if rows else "- None"),
        (DECISIONS, _listed(sections.decisions) or "- None"),
        (STATE, "\n".join(f"- {line}" for line in state)),
        (PENDING, _listed(sections.pending, "- [ ] ") or "- None"),
        (ERRORS, _listed(sections.errors)),
        (CONSTRAINTS, _listed(sections.constraints)),
        (CONTEXT, _listed(sections.context)),
    ]
    parts = [f"### {title}\n{text}" for title, text in blocks if text]
    if sections.left_out:
        parts.append(f"… and {_counted(sections.left_out, 'earlier item')}: see the archive")
    return "\n\n".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _apart(task: str) -> str:
    """A task with headings, fences or thoughts stands in a fence of its own, so that they are not taken for ours."""
    if not any(heading_of(line) or FENCE.match(line) or OPENING.match(line) for line in task.splitlines()):
        return task
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", task) or [""]))
    return f"{fence}\n{task}\n{fence}"


def _listed(items: Iterable[str], bullet: str = "- ") -> str:
    return "\n".join(bullet + guarded(item) for item in items if folded(item))


def _or_none(text: str) -> str:
    return guarded(text) if folded(text) else "None"


def _table(rows: Iterable[Work]) -> str:
    lines = [COLUMNS, *((_cell(row.subject), _cell(row.action), _cell(row.description)) for row in rows)]
    head, *written = [f"| {' | '.join(cells)} |" for cells in lines]
    return "\n".join([head, "|---" * len(COLUMNS) + "|", *written])


def _cell(text: str) -> str:
    return re.sub(r"(\\*)\|", r"\1\1\\|", guarded(text))


def folded(text: str) -> str:
    """On one line, since an item is one."""
    return " ".join(line.strip() for line in text.splitlines()).strip()


def guarded(text: str) -> str:
    """An item that would be read as a word for nothing, a ruler or a count gets a backslash in front."""
    text = folded(text)
    return f"\\{text}" if _is_structure(text.lstrip("\\")) else text


def unguarded(text: str) -> str:
    return text[1:] if text.startswith("\\") and _is_structure(text.lstrip("\\")) else text


def _is_structure(text: str) -> bool:
    return bool(NOTHING.fullmatch(text) or LEFT_OUT.fullmatch(text))
