"""The model catalog: context windows and prices by model id."""

from __future__ import annotations

import difflib
import functools
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from ..errors import InvalidInput, InvalidLimit
from ..messages.json_text import decodable
from .usage import Usage

__all__ = [
    "CATALOG",
    "FALLBACK_WINDOW",
    "Catalog",
    "ModelInfo",
    "Prices",
    "Ratios",
    "price_of",
    "prices_of",
    "takes_images",
]


@decodable
class ModelInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and prices of the models whose id matches ``pattern``; prices are USD per million tokens."""

    pattern: str
    """A glob on the lower-cased id: ``claude-opus-4[.-]6*``."""
    window: int
    """Prompt and reply together."""
    provider: str = "custom"
    output: int = 0
    """The longest reply; 0 means that there is no separate limit and becomes ``window``."""
    tokenizer: str = "o200k_base"
    """The nearest tokenizer that works offline."""
    input: int | None = None
    """The longest prompt, if the provider caps it below the window."""
    extended_window: int | None = None
    """A larger window that must be requested from the provider."""
    input_price: float | None = None
    output_price: float | None = None
    cache_read_price: float | None = None
    cache_write_price: float | None = None
    images: bool = False
    """Whether a prompt may hold images."""

    def __post_init__(self) -> None:
        if not self.pattern.strip("* "):
            raise InvalidInput(f"The pattern {self.pattern!r} would match every model: include at least part of an id.")
        if self.output == 0:
            msgspec.structs.force_setattr(self, "output", self.window)
        _check_limits(self)
        for name in PRICES:
            price = getattr(self, name)
            if price is not None and not 0 <= price < float("inf"):
                raise InvalidLimit(f"Model {self.pattern!r}: {name} is {price}, but a price is 0 or more.")


PRICES = ("input_price", "output_price", "cache_read_price", "cache_write_price")


def _check_limits(model: ModelInfo) -> None:
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


def as_model(entry: ModelInfo | Mapping[str, Any]) -> ModelInfo:
    """Returns the entry, converted from plain data if needed; suggests the right name for a misspelt key."""
    if isinstance(entry, ModelInfo):
        return entry
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"A model entry is a Model or a mapping, not {type(entry).__name__}.")
    name = f"Model {entry.get('pattern', '(without a pattern)')!r}"
    for key in entry:
        if key not in ModelInfo.__struct_fields__:
            near = difflib.get_close_matches(str(key), ModelInfo.__struct_fields__, 1, 0)[0]
            raise InvalidInput(f"{name}: there is no key {key!r}; did you mean {near!r}?")
    for key in ("pattern", "window"):
        if key not in entry:
            raise InvalidInput(f"{name}: the key {key!r} is missing.")
    try:
        return msgspec.convert(dict(entry), ModelInfo)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidInput):
            raise error.__cause__ from None
        raise InvalidInput(f"{name}: {error}.") from None


_LEADING = re.compile(r"[^:.]*[:.]")
LONG_SUFFIX = "[1m]"
"""Suffix by which coding agents request the extended window in the model id."""


LONG_WINDOW = 1_000_000
"""The window that the suffix requests where the catalog does not list one."""


def wants_long_window(model_id: str | None) -> bool:
    """Whether a model id ends in `[1m]`."""
    return model_id is not None and model_id.strip().lower().endswith(LONG_SUFFIX)


def id_variants(model_id: str) -> Iterator[str]:
    """Yields the id as given, then with one more leading provider part removed each time.

    The order matters: a dot is a separator in ``us.anthropic.claude-3-haiku`` and part of the name in
    ``gpt-4.1``, and only the catalog can tell, by finding the longer spelling first.
    """
    whole = model_id.strip().lower().removesuffix(LONG_SUFFIX)
    whole = whole.removeprefix("gemini:")  # a provider, whose name the pattern of its models would match
    yield whole
    rest = whole.rsplit("/", 1)[-1]
    if rest != whole:
        yield rest
    while (part := _LEADING.match(rest)) is not None:
        rest = rest[part.end() :]
        if not rest:
            return
        yield rest


FALLBACK_WINDOW = 128_000
"""Window of unknown models."""
_CLASS = re.compile(r"\[!?\]?[^]]*\]")


class Catalog:
    """Models by id pattern, the most specific first. Immutable: ``with_models`` returns a new catalog."""

    __slots__ = ("_own",)

    def __init__(self, own: Iterable[ModelInfo] = ()) -> None:
        self._own = tuple(own)

    @property
    def models(self) -> tuple[ModelInfo, ...]:
        """All entries, the user's own first."""
        return self._own + _builtin()

    def find(self, model_id: str) -> ModelInfo | None:
        """Returns the entry for this id, or None; ignores provider prefixes and case."""
        return _search(self._own, model_id) or _search_builtin(model_id)

    def window(self, model_id: str | None, *, extended: bool = False) -> int:
        """Returns the context window in tokens; with ``extended``, the larger one available on request."""
        model = self.find(model_id) if model_id else None
        window = FALLBACK_WINDOW if model is None else (extended and model.extended_window) or model.window
        if not wants_long_window(model_id):
            return window
        return (model and model.extended_window) or max(window, LONG_WINDOW)

    def with_models(self, *entries: ModelInfo | Mapping[str, Any]) -> Catalog:
        """Returns this catalog plus your entries; of two equal patterns the one added last wins."""
        return Catalog((*reversed([as_model(entry) for entry in entries]), *self._own))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Catalog:
        """Returns the built-in catalog plus the entries of a TOML file with ``[[models]]`` tables."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The model file {os.fspath(path)!r} cannot be read: {error}.") from None
        return cls().with_models(*read_models(text, os.fspath(path)))


def read_models(text: str, source: str) -> tuple[ModelInfo, ...]:
    """Parses the entries of one TOML text; ``source`` names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{source} is not valid TOML: {error}.") from None
    entries = data.get("models")
    if set(data) != {"models"} or not isinstance(entries, list):
        raise InvalidInput(f"{source} holds {sorted(data)}, but a model file is a list of [[models]] tables.")
    return tuple(as_model(entry) for entry in entries)


@functools.cache
def _builtin() -> tuple[ModelInfo, ...]:
    text = resources.files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    return read_models(text, "models.toml")


def _search(models: tuple[ModelInfo, ...], model_id: str) -> ModelInfo | None:
    for name in id_variants(model_id):
        fits = [model for model in models if _fits(name, model.pattern.lower())]
        if fits:
            return max(fits, key=lambda model: _specificity(model.pattern))
    return None


@functools.lru_cache(maxsize=256)
def _search_builtin(model_id: str) -> ModelInfo | None:
    """Cached, because an agent looks up the same model before every step."""
    return _search(_builtin(), model_id)


def _fits(name: str, pattern: str) -> bool:
    """Whether the pattern matches; one without a slash never matches a name with a host prefix."""
    return ("/" in pattern) == ("/" in name) and fnmatchcase(name, pattern)


@functools.cache
def _specificity(pattern: str) -> tuple[int, int, bool]:
    """Sort key: more literal characters are more specific; a literal id beats a pattern of the same length."""
    plain, classes = _CLASS.subn("", pattern)
    letters = len(plain.replace("*", "").replace("?", ""))
    return letters, classes, letters == len(pattern)


CATALOG = Catalog()
"""The built-in catalog; its file is read once, at the first look-up."""
READ_RATIO = 0.1
"""Usual price of a prompt-cache read, relative to input."""
WRITE_RATIO = 1.25
"""Usual price of a prompt-cache write, relative to input, if writes have a price."""
OUTPUT_RATIO = 5.0
"""Usual price of output, relative to input."""
_MILLION = 1_000_000


class Ratios(msgspec.Struct, frozen=True):
    """Prices as multiples of the input price: enough to compare contexts."""

    read: float = READ_RATIO
    write: float = WRITE_RATIO
    output: float = OUTPUT_RATIO

    def input_equivalent(self, usage: Usage) -> float:
        """Returns the number of input tokens that cost as much as this call."""
        return usage.input + self.read * usage.cache_read + self.write * usage.cache_write + self.output * usage.output


class Prices(msgspec.Struct, frozen=True, omit_defaults=True):
    """USD per million tokens; None for an unknown price."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            price = getattr(self, name)
            number = isinstance(price, int | float) and not isinstance(price, bool)
            if price is not None and not (number and 0 <= price < float("inf")):
                raise InvalidLimit(f"{name} must be a price of 0 or more, or None, not {price!r}.")

    @classmethod
    def of(cls, model: ModelInfo) -> Prices:
        """Returns the prices of a catalog entry."""
        return cls(model.input_price, model.output_price, model.cache_read_price, model.cache_write_price)

    @property
    def ratios(self) -> Ratios:
        """Price ratios, with the usual ratio for a missing price.

        Exception: a provider with a price for cache reads but none for writes charges the input price for writes.
        """
        if not self.input:
            return Ratios()
        unnamed = WRITE_RATIO if self.cache_read is None else 1.0
        return Ratios(
            READ_RATIO if self.cache_read is None else self.cache_read / self.input,
            unnamed if self.cache_write is None else self.cache_write / self.input,
            OUTPUT_RATIO if self.output is None else self.output / self.input,
        )

    def price(self, usage: Usage) -> float | None:
        """Returns USD for these tokens; None if some have no known price."""
        total = 0.0
        for name in self.__struct_fields__:
            if tokens := getattr(usage, name):
                each = getattr(self, name)
                if each is None:
                    return None
                total += tokens * each / _MILLION
        return total


def prices_of(model: str | None, catalog: Catalog = CATALOG) -> Prices | None:
    """Returns the prices of a model, by the provider's id or the user's name for it; None if it is unknown."""
    entry = catalog.find(model) if model else None
    return None if entry is None else Prices.of(entry)


def takes_images(model: str | None, catalog: Catalog = CATALOG) -> bool:
    """Whether the catalog lists images as input of a model, which may be named by a server's URL#ID."""
    entry = catalog.find(model.rpartition("#")[2]) if model else None
    return entry is not None and entry.images


def price_of(usage: Usage, model: str | None, catalog: Catalog = CATALOG) -> float | None:
    """Returns USD for one call, given its usage (`input` excludes cached tokens); None if unknown."""
    prices = prices_of(model, catalog)
    return None if prices is None else prices.price(usage)
