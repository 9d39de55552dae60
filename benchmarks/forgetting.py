"""Ten compactions in a row with a model that forgets half of its input, with and without verification.

    python benchmarks/forgetting.py [--target 6000] [--rounds 10]

User rules are planted among the first user messages of each session: verbatim and paraphrased, in English, German and
Chinese, half of them without a word like "never" or "must". Then it is replayed in ten parts and compacted after each.
A rule, the task and the last errors count as kept if the context contains them verbatim, a changed file if it contains
its name. Sessions are those under HOLDFAST_SESSIONS, else the bundled examples.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast import StructuredSummary, compact
from holdfast.ledger import HistoryExtractor, required_facts
from holdfast.messages import Json, Message, Text, calls_command, decode_all, encode_all, own_words
from holdfast.models import ModelCall, ScriptedModel
from holdfast.tokens import Tokenizer
from holdfast.transcripts import Transcript, read_transcript
from holdfast.transcripts.examples import EXAMPLES, example_path
from holdfast.triggers import always

RULES = (
    "Never push to the main branch without asking me first.",
    "The changelog must get a line for every change that a user can see.",
    "I review everything on my phone, so keep each commit under 120 lines.",
    "Our customers in Osterhaven still run Python 3.11.",
    "Bitte ändere niemals etwas im Ordner deploy/produktion.",
    "Alle Meldungen an Benutzer müssen auf Deutsch und Englisch vorliegen.",
    "Frau Wendt zeichnet jede Änderung am Datenbankschema gegen.",
    "Die Testdaten liegen bei uns immer unter /srv/testdaten/2024.",
    "不要修改 billing 目录里的任何文件。",
    "所有金额必须以分为单位保存。",
    "发布版本由李敏在每周四下午打标签。",
    "日志里的客户编号只显示最后四位。",
)
"""Half of them with an explicit keyword, half without."""
_MIN_MESSAGES = 120
"""Minimum number of messages for ten compactions."""


class KeptFacts(msgspec.Struct, frozen=True):
    """Facts kept after the last round, and how many there were."""

    task: bool
    rules: int
    files: tuple[int, int]
    errors: tuple[int, int]
    tokens: int

    @property
    def whole(self) -> bool:
        return (
            self.task and self.rules == len(RULES) and all(kept == total for kept, total in (self.files, self.errors))
        )


def plant_rules(messages: Sequence[Message]) -> list[Message]:
    """The session with a rule appended to each of its first user messages, or as additional messages."""
    messages_with_rules: list[Message] = []
    rules = iter(RULES)
    turns = [
        place
        for place, message in enumerate(messages)
        if own_words(message) and not calls_command(message.text)  # what follows a command is its own text
    ]
    spread = turns[1 : 1 + len(RULES)]
    for place, message in enumerate(messages):
        if place in spread and (rule := next(rules, None)):
            message = message.with_parts((*message.parts, *_text_parts(rule)))
        messages_with_rules.append(message)
    left = [Message("user", _text_parts(rule)) for rule in rules]
    start = turns[0] + 1 if turns else 0
    while start < len(messages_with_rules) and messages_with_rules[start].role != "user":
        start += 1
    return [
        *messages_with_rules[:start],
        *(part for rule in left for part in (rule, _acknowledgement())),
        *messages_with_rules[start:],
    ]


def _text_parts(text: str) -> tuple[Any, ...]:
    return (Text(text),)


def _acknowledgement() -> Message:
    return Message("assistant", _text_parts("Noted."))


def forgetful_summary(call: ModelCall) -> str:
    """A summary of half of the input items, chosen by their digest."""
    done, pending, decisions = list[str](), list[str](), list[str]()
    for line in call.prompt.splitlines():
        text = " ".join(line.strip(" -|*").split())[:160]
        if len(text) < 12 or text.startswith(("<", "#", "|", "[")) or not _survives(text):
            continue
        if line.startswith("- [ ]"):
            pending.append(text.removeprefix("[ ]").strip())
        elif line.startswith("| ") and line.count("|") >= 4:
            done.append(line)
        elif len(decisions) < 12:
            decisions.append(text)
    parts = [
        "### Completed Work\n| File/Component | Action | Description |\n| --- | --- | --- |\n" + "\n".join(done[:12]),
        "### Key Technical Decisions\n" + "\n".join(f"- {text}" for text in decisions),
        "### Current State\n- Working on: the task\n- Last completed: some of it",
        "### Pending Work\n" + "\n".join(f"- [ ] {text}" for text in pending[:8] or ["go on"]),
    ]
    return "\n\n".join(parts)


def _survives(text: str) -> bool:
    return hashlib.sha256(text.encode(errors="replace")).digest()[0] < 128


def run_rounds(transcript: Transcript, *, verify: bool, target: int, rounds: int) -> KeptFacts:
    """Replays a session in parts, with a compaction after each."""
    decoded, name = decode_all(transcript.messages, transcript.format)
    messages = plant_rules(decoded)
    history: list[Json] = encode_all(messages, name)
    again, _ = decode_all(history, name)
    ends = [len(again) * part // rounds for part in range(1, rounds + 1)]
    strategy = StructuredSummary(max_tokens=target) if verify else _unverified(target)
    checkpoint: Any = None
    for end in ends:
        result = compact(
            history[:end],
            budget=10**9,
            target=target,
            strategy=strategy,
            summarizer=ScriptedModel(forgetful_summary, repeat=True),
            format=name,
            trigger=always,
            previous=checkpoint,
            min_saving=0.0,
        )
        checkpoint = result.checkpoint
    return _kept(decode_all(result.messages, name)[0], again, result.tokens_after)


def _unverified(target: int) -> StructuredSummary:
    """The model's summary without verification."""
    return StructuredSummary(max_tokens=target, verify=False, excerpt_tokens=0)


def _kept(context: Sequence[Message], history: Sequence[Message], tokens: int) -> KeptFacts:
    extractor = HistoryExtractor()
    extractor.read(history, range(1, len(history) + 1))
    facts = required_facts(extractor.ledger())
    shown = _words("\n".join(_text(message) for message in context))
    task = next((fact.text for fact in facts if fact.kind == "task"), "")
    files = [fact.text.rpartition("/")[2] for fact in facts if fact.kind == "file"]
    errors = [fact.text for fact in facts if fact.kind == "error"]
    return KeptFacts(
        _words(task) in shown,
        sum(_words(rule) in shown for rule in RULES),
        (sum(file in shown for file in files), len(files)),
        (sum(_words(error) in shown for error in errors), len(errors)),
        tokens,
    )


def _text(message: Message) -> str:
    results = [result.text for result in message.results]
    return "\n".join([message.text, *results, *(call.arguments_json for call in message.calls)])


def _words(text: str) -> str:
    """Normalises whitespace."""
    return " ".join(text.split())


def sessions(target: int) -> Iterator[tuple[str, Transcript]]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    names = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
    files = (
        [p for p in Path(folder).rglob("*") if p.name.endswith(names)] if folder else list(map(example_path, EXAMPLES))
    )
    read = ((path.name, read_transcript(path)) for path in sorted(files))
    return ((name, transcript) for name, transcript in read if is_long_enough(transcript, target))


def is_long_enough(transcript: Transcript, target: int) -> bool:
    """True for a session with enough messages and room for more than its system messages."""
    return len(transcript.messages) >= _MIN_MESSAGES and _system_tokens(transcript) < target // 2


def _system_tokens(transcript: Transcript) -> int:
    """Tokens of the system messages: if they fill half the target, no summary could hold the rest."""
    counter, size = Tokenizer(), 0
    for message in decode_all(transcript.messages, transcript.format)[0]:
        if message.role != "system":
            break
        size += counter.measure(message)
    return counter.tokens(size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--target", type=int, default=6_000)
    parser.add_argument("--rounds", type=int, default=10)
    arguments = parser.parse_args()
    print(f"{'session':16}{'':12}{'task':>6}{'rules':>9}{'files':>10}{'errors':>9}{'tokens':>9}")
    whole = {True: 0, False: 0}
    count = 0
    for name, transcript in sessions(arguments.target):
        count += 1
        for verify in (True, False):
            kept = run_rounds(transcript, verify=verify, target=arguments.target, rounds=arguments.rounds)
            whole[verify] += kept.whole
            files, errors = ("/".join(map(str, pair)) for pair in (kept.files, kept.errors))
            rules = f"{kept.rules}/{len(RULES)}"
            label = "verified" if verify else "unverified"
            print(f"{name[:14]:16}{label:12}{kept.task!s:>6}{rules:>9}{files:>10}{errors:>9}{kept.tokens:>9,}")
    print(f"everything kept: {whole[True]} of {count} sessions with verification, {whole[False]} without")


if __name__ == "__main__":
    main()
