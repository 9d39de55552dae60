"""Rounds of compaction in which the next process has the messages and nothing else, beside rounds with `previous=`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from holdfast import Outcome, compact
from holdfast.compaction.result import CompactionResult
from holdfast.context.events import message_in
from holdfast.ledger import HistoryExtractor, find_task
from holdfast.messages import Message, decode_all, encode_all, is_note
from holdfast.models import ModelCall, ScriptedModel
from holdfast.strategies.read_back import read_note
from holdfast.triggers import always

Payloads = list[dict[str, Any]]
SECTIONS = (
    "### Completed Work\n| File/Component | Action | Description |\n|---|---|---|\n| pier | mended | as asked |\n\n"
    "### Key Technical Decisions\n{}\n\n### Current State\n- Working on: what was asked last"
)


class Kept(NamedTuple):
    """What any process finds in a context: the task, rules, files, and the round."""

    task: bool
    rules: frozenset[str]
    files: frozenset[str]
    round: int


def forgetful(seed: int = 0) -> ScriptedModel:
    """A model that repeats some lines of its prompt, others in each call, in the form that the prompt asks for."""

    def answer(call: ModelCall) -> str:
        lines = [" ".join(line.strip("-|*# ").split())[:120] for line in call.prompt.splitlines()]
        kept = [
            line for line in lines if len(line) > 12 and line[0] not in "<[{" and _survives(line, seed + len(lines))
        ]
        bullets = "\n".join(f"- {line}" for line in kept[:6]) or "- The work went on."
        if "### Completed Work" in call.prompt:
            return SECTIONS.format(bullets)
        if "state_delta" in call.prompt:
            delta = {"tasks": [{"text": "Mend the pier", "status": "open"}], "key_decisions": ["Use metres"]}
            return json.dumps({"summary": f"KEY FACTS\n{bullets}", "state_delta": delta})
        return f"The conversation so far:\n{bullets}"

    return ScriptedModel(answer, repeat=True)


def _survives(text: str, seed: int) -> bool:
    return hashlib.sha256(f"{seed}{text}".encode(errors="replace")).digest()[0] < 40


def run_rounds(
    parts: Iterable[Payloads], format: str, carried: bool, *, counted: bool = True, **options: Any
) -> tuple[CompactionResult, list[Outcome]]:
    """Compacts after each part; with `carried` only messages reach the next round, else the checkpoint does, too.

    Between rounds the messages are written down as JSON and read again. With `counted`, each round that archives
    messages must be counted.
    """
    messages: Payloads = []
    outcomes, checkpoint, result, rounds = list[Outcome](), None, None, 0
    for part in parts:
        messages = [*messages, *part]
        previous = {} if carried else {"previous": checkpoint}
        result = compact(messages, format=format, trigger=always, min_saving=0.0, **previous, **options)
        outcomes.append(result.outcome)
        rounds += any(not is_note(message_in(event)) for event in result.archived)  # notes are only replaced
        assert not counted or result.round == rounds, (result.round, rounds, result.outcome)
        messages, checkpoint = json.loads(json.dumps(list(result.messages))), result.checkpoint
    assert result is not None
    return result, outcomes


def kept_in(result: CompactionResult, format: str, task: str, rules: Iterable[str]) -> Kept:
    """Reads the context as a process does that knows nothing else of it."""
    messages = decode_all(list(result.messages), format)[0]
    shown = _words("\n".join(map(_text, messages)))
    files = {file.path for note in filter(is_note, messages) for file in read_note(note).files}
    return Kept(
        _words(task) in shown,
        frozenset(rule for rule in rules if _words(rule) in shown),
        frozenset(files | files_in(messages)),
        result.round,
    )


def files_in(messages: Sequence[Message]) -> set[str]:
    return set(_extracted(messages).files)


def task_in(messages: Sequence[Message]) -> str:
    task = find_task(_extracted(messages).users)
    return task.text if task else ""


def _extracted(messages: Sequence[Message]) -> HistoryExtractor:
    history = HistoryExtractor()
    history.read(messages, range(1, len(messages) + 1))
    return history


def in_format(messages: Sequence[Message], format: str) -> Payloads:
    return encode_all(messages, format)


def _text(message: Message) -> str:
    results = [result.text for result in message.results]
    return "\n".join([message.text, *results, *(call.arguments_json for call in message.calls)])


def _words(text: str) -> str:
    """The words of a text, without quote marks that keep it apart from the structure of a note."""
    return " ".join(word for word in text.split() if word != ">")


Policy = Callable[[], dict[str, Any]]
"""Makes the options of one run: a strategy is used for one run only."""
