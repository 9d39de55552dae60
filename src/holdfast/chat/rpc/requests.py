"""Requests of a client: one JSON object per line, distinguished by `type`, and their parser."""

from __future__ import annotations

from typing import Any, ClassVar, get_args

import msgspec

from ...agent.tools import Mode, Permission
from ...errors import InvalidInput
from ...io.arguments import closest_name
from ...transcripts.exporting import ExportFormat
from ..cost import CostReport
from ..prompt_runner import PromptResult
from ..state import ChatCompactionResult, ChatState
from .records import (
    AbortData,
    AutoCompactionData,
    EmptyData,
    ExportData,
    HandoffData,
    MessagesData,
    ModeData,
    ModelData,
    RequestId,
    SessionData,
    SessionListData,
    UndoData,
)


class RpcRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    """Base of all requests."""

    id: RequestId = None
    response_data: ClassVar[type[msgspec.Struct]] = EmptyData
    """Type of the response's `data`."""

    @property
    def command(self) -> str:
        return str(self.__struct_config__.tag)


class PromptRequest(RpcRequest, frozen=True, tag="prompt"):
    text: str
    response_data = PromptResult


class ContinueRequest(RpcRequest, frozen=True, tag="go_on"):
    response_data = PromptResult


class SteerRequest(RpcRequest, frozen=True, tag="steer"):
    text: str


class AbortRequest(RpcRequest, frozen=True, tag="abort"):
    response_data = AbortData


class CompactRequest(RpcRequest, frozen=True, tag="compact"):
    instructions: str | None = None
    without_model: bool = False
    response_data = ChatCompactionResult


class SetAutoCompactionRequest(RpcRequest, frozen=True, tag="set_auto_compaction"):
    enabled: bool
    response_data = AutoCompactionData


class SetModelRequest(RpcRequest, frozen=True, tag="set_model"):
    model: str
    response_data = ModelData


class SetModeRequest(RpcRequest, frozen=True, tag="set_mode"):
    mode: Mode
    response_data = ModeData


class ApproveRequest(RpcRequest, frozen=True, tag="approve"):
    request: str
    permission: Permission
    message: str = ""


class BranchRequest(RpcRequest, frozen=True, tag="branch"):
    at: str | int
    response_data = SessionData


class ForkRequest(RpcRequest, frozen=True, tag="fork"):
    at: str | int | None = None
    response_data = SessionData


class HandoffRequest(RpcRequest, frozen=True, tag="handoff"):
    goal: str
    response_data = HandoffData


class UndoRequest(RpcRequest, frozen=True, tag="undo"):
    response_data = UndoData


class NewSessionRequest(RpcRequest, frozen=True, tag="new_session"):
    response_data = SessionData


class SwitchSessionRequest(RpcRequest, frozen=True, tag="switch_session"):
    session: str
    response_data = SessionData


class ListSessionsRequest(RpcRequest, frozen=True, tag="list_sessions"):
    limit: int = 50
    response_data = SessionListData


class GetStateRequest(RpcRequest, frozen=True, tag="get_state"):
    response_data = ChatState


class GetCostRequest(RpcRequest, frozen=True, tag="get_cost"):
    response_data = CostReport


class GetMessagesRequest(RpcRequest, frozen=True, tag="get_messages"):
    whole: bool = False
    response_data = MessagesData


class ExportRequest(RpcRequest, frozen=True, tag="export"):
    format: ExportFormat = "holdfast"
    response_data = ExportData


AnyRequest = (
    PromptRequest
    | ContinueRequest
    | SteerRequest
    | AbortRequest
    | CompactRequest
    | SetAutoCompactionRequest
    | SetModelRequest
    | SetModeRequest
    | ApproveRequest
    | BranchRequest
    | ForkRequest
    | HandoffRequest
    | UndoRequest
    | NewSessionRequest
    | SwitchSessionRequest
    | ListSessionsRequest
    | GetStateRequest
    | GetCostRequest
    | GetMessagesRequest
    | ExportRequest
)
REQUESTS: dict[str, type[RpcRequest]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyRequest)}
_REQUEST_DECODER: msgspec.json.Decoder[RpcRequest] = msgspec.json.Decoder(AnyRequest)


class InvalidRequest(InvalidInput):
    """Raised for a line that is not a valid request."""

    def __init__(self, why: str, id: RequestId = None) -> None:
        super().__init__(why)
        self.id = id


def parse_request(line: bytes) -> RpcRequest:
    """Decodes a request line; raises `InvalidRequest`."""
    try:
        return _REQUEST_DECODER.decode(line)
    except msgspec.ValidationError as problem:
        why = str(problem)
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise InvalidRequest(f"This line is not JSON ({problem}): send one object per line.") from None
    except RecursionError:
        raise InvalidRequest("This line is nested too deeply: send a flatter object.") from None
    given = _decode_loosely(line)
    raise InvalidRequest(_explain_invalid(given, why), _request_id(given))


def _decode_loosely(line: bytes) -> Any:
    """Decodes a line without a schema; None if it is not JSON."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _request_id(given: Any) -> RequestId:
    id = given.get("id") if isinstance(given, dict) else None
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


def _explain_invalid(given: Any, why: str) -> str:
    if given is not None and not isinstance(given, dict):
        return 'A request is an object, as in {"type": "get_state"}: send one per line.'
    kind = given.get("type") if given is not None else None
    if not isinstance(kind, str):
        return f"This is not a request ({why}): give it a type, one of {', '.join(REQUESTS)}."
    if kind not in REQUESTS:
        near = closest_name(kind, REQUESTS)
        return f"There is no request {kind!r}: {f'did you mean {near!r}?' if near else f'use {_request_types()}.'}"
    fields = ", ".join(REQUESTS[kind].__struct_fields__)
    return f"Invalid request {kind!r} ({why}): its fields are {fields}."


def _request_types() -> str:
    return f"one of {', '.join(REQUESTS)}"
