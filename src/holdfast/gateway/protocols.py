"""The four wire protocols of clients: which calls they are, where their messages are, and what replies report."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..errors import InvalidInput
from ..follow import CACHE_MARK
from ..messages import Json, decode_one, is_from_user
from ..messages.payload import as_dict, as_list

if TYPE_CHECKING:
    from .http_messages import Headers

CallKind = Literal["generate", "count", "compact"]
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
ITEM_PREFIX = "holdfast1."
"""How every compaction item of the gateway begins; one that begins otherwise is another vendor's."""
_FIRST_BYTES = 100
"""Bytes of a field in which its first character is looked for."""
_SERVER_STATE = ("previous_response_id", "conversation", "thread", "cachedContent")
"""Fields that refer to messages that only the provider has."""


class WireProtocol(msgspec.Struct, frozen=True):
    """Where a request of one provider has its messages, system prompt and usage."""

    format: str
    """Name of the message codec."""
    messages: str
    system: str | None
    usage: str
    """Field of a reply with its token counts."""
    paths: tuple[tuple[str, CallKind], ...]
    """Ends of the paths of its calls."""
    quiet_events: frozenset[str] = frozenset()
    """Events that a stream may begin with before it succeeds or fails."""
    compaction_fields: frozenset[str] = frozenset()
    """Fields of the vendor's compaction protocol."""
    compaction_marks: tuple[bytes, ...] = ()
    """What the messages of a request contain that uses it."""


PROTOCOLS = (
    WireProtocol("openai-chat", "messages", None, "usage", (("/chat/completions", "generate"),)),
    WireProtocol(
        "openai-responses",
        "input",
        "instructions",
        "usage",
        (("/responses", "generate"), ("/responses/input_tokens", "count"), ("/responses/compact", "compact")),
        frozenset(("response.created", "response.in_progress", "response.queued")),
        frozenset(("context_management",)),
        (b"compaction_trigger", ITEM_PREFIX.encode()),
    ),
    WireProtocol(
        "anthropic",
        "messages",
        "system",
        "usage",
        (("/messages", "generate"), ("/messages/count_tokens", "count")),
        frozenset(("ping",)),
        frozenset(("context_management", "compaction")),
        (ITEM_PREFIX.encode(),),
    ),
    WireProtocol(
        "gemini",
        "contents",
        "systemInstruction",
        "usageMetadata",
        ((":generateContent", "generate"), (":streamGenerateContent", "generate"), (":countTokens", "count")),
    ),
)


def find_protocol(method: str, path: str) -> tuple[WireProtocol, CallKind] | None:
    """Returns the protocol and kind of a model call; None for every other request."""
    if method != "POST":
        return None
    path = path.rstrip("/")
    for protocol in PROTOCOLS:
        for end, kind in protocol.paths:
            if path.endswith(end):
                return protocol, kind
    return None


class RequestBody:
    """The JSON of a model call, parsed only as deep as a decision needs; untouched fields keep their bytes."""

    def __init__(self, protocol: WireProtocol, raw: bytes, path: str = "") -> None:
        self.protocol = protocol
        self.raw = raw
        try:
            self.fields = _decode_fields(raw)
        except msgspec.DecodeError as problem:
            raise InvalidInput(f"The request is not a JSON object: {problem}") from None
        self._path = path
        self.is_changed = False
        """Whether it differs from what the client sent."""

    @property
    def model(self) -> str:
        """Name of the model; Gemini has it in the path."""
        if named := re.search(r"/models/([^/:]+):", self._path):
            return named[1]
        model = self.value("model")
        return model if isinstance(model, str) else ""

    @property
    def has_all_messages(self) -> bool:
        """Whether the request has the whole conversation, as a list."""
        given = self.fields.get(self.protocol.messages)
        return (
            given is not None
            and bytes(memoryview(given)[:_FIRST_BYTES]).lstrip()[:1] == b"["
            and all(self.value(field) is None for field in _SERVER_STATE)
        )

    def may_ask_for_compaction(self, kind: CallKind) -> bool:
        """Whether it uses the vendor's compaction protocol, as far as its fields and the bytes of its messages tell."""
        if kind == "compact" or not self.protocol.compaction_fields.isdisjoint(self.fields):
            return True
        marks = self.protocol.compaction_marks
        return bool(marks) and self.has_all_messages and any(mark in self.messages for mark in marks)

    @cached_property
    def messages(self) -> bytes:
        """The list of messages, as sent."""
        return bytes(self.fields[self.protocol.messages])

    @property
    def system(self) -> Any:
        name = self.protocol.system
        return None if name is None else self.value(name)

    def field(self, name: str) -> bytes:
        """Returns a field as sent, empty if there is none."""
        return bytes(self.fields.get(name, b""))

    def value(self, field: str) -> Any:
        """Returns a decoded field, None if there is none."""
        raw = self.fields.get(field)
        try:
            return None if raw is None else msgspec.json.decode(raw)
        except msgspec.DecodeError as problem:
            raise InvalidInput(f"The field {field} is not JSON: {problem}") from None

    def replace(self, field: str, value: Any) -> None:
        """Sets a field to another value."""
        self.fields[field] = msgspec.Raw(msgspec.json.encode(value))
        self._forget_messages()
        self.is_changed = True

    def remove(self, field: str) -> None:
        """Removes a field."""
        del self.fields[field]
        self.is_changed = True

    def restore(self, fields: Mapping[str, msgspec.Raw]) -> None:
        """Takes all changes back."""
        self.fields = dict(fields)
        self._forget_messages()
        self.is_changed = False

    def _forget_messages(self) -> None:
        self.__dict__.pop("messages", None)

    def with_messages(self, messages: bytes) -> bytes:
        """Returns the JSON of the request with another list of messages."""
        return self.with_fields({self.protocol.messages: msgspec.Raw(messages)}).encode()

    def with_fields(self, fields: Mapping[str, msgspec.Raw]) -> RequestBody:
        """Returns a request in which some fields are replaced or added."""
        changed = copy(self)
        changed.fields = self.fields | dict(fields)
        changed._forget_messages()
        return changed

    def encode(self) -> bytes:
        """Returns the JSON; the bytes of each field stay as they are."""
        fields = (msgspec.json.encode(name) + b":" + bytes(value) for name, value in self.fields.items())
        return b"{" + b",".join(fields) + b"}"


def split_list(raw: bytes) -> list[bytes]:
    """Returns the items of a JSON list as they are."""
    return [bytes(item) for item in _decode_list(raw)]


# -- marks of the prompt cache ---------------------------------------------------------------------------------------


def with_cache_marks(messages: list[Json], sent: Sequence[Json]) -> list[Json]:
    """Sets the marks that the client's newest messages have on the same messages of a compacted list."""
    for shown, own in zip(reversed(messages), reversed(sent), strict=False):
        blocks, marked = shown.get("content"), own.get("content")
        if shown.get("role") != own.get("role"):
            break
        marks = [as_dict(block).get(CACHE_MARK) for block in as_list(marked)]
        if not any(marks):
            continue
        if isinstance(blocks, str):
            blocks = shown["content"] = [{"type": "text", "text": blocks}]
        left = as_list(blocks)
        for at, mark in enumerate(reversed(marks), 1):  # from the end: thinking that was dropped stood first
            if mark is not None and at <= len(left) and isinstance(left[-at], dict):
                left[-at] = {**left[-at], CACHE_MARK: mark}
    return messages


def mark_last_block(messages: list[Json], item: Sequence[Json], mark: Any) -> None:
    """Sets a mark where a compaction item ended that is now the beginning of a list."""
    last = len(item) - 1
    if item and len(messages) > last and messages[last] == item[-1]:
        messages[: last + 1] = with_cache_marks(
            [*messages[:last], dict(messages[last])],
            [{"role": messages[last].get("role"), "content": [{CACHE_MARK: mark}]}],
        )


# -- who is calling --------------------------------------------------------------------------------------------------

SESSION_HEADER = "x-holdfast-session"
_KEY_HEADERS = (SESSION_HEADER, "thread-id", "session-id", "x-claude-code-session-id", "x-session-id", "session_id")


def header_key(headers: Headers) -> str:
    """Returns the client's own name of the conversation, if a header has it."""
    return next(filter(None, map(headers.get, _KEY_HEADERS)), "")


def session_key(named: str, body: RequestBody) -> str:
    """Returns the client's own name of the conversation: that of a header, or one in the body; empty without one."""
    if named:
        return named
    if isinstance(key := body.value("prompt_cache_key"), str):
        return key
    metadata = body.value("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    return user if isinstance(user, str) else ""


_SIDE_CALL_SYSTEM, _SIDE_CALL_TEXT = 600, 3_000
"""Characters of a system prompt, and of either end of a message, that are searched."""
_SIDE_CALL = re.compile(
    r"title generator|generate (?:a |an )?(?:short |concise |brief )?title|(?:thread|session|conversation) title"
    r"|context summari[sz]ation (?:assistant|agent)|context (?:checkpoint )?compaction|handoff summary"
    r"|anchored summary|structured (?:context checkpoint|summary)|<state_snapshot>|PREFIX of a turn"
    r"|summari[sz]e (?:our|the|this|older|above|all) (?:\w+ )?(?:conversation|session|history|messages|turns)"
    r"|another (?:LLM|language model|agent) (?:that )?will|detailed (?:prompt|summary) (?:for|of)"
    r"|create a (?:detailed|structured|anchored) (?:\w+ )?summary|compress(?:ing)? the (?:conversation|context|history)"
    r"|respond with text only",
    re.IGNORECASE,
)


def is_side_call(body: RequestBody, last: Sequence[Json], leading: Sequence[Json] = ()) -> bool:
    """Whether a client asks for a title or a summary of its own: no part of the conversation."""
    format = body.protocol.format
    system = bytes(body.fields.get(body.protocol.system or "", b""))[:_SIDE_CALL_SYSTEM].decode(errors="replace")
    prompts = [decode_one(payload, format).text[:_SIDE_CALL_SYSTEM] for payload in leading]
    asked = [message.text for payload in last if is_from_user(message := decode_one(payload, format))]
    texts = (system, *prompts, *(text[:_SIDE_CALL_TEXT] + text[-_SIDE_CALL_TEXT:] for text in asked))
    return any(_SIDE_CALL.search(text) for text in texts)
