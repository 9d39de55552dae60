"""A summary in the model's own words, under the headings that are asked for."""

from __future__ import annotations

import msgspec

from ..calls import Failure, ModelCall, Reply, Steps
from .asking import ask
from .fences import fenced
from .material import Draft, Material
from .prompts import SYSTEM, request
from .transcript import Style, Transcript
from .verdict import text_of

RECURSIVE_TASK = (
    "Write a summary of the conversation that stands in its place from now on: what it was about, what was found, "
    "decided and done, what is open, and every name, number and wish of the person that still matters."
)
TASK = (
    "Write the summary that lets another assistant go on without a break. Tell: what was asked for; what has been "
    "done; what is being worked on; what is to be done next; what the person wants observed; files that were read or "
    "changed, by absolute path; decisions and their reasons; errors that still stand, word for word; whatever else "
    "cannot be found out again."
)
_ROLL_UP = (
    "This summary has grown too long for its place. Write it again in at most {tokens:,} tokens: keep every decision, "
    "constraint, open task, path, name and number that still matters, and drop what is over and done with."
)


class FreeText(msgspec.Struct, frozen=True):
    """Asks for a text, and takes it as it is."""

    task: str = TASK
    system: str = SYSTEM
    asked: int = 4_000
    """Tokens that the model is asked to keep to."""
    allowed: int | None = 13_107
    """Tokens after which it is cut off, thoughts included; None leaves it to the provider."""
    temperature: float | None = None
    style: Style = Style()

    def write(self, material: Material) -> Steps[Draft | Failure]:
        tokens = max(1, min(self.asked, int(material.room * 0.8)))

        def question(conversation: Transcript, notes: str) -> ModelCall:
            prompt = request(material, conversation, notes, self.task, tokens)
            return ModelCall(prompt, self.system, self.allowed, self.temperature)

        asked = yield from ask(question, material)
        if not isinstance(asked.answer, Reply):
            return asked.answer
        text = yield from rolled_up(text_of(asked.answer), material, material.room, self.allowed)
        return text if isinstance(text, Failure) else Draft(text, remarks=asked.remarks)


def rolled_up(text: str, material: Material, most: int, allowed: int | None) -> Steps[str | Failure]:
    """A summary that fits its place; one that has grown too long is written again, once (W7)."""
    if material.measure(text) <= most:
        return text
    prompt = f"{fenced('summary', text)}\n\n{_ROLL_UP.format(tokens=most)}"
    again = msgspec.structs.replace(material, room=most, conversation=Transcript())
    asked = yield from ask(lambda *_: ModelCall(prompt, SYSTEM, allowed, purpose="rollup"), again)
    if not isinstance(asked.answer, Reply):
        return asked.answer
    shorter = text_of(asked.answer)
    if material.measure(shorter) > most:
        return Failure("answer", f"the summary is longer than the {most:,} tokens there are for it")
    return shorter
