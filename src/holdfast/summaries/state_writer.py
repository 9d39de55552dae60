"""Workstream summaries: a replacement text, and a delta that code applies to the stored state."""

from __future__ import annotations

import re
from typing import Any, cast, get_args

import msgspec

from ..messages import Json
from ..messages.json_text import to_json
from ..models.calls import Failure, ModelCall, Reply, Steps
from .free_text import roll_up
from .json_answer import TEXT_SCHEMA, find_object, list_schema, object_schema, string_field
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, delimit
from .state import LIST_CAPS, StateChange, StateDelta, Status, WorkstreamState, apply_delta, parse_state, render_state
from .structured import one_line
from .summarizer import answer_text, run_summarizer, strip_reasoning
from .transcript import Style, SummaryTranscript

HEADINGS = ("KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS")
MAX_ITEM_CHARACTERS = 500
MAX_ITEMS = 50
_STATUS_SYNONYMS: dict[str, Status] = {"completed": "done", "finished": "done", "pending": "open", "todo": "open"}
"""Status words that models use instead of the given ones."""
_KNOWN_KEYS = {"summary", "state_delta", "removed", *LIST_CAPS}
_MAX_PROBLEM = 300
_FENCE_BEFORE = re.compile(r"`{3,}[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\A\s*`{3,}[ \t]*")
_BARE_JSON = re.compile(r"(?:`{3,}[\w-]*\s*)?(?:\{|\[\s*[\[\]{\"])")
_SUMMARY_HEADING = re.compile(rf"(?im)^[^\w\n]*(?:{'|'.join(HEADINGS)})\b")


class StateAnswer(msgspec.Struct, frozen=True):
    """A parsed answer."""

    summary: str
    delta: StateDelta | None
    problem: str = ""
    """Why the answer, or an entry of its delta, is invalid."""


def answer_schema() -> Json:
    """Returns the JSON schema of an answer."""
    change = {"id": TEXT_SCHEMA, "text": TEXT_SCHEMA}
    task = object_schema(change | {"status": {"type": "string", "enum": sorted(get_args(Status))}})
    lists = {name: list_schema(task if name == "tasks" else object_schema(change)) for name in LIST_CAPS}
    delta = object_schema({**lists, "removed": list_schema(TEXT_SCHEMA)})
    return object_schema({"summary": TEXT_SCHEMA, "state_delta": delta})


def parse_answer(text: str) -> StateAnswer:
    """Finds summary and delta in one JSON object, or in a text next to a JSON object."""
    text = strip_reasoning(text)
    found = find_object(text, _KNOWN_KEYS.__contains__)
    if found.value is not None:
        return _interpret(found.value, _text_outside(text, found.start, found.end))
    if found.start < 0 or (not found.broken and _SUMMARY_HEADING.match(text.lstrip())):
        summary = text.strip()
    else:
        summary = string_field(text[found.start :], "summary") or _text_outside(text, found.start, len(text))
    return StateAnswer("" if _BARE_JSON.match(summary) else summary, None, one_line(found.problem)[:_MAX_PROBLEM])


def _text_outside(text: str, start: int, end: int) -> str:
    """Returns the summary before or after a JSON object; a single line there is a remark, not a summary."""
    for part in (_FENCE_BEFORE.sub("", text[:start]).strip(), _FENCE_AFTER.sub("", text[end:]).strip()):
        if headed := _SUMMARY_HEADING.search(part):
            return part[headed.start() :]
        if "\n" in part:
            return part
    return ""


def _interpret(value: Json, outside: str) -> StateAnswer:
    written = value.get("summary")
    summary = written.strip() if isinstance(written, str) and written.strip() else outside
    if "summary" in value and "state_delta" not in value:
        return StateAnswer(summary, None, "`state_delta` is missing")
    given = value.get("state_delta", value)
    if not isinstance(given, dict | None):
        return StateAnswer(summary, None, "`state_delta` is no object")
    lists, problems = dict[str, tuple[Any, ...]](), list[str]()
    for name in (*LIST_CAPS, "removed"):
        entries = (given or {}).get(name) or []
        read = [_read_entry(name, entry) for entry in (entries if isinstance(entries, list) else [entries])[:MAX_ITEMS]]
        lists[name] = tuple(entry for entry in read if entry is not None and entry != _NOTHING)
        problems += [f"an entry of `{name}` cannot be read"] if None in read else []
    problem = "; ".join(problems) if summary else "`summary` is missing or is no text"
    return StateAnswer(summary, StateDelta(**lists), problem)


_NOTHING = StateChange()


def _read_entry(name: str, entry: Any) -> StateChange | str | None:
    """Returns an entry of a delta, as an object or a plain text; None if it is neither."""
    fields = {"text": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, dict):
        return None
    text, id, status = (fields.get(key) or "" for key in ("text", "id", "status"))
    if not all(isinstance(field, str) for field in (text, id, status)):
        return None
    if name == "removed":
        return _clip_item(id or text) or _NOTHING
    word = re.sub(r"[\s-]+", "_", status.strip().lower())
    status = _STATUS_SYNONYMS.get(word, word)
    return StateChange(_clip_item(text), id.strip(), cast(Status, status) if status in get_args(Status) else None)


def _clip_item(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= MAX_ITEM_CHARACTERS else text[: MAX_ITEM_CHARACTERS - 1] + "…"


CHUNK_CHARACTERS = 120_000
"""Characters of the transcript per call."""
ROLLUP_TOKENS = 80_000
"""Tokens above which a summary is rolled up into a shorter one."""
_TASK = """\
Write a summary that replaces the previous one, in three parts headed KEY FACTS, CONVERSATION FLOW and OPEN THREADS: \
what is known and holds, how the conversation went, and what is open, with the one thing that was about to be done \
first. Beside it, say what changes in the state: decisions, constraints, tasks, open questions, risks, artifacts, and \
what each agent contributed. Mention only what the new messages change; mark a task done when it is.

Answer with one JSON object and nothing else, of this shape:
"""


_STATE_HEADING = "\n\nSTATE:\n"


def split_state(text: str) -> tuple[str, str]:
    """Splits a shown summary into the text that the model wrote and the rendered state after it."""
    summary, heading, state = text.rpartition(_STATE_HEADING)
    return (summary, state) if heading else (text, "")


def verified_state(state: Json, lists: str, summary: str) -> tuple[Json, str]:
    """Returns the state with the entries that its verified lists still have, and the text that shows both."""
    kept, whole = parse_state(lists) or WorkstreamState(), msgspec.convert(state, WorkstreamState)
    kept = msgspec.structs.replace(kept, issued=max(whole.issued, kept.issued))
    return cast(Json, msgspec.to_builtins(kept)), _with_state(summary, kept)


def _with_state(summary: str, state: WorkstreamState) -> str:
    lists = render_state(state)
    return f"{summary}{_STATE_HEADING}{lists}" if lists else summary


class StateText(msgspec.Struct, frozen=True):
    """Summary writer that asks for a summary and a delta, chunk by chunk if the history is long."""

    chunk: int = CHUNK_CHARACTERS
    rollup: int = ROLLUP_TOKENS
    max_tokens: int | None = 16_384
    style: Style = Style(result_limit=4_000, text_limit=20_000)

    def write(self, source: SummaryInput) -> Steps[SummaryDraft | Failure]:
        state = msgspec.convert(source.state, WorkstreamState) if source.state else WorkstreamState()
        summary, remarks = source.previous, list[str]()
        for piece in source.conversation.chunks(self.chunk):
            now = msgspec.structs.replace(source, conversation=piece, previous=summary)
            answer = yield from self._piece(now, state, remarks)
            if isinstance(answer, Failure):
                return answer
            summary = answer.summary
            if answer.delta is not None:
                state = apply_delta(state, answer.delta)
        rolled = yield from roll_up(summary, source, min(self.rollup, source.token_budget), self.max_tokens)
        if isinstance(rolled, Failure):
            return rolled
        text = _with_state(rolled, state)
        return SummaryDraft(rolled, cast(Json, msgspec.to_builtins(state)), tuple(dict.fromkeys(remarks)), text)

    def _piece(self, source: SummaryInput, state: WorkstreamState, remarks: list[str]) -> Steps[StateAnswer | Failure]:
        def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
            parts = [
                delimit("previous-summary", source.previous or "(none)"),
                delimit("existing-state", render_state(state) or "(empty)"),
                *([delimit("notes-on-older-messages", notes)] if notes else []),
                delimit("new-messages", conversation.text),
                _TASK + to_json(answer_schema()),
            ]
            if source.instructions:
                parts.append(f"Instructions of the person, which take precedence:\n{source.instructions.strip()}")
            return ModelCall("\n\n".join(parts), SYSTEM_PROMPT, self.max_tokens, schema=answer_schema())

        def validate(text: str) -> str:
            answer = parse_answer(text)
            return "it holds no summary" if not answer.summary else answer.problem if answer.delta is None else ""

        result = yield from run_summarizer(build, source, validate)
        remarks += result.remarks
        accepted = answer_text(result.answer) if isinstance(result.answer, Reply) else result.rejected
        answer = parse_answer(accepted)
        if not answer.summary:
            return result.report_rejected(result.failure)
        if answer.problem:
            remarks.append(f"of the state delta, this was ignored: {answer.problem}")
        return answer
