"""A well-formed conversation around each sample of a type of the SDKs, and what in it belongs together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from sdk_cases import Case, partner
from sdk_samples import Words
from sdk_stands import SERVER_TOOLS, Role
from sdk_types import Json

Path = tuple[str | int, ...]


class Member(NamedTuple):
    """What belongs to a unit: a message, or a block of one."""

    message: int
    path: Path
    mark: str
    """`.` for the sample, `~` for what may be left out."""


class Conversation(NamedTuple):
    messages: list[Json]
    unit: list[Member]

    @property
    def sample(self) -> Member:
        return next(member for member in self.unit if "." in member.mark)

    @property
    def sample_payload(self) -> Json:
        found: Any = self.messages[self.sample.message]
        for key in self.sample.path:
            found = found[key]
        return dict(found)


class Piece(NamedTuple):
    """A message, or a block of one."""

    role: Role
    payload: Json
    mark: str = ""
    """Empty for what belongs to no unit."""


def conversation(case: Case, *, before: int = 3, after: int = 3) -> Conversation:
    """The sample and what belongs to it, between turns of plain talk; with none after, the end of the conversation."""
    words, place = Words(1_000), "first" if _is_signed_summary(case.payload) else case.stands.place
    pieces = [piece for _ in range(before if place != "first" else 0) for piece in _turn(case.format, words)]
    if case.role != "user" and place != "first":
        pieces.append(_say(case.format, "user", words))
    pieces += _unit(case, words)
    if after and place != "last":
        if pieces[-1].role != "assistant":
            pieces.append(_say(case.format, "assistant", words))
        pieces += [piece for _ in range(after) for piece in _turn(case.format, words)]
    return _assembled(pieces, case.format)


def _is_signed_summary(payload: Json) -> bool:
    return payload.get("type") == "compaction" and bool(payload.get("signature"))


def _turn(format: str, words: Words) -> list[Piece]:
    return [_say(format, "user", words), _say(format, "assistant", words)]


def _say(format: str, role: Role, words: Words) -> Piece:
    text = words.prose(f"{role}-{words.number()}", 4)
    if format == "gemini":
        return Piece(role, {"role": "model" if role == "assistant" else "user", "parts": [{"text": text}]})
    return Piece(role, {"role": role, "content": text})


def _unit(case: Case, words: Words) -> list[Piece]:
    if case.format == "openai-chat":
        return _chat_unit(case, words)
    pieces = [_piece(case, token, words) for token in _tokens(case)]
    linked = _linked(case.format, pieces, words)
    return linked if case.format == "openai-responses" else list(_with_siblings(linked, case.format, words))


def _tokens(case: Case) -> list[str]:
    """The unit of this payload: its fields tell which of the table's."""
    stands, payload = case.stands, case.payload
    if stands.called and _calls_from_program(payload):
        return stands.called.split()
    if stands.approved and payload.get("approval_request_id"):
        return stands.approved.split()
    if case.type.tag == "function_call_output" and not payload.get("call_id"):
        return ["."]
    return stands.unit.split()


def _calls_from_program(payload: Json) -> bool:
    caller = payload.get("caller")
    return isinstance(caller, dict) and caller["type"] != "direct"


def _piece(case: Case, token: str, words: Words) -> Piece:
    tag, payload = token.strip("^@~"), case.payload
    if tag == ".":
        return Piece(_role(case, case.type.tag), payload, token)
    if tag == "reply":
        return Piece("assistant", _say(case.format, "assistant", words).payload, token)
    if tag == "result":
        tag = SERVER_TOOLS[payload["name"]]
    found = partner(case.format, tag, words)
    if tag == "server_tool_use":
        own = case.type.tag if "^" not in token else "code_execution_tool_result"
        found["name"] = next((name for name, result in SERVER_TOOLS.items() if result == own), "web_search")
    return Piece(_role(case, tag), found, token)


def _role(case: Case, tag: str) -> Role:
    """Who says what belongs to a unit: of calls, the results are the user's."""
    return "user" if tag in ("tool_result", "functionResponse") else case.role


def _linked(format: str, pieces: list[Piece], words: Words) -> list[Piece]:
    """The pieces with ids that refer to each other."""
    program, call, approval = words.text("program"), words.text("call"), words.text("approval")
    nameless = len(pieces) == 1 or any("." in piece.mark and not piece.payload.get("call_id", 1) for piece in pieces)
    link = {"openai-responses": _link_item, "anthropic": _link_block, "gemini": _link_part}[format]
    out = []
    for piece in pieces:
        payload = json.loads(json.dumps(piece.payload))
        own = program if "^" in piece.mark else call
        link(payload, "" if nameless else own, program if "@" in piece.mark else "", approval)
        if _calls_from_program(payload):
            payload["caller"][next(key for key in payload["caller"] if key != "type")] = program
        out.append(piece._replace(payload=payload))
    return out


def _link_item(item: Json, own: str, program: str, approval: str) -> None:
    kind = item.get("type")
    if kind == "local_shell_call_output":
        item["id"] = own
    elif own and ("call_id" in item or kind in ("function_call_output", "tool_search_output", "tool_search_call")):
        item["call_id"] = own
    if kind == "mcp_approval_request":
        item["id"] = approval
    elif own and kind in ("mcp_approval_response", "mcp_call"):
        item["approval_request_id"] = approval
    if program:
        item["caller"] = {"type": "program", "caller_id": program}


def _link_block(block: Json, own: str, program: str, approval: str) -> None:
    for key in ("id", "tool_use_id"):
        if key in block:
            block[key] = own
    if program and block["type"] in ("tool_use", "server_tool_use"):
        block["caller"] = {"type": "code_execution_20260120", "tool_id": program}


def _link_part(part: Json, own: str, program: str, approval: str) -> None:
    for kind in ("functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall"):
        if kind in part:
            part[kind]["id"] = own
            if "name" in part[kind]:
                part[kind]["name"] = f"tool_{own}"
    if "toolResponse" in part:
        part["toolResponse"]["id"] = own


def _with_siblings(pieces: list[Piece], format: str, words: Words) -> Iterator[Piece]:
    """The blocks with texts beside them, which have a field of their own."""
    for role, run in groupby(pieces, lambda piece: piece.role):
        blocks = list(run)
        if "role" in blocks[0].payload:
            yield from blocks
            continue
        kinds = {_kind(piece.payload, format) for piece in blocks}
        if not kinds & _LEADING:
            yield Piece(role, _sibling(format, words))
        yield from blocks
        if not kinds & _CLOSING:
            yield Piece(role, _sibling(format, words))


_LEADING = frozenset(
    {"tool_result", "functionResponse", "thinking", "redacted_thinking", "thought", "compaction", "system"}
)
_CLOSING = frozenset({"tool_use", "tool_result", "functionCall", "functionResponse"})


def _kind(block: Json, format: str) -> str:
    if format == "gemini":
        return "thought" if block.get("thought") else next(iter(block))
    return str(block["type"])


def _sibling(format: str, words: Words) -> Json:
    text = words.prose(f"sibling-{words.number()}", 4)
    if format == "gemini":
        return {"text": text, "partMetadata": {"sibling": words.number()}}
    return {"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}


def _assembled(pieces: list[Piece], format: str) -> Conversation:
    messages: list[Json] = []
    unit: list[Member] = []
    blocks: Any = None
    key = "parts" if format == "gemini" else "content"
    before: Role | None = None
    for piece in pieces:
        whole = format in ("openai-chat", "openai-responses") or "role" in piece.payload
        if whole:
            blocks = None
            messages.append(piece.payload)
            path: Path = ()
        else:
            if blocks is None or piece.role != before:
                blocks = []
                role = "model" if format == "gemini" and piece.role == "assistant" else piece.role
                messages.append({"role": role, key: blocks})
            path = (key, len(blocks))
            blocks.append(piece.payload)
        before = piece.role
        if piece.mark:
            unit.append(Member(len(messages) - 1, path, piece.mark))
    return Conversation(messages, unit)


# -- chat: calls are fields of a message ------------------------------------------------------------------


def _chat_unit(case: Case, words: Words) -> list[Piece]:
    payload, tag = case.payload, case.type.tag
    own = Piece(case.role, payload, ".")
    if tag == "assistant":
        return [own, *_chat_results(payload, words)]
    if tag == "tool":
        called = {"name": words.text("name"), "arguments": words.text("arguments")}
        calls = [{"id": payload["tool_call_id"], "type": "function", "function": called}]
        return [Piece("assistant", {"role": "assistant", "content": None, "tool_calls": calls}, "call"), own]
    if tag == "function":
        called = {"name": payload["name"], "arguments": words.text("arguments")}
        return [Piece("assistant", {"role": "assistant", "content": None, "function_call": called}, "call"), own]
    return [own]


def _chat_results(payload: Json, words: Words) -> list[Piece]:
    results = [
        {"role": "tool", "tool_call_id": call["id"], "name": words.text("name"), "content": words.text("content")}
        for call in payload.get("tool_calls") or ()
    ]
    if legacy := payload.get("function_call"):
        results.append({"role": "function", "name": legacy["name"], "content": words.text("content")})
    return [Piece("user", result, "result") for result in results]
