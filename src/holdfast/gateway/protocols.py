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
from ..messages import Json, Text, decode_one, is_from_user
from ..messages.payload import as_dict, as_list

if TYPE_CHECKING:
    from ..io.http_messages import Headers

CallKind = Literal["generate", "count", "compact"]
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
ITEM_PREFIX = "holdfast1."
"""How every compaction item of the gateway begins; one that begins otherwise is another vendor's."""
_BEDROCK = re.compile(r"/model/[^/]+/(?:invoke|converse)")
_FIRST_BYTES = 100
"""Bytes of a field in which its first character is looked for."""
PREVIOUS_REPLY = "previous_response_id"
_SERVER_STATE = (PREVIOUS_REPLY, "conversation", "thread", "cachedContent")
"""Fields that refer to messages that only the provider has."""


OLLAMA_USAGE = "prompt_eval_count"
"""Ollama's field of a reply with the tokens of the prompt; its calls have no ids, and its context is an option."""
_ANTHROPIC_ON_VERTEX = "/publishers/anthropic/"
"""Google's Vertex AI takes the requests of several publishers in their own forms, with the model in the path."""


class WireProtocol(msgspec.Struct, frozen=True):
    """Where a request of one provider has its messages, system prompt and usage."""

    format: str
    """Name of the message codec."""
    messages: str
    system: str | None
    usage: str
    """Field of a reply with its token counts, or with those of the input."""
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
    WireProtocol("openai-chat", "messages", None, OLLAMA_USAGE, (("/api/chat", "generate"),)),
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
        (
            ("/messages", "generate"),
            ("/messages/count_tokens", "count"),
            (":rawPredict", "generate"),
            (":streamRawPredict", "generate"),
        ),
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
            if path.endswith(end) and (not end.lower().endswith("rawpredict") or _ANTHROPIC_ON_VERTEX in path):
                return protocol, kind
    return None


def is_signed_call(path: str) -> bool:
    """Whether a model call of Amazon Bedrock: its signature covers the body, which can only pass as it is."""
    return bool(_BEDROCK.search(path))


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
        """Name of the model; Gemini and Vertex have it in the path."""
        if named := re.search(r"/models/([^/:]+):", self._path):
            return named[1]
        model = self.value("model")
        return model if isinstance(model, str) else ""

    @property
    def stated_window(self) -> int | None:
        """The context that the request asks for, where that is an option (Ollama)."""
        options = self.value("options") if self.protocol.usage == OLLAMA_USAGE else None
        asked = options.get("num_ctx") if isinstance(options, dict) else None
        return asked if isinstance(asked, int) and asked > 0 else None

    @property
    def has_tools(self) -> bool:
        """Whether the model may call tools."""
        return self.field("tools").strip() not in (b"", b"[]", b"null")

    @property
    def has_all_messages(self) -> bool:
        """Whether the request has the whole conversation, as a list."""
        return self._first_byte == b"[" and all(self.value(field) is None for field in _SERVER_STATE)

    @property
    def has_text_alone(self) -> bool:
        """Whether it has a text in place of a list of messages, as OpenAI's Responses API allows."""
        return self._first_byte == b'"'

    @property
    def _first_byte(self) -> bytes:
        given = self.fields.get(self.protocol.messages, b"")
        return bytes(memoryview(given)[:_FIRST_BYTES]).lstrip()[:1]

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
    """Returns the client's own name of the conversation: that of a header, or one in the body; empty without one.

    The end user that a body names is a part of it: conversations of two users never meet.
    """
    if named:
        return named
    metadata = body.value("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    names = (body.value("prompt_cache_key"), user, body.value("safety_identifier"), body.value("user"))
    return "\0".join(name for name in names if isinstance(name, str) and name)


SIDE_CALL_SYSTEM_PROMPTS = (
    "You are a title generator. You output ONLY a thread title.",  # opencode
    "You are a context summarization agent. You are given a conversation between",  # opencode
    "You are a context summarization assistant. Your task is to read a conversation between",  # pi
    "You are a helpful AI assistant tasked with summarizing conversations.",  # Claude Code
    "Generate a concise, sentence-case title (3-7 words) that captures",  # Claude Code, qwen-code
    "Generate a concise, single-line task title of at most",  # codex
    "You are the component that summarizes internal chat history into a given structure.",  # qwen-code, gemini-cli
    "You are a specialized system component responsible for distilling chat history into",  # gemini-cli
)
"""How the system prompts of the titles and summaries begin that known clients make for themselves."""
SIDE_CALL_USER_PROMPTS = (
    "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary for another LLM",  # codex
    "Your task is to create a detailed summary of the conversation so far, paying close attention",  # Claude Code
    "Your task is to create a detailed summary of this conversation. This summary will be placed",  # Claude Code
    "Your task is to create a detailed summary of the RECENT portion of the conversation",  # Claude Code
    "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.",  # Claude Code
    "Create a new anchored summary from the conversation history in the",  # opencode
    "Generate a title for this conversation:\n",  # opencode
    "Generate a concise, single-line task title of at most",  # codex
    "This is the PREFIX of a turn that was too large to keep. The SUFFIX",  # pi
)
"""How the last message begins where they ask for it in the user's place."""


def has_side_call_prompt(body: RequestBody, last: Sequence[Json], leading: Sequence[Json] = ()) -> bool:
    """Whether a known client asks with its own prompt for a title or a summary: no part of the conversation.

    A prompt is known by the whole sentence with which it or one of its blocks begins, never by words in it.
    """
    format = body.protocol.format
    system = body.system
    prompts = [decode_one(payload, format) for payload in leading]
    if system:
        prompts.append(decode_one({"role": "system", "content": system}, "anthropic"))
    asked = [message for payload in last if is_from_user(message := decode_one(payload, format))]
    return any(
        isinstance(part, Text) and part.text.lstrip().startswith(known)
        for messages, known in ((prompts, SIDE_CALL_SYSTEM_PROMPTS), (asked, SIDE_CALL_USER_PROMPTS))
        for message in messages
        for part in message.parts
    )
