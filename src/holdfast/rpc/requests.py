"""What a client may ask: one JSON object a line, told apart by its type. docs/rpc.md describes each."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from ..agent.tools import Permission
from ..chat import Answered, Compacted, State
from .records import (
    AutoCompaction,
    Done,
    Entered,
    Id,
    Messages,
    Sessions,
    Stopped,
    Undone,
)


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    id: Id = None
    answer: ClassVar[type[msgspec.Struct]] = Done
    """What the data of its response is."""

    @property
    def command(self) -> str:
        return str(self.__struct_config__.tag)


class Prompt(Request, frozen=True, tag="prompt"):
    text: str
    answer = Answered


class GoOn(Request, frozen=True, tag="go_on"):
    answer = Answered


class Steer(Request, frozen=True, tag="steer"):
    text: str


class Abort(Request, frozen=True, tag="abort"):
    answer = Stopped


class Compact(Request, frozen=True, tag="compact"):
    instructions: str | None = None
    answer = Compacted


class SetAutoCompaction(Request, frozen=True, tag="set_auto_compaction"):
    enabled: bool
    answer = AutoCompaction


class Approve(Request, frozen=True, tag="approve"):
    request: str
    permission: Permission


class Branch(Request, frozen=True, tag="branch"):
    at: str | int
    answer = Entered


class Fork(Request, frozen=True, tag="fork"):
    at: str | int | None = None
    answer = Entered


class Undo(Request, frozen=True, tag="undo"):
    answer = Undone


class NewSession(Request, frozen=True, tag="new_session"):
    answer = Entered


class SwitchSession(Request, frozen=True, tag="switch_session"):
    session: str
    answer = Entered


class ListSessions(Request, frozen=True, tag="list_sessions"):
    limit: int = 50
    answer = Sessions


class GetState(Request, frozen=True, tag="get_state"):
    answer = State


class GetMessages(Request, frozen=True, tag="get_messages"):
    whole: bool = False
    answer = Messages


AnyRequest = (
    Prompt
    | GoOn
    | Steer
    | Abort
    | Compact
    | SetAutoCompaction
    | Approve
    | Branch
    | Fork
    | Undo
    | NewSession
    | SwitchSession
    | ListSessions
    | GetState
    | GetMessages
)
