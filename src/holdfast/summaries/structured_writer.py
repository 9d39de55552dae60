"""Structured summaries: the model updates the sections, and code restores what it drops without a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ..context.references import citation
from ..ledger import clip
from ..models.calls import Failure, ModelCall, Reply, Steps
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, summary_prompt
from .structured import (
    COLUMNS,
    LAST_COMPLETED,
    NEXT_STEP,
    WORKING_ON,
    SummarySections,
    one_line,
    render_body,
    render_sections,
)
from .structured_extra import ExtraSection
from .structured_headings import (
    BULLET,
    CLOSING_LINE,
    COMPLETED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    EMPTY_ITEM,
    EMPTY_VALUE,
    ERRORS,
    LEFT_OUT_LINE,
    NOISE,
    OWN_HEADINGS,
    OWN_TITLE,
    PENDING,
    REMOVED,
    STATE,
    parse_heading,
)
from .structured_items import LABEL
from .structured_merge import MergedSections, dropped_items, keep_unmatched_removals, merge_sections, trim_to_fit
from .structured_parse import CHECKBOX, parse_sections, rendered_part
from .summarizer import FENCE, answer_text, run_summarizer
from .transcript import Style, SummaryTranscript

_WORD = re.compile(r"[^\W_]+")
_PIPE = re.compile(r"\\*\|")
_STRUCTURE = (FENCE, NOISE, LEFT_OUT_LINE, CLOSING_LINE, OWN_TITLE, EMPTY_VALUE)
_OWN_WORDS = {name.casefold() for name in (*OWN_HEADINGS, *COLUMNS)}


def missing_text(answer: str, kept: str) -> list[str]:
    """Returns the lines and table cells of an answer whose words do not occur in this order in what was kept."""
    known = _in_order(kept)
    pieces = (piece for line in answer.splitlines() for piece in _pieces(line))
    return list(dict.fromkeys(piece for piece in pieces if _in_order(piece) not in known))


def is_copy(section: ExtraSection, task: str) -> bool:
    """Returns whether a section only repeats the task, or parts of it."""
    known, items = _in_order(task), [item for item in section.items if _WORD.search(item)]
    return bool(items) and all(_in_order(item) in known for item in items)


def _in_order(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _pieces(line: str) -> Iterator[str]:
    """Yields the texts of a line without markup: a heading and the text after it, an item, or the cells of a row."""
    if heading := parse_heading(line):
        yield from _without_structure((heading.title, "" if EMPTY_ITEM.fullmatch(heading.rest) else heading.rest))
        return
    bullet = BULLET.match(line)
    text = bullet[2].strip() if bullet else line.strip()
    if checkbox := CHECKBOX.match(text):
        text = checkbox[3]
    if label := LABEL.match(text):
        text = label["text"]
    yield from _without_structure(() if FENCE.match(line) or EMPTY_ITEM.fullmatch(text) else _PIPE.split(text))


def _without_structure(texts: Iterable[str]) -> Iterator[str]:
    for text in map(str.strip, texts):
        structure = any(pattern.fullmatch(text) for pattern in _STRUCTURE)
        if not structure and text.casefold() not in _OWN_WORDS and _WORD.search(text):
            yield text


_TASK_SHARE = 0.5
"""Share of the token budget for the original task; a longer one is clipped in the middle and cited."""
_MIN_TASK_CHARACTERS = 80
"""Characters of the task that are always shown."""
_TASK = f"""\
Write the summary under these headings, in English and in this order, and everything below them in the language of \
the conversation:

### {STATE}
- {WORKING_ON}: what is under way, and what of it is half done
- {LAST_COMPLETED}: the last command or edit, and how it ended
- {NEXT_STEP}: the one thing the assistant was about to do, with the exact file, command or edit

### {COMPLETED}
| {" | ".join(COLUMNS)} |
| --- | --- | --- |
One row for each file or part that was touched, with its exact path.

### {DECISIONS}
- What was decided and why, as far as it matters for what comes.

### {PENDING}
- [ ] What is still to be done, one item a line.

### {ERRORS}
- What went wrong → how it was resolved, or that it still stands, with its exact text. Leave this out if nothing did.

### {CONSTRAINTS}
- What the person wants observed, as they put it.

### {CONTEXT}
- What else cannot be found out again: names, numbers, commands, places.

### {REMOVED}
- An item of the earlier summary that you left out: why. Nothing else goes missing without a line here.

Do not repeat the original task: it is put in for you. No code blocks unless nothing else will do."""
_UPDATE = (
    "Take the earlier summary in, do not repeat it: keep what holds, add what is new, move finished items from "
    f"{PENDING} to {COMPLETED}, and write {STATE} anew."
)


class Structured(msgspec.Struct, frozen=True):
    """Summary writer that asks for sections and merges them with the previous summary."""

    target_tokens: int = 800
    max_tokens: int | None = 1_000
    temperature: float | None = 0.3
    style: Style = Style()

    def write(self, source: SummaryInput) -> Steps[SummaryDraft | Failure]:
        tokens = max(1, min(self.target_tokens, source.token_budget))
        task = f"{_TASK}\n\n{_UPDATE}" if source.previous else _TASK
        if source.files:
            task = f"{task}\n\nFiles that were touched, from the log:\n{source.files}"

        def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
            return ModelCall(
                summary_prompt(source, conversation, notes, task, tokens),
                SYSTEM_PROMPT,
                self.max_tokens,
                self.temperature,
            )

        def validate(text: str) -> str:
            sections = parse_sections(text)
            if sections is None:
                return "it has none of the headings that were asked for"
            added = tuple(section for section in sections.extra if not is_copy(section, _shown_task(source)))
            stated = msgspec.structs.replace(sections, extra=added, left_out=0)
            return "" if render_body(stated) or stated.removed else "it says nothing below its headings"

        result = yield from run_summarizer(build, source, validate)
        if not isinstance(result.answer, Reply):
            return result.report_rejected(result.answer)
        return self._draft(answer_text(result.answer), source, result.remarks)

    def _draft(self, answer: str, source: SummaryInput, remarks: tuple[str, ...]) -> SummaryDraft:
        """Merges the answer with the previous summary, and remarks on all that the draft does not contain."""
        task, new = _shown_task(source), parse_sections(answer) or SummarySections()
        if copies := [section for section in new.extra if is_copy(section, task)]:
            new = msgspec.structs.replace(new, extra=tuple(one for one in new.extra if one not in copies))
            titles = ", ".join(section.title for section in copies)
            remarks += (f"sections of the answer that repeat the task were left out: {titles}",)
        before = parse_sections(rendered_part(source.previous))
        sections = new = keep_unmatched_removals(before or SummarySections(), new)
        if before:
            merged = merge_sections(before, new)
            sections = merged.sections
            remarks += _merge_remarks(merged)
        elif source.previous:
            remarks += ("the previous summary has no sections: the model has read it, and the answer replaces it",)
        kept = _trim(sections, task, source)
        text = render_sections(kept, task=task, round=source.round)
        if gone := dropped_items(sections, kept):
            remarks += (f"{len(gone)} items did not fit into the summary: {_join(gone)}",)
        if missing := missing_text(answer, "\n".join([text, *remarks])):
            remarks += (f"text of the answer that is not in the summary: {_join(missing)}",)
        return SummaryDraft(text, remarks=remarks)


def _shown_task(source: SummaryInput) -> str:
    """Returns the task, or its head and tail with a citation if it would take too much of the token budget."""
    task = source.task.strip()
    characters_per_token = len(source.task) / max(1, source.count_tokens(source.task)) if source.task else 4.0
    limit = max(_MIN_TASK_CHARACTERS, int(source.token_budget * _TASK_SHARE * characters_per_token))
    if len(task) <= limit:
        return task
    return clip(task, limit) + (f" {citation(source.task_number)}" if source.task_number else "")


def _trim(sections: SummarySections, task: str, source: SummaryInput) -> SummarySections:
    """Returns the sections that fit into the token budget next to the task."""
    frame = render_sections(SummarySections(), task=task, round=source.round)
    return trim_to_fit(sections, lambda body: source.count_tokens(f"{frame}\n\n{body}") <= source.token_budget)


def _merge_remarks(merged: MergedSections) -> tuple[str, ...]:
    remarks = []
    if merged.restored:
        remarks.append(f"{len(merged.restored)} items of the previous summary were restored: the model gave no reason")
    if merged.removed:
        gone = "; ".join(f"{removal.item} ({removal.reason})" for removal in merged.removed)
        remarks.append(f"the model removed: {gone}")
    if merged.replaced:
        remarks.append(f"the next step was replaced: {merged.replaced}")
    return tuple(remarks)


def _join(texts: Iterable[str]) -> str:
    return "; ".join(map(one_line, texts))
