"""The workstream's summary: a text that replaces the one before, and changes to a state that code keeps (W4-W9)."""

from __future__ import annotations

from typing import cast

import msgspec

from ..calls import Failure, ModelCall, Reply, Steps
from ..messages import Json
from .asking import answer_within, ask
from .delta import StateAnswer, read_answer, repair_prompt, schema
from .fences import fenced
from .free_text import rolled_up
from .material import Draft, Material
from .prompts import SYSTEM
from .state import State, merge, render
from .transcript import Style, Transcript
from .verdict import text_of

CHUNK = 120_000
"""Characters of the transcript that one call reads (W6)."""
ROLLUP = 80_000
"""Tokens above which a summary is written again, shorter (W7)."""
_TASK = """\
Write a summary that replaces the previous one, in three parts headed KEY FACTS, CONVERSATION FLOW and OPEN THREADS: \
what is known and holds, how the conversation went, and what is open. Beside it, say what changes in the state: \
decisions, constraints, tasks, open questions, risks, artifacts, and what each agent contributed. Mention only what \
the new messages change; mark a task done when it is.

Answer with one JSON object and nothing else, of this shape:
"""


class StateText(msgspec.Struct, frozen=True):
    """Asks for a summary and a delta, piece by piece where the history is long."""

    chunk: int = CHUNK
    rollup: int = ROLLUP
    allowed: int | None = 16_384
    style: Style = Style(result_limit=4_000, text_limit=20_000)

    def write(self, material: Material) -> Steps[Draft | Failure]:
        state = msgspec.convert(material.state, State) if material.state else State()
        summary, remarks = material.previous, list[str]()
        for piece in material.conversation.chunks(self.chunk):
            now = msgspec.structs.replace(material, conversation=piece, previous=summary)
            answer = yield from self._piece(now, state, remarks)
            if isinstance(answer, Failure):
                return answer
            summary = answer.summary
            if answer.delta is not None:
                state = merge(state, answer.delta)
        rolled = yield from rolled_up(summary, material, min(self.rollup, material.room), self.allowed)
        if isinstance(rolled, Failure):
            return rolled
        told = render(state)
        text = f"{rolled}\n\nSTATE:\n{told}" if told else rolled
        return Draft(rolled, cast(Json, msgspec.to_builtins(state)), tuple(dict.fromkeys(remarks)), text)

    def _piece(self, material: Material, state: State, remarks: list[str]) -> Steps[StateAnswer | Failure]:
        def question(conversation: Transcript, notes: str) -> ModelCall:
            parts = [
                fenced("previous-summary", material.previous or "(none)"),
                fenced("existing-state", render(state) or "(empty)"),
                *([fenced("notes-on-older-messages", notes)] if notes else []),
                fenced("new-messages", conversation.text),
                _TASK + schema(),
            ]
            if material.instructions:
                parts.append(f"The person asks you to mind this above all:\n{material.instructions.strip()}")
            return ModelCall("\n\n".join(parts), SYSTEM, self.allowed)

        def usable(text: str) -> str:
            return "" if read_answer(text).summary.strip() else "it holds no summary"

        asked = yield from ask(question, material, usable)
        remarks += asked.remarks
        if not isinstance(asked.answer, Reply):
            return asked.answer
        text = text_of(asked.answer)
        answer = read_answer(text)
        if answer.delta is None and answer.problem:
            call = ModelCall(repair_prompt(answer.problem, text), SYSTEM, self.allowed, purpose="repair")
            (again,) = yield (answer_within(call, material.reads),)
            repaired = read_answer(text_of(again)) if isinstance(again, Reply) else None
            if repaired is not None and repaired.delta is not None:
                return msgspec.structs.replace(answer, delta=repaired.delta)
            remarks.append(f"the changes to the state could not be read and were refused: {answer.problem}")
        return answer
