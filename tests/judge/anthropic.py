"""Validates `messages` of `POST /v1/messages`: turns, calls and results.

Turns of one role in a row are merged by the API, so the order is judged after merging; a complaint
still names the message and block as the caller wrote them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from judge.anthropic_binding import bound_thinking
from judge.anthropic_blocks import block_complaints

__all__ = ["bound_thinking", "complaints"]

_ROLES = ("user", "assistant", "system")


@dataclass
class _Turn:
    role: str
    at: int
    blocks: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def of(self, kind: str) -> list[tuple[str, dict[str, Any]]]:
        return [(where, block) for where, block in self.blocks if block.get("type") == kind]


def complaints(messages: list[dict[str, Any]], *, pending_ok: bool = True) -> list[str]:
    """Judge each message alone, then the merged turns."""
    if not messages:
        return ["messages: at least one message is required"]
    found: list[str] = []
    turns: list[_Turn] = []
    for i, message in enumerate(messages):
        role, blocks, shape = _message(message, i, last=i == len(messages) - 1)
        found += shape
        if role and turns and turns[-1].role == role == "system":
            found.append(f"messages.{i}: role 'system' messages cannot be adjacent to one another")
        if role and (not turns or turns[-1].role != role):
            turns.append(_Turn(role, i))
        if role:
            turns[-1].blocks += blocks
    found += _first(turns)
    found += _system_places(turns)
    found += _tool_ids(turns)
    found += _compactions(turns)
    for at, turn in enumerate(turns):
        found += _calls(turn, turns[at + 1 : at + 3], pending_ok) if turn.role == "assistant" else ()
        found += _results(turn, turns[at - 1] if at else None) if turn.role == "user" else ()
    return found + list(_server_tools(turns, pending_ok))


def _message(message: object, i: int, last: bool) -> tuple[str, list[tuple[str, dict[str, Any]]], list[str]]:
    """Return the role, the located blocks and the complaints about this message alone."""
    if not isinstance(message, dict):
        return "", [], [f"messages.{i}: Input should be a valid dictionary"]
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        allowed = '"user", "assistant" or "system"'
        return "", [], [f'messages.{i}: Unexpected role "{role}". Allowed roles are {allowed}.']
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        if role == "system" and message.get("output_config"):
            return role, [], []
        return role, [], [f"messages.{i}.content: Input should be a valid string or list"]
    if not content and not (last and role == "assistant"):
        text = "all messages must have non-empty content except for the optional final assistant message"
        return role, [], [f"messages.{i}: {text}"]
    blocks: list[tuple[str, dict[str, Any]]] = []
    found: list[str] = []
    for j, block in enumerate(content):
        where = f"messages.{i}.content.{j}"
        found += block_complaints(block, role, where)
        if isinstance(block, dict):
            blocks.append((where, block))
    return role, blocks, found


def _first(turns: list[_Turn]) -> Iterator[str]:
    if not turns or turns[0].role == "user":
        return
    compacted = turns[0].blocks and turns[0].blocks[0][1].get("type") == "compaction"
    if not compacted:
        yield f'messages: first message must use the "user" role, found "{turns[0].role}"'


def _system_places(turns: list[_Turn]) -> Iterator[str]:
    for at, turn in enumerate(turns):
        if turn.role != "system":
            continue
        before = turns[at - 1] if at else None
        ending = str(before.blocks[-1][1].get("type")) if before and before.blocks else ""
        served = ending == "server_tool_use" or ending.endswith("_tool_result")
        if before is None or (before.role != "user" and not served):
            yield (
                f"messages.{turn.at}: role 'system' must immediately follow a user message or an assistant "
                "message that ends in a server tool use"
            )
        if at + 1 < len(turns) and turns[at + 1].role != "assistant":
            yield f"messages.{turn.at}: role 'system' must precede an assistant message or end the array"


def _tool_ids(turns: list[_Turn]) -> Iterator[str]:
    seen: set[str] = set()
    for turn in turns:
        for where, block in turn.of("tool_use"):
            if str(block.get("id")) in seen:
                yield f"{where}: `tool_use` ids must be unique: {block.get('id')}"
            seen.add(str(block.get("id")))


def _compactions(turns: list[_Turn]) -> Iterator[str]:
    """A signed block (made on demand) opens the history and is alone; the others may be anywhere."""
    signed = [where for turn in turns for where, block in turn.of("compaction") if block.get("signature")]
    for where in signed:
        if where != "messages.0.content.0":
            yield f"{where}: compaction_block_misplaced: a compaction block must come first in `messages`"
    if len(signed) > 1:
        yield f"{signed[-1]}: compaction_block_ambiguous: at most one compaction block is allowed"


def _calls(turn: _Turn, later: list[_Turn], pending_ok: bool) -> Iterator[str]:
    """Every call is answered at the start of the next turn, unless the last turn is still waiting."""
    if turn.blocks and turn.blocks[-1][1].get("type") in ("thinking", "redacted_thinking"):
        kind = turn.blocks[-1][1]["type"]
        yield f"{turn.blocks[-1][0]}: The final block in an assistant message cannot be `{kind}`."
    wanted = [str(block.get("id")) for _, block in turn.of("tool_use")]
    answers = later[0] if later and later[0].role == "user" else None
    given = [str(block.get("tool_use_id")) for _, block in answers.of("tool_result")] if answers else []
    waiting = not later or (len(later) == 1 and answers and len(given) == len(answers.blocks))
    missing = [name for name in wanted if name not in given]
    if missing and not (waiting and pending_ok):
        yield (
            f"messages.{turn.at}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in "
            "the next message."
        )
    elif wanted and answers and _leading_results(answers) < len(given):
        yield (
            f"messages.{answers.at}: Did not find {len(given)} `tool_result` block(s) at the beginning of "
            "this message. Messages following `tool_use` blocks must begin with a matching number of "
            "`tool_result` blocks."
        )


def _leading_results(turn: _Turn) -> int:
    kinds = [block.get("type") for _, block in turn.blocks]
    return next((n for n, kind in enumerate(kinds) if kind != "tool_result"), len(kinds))


def _results(turn: _Turn, before: _Turn | None) -> Iterator[str]:
    called = {str(block.get("id")) for _, block in before.of("tool_use")} if before else set()
    seen: set[str] = set()
    for where, block in turn.of("tool_result"):
        name = str(block.get("tool_use_id"))
        if name not in called:
            yield (
                f"{where}: unexpected `tool_use_id` found in `tool_result` blocks: {name}. Each "
                "`tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        elif name in seen:
            yield (
                f"{where}: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {name}"
            )
        seen.add(name)


def _has_words(turn: _Turn) -> bool:
    return any(block.get("type") != "tool_result" for _, block in turn.blocks)


def _server_tools(turns: list[_Turn], pending_ok: bool) -> Iterator[str]:
    """The API runs these itself: its result follows its use, in this turn or a later one."""
    waiting: dict[str, tuple[str, int]] = {}
    used: set[str] = set()
    for at, turn in enumerate(turns):
        for where, block in turn.blocks:
            kind = str(block.get("type"))
            caller = (block.get("caller") or {}).get("tool_id")
            if caller is not None and caller not in used:
                yield f"{where}: `caller.tool_id` {caller} names no `server_tool_use` block before it."
            if kind in ("server_tool_use", "mcp_tool_use"):
                waiting[str(block.get("id"))] = (where, at)
                used.add(str(block.get("id")))
            elif kind.endswith("_tool_result"):
                name = str(block.get("tool_use_id"))
                waiting.pop(name, None)
                if name not in used:
                    use = "mcp_tool_use" if kind.startswith("mcp") else "server_tool_use"
                    yield (
                        f"{where}: unexpected `tool_use_id` found in `{kind}` blocks: {name}. Each `{kind}` "
                        f"block must have a corresponding `{use}` block before it."
                    )
    speaking = max((at for at, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    spoken = max((at for at, turn in enumerate(turns) if turn.role == "user" and _has_words(turn)), default=-1)
    coded = [
        str((block.get("caller") or {}).get("tool_id")) for turn in turns[speaking:] for _, block in turn.of("tool_use")
    ]
    for name, (where, at) in waiting.items():
        if at > spoken and name in coded:  # its code waits for the results of calls
            continue
        if at < speaking or at < spoken or not pending_ok:
            yield f"{where}: tool use with id `{name}` was found without a corresponding tool result block"
