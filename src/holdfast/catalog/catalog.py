"""Looking a model up: the user's entries first, then the built-in ones, the most specific pattern first."""

from __future__ import annotations

import functools
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from importlib import resources
from pathlib import Path
from typing import Any

from holdfast.catalog.model import Model, as_model
from holdfast.catalog.names import LONG_SUFFIX, spellings
from holdfast.errors import InvalidInput

FALLBACK_WINDOW = 128_000
"""For models that nobody knows."""

_CLASS = re.compile(r"\[!?\]?[^]]*\]")


class Catalog:
    """What is known about models. Never changed: ``with_models`` gives a new one."""

    __slots__ = ("_own",)

    def __init__(self, own: Iterable[Model] = ()) -> None:
        self._own = tuple(own)

    @property
    def models(self) -> tuple[Model, ...]:
        """All entries, the user's own first."""
        return self._own + _builtin()

    def find(self, model_id: str) -> Model | None:
        """The entry for this id, or None; provider prefixes and capital letters do not matter."""
        return _search(self._own, model_id) or _search_builtin(model_id)

    def window(self, model_id: str | None, *, extended: bool = False) -> int:
        """How many tokens the model takes; with ``extended``, the larger window that it has on request."""
        model = self.find(model_id) if model_id else None
        if model is None or model_id is None:
            return FALLBACK_WINDOW
        if extended or model_id.strip().lower().endswith(LONG_SUFFIX):
            return model.extended_window or model.window
        return model.window

    def with_models(self, *entries: Model | Mapping[str, Any]) -> Catalog:
        """This catalog plus your entries; of two equal patterns the one added last wins."""
        return Catalog((*reversed([as_model(entry) for entry in entries]), *self._own))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Catalog:
        """The built-in catalog plus the entries of a TOML file with ``[[models]]`` tables."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"The model file {os.fspath(path)!r} cannot be read: {error}.") from None
        return cls().with_models(*read_models(text, os.fspath(path)))


def read_models(text: str, source: str) -> tuple[Model, ...]:
    """The entries of one TOML text; ``source`` names it in errors."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"{source} is not valid TOML: {error}.") from None
    entries = data.get("models")
    if set(data) != {"models"} or not isinstance(entries, list):
        raise InvalidInput(f"{source} holds {sorted(data)}, but a model file is a list of [[models]] tables.")
    return tuple(as_model(entry) for entry in entries)


@functools.cache
def _builtin() -> tuple[Model, ...]:
    text = resources.files(__package__).joinpath("models.toml").read_text(encoding="utf-8")
    return read_models(text, "models.toml")


def _search(models: tuple[Model, ...], model_id: str) -> Model | None:
    for name in spellings(model_id):
        fits = [model for model in models if _fits(name, model.pattern.lower())]
        if fits:
            return max(fits, key=lambda model: _specificity(model.pattern))
    return None


@functools.lru_cache(maxsize=256)
def _search_builtin(model_id: str) -> Model | None:
    """Remembered, because an agent asks for the same model before every step."""
    return _search(_builtin(), model_id)


def _fits(name: str, pattern: str) -> bool:
    """A pattern without a slash is about the model, so a host's name must not fit it by accident."""
    return ("/" in pattern) == ("/" in name) and fnmatchcase(name, pattern)


@functools.cache
def _specificity(pattern: str) -> tuple[int, int, bool]:
    """More letters fixed is more specific; an id spelt out beats a pattern of the same length."""
    plain, classes = _CLASS.subn("", pattern)
    letters = len(plain.replace("*", "").replace("?", ""))
    return letters, classes, letters == len(pattern)


CATALOG = Catalog()
"""The built-in catalog; its file is read at the first look-up, once."""
