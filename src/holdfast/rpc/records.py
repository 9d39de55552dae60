"""What goes to a client beside the agent's own events: a greeting, answers, errors, and questions to the person."""

from __future__ import annotations

from typing import Literal

import msgspec

from ..chat.state import Activity
from ..messages import Json

PROTOCOL = 1
"""Raised when a client that knew the last version could misunderstand this one."""
Id = str | int | None
"""What a client calls its request, to know the answer again."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="hello"):
    protocol: int = PROTOCOL
    version: str
    session: str


class Response(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="response"):
    """It was done."""

    id: Id
    command: str
    ok: Literal[True] = True
    data: msgspec.Struct


class Refused(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """It could not be done, or could not even be read (P9)."""

    error: str
    id: Id


class ApprovalRequest(msgspec.Struct, frozen=True, tag_field="type", tag="approval_request"):
    """May this be done? The agent waits for the answer."""

    id: str
    tool: str
    line: str
    """The call in a few words."""
    call: str
    arguments: Json


# -- the data of responses ----------------------------------------------------------------------------------


class Done(msgspec.Struct, frozen=True):
    """Nothing more to say."""


class Stopped(msgspec.Struct, frozen=True):
    activity: Activity
    """What was going on."""
    dropped: int
    """Prompts that were not begun."""


class AutoCompaction(msgspec.Struct, frozen=True):
    enabled: bool


class Entered(msgspec.Struct, frozen=True):
    """The session that the conversation goes on in."""

    session: str
    parent: str | None


class Undone(msgspec.Struct, frozen=True):
    checkpoint: str | None
    """The compaction that is in force now, if any."""


class Listed(msgspec.Struct, frozen=True):
    session: str
    created: str
    events: int
    parent: str | None
    model: str | None


class Sessions(msgspec.Struct, frozen=True):
    sessions: list[Listed]


class Logged(msgspec.Struct, frozen=True):
    """What the user or the model said, as the log has it."""

    number: int
    event: str
    role: Literal["user", "assistant"]
    text: str
    calls: int
    archived: bool


class Messages(msgspec.Struct, frozen=True):
    messages: list[Json] | list[Logged]
    format: str | None
    """Of the context's messages; None where they are plain text, or those of the log."""
