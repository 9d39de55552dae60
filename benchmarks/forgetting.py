"""Ten compactions in a row with a model that forgets half of what it is told: what is still there, with H3 and without.

    python benchmarks/forgetting.py [--target 6000] [--rounds 10]

Each session has standing wishes planted among its first user messages: in plain words and paraphrased, in English,
German and Chinese, half of them without any word like "never" or "must". Then it is lived through in ten parts, and
compacted after each. A wish, the task and the last errors count as kept if they stand in the context word for word,
a file that was changed if its name does. Sessions are those under HOLDFAST_SESSIONS, else the shipped examples.
"""

from __future__ import annotations

import argparse
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from holdfast import ModelCall, ScriptedModel, StructuredSummary, always, compact
from holdfast.examples import EXAMPLES, example_path
from holdfast.ledger import Notebook, must_keep
from holdfast.messages import Json, Message, Text, decode_all, encode_all
from holdfast.tokens import Tokenizer
from holdfast.transcripts import Transcript, read_transcript

WISHES = (
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
"""Half of them with a word that says so, half without."""
_LEAST = 120
"""Messages of a session that is worth ten compactions."""


class Kept(msgspec.Struct, frozen=True):
    """What was there after the last round, and how much of it there was to keep."""

    task: bool
    wishes: int
    files: tuple[int, int]
    errors: tuple[int, int]
    tokens: int

    @property
    def whole(self) -> bool:
        return (
            self.task and self.wishes == len(WISHES) and all(kept == all_ for kept, all_ in (self.files, self.errors))
        )


def planted(messages: Sequence[Message]) -> list[Message]:
    """The session with a wish behind each of its first user messages, or in messages of their own."""
    told: list[Message] = []
    wishes = iter(WISHES)
    turns = [place for place, message in enumerate(messages) if message.role == "user" and message.text]
    spread = turns[1 : 1 + len(WISHES)]
    for place, message in enumerate(messages):
        if place in spread and (wish := next(wishes, None)):
            message = message.with_parts((*message.parts, *_said(wish)))
        told.append(message)
    left = [Message("user", _said(wish)) for wish in wishes]
    start = turns[0] + 1 if turns else 0
    while start < len(told) and told[start].role != "user":
        start += 1
    return [*told[:start], *(part for wish in left for part in (wish, _noted())), *told[start:]]


def _said(text: str) -> tuple[Any, ...]:
    return (Text(text),)


def _noted() -> Message:
    return Message("assistant", _said("Noted."))


def forgetful(call: ModelCall) -> str:
    """A summary of half of the items it was told, chosen by their digest: as honest as it is forgetful."""
    done, pending, decisions = list[str](), list[str](), list[str]()
    for line in call.prompt.splitlines():
        text = " ".join(line.strip(" -|*").split())[:160]
        if len(text) < 12 or text.startswith(("<", "#", "|", "[")) or not _is_remembered(text):
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


def _is_remembered(text: str) -> bool:
    return hashlib.sha256(text.encode(errors="replace")).digest()[0] < 128


def lived(transcript: Transcript, *, verify: bool, target: int, rounds: int) -> Kept:
    """A session lived through in parts, compacted after each."""
    decoded, name = decode_all(transcript.messages, transcript.format)
    messages = planted(decoded)
    history: list[Json] = encode_all(messages, name)
    again, _ = decode_all(history, name)
    ends = [len(again) * part // rounds for part in range(1, rounds + 1)]
    strategy = StructuredSummary(max_tokens=target) if verify else _alone(target)
    checkpoint: Any = None
    for end in ends:
        result = compact(
            history[:end],
            budget=10**9,
            target=target,
            strategy=strategy,
            summarizer=ScriptedModel(forgetful, repeat=True),
            format=name,
            trigger=always,
            previous=checkpoint,
            min_saving=0.0,
        )
        checkpoint = result.checkpoint
    return _kept(decode_all(result.messages, name)[0], again, result.tokens_after)


def _alone(target: int) -> StructuredSummary:
    """What the model wrote, and nothing else."""
    return StructuredSummary(max_tokens=target, verify=False, at_hand=0)


def _kept(context: Sequence[Message], history: Sequence[Message], tokens: int) -> Kept:
    notebook = Notebook()
    notebook.read(history, range(1, len(history) + 1))
    facts = must_keep(notebook.ledger())
    shown = _words("\n".join(_text(message) for message in context))
    task = next((fact.text for fact in facts if fact.kind == "task"), "")
    files = [fact.text.rpartition("/")[2] for fact in facts if fact.kind == "file"]
    errors = [fact.text for fact in facts if fact.kind == "error"]
    return Kept(
        _words(task) in shown,
        sum(_words(wish) in shown for wish in WISHES),
        (sum(file in shown for file in files), len(files)),
        (sum(_words(error) in shown for error in errors), len(errors)),
        tokens,
    )


def _text(message: Message) -> str:
    results = [result.text for result in message.results]
    return "\n".join([message.text, *results, *(call.json for call in message.calls)])


def _words(text: str) -> str:
    """Whatever the line breaks."""
    return " ".join(text.split())


def sessions(target: int) -> Iterator[tuple[str, Transcript]]:
    folder = os.environ.get("HOLDFAST_SESSIONS")
    names = (".jsonl", ".jsonl.gz", ".json", ".json.gz")
    files = (
        [p for p in Path(folder).rglob("*") if p.name.endswith(names)] if folder else list(map(example_path, EXAMPLES))
    )
    read = ((path.name, read_transcript(path)) for path in sorted(files))
    return ((name, transcript) for name, transcript in read if is_worth_it(transcript, target))


def is_worth_it(transcript: Transcript, target: int) -> bool:
    """Is a session long enough, and is there room for more than its system messages?"""
    return len(transcript.messages) >= _LEAST and _fixed(transcript) < target // 2


def _fixed(transcript: Transcript) -> int:
    """Tokens of the system messages: where they alone are half the target, no summary could hold the rest."""
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
    given = parser.parse_args()
    print(f"{'session':16}{'':10}{'task':>6}{'wishes':>9}{'files':>10}{'errors':>9}{'tokens':>9}")
    whole = {True: 0, False: 0}
    count = 0
    for name, transcript in sessions(given.target):
        count += 1
        for verify in (True, False):
            kept = lived(transcript, verify=verify, target=given.target, rounds=given.rounds)
            whole[verify] += kept.whole
            files, errors = ("/".join(map(str, pair)) for pair in (kept.files, kept.errors))
            wishes = f"{kept.wishes}/{len(WISHES)}"
            label = "verified" if verify else "alone"
            print(f"{name[:14]:16}{label:10}{kept.task!s:>6}{wishes:>9}{files:>10}{errors:>9}{kept.tokens:>9,}")
    print(f"all of it kept: {whole[True]} of {count} sessions with verification, {whole[False]} without")


if __name__ == "__main__":
    main()
