"""Triggers made of triggers, and the two that need no question (S7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidInput
from ..view import Request

if TYPE_CHECKING:
    from ..types import Trigger


def always(request: Request) -> bool:
    return True


def never(request: Request) -> bool:
    return False


def any_of(*triggers: Trigger) -> Trigger:
    """S7: fires if any of these does."""
    _at_least_one(triggers)
    return lambda request: any(trigger(request) for trigger in triggers)


def all_of(*triggers: Trigger) -> Trigger:
    """Fires only if all of these do."""
    _at_least_one(triggers)
    return lambda request: all(trigger(request) for trigger in triggers)


def not_(trigger: Trigger) -> Trigger:
    """Fires if this one does not."""
    _at_least_one((trigger,))
    return lambda request: not trigger(request)


def _at_least_one(triggers: tuple[Trigger, ...]) -> None:
    if not triggers or not all(callable(trigger) for trigger in triggers):
        raise InvalidInput("any_of, all_of and not_ take one or more triggers: callables from a request to yes or no.")
