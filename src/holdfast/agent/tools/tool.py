"""What a tool is: arguments that are checked, and work that is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ...messages import Json, Tool


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model may say when it calls a tool: the fields are its parameters, the first says what it is about."""


class AgentTool(msgspec.Struct, frozen=True):
    name: str
    about: str
    arguments: type[Arguments]
    run: Callable[[Any], Awaitable[str]]
    changes: bool = False
    """Does it change anything, so that a person is asked first?"""

    @property
    def told(self) -> Tool:
        """As the model is told of it."""
        return Tool(self.name, self.about, _schema(self.arguments))


def _schema(kind: type[Arguments]) -> Json:
    _, parts = msgspec.json.schema_components([kind])
    schema: Json = parts[kind.__name__]
    return {name: schema[name] for name in ("type", "properties", "required") if name in schema}
