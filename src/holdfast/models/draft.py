"""A reply while it comes."""

from __future__ import annotations

from collections.abc import Iterator

from ..calls import Answer, Failure, Finish, Reply, StepReply
from ..messages import Json, ToolCall, decode_all, from_json
from ..tokens import Usage

_BROKEN_OFF = Failure("transport", "The stream ended before the reply was complete.")
_NO_CALL = Failure("transport", "The model wanted to call a tool, but its call could not be read.")
"""It happens by chance, so it may pass."""


class Draft:
    """What a provider said so far. Without a finish, the stream broke off."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.finish: Finish | None = None
        self.usage: Usage | None = None
        self.model: str | None = None
        self.messages: list[Json] = []
        """What the provider takes back with the next request."""
        self.cut_off: list[ToolCall] = []
        """Calls that broke off, where the format has no room for them."""

    def reply(self) -> Answer:
        if self.finish is None:
            return _BROKEN_OFF
        return Reply("".join(self.texts), self.finish, self.usage, self.model)

    def step(self, format: str) -> StepReply | Failure:
        if self.finish is None:
            return _BROKEN_OFF
        calls = (*_calls_in(self.messages, format, self.finish), *self.cut_off)
        finish = "tool_call" if calls and self.finish == "stop" else self.finish
        if finish == "tool_call" and not calls:
            return _NO_CALL
        return StepReply(tuple(self.messages), "".join(self.texts), calls, finish, self.usage, self.model)


def _calls_in(messages: list[Json], format: str, finish: Finish) -> Iterator[ToolCall]:
    calls = [call for message in decode_all(messages, format)[0] for call in message.calls]
    for call in calls:
        cut = finish == "length" and call is calls[-1]
        arguments = read_arguments(call.arguments, cut) if isinstance(call.arguments, str) else call.arguments
        yield ToolCall(call.id, call.name, arguments, call.kind, call.signature)


def read_arguments(written: str, cut: bool) -> Json | str:
    """The object that a model wrote, or its text where that is none. Nothing at all is an object without fields."""
    if not written.strip() and not cut:
        return {}
    try:
        value = from_json(written)
    except ValueError:
        return written
    return value if isinstance(value, dict) else written
