"""Explains a page: where each line comes from, at which score it was selected, and which lines stayed out."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ..context.references import NUMBER, cited_seqs
from ..ledger import LedgerPage, SectionRenderer, headings, quote_structure
from ..ledger.lines import LedgerLine
from ..ledger.select import RankedLine, Verdict

_CITED = re.compile(rf"\[{NUMBER}\]")
_LEADING_CITATION = re.compile(rf"\[{NUMBER}\](?: |$)")
_RUN_STATUS = re.compile(r"  \((?:\d+×)?(?:, )?(?:failed)?\)$")
_RULES = {
    headings.TASK: "the user's first request",
    headings.USER_MESSAGES: "user messages, the newest first where room is short",
    headings.APPROVED: "the plan that the user approved, verbatim in a quarter of the target",
    headings.APPROVED_ITEMS: "open items of the plan that the user approved, which is too long for its share",
    headings.PLAN: "the agent's plan",
    headings.CALLS: "calls since the last user message, so that none is repeated",
    headings.ERRORS: "the newest error lines",
    headings.FILES: "every file that was read or changed",
    headings.FOUND: "files of search results, the likeliest to be needed first",
    headings.COMMANDS: "the commands most likely to run again",
    headings.CONCLUSIONS: "the assistant's last words before each user message",
    headings.EXCERPTS: "the best lines by score per character",
    headings.STEPS: "what was said and called right before the messages that stay",
}
_INTRO = "what this page is"
_MAX_LEFT_OUT = 2_000
"""Lines left out that are listed, best first."""


class PageLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line of a page, with its origin."""

    text: str
    section: str = ""
    """Heading of its section; empty for the opening."""
    rule: str = ""
    sources: tuple[int, ...] = ()
    """Numbers of the messages that it comes from."""
    rank: int | None = None
    """Place in the selection by score, if that selected it."""
    score: float | None = None
    """Score per character when it was selected."""
    names: tuple[str, ...] = ()
    """Names in it, by the chance that a later step needs them."""
    named_in: tuple[int, str] | None = None
    """The newest other call that has the first of its names: number of its message, and its tool."""


class LeftOutLine(msgspec.Struct, frozen=True):
    """A line that could have been on the page."""

    text: str
    source: int
    rank: int
    score: float
    verdict: Verdict


class PageExplanation(msgspec.Struct, frozen=True):
    """Why a page has its lines."""

    lines: tuple[PageLine, ...]
    result_lines: tuple[PageLine, ...] = ()
    """Lines that stand in for long tool results among the kept messages."""
    left_out: tuple[LeftOutLine, ...] = ()
    """Best first, and at most some thousands."""
    candidates: int = 0
    taken: int = 0
    last_score: float | None = None
    """Score per character of the last line that was taken: what a line had to beat."""


def explain_page(page: LedgerPage, sections: SectionRenderer) -> PageExplanation:
    """Explains a page that was just rendered."""
    ranked = [] if page.selection is None else page.selection.ranking(page.room)
    taken = [one for one in ranked if one.verdict == "taken"]
    by_text = {quote_structure(one.line.text).strip(): one for one in taken if one.line.kind != "name"}
    names = {one.line.text: one for one in taken if one.line.kind == "name"}
    lines = tuple(_with_score(line, by_text, names, sections) for line in page_lines(page.text))
    by_line = {(one.line.text, one.line.place): one for one in taken}
    results = [line for found in page.result_lines.values() for line in found]
    left = [one for one in ranked if one.verdict not in ("taken", "in a longer line")]
    return PageExplanation(
        lines,
        tuple(_in_result(line, by_line.get((line.text, line.place))) for line in results),
        tuple(LeftOutLine(one.line.text, one.line.place, one.rank, one.density, one.verdict) for one in left)[
            :_MAX_LEFT_OUT
        ],
        len(ranked),
        len(taken),
        min((one.density for one in taken), default=None),
    )


def page_lines(text: str, written_by: str = "") -> Iterator[PageLine]:
    """Yields the lines of a page with section, rule and the messages that they cite, read from the page alone.

    A summary, `written_by` a model, has headings of its own, and a line of it has the citations inside it.
    """
    section, rule, cited = "", written_by or _INTRO, tuple[int, ...]()
    for line in text.splitlines():
        heading = next((known for known in _RULES if line == known or line.startswith(f"{known} [")), None)
        if heading is not None:
            section, rule, cited = heading.removeprefix("## "), _RULES[heading], _sources(line.removeprefix(heading))
        elif written_by and line.startswith("## "):
            section, rule, cited = line.removeprefix("## "), written_by, ()
        elif line.startswith(headings.GROUP) or (written_by and rule == written_by):
            cited = _sources(line)
        elif section and (leading := _LEADING_CITATION.match(line)):
            cited = _sources(leading[0])
        yield PageLine(line, section, rule, cited if line.strip() else ())


def _sources(text: str) -> tuple[int, ...]:
    return tuple(number for cited in _CITED.findall(text) for number in cited_seqs(cited))


def _with_score(
    line: PageLine, by_text: dict[str, RankedLine], names: dict[str, RankedLine], sections: SectionRenderer
) -> PageLine:
    """Adds the score of a selected line, and the source of one that the page does not cite."""
    bare = line.text.strip()
    if bare.startswith(headings.ALSO):
        alone = [names[name] for name in bare.removeprefix(headings.ALSO).split(", ") if name in names]
        if alone:
            best = min(alone, key=lambda one: one.rank)
            return _selected(line, best, tuple(one.line.text for one in alone), [one.line for one in alone])
    found = by_text.get(bare) or by_text.get(_LEADING_CITATION.sub("", bare).strip())
    command = _RUN_STATUS.sub("", line.text) if line.section == headings.COMMANDS.removeprefix("## ") else ""
    found = found or by_text.get(command.strip())
    if found is not None:
        return _selected(line, found, found.names, [found.line])
    ran = sections.history.commands.get(command)
    return line if ran is None else msgspec.structs.replace(line, sources=(ran.place,))


def _in_result(line: LedgerLine, ranked: RankedLine | None) -> PageLine:
    """Returns a line of a shortened result; error lines stay without being ranked."""
    bare = PageLine(line.text, "", _RULES[headings.ERRORS], (line.place,))
    return bare if ranked is None else _selected(bare, ranked, ranked.names, [line])


def _selected(line: PageLine, ranked: RankedLine, names: tuple[str, ...], origins: list[LedgerLine]) -> PageLine:
    places = tuple(dict.fromkeys(origin.place for origin in origins))
    return msgspec.structs.replace(
        line,
        sources=places,
        rank=ranked.rank,
        score=ranked.density,
        names=names,
        rule=_RULES[headings.EXCERPTS],
    )
