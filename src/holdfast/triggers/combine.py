"""Triggers made of others (any of, all of, not), the two constant ones, and the size from which any of them fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from ..context import Request, View
from ..errors import InvalidInput

if TYPE_CHECKING:
    from ..types import Trigger


def always(request: Request) -> bool:
    """Fires on every request."""
    return True


def never(request: Request) -> bool:
    """Fires on no request."""
    return False


def any_of(*triggers: Trigger) -> Trigger:
    """Fires if any of these triggers does."""
    _require_triggers(triggers)
    return _Combined(triggers, any, min)


def all_of(*triggers: Trigger) -> Trigger:
    """Fires only if all of these triggers do."""
    _require_triggers(triggers)
    return _Combined(triggers, all, max)


def not_(trigger: Trigger) -> Trigger:
    """Fires if this trigger does not."""
    _require_triggers((trigger,))
    return lambda request: not trigger(request)


class _Combined(msgspec.Struct, frozen=True):
    """Several triggers as one."""

    triggers: tuple[Trigger, ...]
    combine: Callable[[Iterable[bool]], bool]
    limit: Callable[[list[int]], int]

    def __call__(self, request: Request) -> bool:
        return self.combine(trigger(request) for trigger in self.triggers)

    def token_limit(self, request: Request) -> int | None:
        limits = [limit for trigger in self.triggers if (limit := token_limit(trigger, request)) is not None]
        return self.limit(limits) if limits else None


def require_trigger(trigger: Trigger) -> Trigger:
    """Returns the trigger; raises InvalidInput if it cannot be asked."""
    if isinstance(trigger, type) or not callable(trigger):
        shown = f"the class {trigger.__name__}" if isinstance(trigger, type) else repr(trigger)
        raise InvalidInput(f"A trigger is a callable from a request to a bool, such as TokenCount(4000), not {shown}.")
    return trigger


def fires_on_anything(trigger: Trigger, request: Request) -> bool:
    """Whether a trigger fires even on an empty context: then its caller decides, not the context."""
    view = request.view
    empty = View(view.token_sums.estimator, format=view.format, lane=view.lane)
    try:
        return trigger(Request(empty, budget=request.budget, threshold=request.threshold, target=request.target))
    except Exception:
        return False  # it looks at messages


def token_limit(trigger: Trigger, request: Request) -> int | None:
    """Returns the size in tokens from which a trigger fires; None for one that does not look at tokens."""
    limit: Callable[[Request], int | None] | None = getattr(trigger, "token_limit", None)
    return None if limit is None else limit(request)


def _require_triggers(triggers: tuple[Trigger, ...]) -> None:
    if not triggers:
        raise InvalidInput("any_of, all_of and not_ take one or more triggers: callables from a request to a bool.")
    for trigger in triggers:
        require_trigger(trigger)
