"""Strategies and triggers as plain data: recorded with each compaction, and built again to explain it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any

import msgspec

from ..errors import InvalidInput
from ..messages import Json
from ..tokens import Estimator
from ..triggers import EventCount, OverThreshold, TokenCount, TurnCount, always, never
from .ledger import KeepLedger
from .pipeline import Pipeline
from .pruning import PruneToolResults
from .trail import KeepTrail
from .truncation import Truncate
from .windows import (
    KeepFraction,
    KeepLast,
    KeepNothing,
    KeepRecent,
    KeepUserMessages,
    SlidingWindow,
    TokenWindow,
    TurnWindow,
)

if TYPE_CHECKING:
    from ..types import Strategy, Trigger

_TRIGGERS: dict[str, Any] = {
    one.__name__: one for one in (EventCount, OverThreshold, TokenCount, TurnCount, always, never)
}
_MAX_TEXT, _MAX_DEPTH = 200, 6
"""Longer texts, such as prompts, are recorded as their digest; deeper values are left out."""
_WITHOUT_MODEL: dict[str, Callable[..., Strategy]] = {
    kind.__name__: kind
    for kind in (
        KeepFraction,
        KeepLast,
        KeepLedger,
        KeepNothing,
        KeepRecent,
        KeepTrail,
        KeepUserMessages,
        PruneToolResults,
        SlidingWindow,
        TokenWindow,
        Truncate,
        TurnWindow,
    )
}


def describe_parameters(value: Any) -> Json:
    """Returns the class and the public parameters of a strategy or a trigger; a function has only its name."""
    described: Json = _describe(value, 0)
    return described


def _describe(value: Any, depth: int) -> Any:
    match value:
        case None | bool() | float():
            return value
        case Integral():
            return int(value)
        case str():
            return value if len(value) <= _MAX_TEXT else {"sha256": hashlib.sha256(value.encode()).hexdigest()}
        case list() | tuple():
            return [_describe(item, depth + 1) for item in value] if depth < _MAX_DEPTH else None
        case set() | frozenset():
            return sorted(map(str, value))
        case Estimator():
            return value.name
    if not isinstance(value, msgspec.Struct) and not hasattr(value, "__dict__"):
        return {"kind": type(value).__name__}
    if isinstance(value, type) or hasattr(value, "__code__"):
        return {"kind": value.__name__}
    fields = value.__struct_fields__ if isinstance(value, msgspec.Struct) else vars(value)
    described = {"kind": type(value).__name__}
    if depth < _MAX_DEPTH:
        described |= {name: _describe(getattr(value, name), depth + 1) for name in fields if not name.startswith("_")}
    return described


def build_strategy(described: Json) -> Strategy | None:
    """Returns the strategy that was described; None if it calls a model or is a function of the application."""
    kind, given = described.get("kind"), {name: value for name, value in described.items() if name != "kind"}
    if kind == Pipeline.__name__:
        stages = [build_strategy(stage) for stage in given.get("stages", ())]
        return Pipeline(*(stage for stage in stages if stage)) if stages and all(stages) else None
    known = _WITHOUT_MODEL.get(str(kind))
    return None if known is None else known(**given)


def build_trigger(described: Json) -> Trigger:
    """Returns the trigger that was described; raises InvalidInput for one of the application."""
    kind, given = described.get("kind"), {name: value for name, value in described.items() if name != "kind"}
    if kind not in _TRIGGERS or given.get("estimator") is not None:
        raise InvalidInput(f"The trigger {kind} cannot be built again.")
    made: Trigger = _TRIGGERS[kind](**given) if given else _TRIGGERS[kind]
    return made


def build_fallback(described: Json, fallback: str) -> Strategy | None:
    """Returns the strategy that stood in for a failed summary, described by the summary's own parameters."""
    limit = described.get("max_tokens")
    return KeepLedger(limit if isinstance(limit, int) else None) if fallback == "ledger" else None
