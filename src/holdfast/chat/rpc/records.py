"""Records sent to a client in addition to agent events: greeting, responses, errors, approval requests."""

from __future__ import annotations

from typing import Literal

import msgspec

from ...agent.tools import Mode
from ...messages import Json
from ..state import Activity

PROTOCOL_VERSION = 1
"""Incremented on changes that a client of the previous version could misunderstand."""
RequestId = str | int | None
"""Chosen by the client to match a response with its request."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    """First record of a connection."""

    protocol: int = PROTOCOL_VERSION
    version: str
    session: str


class RpcResponse(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response"):
    """Response to a request that succeeded."""

    id: RequestId
    command: str
    ok: Literal[True] = True
    data: msgspec.Struct


class RpcError(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """Response to a request that failed or could not be parsed."""

    error: str
    id: RequestId


class ApprovalRequest(msgspec.Struct, frozen=True, tag_field="type", tag="approval_request"):
    """Asks whether a tool call may run; the agent waits for an `approve` request."""

    id: str
    tool: str
    line: str
    """The call in one line."""
    call: str
    arguments: Json
    rule: str | None = None
    """What `always` would allow; null if it would allow too much."""
    about: str = ""
    """What the rule matches, with an example of what it does not; or why there is none."""
    diff: str = ""
    """What would change in a file, as a unified diff; empty for other calls."""


# -- the data of responses ----------------------------------------------------------------------------------
class EmptyData(msgspec.Struct, frozen=True):
    """Data of a response without fields."""


class AbortData(msgspec.Struct, frozen=True):
    """Data of an `abort` response."""

    activity: Activity
    """Activity before the abort."""
    dropped: int
    """Prompts that had not started."""


class AutoCompactionData(msgspec.Struct, frozen=True):
    """Data of a `set_auto_compaction` response."""

    enabled: bool


class ModeData(msgspec.Struct, frozen=True):
    """Data of a `set_mode` response."""

    mode: Mode


class SessionData(msgspec.Struct, frozen=True):
    """Session the chat switched to."""

    session: str
    parent: str | None


class ModelData(msgspec.Struct, frozen=True):
    """Data of a `set_model` response."""

    model: str
    window: int


class ExportData(msgspec.Struct, frozen=True):
    """Data of an `export` response."""

    format: str
    text: str
    """Content of the file."""
    warnings: tuple[str, ...]
    """What the format cannot represent."""


class HandoffData(msgspec.Struct, frozen=True):
    """Data of a `handoff` response."""

    session: str
    message: str
    """Draft of the first message of the new session: send it as a prompt."""
    remarks: tuple[str, ...]


class UndoData(msgspec.Struct, frozen=True):
    """Data of an `undo` response."""

    checkpoint: str | None
    """Checkpoint now in force, if any."""


class SessionListing(msgspec.Struct, frozen=True):
    """One session in a `list_sessions` response."""

    session: str
    created: str
    events: int
    parent: str | None
    model: str | None


class SessionListData(msgspec.Struct, frozen=True):
    """Data of a `list_sessions` response."""

    sessions: list[SessionListing]


class LoggedMessage(msgspec.Struct, frozen=True):
    """User or assistant message as logged."""

    number: int
    event: str
    role: Literal["user", "assistant"]
    text: str
    calls: int
    archived: bool


class MessagesData(msgspec.Struct, frozen=True):
    """Data of a `get_messages` response."""

    messages: list[Json] | list[LoggedMessage]
    format: str | None
    """Wire format of the context's messages; None for plain text and for logged messages."""
