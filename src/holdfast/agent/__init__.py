"""`Keeper`, which keeps an agent loop inside its model's window, and a small agent built on it."""

from .agent import SYSTEM, Agent
from .continuation import LengthRecovery, OverflowRecovery
from .keeper import Keeper
from .window import ContextWindow

__all__ = ["SYSTEM", "Agent", "ContextWindow", "Keeper", "LengthRecovery", "OverflowRecovery"]
