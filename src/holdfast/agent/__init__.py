"""`Keeper`, which keeps an agent loop inside its model's window, and a small agent built on it."""

from ..sessions.continuation import LengthRecovery, OverflowRecovery
from ..sessions.window import ContextWindow
from .agent import SYSTEM, Agent
from .keeper import Keeper

__all__ = ["SYSTEM", "Agent", "ContextWindow", "Keeper", "LengthRecovery", "OverflowRecovery"]
