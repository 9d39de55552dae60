"""One entry of the catalog, checked when it is made so that no later sum has to be."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import msgspec

from holdfast.errors import InvalidInput, InvalidLimit


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about the models whose id fits ``pattern``; prices are USD for a million tokens."""

    pattern: str
    """A glob on the lower-cased id: ``claude-opus-4[.-]6*``."""
    window: int
    """Prompt and reply together."""
    provider: str = "custom"
    output: int = 0
    """The longest reply; equals ``window`` where no separate limit exists (then 0 may be given)."""
    tokenizer: str = "o200k_base"
    """The nearest tokenizer that works offline."""
    input: int | None = None
    """The longest prompt, where the provider caps it below the window."""
    extended_window: int | None = None
    """A larger window that the caller has to ask the provider for."""
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None

    def __post_init__(self) -> None:
        if not self.pattern.strip("* "):
            raise InvalidInput(f"The pattern {self.pattern!r} would fit every model: name at least part of an id.")
        if self.output == 0:
            msgspec.structs.force_setattr(self, "output", self.window)
        _check_limits(self)
        for name in PRICES:
            price = getattr(self, name)
            if price is not None and not 0 <= price < float("inf"):
                raise InvalidLimit(f"Model {self.pattern!r}: {name} is {price}, but a price is 0 or more.")


PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")


def _check_limits(model: Model) -> None:
    name = f"Model {model.pattern!r}"
    if model.window <= 0:
        raise InvalidLimit(f"{name}: window is {model.window}, but a window is at least 1 token.")
    if not 0 < model.output <= model.window:
        raise InvalidLimit(f"{name}: output is {model.output}, but it has to lie between 1 and window={model.window}.")
    if model.input is not None and not 0 < model.input <= model.window:
        raise InvalidLimit(f"{name}: input is {model.input}, but it has to lie between 1 and window={model.window}.")
    if model.extended_window is not None and model.extended_window < model.window:
        raise InvalidLimit(
            f"{name}: extended_window is {model.extended_window}, less than window={model.window}: swap them."
        )


def as_model(entry: Model | Mapping[str, Any]) -> Model:
    """The entry itself, or one made from plain data; a misspelt key is answered with the right one."""
    if isinstance(entry, Model):
        return entry
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"A model entry is a Model or a mapping, not {type(entry).__name__}.")
    name = f"Model {entry.get('pattern', '(without a pattern)')!r}"
    for key in entry:
        if key not in Model.__struct_fields__:
            near = difflib.get_close_matches(str(key), Model.__struct_fields__, 1, 0)[0]
            raise InvalidInput(f"{name}: there is no key {key!r}; did you mean {near!r}?")
    for key in ("pattern", "window"):
        if key not in entry:
            raise InvalidInput(f"{name}: the key {key!r} is missing.")
    try:
        return msgspec.convert(dict(entry), Model)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidInput):
            raise error.__cause__ from None
        raise InvalidInput(f"{name}: {error}.") from None
