"""A session in at most two sentences, for a list of sessions (P22)."""

from __future__ import annotations

import re

from ..calls import Failure, ModelCall, Reply, Steps
from .asking import ask
from .fences import fenced
from .material import Material
from .prompts import SYSTEM, sections
from .structured import folded
from .transcript import Transcript
from .verdict import text_of

LONGEST = 200
SENTENCES = 2
_ALLOWED = 2_000
_TASK = f"""\
Say in one sentence, or two at most, what this conversation is about and how far it has come, for a list in which a \
person looks for it. Name the things that tell it from others. At most {LONGEST} characters, no heading, no quotes."""
_SENTENCE = re.compile(r".+?(?:[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？｡]+[」』”）]*|[؟।۔]+|$)", re.DOTALL)
_DRESS = re.compile(r"^(?:#+\s+|[-*>]\s+|(?:\*\*)?(?:title|summary)(?:\*\*)?\s*[:：]\s*(?:\*\*)?\s*)+", re.IGNORECASE)
_QUOTED = re.compile(r"^(?:\"(.*)\"|“(.*)”|„(.*)[“”]|«(.*)»|「(.*)」|\*\*(.*)\*\*)$")


def write(material: Material) -> Steps[str | Failure]:
    """Asks for a title."""

    def question(conversation: Transcript, notes: str) -> ModelCall:
        first = f"What the person asked for at first:\n{fenced('first-request', material.task)}\n\n"
        told = (first if material.task else "") + sections(material, conversation, notes)
        return ModelCall(f"{told}\n\n{_TASK}", SYSTEM, _ALLOWED, purpose="title")

    asked = yield from ask(question, material, lambda text: "" if short(text) else "it says nothing")
    return short(text_of(asked.answer)) if isinstance(asked.answer, Reply) else asked.answer


def short(text: str) -> str:
    """The first two sentences on one line, in at most 200 characters, whatever the language."""
    line = _DRESS.sub("", folded(text))
    if quoted := _QUOTED.match(line):
        line = next(filter(None, quoted.groups()), "")
    ends = [found.end() for found in _SENTENCE.finditer(line)]
    return clipped(line[: ends[:SENTENCES][-1]].strip()) if ends else ""


def clipped(line: str) -> str:
    """A line that is short enough, cut between words where it has any."""
    if len(line) <= LONGEST:
        return line
    head = line[: LONGEST - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) > LONGEST // 2 else head).rstrip() + "…"
