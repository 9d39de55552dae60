"""Everything that takes part: simple rules, peers where they are installed, and Holdfast itself."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import InvalidInput
from .contestant import Compacted, Compacting, Contestant, Family, Job, tokens_of
from .ours import LEDGER, OURS
from .simple import SIMPLE

__all__ = [
    "LEDGER",
    "OURS",
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
_PEERS = {
    "langchain": ("LANGCHAIN", "LangChain's trim_messages and ClearToolUsesEdit", "langchain"),
    "litellm": ("LITELLM", "LiteLLM's compress", "litellm"),
}


class Field(NamedTuple):
    """Who takes part, and who does not for want of a package."""

    contestants: tuple[Contestant, ...]
    left_out: tuple[str, ...] = ()


def field(chosen: Sequence[str] = (), *, peers: bool = True) -> Field:
    """All contestants there are here, or those whose names hold one of the chosen words."""
    found, missing = list(SIMPLE), []
    for module, (name, what, package) in _PEERS.items() if peers else ():
        try:
            found += getattr(importlib.import_module(f".{module}", __name__), name)
        except ImportError:
            missing.append(f"{what} (the package {package} is not installed: {INSTALL})")
    found += OURS
    if not chosen:
        return Field(tuple(found), tuple(missing))
    words = [word.strip().lower() for word in chosen]
    for word in words:
        if not any(word in contestant.name.lower() for contestant in found):
            names = ", ".join(contestant.name for contestant in found)
            raise InvalidInput(f"No contestant is called {word!r}: choose among {names}.")
    return Field(tuple(one for one in found if any(word in one.name.lower() for word in words)))
