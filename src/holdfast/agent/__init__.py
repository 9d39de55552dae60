"""`Keeper`, which keeps an agent loop inside its model's window, and a small agent built on it."""

from ..sessions.continuation import LengthRecovery, OverflowRecovery
from .agent import SYSTEM, Agent
from .keeper import Keeper

__all__ = ["SYSTEM", "Agent", "Keeper", "LengthRecovery", "OverflowRecovery"]
