"""Structured summaries: the model updates the sections, and code restores what it drops without a reason."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ..context.references import citation
from ..ledger import clip
from ..models.calls import Failure, ModelCall, Reply, Steps
from . import structured_headings as headings
from .json_answer import TEXT_SCHEMA, as_markdown, field_title, list_schema, object_schema
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, summary_prompt
from .structured import (
    COLUMNS,
    LAST_COMPLETED,
    NEXT_STEP,
    WORKING_ON,
    ExtraSection,
    SummarySections,
    one_line,
    render_body,
    render_sections,
    rendered_part,
)
from .structured_headings import is_empty, parse_heading
from .structured_merge import (
    MergedSections,
    dropped_items,
    keep_unmatched_removals,
    merge_sections,
    split_id,
    trim_to_fit,
    with_ids,
)
from .structured_parse import LABEL, parse_sections
from .summarizer import FENCE, answer_text, run_summarizer
from .transcript import Style, SummaryTranscript

_WORD = re.compile(r"[^\W_]+")
_PIPE = re.compile(r"\\*\|")
_ITEM_MARKUP = re.compile(r"\s*(?:[-*+–]\s+|[•·▪◦‣]\s*|\d{1,3}[.)]\s+)?(?:\[[ xX✓✔]?\]\s*|[☐⬜🔲✅☑✔]️?\s*)?")
_STRUCTURE = (FENCE, headings.NOISE, headings.LEFT_OUT_LINE, headings.CLOSING_LINE, headings.OWN_TITLE)


def missing_text(answer: str, kept: str) -> list[str]:
    """Returns the lines and table cells of an answer whose words do not occur in this order in what was kept."""
    known = _in_order(kept)
    pieces = (piece.strip() for line in answer.splitlines() for piece in _pieces(line))
    return list(dict.fromkeys(piece for piece in pieces if _WORD.search(piece) and _in_order(piece) not in known))


def is_copy(section: ExtraSection, task: str) -> bool:
    """Returns whether a section only repeats the task, or parts of it."""
    known, items = _in_order(task), [item for item in section.items if _WORD.search(item)]
    return bool(items) and all(_in_order(item) in known for item in items)


def _in_order(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _pieces(line: str) -> Iterator[str]:
    """Yields the texts of a line without markup: a heading and the text after it, an item, or the cells of a row."""
    heading = parse_heading(line)
    texts = [heading.title, heading.rest] if heading else _PIPE.split(_ITEM_MARKUP.sub("", line, count=1))
    for whole in map(str.strip, texts):
        text = label["text"] if (label := LABEL.match(whole)) else split_id(whole)[1]
        if not (text.casefold() in _OWN_WORDS or is_empty(text) or any(p.fullmatch(text) for p in _STRUCTURE)):
            yield text


_TASK_SHARE = 0.5
"""Share of the token budget for the original task; a longer one is clipped in the middle and cited."""
_MIN_TASK_CHARACTERS = 80
"""Characters of the task that are always shown."""
_TASK = f"""\
Write the summary under these headings, in English and in this order, and everything below them in the language of \
the conversation:

### {headings.STATE}
- {WORKING_ON}: what is under way, and what of it is half done
- {LAST_COMPLETED}: the last command or edit, and how it ended
- {NEXT_STEP}: the one thing the assistant was about to do, with the exact file, command or edit

### {headings.COMPLETED}
| {" | ".join(COLUMNS)} |
| --- | --- | --- |
One row for each file or part that was touched, with its exact path.

### {headings.DECISIONS}
- What was decided and why, as far as it matters for what comes.

### {headings.PENDING}
- [ ] What is still to be done, one item a line.

### {headings.ERRORS}
- What went wrong → how it was resolved, or that it still stands, with its exact text. Leave this out if nothing did.

### {headings.CONSTRAINTS}
- What the person wants observed, as they put it.

### {headings.CONTEXT}
- What else cannot be found out again: names, numbers, commands, places.

### {headings.REMOVED}
- An item of the earlier summary that you left out: why. Nothing else goes missing without a line here.

Do not repeat the original task: it is put in for you. No code blocks unless nothing else will do. \
If data is asked for, each heading is a field."""
_ITEMS = list_schema(object_schema({"id": TEXT_SCHEMA, "text": TEXT_SCHEMA}))
SCHEMA = object_schema(
    {
        "current_state": object_schema(dict.fromkeys(("working_on", "last_completed", "next_step"), TEXT_SCHEMA)),
        "completed_work": list_schema(
            object_schema(dict.fromkeys(("id", "file_or_component", "action", "description"), TEXT_SCHEMA))
        ),
        "key_technical_decisions": _ITEMS,
        "pending_work": _ITEMS,
        "errors_and_resolutions": _ITEMS,
        "constraints": _ITEMS,
        "critical_context": _ITEMS,
        "other_sections": list_schema(object_schema({"title": TEXT_SCHEMA, "text": TEXT_SCHEMA})),
        "removed": list_schema(object_schema({"id": TEXT_SCHEMA, "reason": TEXT_SCHEMA})),
    }
)
"""The same sections as data."""
_OWN_WORDS = {name.casefold() for name in (*headings.OWN_HEADINGS, *COLUMNS, *map(field_title, SCHEMA["properties"]))}
_UPDATE = (
    "Take the earlier summary in, do not repeat it: keep what holds, add what is new, move finished items from "
    f"{headings.PENDING} to {headings.COMPLETED}, and write {headings.STATE} anew. Its items have ids in brackets: "
    "begin an item that you keep, change or move with its id, and a new one with none; the id alone keeps an item as "
    "it is."
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
        given = source
        if before := _previous(source):
            shown = render_sections(with_ids(before), task=_shown_task(source), round=max(1, source.round - 1))
            given = msgspec.structs.replace(source, previous=shown)
        if source.files:
            task = f"{task}\n\nFiles that were touched, from the log:\n{source.files}"

        def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
            return ModelCall(
                summary_prompt(given, conversation, notes, task, tokens),
                SYSTEM_PROMPT,
                self.max_tokens,
                self.temperature,
                schema=SCHEMA,
            )

        def validate(text: str) -> str:
            sections = parse_sections(text)
            if sections is None:
                return "it has none of the headings that were asked for"
            added = tuple(section for section in sections.extra if not is_copy(section, _shown_task(source)))
            stated = msgspec.structs.replace(sections, extra=added, left_out=0)
            return "" if render_body(stated) or stated.removed else "it says nothing below its headings"

        result = yield from run_summarizer(build, source, validate)
        if isinstance(result.answer, Reply):
            return self._draft(answer_text(result.answer), source, result.remarks)
        if not result.rejected or parse_sections(result.rejected) is not None:
            return result.report_rejected(result.answer)
        prose = "the answer has none of the headings that were asked for: it is kept as text"
        return self._draft(result.rejected, source, (*result.remarks, prose))

    def _draft(self, answer: str, source: SummaryInput, remarks: tuple[str, ...]) -> SummaryDraft:
        """Merges the answer with the previous summary, and remarks on all that the draft does not contain."""
        task, new = _shown_task(source), parse_sections(answer, prose=True) or SummarySections()
        if copies := [section for section in new.extra if is_copy(section, task)]:
            new = msgspec.structs.replace(new, extra=tuple(one for one in new.extra if one not in copies))
            titles = ", ".join(section.title for section in copies)
            remarks += (f"sections of the answer that repeat the task were left out: {titles}",)
        before = _previous(source)
        sections = new = keep_unmatched_removals(before or SummarySections(), new)
        if before:
            merged = merge_sections(before, new)
            sections = merged.sections
            remarks += _merge_remarks(merged)
        frame = render_sections(SummarySections(), task=task, round=source.round)
        kept = trim_to_fit(sections, lambda body: source.count_tokens(f"{frame}\n\n{body}") <= source.token_budget)
        text = render_sections(kept, task=task, round=source.round)
        if gone := dropped_items(sections, kept):
            remarks += (f"{len(gone)} items did not fit into the summary: {_join(gone)}",)
        if missing := missing_text(as_markdown(answer), "\n".join([text, *remarks])):
            remarks += (f"text of the answer that is not in the summary: {_join(missing)}",)
        return SummaryDraft(text, remarks=remarks)


def _previous(source: SummaryInput) -> SummarySections | None:
    """Returns the sections of the previous summary, which may be in any form."""
    return parse_sections(rendered_part(source.previous), prose=True) if source.previous.strip() else None


def _shown_task(source: SummaryInput) -> str:
    """Returns the task, or its head and tail with a citation if it would take too much of the token budget."""
    task = source.task.strip()
    characters_per_token = len(source.task) / max(1, source.count_tokens(source.task)) if source.task else 4.0
    limit = max(_MIN_TASK_CHARACTERS, int(source.token_budget * _TASK_SHARE * characters_per_token))
    if len(task) <= limit:
        return task
    return clip(task, limit) + (f" {citation(source.task_number)}" if source.task_number else "")


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
