"""The names of the callables that people pass in."""

from __future__ import annotations

from collections.abc import Callable

from .calls import Steps
from .view import Plan, Request, Skip

Clock = Callable[[], float]
"""Seconds since 1970."""
Trigger = Callable[[Request], bool]
Strategy = Callable[[Request], Plan | Skip | Steps[Plan | Skip]]
