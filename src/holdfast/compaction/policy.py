"""The policy of a conversation: when to compact, how far, by what, and counted how. Every default is resolved here.

Public functions take keywords, the name of a preset or a `Policy`, and call `resolve` once; nothing behind them
computes a default again. A session stores its policy as plain data (`Policy.stored`, `read_policy`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import msgspec

from ..context import Request, View
from ..errors import HoldfastError, InvalidInput, InvalidLimit
from ..messages import Json
from ..models import context_window_of, resolve_model, scrub
from ..models.calls import Limits, Model
from ..strategies import KeepLedger, StructuredSummary, as_strategy
from ..strategies.names import parse_strategy
from ..strategies.parameters import build_strategy, build_trigger, describe_parameters
from ..tokens import estimator_for
from ..tokens.budget import DEFAULT_RESERVE, CodexLimit, Reserve, Threshold, require_fraction, require_positive
from ..tokens.window import Window, WindowFacts
from ..triggers import OverThreshold
from ..triggers.limits import require_trigger, token_limit

if TYPE_CHECKING:
    from ..types import EstimatorLike, Strategy, StrategyLike, SummarizerLike, Trigger

GAP = 1 / 3
"""Appended tokens between two automatic compactions, as a share of the room between overhead and threshold."""
FREED = 1 / 3
"""Share of that room which an automatic compaction frees, or says that it did not."""
_LEAST_ROOM = 1 / 4
"""Share of that room which a target leaves for messages, however large system prompt and tools are."""
_OWN = OverThreshold()


class Bounds(NamedTuple):
    """The numbers of a policy for one context; None where neither a window nor a budget is known."""

    window: int | None
    limit: int | None
    """Tokens that must not be exceeded: the window less the reply, or the budget."""
    threshold: int | None
    """Size above which an automatic compaction is due."""
    target: int | None
    """Size to compact down to."""
    gap: int
    """Tokens appended between two automatic compactions, unless the limit is exceeded."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """When to compact, how far, by which strategy, and counted how: an immutable value."""

    name: str = ""
    """Of the preset; empty for a policy made of keywords."""
    about: str = ""
    """Description in one sentence."""
    figures: Mapping[str, str] = {}
    """Its constants and rules in words, for display."""
    arguments: Json = {}
    """Arguments of the preset."""
    changes: Json = {}
    """What was changed since, as plain data."""
    window: int | None = None
    """Context window as given; None for the model's."""
    usual_window: int = 128_000
    """Window if neither a window nor the model's is known."""
    reply: Reserve = Reserve(DEFAULT_RESERVE, 1 / 4)
    """Part of the window kept free for the reply."""
    budget: int | None = None
    """Tokens that must not be exceeded, in place of a window or below it."""
    threshold: Threshold | None = None
    """Size above which to compact; None for the limit itself."""
    target: int | None = None
    """Size to compact down to, as given; None for half the window, or `target_share` of the threshold if less."""
    target_share: float = 0.75
    trigger: Trigger = _OWN
    strategy: Strategy | None = None
    """None for a structured summary if there is a model, else the ledger."""
    estimator: EstimatorLike | None = None
    """None for the real tokenizer."""
    calibrated: bool = True
    """Whether token usage reported by the provider calibrates the estimate."""
    limits: Limits = Limits()
    min_saving: float | None = None
    """Smallest saving worth committing, as a fraction of the context; None for the strategy's own."""
    gap: float = GAP
    summarizer: Model | None = None
    instructions: str | None = None
    """Steer the summary."""
    missing: tuple[str, ...] = ()
    """Objects of another process that were not stored; the preset's own stand in for them."""

    @property
    def is_automatic(self) -> bool:
        """Whether the policy's own threshold decides: only then gap and freed share apply.

        A trigger by hand, or one of an application's policy that counts something else, is never held back.
        """
        return "trigger" not in self.changes and (self.threshold is not None or self.trigger is _OWN)

    def bounds(self, window: int | Window | None, overhead: int, fires_at: int | None = None) -> Bounds:
        """Returns the numbers in a window where system prompt and tools take `overhead` tokens.

        Without a window, the policy's own counts. Where prompt and tools take two thirds of the threshold and more,
        it lies just above what compaction can reach: it is lifted, without a jump, to what they take plus a third of
        it. `fires_at` is the size at which a trigger given by hand fires.
        """
        shown = window.tokens if isinstance(window, Window) else window
        shown = size = shown or self.window or (self.usual_window if self.name else None)
        if isinstance(window, Window) and window.whole and isinstance(self.threshold, CodexLimit):
            size = window.whole  # the share of it is taken once, by the tool or by the preset
        limit = None if size is None else size - self.reply.of(size)
        limit = min((most for most in (limit, self.budget) if most is not None), default=fires_at)
        if limit is None:
            return Bounds(None, None, None, self.target, 0)
        at = documented = limit if self.threshold is None else self.threshold.tokens(size or 0, overhead)
        if self.threshold is not None and not self.threshold.contains_overhead:
            at = max(at, overhead + at // 3)
        at = max(1, min(limit, at))
        room = max(0, at - overhead)
        target = self.target
        if target is None and self.strategy is not None and "strategy" in self.changes:
            target = self.strategy.target  # a strategy given by hand has its own limit
        if target is None:
            own = min((size or limit) // 2, limit // 2 if self.budget else limit, int(documented * self.target_share))
            target = max(1, min(at, max(min(own, at - int(room * FREED)), overhead + int(room * _LEAST_ROOM))))
        return Bounds(shown, limit, at, target, int(room * self.gap) if self.name else 0)

    def request(
        self, view: View, window: Window | None = None, session_id: str | None = None
    ) -> tuple[Bounds, Request]:
        """Returns this policy's numbers for a view in a window, and the request with them for trigger and strategy."""
        bare, fires_at = Request(view, session_id=session_id), None
        if not self.name and self.budget is None and self.target is None:
            fires_at = token_limit(self.trigger, bare)
        bounds = self.bounds(window if self.name else None, view.overhead, fires_at)
        if fires_at is not None and self.strategy is not None:  # a strategy given by hand has its own limit
            bounds = bounds._replace(limit=None)
        return bounds, Request(
            view,
            budget=bounds.limit,
            threshold=bounds.threshold,
            target=bounds.target,
            gap=bounds.gap,
            session_id=session_id,
            instructions=self.instructions,
            summarizer_window=None if self.summarizer is None else context_window_of(self.summarizer),
            has_summarizer=self.summarizer is not None,
        )

    def why_not_due(self, request: Request) -> str:
        """Returns why nothing is compacted now, empty if it is due: no trigger fires, or the policy's own too soon."""
        if not self.trigger(request):
            return "the trigger did not fire"
        if not self.is_automatic or (request.budget is not None and request.tokens > request.budget):
            return ""
        appended = request.view.appended_tokens
        if appended is None or appended >= request.gap:
            return ""
        return f"{appended:,} tokens were appended since the last compaction: the next comes after {request.gap:,}"

    def window_in(self, facts: WindowFacts) -> Window | None:
        """Returns the window of a conversation about which these facts are known."""
        return facts.window(self.window, self.usual_window if self.name else None)

    def strategy_for(self, request: Request) -> Strategy:
        """Returns the strategy; the ledger may exceed a target that was not asked for, where notes would not fit."""
        if self.strategy is not None:
            return self.strategy
        if self.summarizer is not None:
            return StructuredSummary(max_tokens=request.target)
        return KeepLedger(max_tokens=self.target)

    def changed(
        self,
        *,
        window: int | None = None,
        budget: int | None = None,
        target: int | None = None,
        trigger: Trigger | None = None,
        strategy: StrategyLike | None = None,
        summarizer: SummarizerLike | None = None,
        instructions: str | None = None,
        estimator: EstimatorLike | None = None,
        min_saving: float | None = None,
        limits: Limits | None = None,
        gap: float | None = None,
    ) -> Self:
        """Returns the policy with these values; None leaves one as it is. Raises InvalidLimit and InvalidInput."""
        limits_given = {"window": window, "budget": budget, "target": target}
        if gap is not None:
            require_fraction("gap", gap)
        given: dict[str, Any] = {
            **{name: require_positive(name, limit) for name, limit in limits_given.items() if limit is not None},
            "trigger": None if trigger is None else require_trigger(trigger),
            "strategy": None if strategy is None else _named(strategy),
            "summarizer": None if summarizer is None else resolve_model(summarizer),
            "instructions": instructions,
            "estimator": estimator,
            "min_saving": min_saving,
            "limits": limits,
            "gap": gap,
        }
        given = {name: value for name, value in given.items() if value is not None}
        if not given:
            return self
        changes = {**self.changes, **{name: _as_data(name, value) for name, value in given.items()}}
        made = msgspec.structs.replace(self, **given, changes=changes)
        if made.target is not None:
            for name, most in (("budget", made.budget), ("window", made.window)):
                if most is not None and made.target > most:
                    raise InvalidLimit(
                        f"target={made.target} is above {name}={most}: choose a target below the {name}."
                    )
        return made

    def stored(self) -> Json:
        """Returns the policy as plain data: name, arguments and changes; of objects only what describes them."""
        return {"name": self.name, "arguments": self.arguments, "changes": self.changes}


PolicyLike = str | Policy
"""A policy, or the name of a preset."""


def resolve(given: PolicyLike | None = None, **keywords: Any) -> Policy:
    """Returns the policy of a call: a preset by name, a policy, or neither, with the keywords of the call."""
    return find_policy(given).changed(**keywords)


def find_policy(given: PolicyLike | None) -> Policy:
    """Returns a policy by the name of its preset; without one, the policy of plain keywords."""
    if given is None:
        return _KEYWORDS
    if isinstance(given, Policy):
        return given
    from .presets import preset  # presets are policies

    return preset(given)


_KEYWORDS = Policy(target_share=1.0, reply=Reserve())


def read_policy(stored: Json) -> Policy:
    """Returns a stored policy. What cannot be built again is listed in `missing`, and the preset's own is used."""
    from .presets import DEFAULT_PRESET, preset  # presets are policies

    name, changes, missing = stored.get("name"), stored.get("changes", {}), []
    try:
        made = preset(name, **stored.get("arguments", {})) if name else _KEYWORDS
    except HoldfastError:  # of the application, or of another version
        made, missing = preset(DEFAULT_PRESET), [f"preset {name}"]
    given = {}
    for key, value in changes.items():
        try:
            given[key] = _from_data(key, value)
        except (HoldfastError, TypeError):
            missing.append(f"{key} {value.get('kind', '') if isinstance(value, Mapping) else value}")
    return msgspec.structs.replace(made.changed(**given), missing=tuple(missing))


def _named(given: StrategyLike) -> Strategy | None:
    """Returns the strategy; None for the name of the library's default."""
    strategy = parse_strategy(given) if isinstance(given, str) else given
    return None if strategy is None else as_strategy(strategy)


def _as_data(name: str, value: Any) -> Any:
    if name == "summarizer":
        return scrub(value.name)
    if name == "estimator":
        return value if isinstance(value, str) else estimator_for(value).name
    if name == "limits":
        return msgspec.to_builtins(value)
    return describe_parameters(value) if name in ("strategy", "trigger") else value


def _from_data(name: str, value: Any) -> Any:
    """Builds what was stored; raises where it was an object of the application."""
    if name == "strategy":
        strategy = build_strategy(value)
        if strategy is None:
            raise InvalidInput("This strategy cannot be built again.")
        return strategy
    if name == "trigger":
        return build_trigger(value)
    if name == "summarizer":
        raise InvalidInput("Models belong to a process.")
    if name == "estimator":
        estimator_for(value)
    if name == "limits":
        return msgspec.convert(value, Limits)
    return value
