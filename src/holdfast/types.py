"""Types of what users pass in: strategies, triggers, estimators, messages, models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from .context import Plan, Request, Skip
from .context.checkpoint import Checkpoint
from .context.events import Event
from .messages import Message
from .models.calls import Model, Steps
from .models.names import SummarizeFunction
from .tokens import Estimator, Usage

__all__ = [
    "CheckpointLike",
    "Clock",
    "Estimator",
    "EstimatorLike",
    "Event",
    "Message",
    "MessageLike",
    "Model",
    "Plan",
    "Request",
    "SdkObject",
    "Skip",
    "Strategy",
    "StrategyFunction",
    "StrategyLike",
    "SummarizerLike",
    "SystemLike",
    "ToolsLike",
    "Trigger",
    "UsageLike",
]
Clock: TypeAlias = Callable[[], float]
"""Returns seconds since 1970."""
Trigger: TypeAlias = Callable[[Request], bool]
"""Decides whether to compact."""
StrategyFunction: TypeAlias = Callable[[Request], Plan | Skip | Steps[Plan | Skip]]
"""Plans a compaction, or skips it; as a generator it yields model calls and receives their answers."""


@runtime_checkable
class Strategy(Protocol):
    """A strategy with limits of its own. A plain function is one without: see `StrategyFunction`."""

    @property
    def target(self) -> int | None:
        """Tokens to compact down to; None leaves it to the caller."""
        ...

    @property
    def min_saving(self) -> float:
        """The smallest saving worth committing, as a fraction of the context."""
        ...

    def __call__(self, request: Request, /) -> Plan | Skip | Steps[Plan | Skip]:
        """Plans a compaction of this request."""
        ...


StrategyLike: TypeAlias = Strategy | StrategyFunction | str
"""A strategy with limits of its own, a plain function, or a name as on the command line ("sliding:20")."""
EstimatorLike: TypeAlias = Estimator | Callable[[str], int] | str
"""An estimator, a function from text to tokens, or the name of a built-in one ("o200k_base", "chars/4", …)."""


class SdkObject(Protocol):
    """An object of a provider's SDK: a pydantic model."""

    def model_dump(self, *args: Any, **kwargs: Any) -> Any:
        """Returns its fields as plain data."""
        ...


class DataclassObject(Protocol):
    """A dataclass, as some frameworks define their messages."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


class DictObject(Protocol):
    """An object that returns its fields as a dict, as some frameworks define their messages."""

    def to_dict(self) -> Any:
        """Returns its fields as plain data."""
        ...


MessageLike: TypeAlias = Message | Mapping[str, Any] | SdkObject | DataclassObject | DictObject
"""A message: a dict in a wire format, an object of a provider's SDK or of a framework, or a neutral `Message`."""
UsageLike: TypeAlias = Usage | Mapping[str, Any] | SdkObject
"""Token usage as a provider reports it: a dict or an object of its SDK."""
SummarizerLike: TypeAlias = Model | SummarizeFunction | str
"""A model, a function from text to text (async or not), or a name such as "anthropic:claude-…"."""
SystemLike: TypeAlias = str | Sequence[Any] | Mapping[str, Any]
"""A system prompt: text, or blocks as the provider takes them."""
ToolsLike: TypeAlias = Sequence[Any] | Mapping[str, Any]
"""Tool definitions as the provider takes them."""
CheckpointLike: TypeAlias = Checkpoint | Mapping[str, Any] | str | bytes
"""A result's checkpoint, or the same as JSON."""
