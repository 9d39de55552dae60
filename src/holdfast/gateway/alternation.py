"""Models whose chat template refuses two messages of one role in a row: known by a setting, or by their refusal."""

from __future__ import annotations

import re

import msgspec

from ..messages import Json, decode_all, encode_all, find_problems, normalize_for_wire, rules_for
from .protocols import RequestBody
from .replies import error_text

_REFUSAL = re.compile(
    r"roles must alternate|must alternate between|unexpected role '\w+' after role '\w+'", re.IGNORECASE
)
"""The templates of Mistral and Gemma, as servers pass their errors on, and Mistral's own API."""


class Alternation:
    """Makes the roles of requests alternate for the models that require it."""

    def __init__(self, *, always: bool = False) -> None:
        self._always = always
        self._learned: set[tuple[str, str]] = set()
        """Wire format and name of the models that refused a request."""

    def shape(self, body: RequestBody | None, changed: bytes | None) -> bytes | None:
        """Returns the request as the model accepts it: what is given if its roles alternate, or need not.

        `changed` is what is to be forwarded in place of the client's bytes, if anything.
        """
        if body is None or not (self._always or _key(body) in self._learned) or not _has_roles(body):
            return changed
        request = body if changed is None else RequestBody(body.protocol, changed)
        messages: list[Json] = msgspec.json.decode(request.messages)
        decoded, format = decode_all(messages, body.protocol.format)
        rules = rules_for(format, alternating=True)
        if all(problem.rule != "alternation" for problem in find_problems(decoded, rules)):
            return changed
        return request.with_messages(msgspec.json.encode(encode_all(normalize_for_wire(decoded, rules), format)))

    def learn(self, body: RequestBody | None, status: int, reply: bytes, encoding: str) -> bool:
        """Whether this reply refuses the order of roles, and the request has not been shaped yet."""
        if body is None or status < 400 or self._always or not _has_roles(body) or _key(body) in self._learned:
            return False
        if not _REFUSAL.search(error_text(reply, encoding)):
            return False
        self._learned.add(_key(body))
        return True


def _key(body: RequestBody) -> tuple[str, str]:
    return body.protocol.format, body.model


def _has_roles(body: RequestBody) -> bool:
    """Whether the messages are a list whose roles could alternate: items have none."""
    return body.has_all_messages and not rules_for(body.protocol.format).items
