"""From a line to a request. Whatever is wrong with it is said in a sentence, with the id that it came with."""

from __future__ import annotations

import difflib
from typing import Any, get_args

import msgspec

from ..errors import InvalidInput
from .records import Id
from .requests import AnyRequest, Request

REQUESTS: dict[str, type[Request]] = {str(kind.__struct_config__.tag): kind for kind in get_args(AnyRequest)}
_DECODER: msgspec.json.Decoder[Request] = msgspec.json.Decoder(AnyRequest)


class Unreadable(InvalidInput):
    """This line is no request."""

    def __init__(self, why: str, id: Id = None) -> None:
        super().__init__(why)
        self.id = id


def read_request(line: bytes) -> Request:
    try:
        return _DECODER.decode(line)
    except msgspec.ValidationError as problem:
        why = str(problem)
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise Unreadable(f"This line is no JSON ({problem}): send one object a line.") from None
    except RecursionError:
        raise Unreadable("This line is nested too deep to be read.") from None
    given = _plain(line)
    raise Unreadable(_complaint(given, why), _id_in(given))


def _plain(line: bytes) -> Any:
    """The line as it is; None where it cannot even be read so."""
    try:
        return msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _id_in(given: Any) -> Id:
    id = given.get("id") if isinstance(given, dict) else None
    return id if isinstance(id, str | int) and not isinstance(id, bool) else None


def _complaint(given: Any, why: str) -> str:
    if given is not None and not isinstance(given, dict):
        return 'A request is an object, as in {"type": "get_state"}: send one a line.'
    kind = given.get("type") if given is not None else None
    if not isinstance(kind, str):
        return f"This is no request ({why}): give it a type, one of {', '.join(REQUESTS)}."
    if kind not in REQUESTS:
        near = difflib.get_close_matches(kind, REQUESTS, 1, 0.5)
        return f"There is no request {kind!r}: {f'did you mean {near[0]!r}?' if near else f'use {_one_of()}.'}"
    fields = ", ".join(REQUESTS[kind].__struct_fields__)
    return f"The request {kind!r} cannot be used ({why}): it takes {fields}."


def _one_of() -> str:
    return f"one of {', '.join(REQUESTS)}"
