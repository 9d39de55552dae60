"""Structured summaries: the model updates the sections, and code restores what it drops without a reason."""

from __future__ import annotations

import msgspec

from ..context.references import citation
from ..ledger import clip
from ..models.calls import Failure, ModelCall, Reply, Steps
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, summary_prompt
from .structured import (
    COLUMNS,
    COMPLETED,
    CONSTRAINTS,
    CONTEXT,
    DECISIONS,
    ERRORS,
    LAST_COMPLETED,
    PENDING,
    REMOVED,
    STATE,
    WORKING_ON,
    SummarySections,
    render_sections,
)
from .structured_merge import merge_sections, trim_to_fit
from .structured_parse import parse_sections
from .summarizer import answer_text, run_summarizer
from .transcript import Style, SummaryTranscript

_TASK_SHARE = 0.5
"""Share of the token budget for the original task; a longer one is clipped in the middle and cited."""
_MIN_TASK_CHARACTERS = 80
"""Characters of the task that are always shown."""
_TASK = f"""\
Write the summary under these headings, in English and in this order, and everything below them in the language of \
the conversation:

### {COMPLETED}
| {" | ".join(COLUMNS)} |
| --- | --- | --- |
One row for each file or part that was touched, with its exact path.

### {DECISIONS}
- What was decided and why, as far as it matters for what comes.

### {STATE}
- {WORKING_ON}: what is under way
- {LAST_COMPLETED}: what was finished last

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
    f"{PENDING} to {COMPLETED}."
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
            return "" if parse_sections(text) else "it has none of the headings that were asked for"

        result = yield from run_summarizer(build, source, validate)
        if not isinstance(result.answer, Reply):
            return result.answer
        new = parse_sections(answer_text(result.answer)) or SummarySections()
        before = parse_sections(source.previous)
        merged = merge_sections(before, new) if before else None
        sections = merged.sections if merged else new
        remarks = result.remarks
        if merged and merged.restored:
            remarks += (
                f"{len(merged.restored)} items of the previous summary were restored: the model gave no reason",
            )
        if merged and merged.removed:
            gone = "; ".join(f"{removal.item} ({removal.reason})" for removal in merged.removed)
            remarks += (f"the model removed: {gone}",)
        return SummaryDraft(self._render(sections, source), remarks=remarks)

    def _render(self, sections: SummarySections, source: SummaryInput) -> str:
        """Renders the sections and the task within the token budget."""
        characters_per_token = len(source.task) / max(1, source.count_tokens(source.task)) if source.task else 4.0
        task = source.task.strip()
        if len(task) > (
            limit := max(_MIN_TASK_CHARACTERS, int(source.token_budget * _TASK_SHARE * characters_per_token))
        ):
            cite = f" {citation(source.task_number)}" if source.task_number else ""
            task = clip(task, limit) + cite
        left = source.token_budget - source.count_tokens(
            render_sections(SummarySections(), task=task, round=source.round)
        )
        kept = trim_to_fit(sections, lambda text: source.count_tokens(text) <= left)
        return render_sections(kept, task=task, round=source.round)
