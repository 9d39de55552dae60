"""Workstream summaries: a replacement text, and a delta that code applies to the stored state."""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import Any, cast, get_args

import msgspec

from ..messages import Json
from ..messages.json_text import to_json
from ..models.calls import Failure, ModelCall, Reply, Steps
from .free_text import roll_up
from .prompts import SYSTEM_PROMPT, SummaryDraft, SummaryInput, delimit
from .state import LIST_CAPS, StateChange, StateDelta, Status, WorkstreamState, apply_delta, render_state
from .structured import one_line
from .summarizer import answer_text, cap_answer_tokens, run_summarizer, strip_reasoning
from .transcript import Style, SummaryTranscript

HEADINGS = ("KEY FACTS", "CONVERSATION FLOW", "OPEN THREADS")
MAX_ITEM_CHARACTERS = 500
MAX_ITEMS = 50
_STATUS_SYNONYMS: dict[str, Status] = {"completed": "done", "finished": "done", "pending": "open", "todo": "open"}
"""Status words that models use instead of the given ones."""
_KNOWN_KEYS = {"summary", "state_delta", "removed", *LIST_CAPS}
_MAX_OBJECTS = 200
_MAX_PROBLEM = 300
_OBJECT = re.compile(r'\{(?=\s*["“„}])')
_LINE_BEGIN = re.compile(r"(?:^|\n)[ \t]*\Z")
_FENCE_BEFORE = re.compile(r"`{3,}[\w-]*\s*\Z")
_FENCE_AFTER = re.compile(r"\A\s*`{3,}[ \t]*")
_BARE_JSON = re.compile(r"(?:`{3,}[\w-]*\s*)?(?:\{|\[\s*[\[\]{\"])")
_SUMMARY_HEADING = re.compile(rf"(?im)^[^\w\n]*(?:{'|'.join(HEADINGS)})\b")
_STRING = r'"(?:[^"\\]|\\.)*"'
_QUOTES = re.compile(rf"(?s)({_STRING})|[“”„‟]")
_COMMAS = re.compile(rf"(?s)({_STRING})|,(?=\s*[}}\]])")
_SUMMARY_FIELD = re.compile(rf'(?s)"summary"\s*:\s*({_STRING})(?=\s*(?:[,}}]|\Z))')
_decoder = json.JSONDecoder(strict=False)


class StateAnswer(msgspec.Struct, frozen=True):
    """A parsed answer."""

    summary: str
    delta: StateDelta | None
    problem: str = ""
    """Why the answer is invalid, for the repair prompt."""


def answer_schema() -> str:
    """Returns the JSON schema of an answer, for the prompt."""
    changes = {"type": "array", "items": {"$ref": "#/$defs/Change"}, "default": []}
    removed = {"type": "array", "items": {"type": "string"}, "default": []}
    statuses = {"anyOf": [{"enum": sorted(get_args(Status))}, {"type": "null"}], "default": None}
    text = {"type": "string", "default": ""}
    definitions = {
        "_Answer": {
            "title": "_Answer",
            "type": "object",
            "properties": {"summary": {"type": "string"}, "state_delta": {"$ref": "#/$defs/Delta"}},
            "required": ["summary", "state_delta"],
        },
        "Delta": {
            "title": "Delta",
            "description": "What became different.",
            "type": "object",
            "properties": {**dict.fromkeys(LIST_CAPS, changes), "removed": removed},
            "required": [],
        },
        "Change": {
            "title": "Change",
            "description": "An entry to add, or to change if its id or its text is known.",
            "type": "object",
            "properties": {"text": text, "id": text, "status": statuses},
            "required": [],
        },
    }
    return to_json({"$ref": "#/$defs/_Answer", "$defs": definitions})


def repair_prompt(problem: str, text: str) -> str:
    """Returns a prompt that quotes an invalid answer and asks for a corrected one."""
    return (
        f"Your last answer could not be used: {problem}\n\n{delimit('last-answer', text)}\n\n"
        "Give the same answer again, put right: one JSON object with `summary` (a string) and `state_delta`, and "
        f"nothing before or after it. It has to match this JSON schema:\n{answer_schema()}"
    )


def parse_answer(text: str) -> StateAnswer:
    """Finds summary and delta in one JSON object, or in a text next to a JSON object."""
    text = strip_reasoning(text)
    broken, foreign, problem = None, None, "there is no JSON object in it"
    for found in islice(_OBJECT.finditer(text), _MAX_OBJECTS):
        start, starts_line = found.start(), bool(_LINE_BEGIN.search(text, 0, found.start()))
        try:
            value, end = _decode_object(text, start)
        except (ValueError, RecursionError) as error:
            if broken is None and starts_line:
                broken, problem = start, f"its JSON cannot be read: {error}"
            continue
        if _KNOWN_KEYS & value.keys() or (starts_line and not value):
            outside = _text_outside(text, start, end) if broken is None else _summary_in_broken_json(text, broken)
            return _interpret(value, outside)
        if starts_line and foreign is None and broken is None:
            foreign, problem = start, "its JSON object has neither `summary` nor `state_delta`"
    if broken is not None:
        summary = _summary_in_broken_json(text, broken)
    else:
        summary = (
            text.strip()
            if foreign is None or _SUMMARY_HEADING.match(text.lstrip())
            else _text_outside(text, foreign, len(text))
        )
    return StateAnswer("" if _BARE_JSON.match(summary) else summary, None, _problem_line(problem))


def _decode_object(text: str, start: int) -> tuple[dict[str, Any], int]:
    """Returns the object that begins here and its end; after a fix, the end is that of the text."""
    try:
        return _decoder.raw_decode(text, start)
    except ValueError:
        return _decoder.raw_decode(_fix_json(text[start:]))[0], len(text)


def _fix_json(text: str) -> str:
    """Replaces typographic quotes and removes trailing commas outside of strings."""
    quoted = _QUOTES.sub(lambda found: found[1] or '"', text)
    return _COMMAS.sub(lambda found: found[1] or "", quoted)


def _text_outside(text: str, start: int, end: int) -> str:
    """Returns the summary before or after a JSON object; a single line there is a remark, not a summary."""
    for part in (_FENCE_BEFORE.sub("", text[:start]).strip(), _FENCE_AFTER.sub("", text[end:]).strip()):
        if headed := _SUMMARY_HEADING.search(part):
            return part[headed.start() :]
        if "\n" in part:
            return part
    return ""


def _summary_in_broken_json(text: str, start: int) -> str:
    """Returns the summary field of JSON that is broken elsewhere, or else the text around it."""
    found = _SUMMARY_FIELD.search(_fix_json(text[start:]))
    try:
        inside = str(_decoder.decode(found[1])).strip() if found else ""
    except ValueError:
        inside = ""
    return inside or _text_outside(text, start, len(text))


def _interpret(value: dict[str, Any], outside: str) -> StateAnswer:
    written = value.get("summary")
    summary = written.strip() if isinstance(written, str) and written.strip() else outside
    if "summary" in value and "state_delta" not in value:
        return StateAnswer(summary, None, "`state_delta` is missing")
    try:
        delta = _clean_delta(msgspec.convert(_normalize_delta(value.get("state_delta", value)), StateDelta))
    except msgspec.ValidationError as error:
        return StateAnswer(summary, None, _problem_line(str(error).replace("`$", "`state_delta")))
    return StateAnswer(summary, delta, "" if summary else "`summary` is missing or is no text")


def _normalize_delta(delta: Any) -> Any:
    """Accepts lists of plain texts or null, removals as objects, and synonyms of a status."""
    if not isinstance(delta, dict):
        return {} if delta is None else delta
    lists = {name: delta[name] for name in (*LIST_CAPS, "removed") if delta.get(name) is not None}
    for name, entries in lists.items():
        if isinstance(entries, list):
            lists[name] = [
                _normalize_removal(entry) if name == "removed" else _normalize_entry(entry)
                for entry in entries[:MAX_ITEMS]
            ]
    return lists


def _normalize_removal(entry: Any) -> Any:
    return entry.get("id") or entry.get("text") if isinstance(entry, dict) else entry


def _normalize_entry(entry: Any) -> Any:
    if not isinstance(entry, dict):
        return {"text": entry}
    status = entry.get("status")
    if isinstance(status, str):
        word = re.sub(r"[\s-]+", "_", status.strip().lower())
        status = _STATUS_SYNONYMS.get(word, word)
    return {**{key: written for key, written in entry.items() if written is not None}, "status": status}


def _clean_delta(delta: StateDelta) -> StateDelta:
    """Puts entries on one line, clips long ones and drops empty ones."""
    lists = {
        name: tuple(
            StateChange(_clip_item(change.text), change.id.strip(), change.status)
            for change in getattr(delta, name)
            if change.text.strip() or change.id.strip()
        )
        for name in LIST_CAPS
    }
    return StateDelta(removed=tuple(filter(None, map(_clip_item, delta.removed))), **lists)


def _clip_item(text: str) -> str:
    text = one_line(text)
    return text if len(text) <= MAX_ITEM_CHARACTERS else text[: MAX_ITEM_CHARACTERS - 1] + "…"


def _problem_line(text: str) -> str:
    return one_line(text)[:_MAX_PROBLEM]


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
        lists = render_state(state)
        text = f"{rolled}{_STATE_HEADING}{lists}" if lists else rolled
        return SummaryDraft(rolled, cast(Json, msgspec.to_builtins(state)), tuple(dict.fromkeys(remarks)), text)

    def _piece(self, source: SummaryInput, state: WorkstreamState, remarks: list[str]) -> Steps[StateAnswer | Failure]:
        def build(conversation: SummaryTranscript, notes: str) -> ModelCall:
            parts = [
                delimit("previous-summary", source.previous or "(none)"),
                delimit("existing-state", render_state(state) or "(empty)"),
                *([delimit("notes-on-older-messages", notes)] if notes else []),
                delimit("new-messages", conversation.text),
                _TASK + answer_schema(),
            ]
            if source.instructions:
                parts.append(f"Instructions of the person, which take precedence:\n{source.instructions.strip()}")
            return ModelCall("\n\n".join(parts), SYSTEM_PROMPT, self.max_tokens)

        def validate(text: str) -> str:
            return "" if parse_answer(text).summary.strip() else "it holds no summary"

        result = yield from run_summarizer(build, source, validate)
        remarks += result.remarks
        if not isinstance(result.answer, Reply):
            return result.report_rejected(result.answer)
        text = answer_text(result.answer)
        answer = parse_answer(text)
        if answer.delta is None and answer.problem:
            call = ModelCall(repair_prompt(answer.problem, text), SYSTEM_PROMPT, self.max_tokens, purpose="repair")
            (again,) = yield (cap_answer_tokens(call, source.summarizer_window),)
            repaired = parse_answer(answer_text(again)) if isinstance(again, Reply) else None
            if repaired is not None and repaired.delta is not None:
                return msgspec.structs.replace(answer, delta=repaired.delta)
            remarks.append(f"the state delta could not be parsed and was ignored: {answer.problem}")
        return answer
