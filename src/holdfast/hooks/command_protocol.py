"""Shell commands as hooks, in the JSON protocol that coding agents' hooks use."""

from __future__ import annotations

import os

import msgspec

from ..io.processes import ShellResult
from ..messages import Json
from ..models import scrub
from ..summaries.transcript import truncate
from .events import CompactionCompleted
from .hooks import BeforeCompaction, Instructions, SessionStart, Veto

HookInput = BeforeCompaction | CompactionCompleted | SessionStart
_EVENT_NAMES = {BeforeCompaction: "PreCompact", CompactionCompleted: "PostCompact", SessionStart: "SessionStart"}
MAX_HOOK_TEXT = 10_000
"""Maximum characters of a text that a hook adds."""
_MAX_REASON = 500
_VETO_EXIT_CODE = 2


class CommandHookError(Exception):
    """A command failed, or printed an invalid answer."""


def command_input(given: HookInput, instructions: str | None) -> Json:
    """Returns the JSON object for the standard input."""
    common: Json = {
        "hook_event_name": _EVENT_NAMES[type(given)],
        "session_id": given.session,
        "lane": given.lane,
        "trigger": given.origin,
        "custom_instructions": instructions,
        "cwd": os.getcwd(),
    }
    if isinstance(given, BeforeCompaction):
        return common | {"tokens": given.tokens, "budget": given.budget}
    if isinstance(given, SessionStart):
        return common | {"tokens": given.tokens, "round": given.round, "source": given.source}
    sizes = {"tokens_before": given.tokens_before, "tokens_after": given.tokens_after}
    return common | {"tokens": given.tokens_after, **sizes, "round": given.round, "compact_summary": given.summary}


def parse_command_output(result: ShellResult, given: HookInput) -> Veto | Instructions | str | None:
    """Parses what a command printed: a veto, instructions or a session-start text; nothing after a compaction."""
    if isinstance(given, BeforeCompaction):
        return _parse_before_answer(result)
    found = _json_object(result)
    return _additional_context(result, found) if isinstance(given, SessionStart) else None


def _parse_before_answer(result: ShellResult) -> Veto | Instructions | None:
    if result.exit_code == _VETO_EXIT_CODE:
        return Veto(truncate(scrub(result.stderr), _MAX_REASON))
    found = _json_object(result)
    if found is None:
        return Instructions(truncate(result.stdout, MAX_HOOK_TEXT)) if result.stdout else None
    if found.get("decision") == "block":
        return Veto(truncate(scrub(_text_field(found, "reason")), _MAX_REASON))
    text = _text_field(found, "instructions")
    return Instructions(truncate(text, MAX_HOOK_TEXT)) if text else None


def _additional_context(result: ShellResult, found: Json | None) -> str | None:
    if found is None:
        return result.stdout or None
    inner = found.get("hookSpecificOutput")
    return _text_field(inner if isinstance(inner, dict) else found, "additionalContext") or None


def _json_object(result: ShellResult) -> Json | None:
    """Returns the printed JSON object; None for plain text. Raises if the command failed."""
    if result.exit_code:
        reason = truncate(scrub(result.stderr), _MAX_REASON)
        raise CommandHookError(f"it exited with {result.exit_code}" + (f": {reason}" if reason else ""))
    try:
        found = msgspec.json.decode(result.stdout)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _text_field(found: Json, key: str) -> str:
    value = found.get(key) or ""
    if not isinstance(value, str):
        raise CommandHookError(f"its {key} is not a text: {msgspec.json.encode(value).decode()[:40]}")
    return value.strip()
