"""Everything that takes part: simple rules, peers where they are installed, and Holdfast itself."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...errors import InvalidInput
from .contestant import Compacted, Compacting, Contestant, Family, Job, tokens_of
from .ours import LEDGER, OURS
from .simple import SIMPLE

__all__ = [
    "LEDGER",
    "OURS",
    "PEERS",
    "REAL",
    "SIMPLE",
    "Compacted",
    "Compacting",
    "Contestant",
    "Family",
    "Field",
    "Job",
    "field",
    "tokens_of",
]

REAL = "real summary"
"""What the tool itself wrote where it compacted."""
INSTALL = "pip install 'holdfast[peers]'"
PEERS = {
    "langchain": ("LangChain trim", "LangChain clear"),
    "litellm": ("LiteLLM compress",),
}
"""Contestants that are packages of others, by the package: known by name also where it is not installed."""


class Field(NamedTuple):
    """Who takes part, and who does not for want of a package."""

    contestants: tuple[Contestant, ...]
    left_out: tuple[str, ...] = ()


def field(chosen: Sequence[str] = ()) -> Field:
    """All contestants there are here, or those whose names hold one of the chosen words."""
    found = list(SIMPLE)
    absent: dict[str, str] = {}
    for package, names in PEERS.items():
        try:
            found += getattr(importlib.import_module(f".{package}", __name__), package.upper())
        except ImportError:
            absent |= dict.fromkeys(names, f"the package {package} is not installed: {INSTALL}")
    found += OURS
    words = [word.strip().lower() for word in chosen] or [""]
    for word in words:
        if not any(word in contestant.name.lower() for contestant in found):
            raise InvalidInput(_nobody(word, found, absent))
    return Field(
        tuple(one for one in found if _is_chosen(one.name, words)),
        tuple(f"{name} ({why})" for name, why in absent.items() if _is_chosen(name, words)),
    )


def _is_chosen(name: str, words: Sequence[str]) -> bool:
    return any(word in name.lower() for word in words)


def _nobody(word: str, found: Sequence[Contestant], absent: Mapping[str, str]) -> str:
    for name, why in absent.items():
        if word in name.lower():
            return f"{name} cannot take part: {why}."
    names = ", ".join(contestant.name for contestant in found)
    return f"No contestant is called {word!r}: choose among {names}."
