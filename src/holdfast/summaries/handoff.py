"""Texts for another reader: the first message of a handoff, and a session's title."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from itertools import islice

import msgspec

from ..context.references import NUMBER, citation, cited_seqs
from ..ledger import FileRecord, base_name, find_words, take_fitting
from ..ledger.lines import LedgerLine
from ..models.calls import Failure, ModelCall, Reply, Steps
from .free_text import roll_up
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, delimit, record_sections
from .structured import one_line
from .summarizer import answer_text, run_summarizer
from .transcript import Style, SummaryTranscript

_TASK = """\
The person is about to start a new conversation, with an assistant that has seen nothing of this one, and with the \
goal that stands between the marks. Write what the assistant must know to go straight to work on that goal: what was \
found, decided and done that matters for it, and why; what the person wants observed; files by absolute path; \
commands, names, numbers and error texts as they stand in the record; what was tried in vain. If the work on the goal \
has begun: the last command or edit and how it ended, what is half done, and the one thing that was about to be done, \
with the exact file, command or edit. Leave out whatever does not help with the goal. Behind each fact give the number \
of the message it comes from, in brackets as it stands there: [12]. Do not work on the goal yourself and do not repeat \
it: it stands above what you write.

Write at most {tokens:,} tokens."""
_ALWAYS_NAMED = 8
"""Up to this many changed files are all listed, whatever the goal."""
_MAX_FILES = 30
_CITED = re.compile(rf" ?(?<![\w\])])(?:\[{NUMBER}(?:(?:, ?|; ?| ?[-–] ?){NUMBER})*\])+")
"""One or more numbers in brackets, except after a word or bracket, where they are an index."""
_WORD_BOUNDARY = re.compile(r"_|(?<=[a-z\d])(?=[A-Z])")
"""Boundary between the words of a file name."""


class HandoffText(msgspec.Struct, frozen=True):
    """Summary writer that asks for what matters for a goal."""

    goal: str
    memory: str = ""
    notes: str = ""
    """Notes on archived messages."""
    max_tokens: int | None = 13_107
    style: Style = Style(result_limit=1_000)

    def write(self, source: SummaryInput) -> Steps[SummaryDraft | Failure]:
        tokens = int(source.token_budget * 0.8)

        def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
            record = self.record(source, conversation, notes)
            prompt = f"{record}\n\n{_TASK.format(tokens=tokens)}"
            return ModelCall(prompt, SYSTEM_PROMPT, self.max_tokens, purpose="handoff")

        result = yield from run_summarizer(build, source)
        if not isinstance(result.answer, Reply):
            return result.answer
        text = yield from roll_up(answer_text(result.answer), source, source.token_budget, self.max_tokens)
        if isinstance(text, Failure):
            return text
        return SummaryDraft(
            drop_unknown_citations(text, self.record(source, source.conversation, "")), remarks=result.remarks
        )

    def record(self, source: SummaryInput, conversation: SummaryTranscript, notes: str) -> str:
        """Returns the delimited parts of the prompt: task, memory, notes, conversation, and the goal last."""
        parts = [
            ("What the person asked for at first:", "first-request", source.task),
            ("What the assistant was told to remember:", "memory", self.memory),
            ("Notes on what came before the conversation below:", "log", self.notes),
        ]
        blocks = [f"{title}\n{delimit(name, text)}" for title, name, text in parts if text]
        blocks += [record_sections(source, conversation, notes), f"The goal:\n{delimit('goal', self.goal)}"]
        return "\n\n".join(blocks)


def drop_unknown_citations(text: str, record: str) -> str:
    """Removes citations that do not occur in the record."""

    def known(found: re.Match[str]) -> str:
        if found[0].strip() in record:
            return found[0]
        kept = "".join(cite for cite in map(citation, cited_seqs(found[0])) if cite in record)
        return f" {kept}" if kept and found[0][0] == " " else kept

    return _CITED.sub(known, text)


def relevant_files(files: Iterable[FileRecord], goal: str, draft: str) -> list[FileRecord]:
    """Returns files that the draft or goal names, files that share a word with the goal, and changed files if few."""
    files = sorted(files, key=lambda file: -file.time)
    changed = [file for file in files if file.edits]
    wanted = find_words(goal)
    mentioned = wanted | find_words(draft)
    direct = [file for file in files if file.path in draft or base_name(file.path).lower() in mentioned]
    shared = [file for file in files if find_words(_WORD_BOUNDARY.sub(" ", base_name(file.path))) & wanted]
    ranked = [*direct, *shared, *(changed if len(changed) <= _ALWAYS_NAMED else ())]
    return list(islice({file.path: file for file in ranked}.values(), _MAX_FILES))


def lines_about_goal(goal: str, lines: Iterable[LedgerLine], room: int) -> list[str]:
    """Returns lines that share words with the goal, rarest words first, in at most `room` characters."""
    wanted = find_words(goal)
    found = [(shared, line) for line in lines if (shared := find_words(line.text) & wanted)]
    frequency = Counter(word for shared, _ in found for word in shared)
    found.sort(key=lambda one: (-sum(1 / frequency[word] for word in one[0]), -one[1].time))
    return take_fitting((f"{citation(line.place)} {line.text.strip()}" for _, line in found), room)


MAX_TITLE = 200
MAX_SENTENCES = 2
_MAX_ANSWER_TOKENS = 2_000
_TITLE_TASK = f"""\
Say in one sentence, or two at most, what this conversation is about and how far it has come, for a list in which a \
person looks for it. Name the things that tell it from others. At most {MAX_TITLE} characters, no heading, no quotes."""
_SENTENCE = re.compile(r".+?(?:[.!?…]+[\"'”’»)\]]*(?=\s|$)|[。！？｡]+[」』”）]*|[؟।۔]+|$)", re.DOTALL)
_LEADING_MARKUP = re.compile(
    r"^(?:#+\s+|[-*>]\s+|(?:\*\*)?(?:title|summary)(?:\*\*)?\s*[:：]\s*(?:\*\*)?\s*)+", re.IGNORECASE
)
_QUOTED = re.compile(r"^(?:\"(.*)\"|“(.*)”|„(.*)[“”]|«(.*)»|「(.*)」|\*\*(.*)\*\*)$")


def write_title(source: SummaryInput) -> Steps[str | Failure]:
    """Asks for a title of one or two sentences."""

    def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
        first = f"What the person asked for at first:\n{delimit('first-request', source.task)}\n\n"
        record = (first if source.task else "") + record_sections(source, conversation, notes)
        return ModelCall(f"{record}\n\n{_TITLE_TASK}", SYSTEM_PROMPT, _MAX_ANSWER_TOKENS, purpose="title")

    result = yield from run_summarizer(build, source, lambda text: "" if shorten_title(text) else "it says nothing")
    return shorten_title(answer_text(result.answer)) if isinstance(result.answer, Reply) else result.answer


def shorten_title(text: str) -> str:
    """Returns the first two sentences on one line, clipped to `MAX_TITLE` characters."""
    line = _LEADING_MARKUP.sub("", one_line(text))
    if quoted := _QUOTED.match(line):
        line = next(filter(None, quoted.groups()), "")
    ends = [found.end() for found in _SENTENCE.finditer(line)]
    return clip_title(line[: ends[:MAX_SENTENCES][-1]].strip()) if ends else ""


def clip_title(line: str) -> str:
    """Clips a line to `MAX_TITLE` characters, between words if possible."""
    if len(line) <= MAX_TITLE:
        return line
    head = line[: MAX_TITLE - 1]
    words = head.rpartition(" ")[0]
    return (words if len(words) > MAX_TITLE // 2 else head).rstrip() + "…"
