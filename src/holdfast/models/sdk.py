"""The providers' own SDKs: extras, imported when a model is first asked."""

from __future__ import annotations

import os
from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

from ..errors import InvalidInput
from ..messages import Json

PLACEHOLDER = "none"
"""SDKs want a key even where the server wants none."""
ONE_CALL = {"Connection": "close"}
"""A connection left open would outlive the event loop of a caller who blocks; a summary is worth a handshake."""


class Sdk(NamedTuple):
    module: str
    extra: str
    keys: tuple[str, ...]
    """Environment variables that hold a key; any of them will do."""
    address: str
    """The environment variable that names another server."""

    def must_be_installed(self) -> None:
        try:
            found = find_spec(self.module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise InvalidInput(
                f"This model needs the {self.module} SDK: pip install 'holdfast[{self.extra}]'."
            ) from None

    def has_key(self) -> bool:
        return any(os.environ.get(name) for name in self.keys)

    def load(self) -> Any:
        return import_module(self.module)


class StreamedError(Exception):
    """An error that a provider reports inside a stream, in a body of its own shape."""

    def __init__(self, body: Any) -> None:
        super().__init__("The provider reported an error.")
        self.body = body


def plain(value: Any) -> Any:
    """An SDK's object as plain data."""
    return value.model_dump() if hasattr(value, "model_dump") else value


def beside(request: Json, names: Iterable[str]) -> Json:
    """Take out of a request what goes past the SDK, for its `extra_body`.

    An SDK looks at every part of a conversation, which takes longer than sending it; ours is as it has to be. And
    none knows every parameter that all models take.
    """
    return {name: request.pop(name) for name in names if name in request}
