"""The structured summary, round after round: the model updates it, and code sees to it that nothing is lost (L6)."""

from __future__ import annotations

import msgspec

from ..calls import Failure, ModelCall, Reply, Steps
from ..ledger import clipped
from ..references import citation
from .asking import ask
from .material import Draft, Material
from .merging import bounded, merge
from .prompts import SYSTEM, request
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
    Sections,
    write_sections,
)
from .structured_text import read_sections
from .transcript import Style, Transcript
from .verdict import text_of

_TASK_PART = 0.5
"""Of the room, what the original task may take; a longer one shows its head and its tail, and where it stands."""
_LEAST_TASK = 80
"""Characters of it that are shown in any case."""
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
    """Asks for sections, and keeps them whole."""

    asked: int = 800
    allowed: int | None = 1_000
    temperature: float | None = 0.3
    style: Style = Style()

    def write(self, material: Material) -> Steps[Draft | Failure]:
        tokens = max(1, min(self.asked, material.room))
        task = f"{_TASK}\n\n{_UPDATE}" if material.previous else _TASK
        if material.files:
            task = f"{task}\n\nFiles that were touched, from the log:\n{material.files}"

        def question(conversation: Transcript, notes: str) -> ModelCall:
            return ModelCall(
                request(material, conversation, notes, task, tokens), SYSTEM, self.allowed, self.temperature
            )

        def usable(text: str) -> str:
            return "" if read_sections(text) else "it has none of the headings that were asked for"

        asked = yield from ask(question, material, usable)
        if not isinstance(asked.answer, Reply):
            return asked.answer
        new = read_sections(text_of(asked.answer)) or Sections()
        before = read_sections(material.previous)
        merged = merge(before, new) if before else None
        sections = merged.sections if merged else new
        remarks = asked.remarks
        if merged and merged.put_back:
            remarks += (f"{len(merged.put_back)} items of the earlier summary were put back: no reason was given",)
        if merged and merged.dropped:
            gone = "; ".join(f"{removal.item} ({removal.reason})" for removal in merged.dropped)
            remarks += (f"the model took out: {gone}",)
        return Draft(self._written(sections, material), remarks=remarks)

    def _written(self, sections: Sections, material: Material) -> str:
        """All of it, with the task, within the room there is."""
        each = len(material.task) / max(1, material.measure(material.task)) if material.task else 4.0
        task = material.task.strip()
        if len(task) > (most := max(_LEAST_TASK, int(material.room * _TASK_PART * each))):
            whole = f" {citation(material.task_place)}" if material.task_place else ""
            task = clipped(task, most) + whole
        left = material.room - material.measure(write_sections(Sections(), task=task, round=material.round))
        kept = bounded(sections, lambda text: material.measure(text) <= left)
        return write_sections(kept, task=task, round=material.round)
