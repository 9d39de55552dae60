"""A handoff: what matters for a goal, as the first message of a new conversation (P23)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import msgspec

from ..calls import Failure, ModelCall, Reply, Steps
from ..ledger import Fact, File, Ledger, base_name, fitting, must_keep, words_in
from ..ledger.lines import Line
from ..references import NUMBER, citation, seqs_in
from .asking import ask
from .fences import fenced
from .free_text import rolled_up
from .material import Draft, Material
from .prompts import SYSTEM, sections
from .transcript import Style, Transcript
from .verdict import text_of

_TASK = """\
The person is about to start a new conversation, with an assistant that has seen nothing of this one, and with the \
goal that stands between the marks. Write what the assistant must know to go straight to work on that goal: what was \
found, decided and done that matters for it, and why; what the person wants observed; files by absolute path; \
commands, names, numbers and error texts as they stand in the record; what was tried in vain. Leave out whatever does \
not help with the goal. Behind each fact give the number of the message it comes from, in brackets as it stands there: \
[12]. Do not work on the goal yourself and do not repeat it: it stands above what you write.

Write at most {tokens:,} tokens."""
_FEW = 8
"""So many changed files are all named, whatever the goal."""
_MOST_FILES = 30
_CITED = re.compile(rf" ?(?<![\w\])])(?:\[{NUMBER}(?:(?:, ?|; ?| ?[-–] ?){NUMBER})*\])+")
"""One or more numbers in brackets, but not where an index would stand."""
_PARTED = re.compile(r"_|(?<=[a-z\d])(?=[A-Z])")
"""Between the words of a file's name."""


class HandoffText(msgspec.Struct, frozen=True):
    """Asks for what matters for a goal."""

    goal: str
    memory: str = ""
    notes: str = ""
    """Notes on what the conversation no longer shows."""
    allowed: int | None = 13_107
    style: Style = Style(result_limit=1_000)

    def write(self, material: Material) -> Steps[Draft | Failure]:
        tokens = int(material.room * 0.8)

        def question(conversation: Transcript, notes: str) -> ModelCall:
            told = self.told(material, conversation, notes)
            return ModelCall(f"{told}\n\n{_TASK.format(tokens=tokens)}", SYSTEM, self.allowed, purpose="handoff")

        asked = yield from ask(question, material)
        if not isinstance(asked.answer, Reply):
            return asked.answer
        text = yield from rolled_up(text_of(asked.answer), material, material.room, self.allowed)
        if isinstance(text, Failure):
            return text
        return Draft(cited(text, self.told(material, material.conversation, "")), remarks=asked.remarks)

    def told(self, material: Material, conversation: Transcript, notes: str) -> str:
        """The record, and the goal last."""
        parts = [
            ("What the person asked for at first:", "first-request", material.task),
            ("What the assistant was told to remember:", "memory", self.memory),
            ("Notes on what came before the conversation below:", "log", self.notes),
        ]
        said = [f"{title}\n{fenced(name, text)}" for title, name, text in parts if text]
        said += [sections(material, conversation, notes), f"The goal:\n{fenced('goal', self.goal)}"]
        return "\n\n".join(said)


def cited(text: str, record: str) -> str:
    """The text without numbers in brackets that nothing in the record bears."""

    def known(found: re.Match[str]) -> str:
        if found[0].strip() in record:
            return found[0]
        kept = "".join(cite for cite in map(citation, seqs_in(found[0])) if cite in record)
        return f" {kept}" if kept and found[0][0] == " " else kept

    return _CITED.sub(known, text)


def relevant(files: Iterable[File], goal: str, draft: str) -> list[File]:
    """Files that the draft names, those that share a name with the goal, and the changed ones if they are few."""
    files = sorted(files, key=lambda file: -file.time)
    changed = [file for file in files if file.edits]
    wanted, said = words_in(goal), words_in(draft)
    named = [file for file in files if file.path in draft or _name(file) in said or _name(file) in wanted]
    shared = [file for file in files if words_in(_PARTED.sub(" ", base_name(file.path))) & wanted]
    ranked = [*named, *shared, *(changed if len(changed) <= _FEW else ())]
    return list(islice({file.path: file for file in ranked}.values(), _MOST_FILES))


def standing(ledger: Ledger) -> Ledger:
    """Of a ledger, what holds for every goal: what the user wants observed, and errors that were not seen to go."""
    said = [fact for fact in must_keep(ledger) if fact.kind == "constraint"]
    return Ledger(users=[_line(Fact("task", "", 0)), *map(_line, said)], errors=list(ledger.errors))


def about(goal: str, lines: Iterable[Line], room: int) -> list[str]:
    """Lines that share words with the goal, in at most so many characters: those with the rarest words first."""
    wanted = words_in(goal)
    found = [(shared, line) for line in lines if (shared := words_in(line.text) & wanted)]
    met = Counter(word for shared, _ in found for word in shared)
    found.sort(key=lambda one: (-sum(1 / met[word] for word in one[0]), -one[1].time))
    return fitting((f"{citation(line.place)} {line.text.strip()}" for _, line in found), room)


def _name(file: File) -> str:
    return base_name(file.path).lower()


def _line(fact: Fact) -> Line:
    return Line(fact.text, "user", "", fact.place, 0, 0)
